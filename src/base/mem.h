/*
 * Memory that is always there: running out of it ends the program with a
 * line on stderr, so no caller checks.  What these return is freed by free().
 */
#ifndef BASE_MEM_H
#define BASE_MEM_H

#include <stddef.h>

/* How the program ends then; for libraries that return NULL instead. */
_Noreturn void out_of_memory(void);

void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
/* Like realloc() for an array of "count" members; overflow is fatal too. */
void *xreallocarray(void *old, size_t count, size_t size);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t len);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
