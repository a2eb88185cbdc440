/*
 * Files: read whole within a limit, written whole or not at all.
 */
#ifndef BASE_FS_H
#define BASE_FS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Add the content of the file to "out"; ERR_LIMIT if it does not fit.  On
 * failure "out" is as it was. */
int fs_read(const char *path, struct buf *out, struct err *err);

/* Write all bytes, however many calls that takes; -1 with errno. */
int fs_write_all(int fd, const void *data, size_t len);

/*
 * Make the file hold exactly these bytes, by way of a temporary name in the
 * same directory and a rename: a reader sees the old content or the new one,
 * even after a crash.  The umask does not apply; a symlink is replaced, not
 * followed.  What root replaces stays its owner's.
 */
int fs_replace(const char *path, const void *data, size_t len, mode_t mode,
    struct err *err);

/* Make the directory and its missing parents.  A path that exists and is no
 * directory is an error. */
int fs_mkdirs(const char *path, mode_t mode, struct err *err);

/* Can anybody write it but us and root? */
bool fs_others_write(const struct stat *st);

/* Is it a socket that belongs to this user?  A link to one is. */
bool fs_own_socket(const char *path);

/* Where an open directory is, without links; NULL if the system does not tell.
 * Caller frees. */
char *fs_fd_path(int fd);

/* Sockets are close-on-exec from their beginning: another thread may be
 * starting a child.  Where that cannot be asked for, proc.c lets children
 * inherit nothing by default. */
#ifndef SOCK_CLOEXEC
#define SOCK_CLOEXEC 0
#endif
int fs_accept(int listener);

/* pipe(2) with close-on-exec on both ends. */
int fs_pipe(int fds[2], struct err *err);

/* Make sure descriptors 0, 1 and 2 are open, on /dev/null if need be. */
void fs_std_fds(void);

/* Allow ourselves as many descriptors as we may have. */
void fs_many_fds(void);

#endif
