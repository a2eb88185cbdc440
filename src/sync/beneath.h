/*
 * Files below a directory, and never anywhere else.
 *
 * Every function takes the root as a descriptor and a relative path, and
 * follows no symbolic link on the way: openat2() with RESOLVE_BENEATH and
 * RESOLVE_NO_SYMLINKS where the kernel has it, else component by component
 * with O_NOFOLLOW.  What is at the end of the path is never followed either:
 * a link there is replaced, deleted or dated itself.
 *
 * A path that is absolute, empty, or has "" (as in "a//b" or "a/"), "." or
 * ".." in it fails with ERR_DENIED, and so does one with a link on the way.
 * After a failed call errno is that of the failure, so that a caller can tell
 * a full disk (ENOSPC, EDQUOT) from the rest.
 */
#ifndef SYNC_BENEATH_H
#define SYNC_BENEATH_H

#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#include "base/err.h"
#include "sync/tree.h"

/* All that is ours begins with this. */
#define BENEATH_PREFIX ".rsmcp-"

/* The directory that holds "path", opened for the *at() calls (reading it
 * needs another open); *name points at its last part within "path".  With
 * "make", missing directories are made, with the umask's mode.  Close it. */
int beneath_parent(int root_fd, const char *path, bool make, const char **name,
    struct err *err);

/* Open the directory itself, for reading. */
int beneath_dir(int root_fd, const char *path, struct err *err);

/* Open a regular file for reading; *e gets its size, mtime and mode. */
int beneath_open(int root_fd, const char *path, struct entry *e,
    struct err *err);

/* The same of a regular file that is open; "path" is for the message. */
int beneath_stat(int fd, const char *path, struct entry *e, struct err *err);

/* Make a directory and those above it; one that is there already is fine.
 * Its mode is 0700 until beneath_meta(). */
int beneath_mkdir(int root_fd, const char *path, struct err *err);
/* In place of whatever is there, unless that is a directory. */
int beneath_symlink(int root_fd, const char *path, const char *target,
    struct err *err);
/* One file, link or other thing; with "dir", one empty directory.  What is
 * gone already is fine. */
int beneath_delete(int root_fd, const char *path, bool dir, struct err *err);
/* For futimens() and the like: the mtime alone. */
void beneath_times(const struct entry *e, struct timespec times[2]);
/* Mode (permission bits only) and mtime; of a link the mtime alone. */
int beneath_meta(int root_fd, const struct entry *e, struct err *err);

/* A file in the making, next to its place; it gets its name with
 * beneath_commit(), whole, or vanishes with beneath_abort().  Until then its
 * mode is 0600 and it is locked against beneath_sweep(). */
struct beneath_file {
	int dir_fd;
	bool lent; /* dir_fd is another's */
	int fd;
	char temp[64];
	const char *name; /* within the path given */
};
int beneath_create(int root_fd, const char *path, struct beneath_file *f,
    struct err *err);
/* The same for who writes one file after another and renames no directory
 * between them: the one of the file before stays open.  Start with
 * BENEATH_NO_LAST. */
struct beneath_last {
	int fd;
	char *dir;
};
#define BENEATH_NO_LAST ((struct beneath_last){ .fd = -1 })
int beneath_create_next(int root_fd, struct beneath_last *last,
    const char *path, struct beneath_file *f, struct err *err);
void beneath_last_free(struct beneath_last *last);
/* With mode and mtime of "e"; its path is for the message.  After a failure
 * the file is gone, as after beneath_abort(). */
int beneath_commit(struct beneath_file *f, const struct entry *e,
    struct err *err);
void beneath_abort(struct beneath_file *f);

/*
 * Remove what runs that were interrupted left in the root and in the
 * directories named by the tree: temporaries of beneath_create() that nobody
 * is writing, those of beneath_symlink(), and parts of big files that nobody
 * came back for in a week.  Other names with our prefix stay.
 */
void beneath_sweep(int root_fd, const struct tree *t);
/* Remove the parts whose names begin with the same bytes, but for this one and
 * those that somebody writes. */
void beneath_drop_parts(int dir_fd, const char *part, size_t same);

#endif
