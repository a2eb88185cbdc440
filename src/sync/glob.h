/*
 * Patterns of names, in the two dialects that users write.  Pure.
 */
#ifndef SYNC_GLOB_H
#define SYNC_GLOB_H

#include <stdbool.h>
#include <stddef.h>

/*
 * As Python's fnmatch: "*" (any bytes, slashes too), "?" (a character), "[a-z]"
 * and "[!a-z]"; everything else, backslashes too, is itself.
 */
bool glob_match(const char *pattern, const char *text);

#endif
