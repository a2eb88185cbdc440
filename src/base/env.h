/* Environments for the programs that we start. */
#ifndef BASE_ENV_H
#define BASE_ENV_H

#include <stddef.h>

/* A list of "NAME=value" with NULL at its end.  Zeroed is not usable. */
struct env {
	char **list;
	size_t count;
};

/* A copy of ours. */
void env_init(struct env *e);
void env_free(struct env *e);

/* Set a variable; a value of NULL removes it. */
void env_set(struct env *e, const char *name, const char *value);

/* The value of a variable, or NULL.  Lives until it is set anew. */
const char *env_get(const struct env *e, const char *name);

/*
 * Where the user's session keeps its sockets (D-Bus, systemd): clients often
 * start a server without XDG_RUNTIME_DIR, though the directory is there.
 */
void env_session(struct env *e);

#endif
