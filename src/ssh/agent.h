/* The user's ssh agent, where the system keeps it. */
#ifndef SSH_AGENT_H
#define SSH_AGENT_H

/*
 * Many clients start servers without SSH_AUTH_SOCK, but have it themselves.
 * If it is not set, the socket of theirs, or of an agent in one of the usual
 * places, or NULL.  Caller frees.
 */
char *agent_find(void);

#endif
