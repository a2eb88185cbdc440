/*
 * Paths as text.  Nothing here touches the disk, so nothing here follows
 * symlinks; what must not leave a tree is opened with the fs functions.
 */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include <stdbool.h>

/* The path without "//", "." and resolvable "..", as POSIX reads it; "" is
 * ".".  A leading "/" stays, ".." above the root vanishes.  Caller frees. */
char *path_clean(const char *path);

/* "dir" and "name" joined; an absolute "name" stands alone.  Caller frees. */
char *path_join(const char *dir, const char *name);

/* The last part of a path; "" if it ends in a slash. */
const char *path_base(const char *path);

/* All before the last part; "." if there is nothing.  Caller frees. */
char *path_dir(const char *path);

/* Is it "~" or "~/x"? */
bool path_is_home(const char *path);

/* "~" and "~/x" with the given home directory; anything else is copied
 * ("~user" stays as it is).  Caller frees. */
char *path_home(const char *path, const char *home);

/*
 * "path" (relative, from outside) names something strictly below the
 * directory it will be joined to: not empty, not absolute, no ".." component,
 * not "." itself.
 */
bool path_inside(const char *path);

#endif
