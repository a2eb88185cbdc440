/*
 * What the doctor found: lists of checks, each ok, a warning or failed, with
 * what to do about it.
 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

#include <jansson.h>
#include <stdbool.h>

enum report_state { REPORT_OK, REPORT_WARNING, REPORT_FAILED };

/*
 * Append {check, state, found, todo} to the list.  "todo" is NULL where there
 * is nothing to do.  What is found may be any bytes.
 */
void report_add(json_t *list, const char *check, enum report_state state,
    const char *todo, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));

/* The worst state in a list. */
enum report_state report_worst(const json_t *list);
const char *report_word(enum report_state state);

/* The list below its title; with "brief" only what is not ok. */
void report_print(const char *title, const json_t *list, bool brief);

/* Sandboxes ({name, checks}) side by side, a line for each check. */
void report_print_table(const json_t *sandboxes);

#endif
