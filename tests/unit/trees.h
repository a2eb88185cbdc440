/*
 * Real trees of files for the tests of sync: made, looked at as text, removed.
 */
#ifndef UNIT_TREES_H
#define UNIT_TREES_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/until.h"
#include "help.h"
#include "sync/tree.h"

static inline int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

/* Remove a tree, and free its name. */
static inline void
remove_tree(char *top)
{
	assert_int_equal(nftw(top, remove_one, 16,
	                     FTW_DEPTH | FTW_PHYS | FTW_MOUNT),
	    0);
	free(top);
}

static inline int
open_root(const char *top)
{
	int fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_not_equal(fd, -1);
	return fd;
}

/* A file below "root", with its content, mode 0644 and an mtime. */
static inline void
put_file(int root, const char *path, const char *bytes, size_t len)
{
	static const struct timespec times[2] = {
		{ .tv_sec = 1600000000, .tv_nsec = 123456789 },
		{ .tv_sec = 1600000000, .tv_nsec = 123456789 },
	};
	int fd =
	    openat(root, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_int_not_equal(fd, -1);
	assert_int_equal(fs_write_all(fd, bytes, len), 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	assert_int_equal(futimens(fd, times), 0);
	assert_int_equal(close(fd), 0);
}

static inline void
put_dir(int root, const char *path)
{
	assert_int_equal(mkdirat(root, path, 0755), 0);
}

/* Does it hold exactly this? */
static inline void
holds(int root, const char *path, const char *want)
{
	int fd = openat(root, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char got[4096];
	ssize_t n;

	if (fd == -1)
		fail_msg("there is no file %s", path);
	n = read(fd, got, sizeof(got) - 1);
	assert_true(n >= 0);
	got[n] = '\0';
	assert_string_equal(got, want);
	close(fd);
}

static inline bool
is_there(int root, const char *path)
{
	struct stat st;

	return fstatat(root, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

/* How many names the directory has. */
static inline size_t
names_in(int root, const char *path)
{
	DIR *dir = fdopendir(openat(root, path, O_RDONLY | O_CLOEXEC));
	struct dirent *d;
	size_t n = 0;

	assert_non_null(dir);
	while ((d = readdir(dir)) != NULL)
		n +=
		    strcmp(d->d_name, ".") != 0 && strcmp(d->d_name, "..") != 0;
	closedir(dir);
	return n;
}

/* An entry of a list. */
static inline struct entry *
want(struct tree *t, const char *path, enum entry_type type, int64_t size)
{
	struct entry *e = tree_add(t, path, NULL);

	e->type = type;
	e->size = size;
	e->mode = type == ENTRY_DIR ? 0755 : 0644;
	e->mtime = INT64_C(1600000000123456789);
	return e;
}

#endif
