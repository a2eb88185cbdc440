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

/* Start it; it answers when this returns. */
struct localhost *localhost_start(const struct until *until, struct err *err);
void localhost_stop(struct localhost *l);

/* Its entry for the configuration, named "local".  Borrowed. */
const json_t *localhost_entry(const struct localhost *l);

#endif
