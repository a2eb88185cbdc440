/* The user's ssh agent, where the system keeps it. */
#ifndef SSH_AGENT_H
#define SSH_AGENT_H

#include <stdbool.h>

#include "base/err.h"

/*
 * Many clients start servers without SSH_AUTH_SOCK, but have it themselves, and
 * the watchdog has another environment than the server that it works for.  If
 * the variable names no agent, the socket of theirs, of the one that was
 * remembered, or of one in one of the usual places, or NULL.  Caller frees.
 */
char *agent_find(void);

/* Will ssh have an agent, by the variable or by what was found? */
bool agent_there(void);

/* Let the watchdog know the agent of our environment, or of our client's. */
int agent_remember(struct err *err);
void agent_forget(void);

#endif
