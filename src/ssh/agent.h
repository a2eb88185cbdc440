/* The user's ssh agent, where the system keeps it. */
#ifndef SSH_AGENT_H
#define SSH_AGENT_H

#include <stdbool.h>

/*
 * Many clients start servers without SSH_AUTH_SOCK.  If it is not set, or is
 * no socket, that of an agent in one of the usual places, or NULL.  Caller
 * frees.
 */
char *agent_find(void);

/* Will ssh have an agent, by the variable or by what was found? */
bool agent_there(void);

#endif
