/*
 * A private sshd on loopback, for trying things out: own keys, own port, for
 * the current user, gone when we are.
 */
#ifndef SSH_LOCALHOST_H
#define SSH_LOCALHOST_H

#include <jansson.h>

#include "base/err.h"
#include "base/until.h"

struct localhost;

/* Start it; it answers when this returns.  At the end, however we come to ours,
 * "program leave-local DIRECTORY" is run; NULL: nothing. */
struct localhost *localhost_start(const char *program,
    const struct until *until, struct err *err);
void localhost_stop(struct localhost *l);

/* The key file of the one in a directory.  Caller frees. */
char *localhost_key(const char *dir);

/* Its entry for the configuration, named "local".  Borrowed. */
const json_t *localhost_entry(const struct localhost *l);

#endif
