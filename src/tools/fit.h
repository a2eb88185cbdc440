/*
 * Answers that would be too long for whoever reads them.
 */
#ifndef TOOLS_FIT_H
#define TOOLS_FIT_H

#include <jansson.h>
#include <stddef.h>

#define FIT_MAX 40000 /* characters of an answer, unless more was asked for */

/*
 * Cut the longest texts in a value, until it has some "max" characters as JSON
 * or none is long any more; how many were.  Of what is called "log_tail" (or
 * something like "last_log_tail") the end is kept, of others the beginning,
 * and the text says how much is left out.
 */
size_t fit_texts(json_t *v, size_t max);

#endif
