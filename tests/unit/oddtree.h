/* A small tree with everything that makes listing hard. */
#ifndef UNIT_ODDTREE_H
#define UNIT_ODDTREE_H

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "help.h"

static inline void
odd_file(int root, const char *path, const char *text, mode_t mode)
{
	int fd =
	    openat(root, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd != -1);
	assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static inline void
odd_time(int root, const char *path, time_t s, long ns)
{
	struct timespec t[2] = { { s, ns }, { s, ns } };

	assert_int_equal(utimensat(root, path, t, AT_SYMLINK_NOFOLLOW), 0);
}

/* A new tree; remove it with odd_remove(), which frees the name. */
static inline char *
odd_make(void)
{
	static const char *const dirs[] = { "a", "a/b", "a/b/c", "empty",
		".git", ".git/objects", "sub", "sub/node_modules", ".rsmcp-1",
		"new\nline", "-d" };
	char *path = make_dir();
	int root = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	size_t i;

	assert_true(root != -1);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		assert_int_equal(mkdirat(root, dirs[i], 0755), 0);
	odd_file(root, "a/b/c/f", "hello", 0640);
	odd_file(root, "a/zero", "", 0755);
	odd_file(root, "a.c", "x", 0444);
	odd_file(root, "a b", "x", 04755);
	odd_file(root, " lead and trail ", "x", 0600);
	odd_file(root, "new\nline/in", "x", 0600);
	odd_file(root, "end\n", "xy", 0600);
	odd_file(root, "-n", "x", 0600);
	odd_file(root, "-d/-name", "x", 0600);
	odd_file(root, "*", "x", 0600);
	odd_file(root, "quo'te\"$(x)`y`\\", "x", 0600);
	odd_file(root, "\xff\xfe", "x", 0600);
	odd_file(root, "\xc3\xa4\x1b[1m", "x", 0600);
	odd_file(root, ".git/config", "x", 0600);
	odd_file(root, "sub/node_modules/m", "x", 0600);
	odd_file(root, "sub/x.pyc", "x", 0600);
	odd_file(root, ".rsmcp-1/part", "x", 0600);
	assert_int_equal(symlinkat("a/b", root, "link"), 0);
	assert_int_equal(symlinkat("/no\nwhere ", root, "dangling"), 0);
	assert_int_equal(symlinkat("..", root, "a/up\n"), 0);
	assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
	odd_time(root, "a.c", 1000000000, 123456789);
	odd_time(root, "a/zero", -2, 250000000);
	odd_time(root, "link", 1000000001, 5);
	odd_time(root, "a", 1000000002, 999999999);
	close(root);
	return path;
}

static inline void
odd_remove(char *path)
{
	const char *const argv[] = { "rm", "-rf", path, NULL };
	struct proc_request req = { .argv = argv };
	struct until until = until_in(30000);
	struct proc_result res;
	struct err err;

	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	proc_result_free(&res);
	free(path);
}

#endif
