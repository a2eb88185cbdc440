/*
 * Local files for output that is too long for a reply.
 */
#ifndef SSH_OUTPUTS_H
#define SSH_OUTPUTS_H

/* Seven days, and so much of them; then the oldest go. */
#define OUTPUTS_KEEP_S 604800
#define OUTPUTS_FILES_MAX 1000
#define OUTPUTS_BYTES_MAX (INT64_C(4) << 30)

/* A name for a new file, or NULL if there is no place for it.  Removes those
 * that are too old or too many, unless somebody has them locked: so lock it
 * while it is written.  Caller frees. */
char *outputs_path(const char *stream);

#endif
