/* Small questions about strings. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The whole of "s" as a decimal integer between min and max; white space
 * around it is allowed, anything else is not.  Returns 0 and *out, or -1.
 */
int str_to_int(const char *s, int64_t min, int64_t max, int64_t *out);

/* The whole of "s" as a finite decimal number.  Returns 0 and *out, or -1. */
int str_to_num(const char *s, double *out);

/* true/yes/on/1/y/t and false/no/off/0/n/f, any case.  0 and *out, or -1. */
int str_to_bool(const char *s, bool *out);

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);
/* Unlike tolower(), the same in every locale. */
char str_lower(char c);
/* Same letters, ASCII case aside. */
bool str_same(const char *a, const char *b);

/* The word that goes with so many. */
const char *str_plural(int64_t n, const char *one, const char *more);

/* Nothing but white space (or NULL). */
bool str_blank(const char *s);

/*
 * How many single-character changes (insert, delete, replace, swap with the
 * next) separate two names: at most "max" + 1 is returned.  For "did you
 * mean" see base/nearest.h.
 */
unsigned str_distance(const char *a, const char *b, unsigned max);

#endif
