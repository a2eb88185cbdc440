/* Results of a tool on stdout (errors for people on stderr). */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <jansson.h>
#include <stdio.h>

#include "base/err.h"

/* "rc", "result" and "err" as tool_run() left them. */
void show_json(int rc, const json_t *result, const struct err *err);
void show_text(int rc, const json_t *result, const struct err *err);

/* A text from a host as it may be printed on "f": if that is a terminal,
 * without control sequences.  The caller frees it. */
char *show_said(FILE *f, const char *text);

#endif
