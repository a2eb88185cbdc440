/*
 * What a user wants to find: an extended regular expression, and the \d, \w and
 * \s that everybody knows.
 */
#ifndef TOOLS_EXPRESSION_H
#define TOOLS_EXPRESSION_H

#include "base/err.h"

/* As "grep -E" of any system reads it; NULL if it is none.  Caller frees. */
char *expression_new(const char *given, struct err *err);

#endif
