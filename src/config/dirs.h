/*
 * Where things are kept: sockets in a directory that lives as long as the
 * login, the rest in a state directory.  Both are for this user alone.
 */
#ifndef CONFIG_DIRS_H
#define CONFIG_DIRS_H

#include "base/err.h"

/*
 * The directory for sockets, made if need be.  Its path is short, since
 * sockets have little room for theirs.  ERR_DENIED if something is there
 * that is not ours alone.  Caller frees.
 */
char *dirs_runtime(struct err *err);

/* The state directory (REMOTE_SANDBOX_MCP_HOME, or where the system keeps
 * such), made if need be.  Caller frees. */
char *dirs_state(struct err *err);

/* A directory below the state directory, made if need be.  Caller frees. */
char *dirs_state_sub(const char *name, struct err *err);

#endif
