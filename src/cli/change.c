#include "cli/change.h"

#include <errno.h>
#include <libgen.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/secret.h"
#include "cli/diff.h"

#define FILE_MAX ((size_t)64 << 20)

int
change_init(struct change *c, const char *path, struct err *err)
{
	struct stat st;

	memset(c, 0, sizeof(*c));
	buf_init(&c->before, FILE_MAX);
	buf_init(&c->after, SIZE_MAX);
	c->mode = 0600;
	/* A link to the file, as those have who keep it in a repository, is
	 * to stay one. */
	c->path = realpath(path, NULL);
	if (c->path == NULL && errno == ENOENT) {
		c->path = xstrdup(path);
		if (lstat(path, &st) == 0)
			return err_set(err, ERR_INVALID,
			    "%s is a link to a file that does not exist", path);
		return 0;
	}
	if (c->path == NULL || stat(c->path, &st) == -1)
		return err_sys(err, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID, "%s is not a file", path);
	c->there = true;
	c->mode = st.st_mode & 07777;
	return fs_read(c->path, &c->before, err);
}

void
change_free(struct change *c)
{
	free(c->path);
	if (c->before.cap > 0)
		secret_wipe(c->before.data, c->before.cap);
	if (c->after.cap > 0)
		secret_wipe(c->after.data, c->after.cap);
	buf_free(&c->before);
	buf_free(&c->after);
	memset(c, 0, sizeof(*c));
}

static bool
equal(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}

bool
change_needed(const struct change *c)
{
	return !equal(&c->before, &c->after);
}

void
change_show(const struct change *c)
{
	diff_print(c->path, c->before.data, c->after.data);
}

/* Its program may have written it since. */
static int
check_same(const struct change *c, struct err *err)
{
	struct buf now;
	int rc = 0;

	buf_init(&now, FILE_MAX);
	if (c->there)
		rc = fs_read(c->path, &now, err);
	else if (access(c->path, F_OK) == 0)
		rc = err_set(err, ERR_IO, "%s was made meanwhile; try again",
		    c->path);
	if (rc == 0 && !equal(&now, &c->before))
		rc = err_set(err, ERR_IO,
		    "%s was changed by somebody else meanwhile; try again",
		    c->path);
	if (now.cap > 0)
		secret_wipe(now.data, now.cap);
	buf_free(&now);
	return rc;
}

int
change_allowed(const struct change *c, struct err *err)
{
	char *dir = path_dir(c->path), *above;
	int rc = 0;

	while (access(dir, F_OK) == -1 && errno == ENOENT &&
	    strchr(dir, '/') != NULL) {
		above = path_dir(dir);
		free(dir);
		dir = above;
	}
	if (access(dir, W_OK) == -1)
		rc = err_sys(err, "cannot write %s: in %s", c->path, dir);
	free(dir);
	return rc;
}

static int
make_directory(const char *path, struct err *err)
{
	char *copy = xstrdup(path);
	int rc = fs_mkdirs(dirname(copy), 0700, err);

	free(copy);
	return rc;
}

/* A name of its own for each copy: none is ever written over. */
static char *
backup_path(const char *path)
{
	time_t now = time(NULL);
	char stamp[32], *whole;
	struct tm tm;
	int n = 0;

	localtime_r(&now, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	whole = xasprintf("%s.backup-%s", path, stamp);
	while (access(whole, F_OK) == 0) {
		free(whole);
		whole = xasprintf("%s.backup-%s-%d", path, stamp, ++n);
	}
	return whole;
}

int
change_make(const struct change *c, char **backup, struct err *err)
{
	char *copy = c->there ? backup_path(c->path) : NULL;

	*backup = NULL;
	if (make_directory(c->path, err) == -1 || check_same(c, err) == -1 ||
	    (copy != NULL &&
	        fs_replace(copy, c->before.data, c->before.len, c->mode, err) ==
	            -1) ||
	    fs_replace(c->path, c->after.data, c->after.len, c->mode, err) ==
	        -1) {
		free(copy);
		return -1;
	}
	*backup = copy;
	return 0;
}
