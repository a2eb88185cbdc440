/*
 * What several unit tests need: messages that say something, recorded texts,
 * and a directory that is gone afterwards.
 */
#ifndef UNIT_HELP_H
#define UNIT_HELP_H

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "test.h"

/* A literal as bytes with their length, NULs included. */
#define BYTES(literal) (literal), sizeof(literal) - 1

static inline void
says(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%s\" does not say: %s", text, part);
}

static inline void
says_not(const char *text, const char *part)
{
	if (strstr(text, part) != NULL)
		fail_msg("\"%s\" says: %s", text, part);
}

/* A file of tests/data; the caller frees it. */
static inline char *
recorded(const char *name)
{
	char *path = path_join(TEST_DATA, name);
	struct buf text;
	struct err err;

	buf_init(&text, 1 << 20);
	if (fs_read(path, &text, &err) == -1)
		fail_msg("%s", err.msg);
	free(path);
	return buf_take(&text);
}

/* "unit" n times; the caller frees it. */
static inline char *
repeated(const char *unit, size_t n)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	while (n-- > 0)
		buf_adds(&b, unit);
	return buf_take(&b);
}

/* A new directory with a short path, as sockets need; the caller frees it. */
static inline char *
make_dir(void)
{
	char path[] = "/tmp/rsmcp-test.XXXXXX";

	assert_non_null(mkdtemp(path));
	return xstrdup(path);
}

/* Remove it with the files in it, and free its name. */
static inline void
remove_dir(char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL) {
		char *name = path_join(dir, entry->d_name);

		if (strcmp(entry->d_name, ".") != 0 &&
		    strcmp(entry->d_name, "..") != 0 && unlink(name) == -1)
			assert_int_equal(rmdir(name), 0);
		free(name);
	}
	closedir(d);
	assert_int_equal(rmdir(dir), 0);
	free(dir);
}

#endif
