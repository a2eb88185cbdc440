/*
 * REMOTE_SANDBOX_LOCAL_ROOTS: the local directories that may be read and
 * written.
 */
#ifndef CONFIG_ROOTS_H
#define CONFIG_ROOTS_H

#include "base/err.h"

/*
 * May this local path (absolute, or relative to where we are) be used?  Links
 * are resolved, in the roots as well as in the path, as far as it exists; what
 * does not exist yet may not have ".." in it.
 *
 * The variable holds directories, with ":" between them or as a JSON array; "~"
 * is the home directory.  Not set or blank: every path may be used.  A root
 * that does not exist allows nothing.
 *
 * 0, or ERR_DENIED with the variable in the sentence; ERR_INVALID if its
 * value is no list of absolute directories, for a slip in it must not open
 * everything.
 */
int roots_check(const char *path, struct err *err);

/* The same for a directory that was opened as "path": where it is counts, as a
 * link may have been put on the way since that was checked. */
int roots_check_fd(int fd, const char *path, struct err *err);

/* The same with the value of the variable (NULL: not set) and the home
 * directory given. */
int roots_allow(const char *list, const char *home, const char *path,
    struct err *err);

#endif
