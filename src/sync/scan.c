/*
 * Walking a local tree.
 *
 * By descriptors, so that a directory that is swapped for a link meanwhile is
 * not followed, and depth first with one open directory a level, up to a
 * depth that nothing real reaches.
 */
#include "sync/scan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"

#define DEPTH_MAX 500 /* each holds a descriptor open */
#define ENTRIES_MAX ((size_t)3 << 20)
#define IGNORE_MAX ((size_t)1 << 20)
#define NO_ENTRY SIZE_MAX
#define CHECK_EVERY 256 /* entries between looks at the until */

/* Linux and macOS call it differently. */
#ifdef __APPLE__
#define MTIME st_mtimespec
#else
#define MTIME st_mtim
#endif

struct scan {
	const struct scan_options *o;
	struct tree *out;
	const struct until *until;
	struct buf path; /* of what is looked at */
	size_t dir;      /* the entry of its directory; NO_ENTRY: the root */
	size_t seen;
};

static void
problem(struct scan *s, const char *what, int error)
{
	struct err err;

	errno = error;
	if (error == 0)
		err_set(&err, ERR_LIMIT, "%s", what);
	else
		err_sys(&err, "%s", what);
	if (s->o->problem != NULL)
		s->o->problem(s->o->problem_data, s->path.data, err.msg);
}

static enum entry_type
type_of(mode_t mode)
{
	return S_ISREG(mode) ? ENTRY_FILE
	    : S_ISDIR(mode)  ? ENTRY_DIR
	    : S_ISLNK(mode)  ? ENTRY_LINK
	                     : ENTRY_OTHER;
}

/* Some file systems tell no length of a link, so it is tried. */
static char *
read_link(int dir, const char *name)
{
	size_t size = PATH_MAX + 1;
	char *target = xmalloc(size);
	ssize_t n = readlinkat(dir, name, target, size - 1);

	if (n < 1) {
		free(target);
		return NULL;
	}
	target[n] = '\0';
	return target;
}

static struct entry *
add(struct scan *s, int dir, const char *name, const struct stat *st)
{
	enum entry_type type = type_of(st->st_mode);
	char *target = NULL;
	struct entry *e;

	if (type == ENTRY_LINK) {
		target = read_link(dir, name);
		if (target == NULL) {
			problem(s, "the link cannot be read", errno);
			return NULL;
		}
	}
	e = tree_add(s->out, s->path.data, target);
	free(target);
	e->type = (uint8_t)type;
	e->mode = (uint16_t)(st->st_mode & 0777);
	e->mtime = (int64_t)st->MTIME.tv_sec * 1000000000 + st->MTIME.tv_nsec;
	if (type == ENTRY_FILE)
		e->size = st->st_size;
	return e;
}

/* Nobody knows what they would exclude, so nothing is deleted. */
static void
unread_ignores(struct scan *s, int error)
{
	problem(s, "its .gitignore is too large, or cannot be read", error);
	s->out->partial = true;
}

/* The rules in "dir/.gitignore", if there is one, before anything else of the
 * directory is looked at.  As git does, a link is not followed. */
