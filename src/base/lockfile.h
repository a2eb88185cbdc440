/*
 * A file that is locked for as long as its holder lives, with a line in it
 * that says who that is.  The kernel lets go of the lock when the process
 * ends, however it ends.
 */
#ifndef BASE_LOCKFILE_H
#define BASE_LOCKFILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/until.h"

/* Room for what a holder says of itself. */
#define LOCKFILE_TEXT 256

/*
 * Take the lock and write "text" into the file.  Returns a descriptor to hold
 * on to, or -1.  ERR_DENIED: until the until ended, somebody else had it;
 * "holder" (LOCKFILE_TEXT bytes) is then what that one wrote, else "".
 */
int lockfile_take(const char *path, const char *text, char *holder,
    const struct until *until, struct err *err);

/* Remove the file and let go. */
void lockfile_give(const char *path, int fd);

/* Does somebody hold it?  "holder" as above. */
bool lockfile_held(const char *path, char *holder);

#endif
