/*
 * Patterns of paths as git reads them (gitignore(5)): "*" and "?" stop at
 * slashes, "**" between slashes is any number of directories.  Pure.
 */
#ifndef SYNC_WILD_H
#define SYNC_WILD_H

#include <stdbool.h>
#include <stddef.h>

struct wild;

/* NULL if it can never match (a set that does not end). */
struct wild *wild_new(const char *pattern);
void wild_free(struct wild *w);

/* Takes at most the product of both lengths. */
bool wild_match(const struct wild *w, const char *text);

#endif
