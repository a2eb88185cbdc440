/*
 * How busy a host is: one script, and the reading of what it prints.
 */
#ifndef SSH_PROBE_H
#define SSH_PROBE_H

#include <jansson.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

/* Ask the host.  The object has cpu, memory, disk, gpu, gpu_free_mb and
 * idle_score; what could not be measured is null. */
json_t *probe_run(struct link *link, const struct until *until,
    struct err *err);

/* Read what the script printed.  Pure. */
json_t *probe_parse(const char *text);

/* The same for the last line of "df -Pk": {total_mb, free_mb, used_pct}, or
 * null. */
json_t *probe_disk(const char *text);

/* What several that print sections share: the text of one, from behind its
 * line "=NAME=" to the next that begins with "=" (caller frees); and the next
 * line of "*at" that is not empty, ended by NUL, or NULL. */
char *probe_section(const char *text, const char *name);
char *probe_line(char **at);

#endif
