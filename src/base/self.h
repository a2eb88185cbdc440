/* Our own program, and the process that runs it. */
#ifndef BASE_SELF_H
#define BASE_SELF_H

/* The path of the running program, or NULL if the system does not tell.
 * Caller frees. */
char *self_path(void);

/* From now on this process is the parent of those below it whose own parent
 * ends, also once it runs another program; where the system has that.  May be
 * called between fork() and exec(). */
void self_adopt(void);

#endif
