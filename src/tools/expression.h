/*
 * What a user wants to find: an extended regular expression, and the \d, \w,
 * \s and (?:...) that everybody knows.
 */
#ifndef TOOLS_EXPRESSION_H
#define TOOLS_EXPRESSION_H

#include "base/err.h"

/* As "grep -E" of any system reads it; NULL if it is none, and the caller adds
 * the argument's name to the error.  Caller frees. */
char *expression_new(const char *given, struct err *err);

#endif
