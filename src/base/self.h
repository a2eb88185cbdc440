/* Our own program. */
#ifndef BASE_SELF_H
#define BASE_SELF_H

/* The path of the running program, or NULL if the system does not tell.
 * Caller frees. */
char *self_path(void);

#endif
