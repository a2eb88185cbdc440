/*
 * What a user wants to find: an extended regular expression, and what everybody
 * writes besides: \d, \w, \s, (?:...), a "?" for the shortest match, a "{" that
 * repeats nothing.
 */
#ifndef TOOLS_EXPRESSION_H
#define TOOLS_EXPRESSION_H

#include "base/err.h"

/*
 * As "grep -E" of any system reads it.  NULL if it cannot be put so, and the
 * caller adds the argument's name to the error.  Caller frees.
 *
 * Whether it is one at all is the business of the host's grep, which has to
 * read it anyway: what that takes is without limit (nested repetitions), and
 * over there it ends with the call.
 */
char *expression_new(const char *given, struct err *err);

#endif
