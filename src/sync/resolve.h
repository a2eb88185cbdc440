/*
 * Opening a path below a directory in one call, where the system can; a file
 * per platform.
 */
#ifndef SYNC_RESOLVE_H
#define SYNC_RESOLVE_H

/*
 * Open "path" below "dir_fd" with these flags of open(2), through no symbolic
 * link and never above it.  -1 with errno; ENOSYS: this system cannot, or
 * would not say, and the path has to be walked.
 */
int resolve_open(int dir_fd, const char *path, int flags);

#endif
