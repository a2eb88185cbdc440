/*
 * Local files for output that is too long for a reply.
 */
#ifndef SSH_OUTPUTS_H
#define SSH_OUTPUTS_H

#define OUTPUTS_KEEP_S 604800 /* seven days */

/* A name for a new file, or NULL if there is no place for it.  The first call
 * of a process removes files that are too old.  Caller frees. */
char *outputs_path(const char *stream);

#endif