static void
add_ignores(struct scan *s, int dir)
{
	int fd = openat(dir, ".gitignore",
	    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct buf text;
	struct stat st;

	if (fd == -1) {
		if (errno != ENOENT && errno != ELOOP)
			unread_ignores(s, errno);
		return;
	}
	buf_init(&text, IGNORE_MAX);
	while (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
		size_t room;
		char *at = buf_space(&text, 4096, &room);
		ssize_t n = room > 0 ? read(fd, at, room) : 0;

		if (n == -1)
			unread_ignores(s, errno);
		else if (n == 0 && st.st_size > (off_t)text.len)
			unread_ignores(s, 0);
		if (n <= 0)
			break;
		buf_grew(&text, (size_t)n);
	}
	close(fd);
	rules_add_gitignore(s->o->rules, s->path.data, text.data, text.len);
	buf_free(&text);
}

static int walk(struct scan *s, int fd, int depth, struct err *err);

/* Enter a directory that was just added. */
static int
enter(struct scan *s, int dir, const char *name, int depth, struct err *err)
{
	size_t index = s->out->count - 1, above = s->dir;
	int fd, rc;

	if (depth >= DEPTH_MAX) {
		s->out->entries[index].unread = true;
		problem(s, "the directory is too deep to be entered", 0);
		return 0;
	}
	fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	s->dir = index;
	rc = fd == -1 ? 1 : walk(s, fd, depth + 1, err);
	s->dir = above;
	if (rc == 1) {
		s->out->entries[index].unread = true;
		problem(s, "the directory cannot be read", errno);
		rc = 0;
	}
	return rc;
}

static int
look(struct scan *s, int dir, const char *name, int depth, struct err *err)
{
	struct stat st;
	bool is_dir;

	if (++s->seen % CHECK_EVERY == 0 && until_check(s->until, err) == -1)
		return -1;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == -1) {
		if (errno != ENOENT) {
			problem(s, "cannot be looked at", errno);
			s->out->partial = true;
		}
		return 0;
	}
	is_dir = S_ISDIR(st.st_mode);
	if (s->o->rules != NULL &&
	    rules_match(s->o->rules, s->path.data, is_dir)) {
		if (rules_staging(name))
			s->out->left_overs = true;
		else if (s->dir != NO_ENTRY)
			s->out->entries[s->dir].kept = true;
		return 0;
	}
	if (s->out->count >= ENTRIES_MAX)
		return err_set(err, ERR_LIMIT,
		    "there are more than %zu files and directories; name a "
		    "smaller directory, or exclude some",
		    ENTRIES_MAX);
	if (add(s, dir, name, &st) == NULL) {
		s->out->partial = true;
		return 0;
	}
	return is_dir ? enter(s, dir, name, depth, err) : 0;
}

/* Everything below the directory "fd", which is closed.  1 with errno if it
 * cannot be read, or not to its end. */
static int
walk(struct scan *s, int fd, int depth, struct err *err)
{
	size_t len = s->path.len;
	DIR *d = fdopendir(fd);
	struct dirent *de;
	int rc = 0, error = 0;

	if (d == NULL) {
		error = errno;
		close(fd);
		errno = error;
		return 1;
	}
	if (s->o->gitignore && s->o->rules != NULL)
		add_ignores(s, dirfd(d));
	while (rc == 0) {
		errno = 0;
		de = readdir(d);
		if (de == NULL) {
			error = errno;
			break;
		}
		if (strcmp(de->d_name, ".") == 0 ||
		    strcmp(de->d_name, "..") == 0)
			continue;
		if (len > 0)
			buf_addc(&s->path, '/');
		buf_adds(&s->path, de->d_name);
		rc = look(s, dirfd(d), de->d_name, depth, err);
		s->path.len = len;
		s->path.data[len] = '\0';
	}
	closedir(d);
	errno = error;
	return rc == 0 && error != 0 ? 1 : rc;
}

int
scan_local(int root_fd, const struct scan_options *o, struct tree *out,
    const struct until *until, struct err *err)
{
	struct scan s = { .o = o, .out = out, .until = until, .dir = NO_ENTRY };
	int fd, rc;

	tree_init(out);
	if (until_check(until, err) == -1)
		return -1;
	/* Anew, as a descriptor that is shared shares its place, too. */
	fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return err_sys(err, "cannot read the local directory");
	buf_init(&s.path, SIZE_MAX);
	rc = walk(&s, fd, 0, err);
	if (rc == 1)
		rc = err_sys(err, "cannot read the local directory");
	buf_free(&s.path);
	if (rc == -1) {
		tree_free(out);
		return -1;
	}
	tree_sort(out);
	tree_spread_kept(out);
	return 0;
}
