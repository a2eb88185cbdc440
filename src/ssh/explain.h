/*
 * What ssh said when it failed, as one sentence that says what to do.
 * Pure: the text comes from ssh, and through it from the server.
 */
#ifndef SSH_EXPLAIN_H
#define SSH_EXPLAIN_H

#include <stdbool.h>

#include "base/err.h"
#include "config/sandbox.h"

/*
 * Fill "err" from what a failed login printed.  ERR_DENIED means that trying
 * again without a change is useless (authentication, host key).
 */
int explain_login(const struct sandbox *sb, const char *text, struct err *err);

/* Is this such an error, of a server that did not let us in?  Also if it is
 * repeated later on. */
bool explain_refused(const struct err *err);

#endif
