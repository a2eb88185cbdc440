/*
 * Files below a directory, and never anywhere else.
 *
 * Of parent directories only the last one is kept, and by who writes many files
 * and renames no directory: a cache would have to be told of every rename.
 */
#include "sync/beneath.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "sync/resolve.h"

/* Directories that are only passed through need no permission to be read. */
#ifdef O_PATH
#define O_PASS O_PATH
#else
#define O_PASS O_RDONLY
#endif

#define DIR_FLAGS (O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* A FIFO must not keep us waiting, a terminal not become ours. */
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

#define TEMP_BYTES 8
#define PART_S ((time_t)7 * 24 * 3600) /* as on the far side */

#ifdef __APPLE__
#define ST_MTIM st_mtimespec
#else
#define ST_MTIM st_mtim
#endif

/* Close and keep errno; returns -1. */
static int
close_failed(int fd)
{
	int why = errno;

	if (fd != -1)
		close(fd);
	errno = why;
	return -1;
}

static int
refuse(const char *path, const char *why, struct err *err)
{
	errno = EACCES;
	return err_set(err, ERR_DENIED, "'%s' is refused: %s", path, why);
}

/* path_inside() is less strict: names here are compared with a list, so there
 * is one way to write each. */
static int
check(const char *path, struct err *err)
{
	const char *at = path;
	size_t n;

	for (;; at += n + 1) {
		n = strcspn(at, "/");
		if (n == 0)
			return refuse(path, "an absolute path or an empty name",
			    err);
		if (at[0] == '.' && (n == 1 || (n == 2 && at[1] == '.')))
			return refuse(path, "'.' or '..' in it", err);
		if (at[n] == '\0')
			return 0;
	}
}

/* Is errno what opening a link with O_NOFOLLOW gives?  Linux says ENOTDIR
 * with O_DIRECTORY, so look. */
static bool
is_link(int dir_fd, const char *name)
{
	int why = errno;
	struct stat st;
	bool is;

	is = (why == ELOOP || why == ENOTDIR || why == EMLINK) &&
	    fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode);
	errno = why;
	return is;
}

static int
step_failed(int dir_fd, const char *name, const char *path, struct err *err)
{
	int why = errno;

	if (is_link(dir_fd, name))
		err_set(err, ERR_DENIED,
		    "'%s' is refused: '%s' in it is a symbolic link", path,
		    name);
	else if (why == ENOTDIR)
		err_set(err, ERR_INVALID,
		    "cannot reach '%s': '%s' in it is not a directory", path,
		    name);
	else
		err_sys(err, "cannot reach '%s'", path);
	errno = why;
	return -1;
}

static int
step(int dir_fd, const char *name, int flags, bool make)
{
	int fd = openat(dir_fd, name, flags);

	if (fd != -1 || errno != ENOENT || !make)
		return fd;
	if (mkdirat(dir_fd, name, 0777) == -1 && errno != EEXIST)
		return -1;
	return openat(dir_fd, name, flags);
}

/* Component by component.  "way" is "path" or the beginning of it, ours to
 * write to. */
static int
walk(int root_fd, char *way, int flags, bool make, const char *path,
    struct err *err)
{
	int dir_fd = root_fd, fd;
	char *name = way, *slash;

	for (;;) {
		slash = strchr(name, '/');
		if (slash != NULL)
			*slash = '\0';
		fd = step(dir_fd, name,
		    slash != NULL ? O_PASS | DIR_FLAGS : flags, make);
		if (fd == -1)
			step_failed(dir_fd, name, path, err);
		if (dir_fd != root_fd)
			close_failed(dir_fd);
		if (fd == -1 || slash == NULL)
			return fd;
		dir_fd = fd;
		name = slash + 1;
	}
}

/* Open the first "len" bytes of the path; the rest is for messages. */
static int
open_way(int root_fd, const char *path, size_t len, int flags, bool make,
    struct err *err)
{
	char *way = xstrndup(path, len);
	int fd = resolve_open(root_fd, way, flags);
	int why;

	/* Whatever it was, walking mends it or tells more. */
	if (fd == -1)
		fd = walk(root_fd, way, flags, make, path, err);
	why = errno;
	free(way);
	errno = why;
	return fd;
}

int
beneath_parent(int root_fd, const char *path, bool make, const char **name,
    struct err *err)
{
	const char *slash = strrchr(path, '/');
	int fd;

	if (check(path, err) == -1)
		return -1;
	if (slash != NULL) {
		fd = open_way(root_fd, path, (size_t)(slash - path),
		    O_PASS | DIR_FLAGS, make, err);
	} else {
		fd = fcntl(root_fd, F_DUPFD_CLOEXEC, 0);
		if (fd == -1)
			err_sys(err, "cannot reach '%s'", path);
	}
	if (fd == -1)
		return -1;
	*name = slash == NULL ? path : slash + 1;
	return fd;
}

int
beneath_dir(int root_fd, const char *path, struct err *err)
{
	if (check(path, err) == -1)
		return -1;
	return open_way(root_fd, path, strlen(path), O_RDONLY | DIR_FLAGS,
	    false, err);
}

int
beneath_stat(int fd, const char *path, struct entry *e, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_sys(err, "cannot look at '%s'", path);
	if (!S_ISREG(st.st_mode)) {
		err_set(err, ERR_INVALID, "'%s' is not a regular file", path);
		errno = EINVAL;
		return -1;
	}
	e->type = ENTRY_FILE;
	e->size = st.st_size;
	e->mtime = (int64_t)st.ST_MTIM.tv_sec * 1000000000 + st.ST_MTIM.tv_nsec;
	e->mode = st.st_mode & 0777;
	return 0;
}

int
beneath_open(int root_fd, const char *path, struct entry *e, struct err *err)
{
	int fd;

	if (check(path, err) == -1)
		return -1;
	fd = open_way(root_fd, path, strlen(path), FILE_FLAGS, false, err);
	if (fd != -1 && beneath_stat(fd, path, e, err) == -1)
		return close_failed(fd);
	return fd;
}

static int
is_dir(int dir_fd, const char *name, const char *path, struct err *err)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return err_sys(err, "cannot look at '%s'", path);
	if (S_ISDIR(st.st_mode))
		return 0;
	err_set(err, ERR_INVALID,
	    "cannot make the directory '%s': something else has that name",
	    path);
	errno = EEXIST;
	return -1;
}

int
beneath_mkdir(int root_fd, const char *path, struct err *err)
{
	const char *name;
	int dir_fd = beneath_parent(root_fd, path, true, &name, err);
	int ret = 0;

	if (dir_fd == -1)
		return -1;
	if (mkdirat(dir_fd, name, 0700) == -1)
		ret = errno == EEXIST
		    ? is_dir(dir_fd, name, path, err)
		    : err_sys(err, "cannot make the directory '%s'", path);
	close_failed(dir_fd);
	return ret;
}

/* Short: the name it stands for may be as long as names can be. */
static void
temp_name(char *out, size_t size)
{
	char digits[RANDOM_HEX(TEMP_BYTES)];

	random_hex(digits, TEMP_BYTES);
	snprintf(out, size, BENEATH_PREFIX "%s", digits);
}

static bool
is_temp(const char *name)
{
	size_t n = strlen(BENEATH_PREFIX);

	return str_starts(name, BENEATH_PREFIX) &&
	    strspn(name + n, "0123456789abcdef") == (size_t)2 * TEMP_BYTES &&
	    name[n + (size_t)2 * TEMP_BYTES] == '\0';
}

/* Of a big file, or the list of its pieces. */
static bool
is_part(const char *name)
{
	const char *digits = name + strlen(BENEATH_PREFIX "p");
	size_t n;

	if (!str_starts(name, BENEATH_PREFIX "p"))
		return false;
	n = strspn(digits, "0123456789abcdef");
	return n >= 16 &&
	    (digits[n] == '\0' || strcmp(digits + n, ".done") == 0);
}

/* Nobody came back for it. */
static bool
is_forgotten(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && st.st_mtime < time(NULL) - PART_S;
}

/* rename() replaces a link and never follows it. */
static int
into_place(int dir_fd, const char *temp, const char *name, const char *path,
    struct err *err)
{
	int why;

	if (renameat(dir_fd, temp, dir_fd, name) == 0)
		return 0;
	if (errno == EISDIR || errno == ENOTEMPTY || errno == EEXIST) {
		why = errno;
		err_set(err, ERR_INVALID,
		    "cannot write '%s': a directory has that name", path);
		errno = why;
	} else {
		err_sys(err, "cannot give '%s' its name", path);
	}
	why = errno;
	unlinkat(dir_fd, temp, 0);
	errno = why;
	return -1;
}

int
beneath_symlink(int root_fd, const char *path, const char *target,
    struct err *err)
{
	const char *name;
	int dir_fd = beneath_parent(root_fd, path, true, &name, err);
	char temp[sizeof(((struct beneath_file *)NULL)->temp)];
	int ret;

	if (dir_fd == -1)
		return -1;
	temp_name(temp, sizeof(temp));
	if (symlinkat(target, dir_fd, temp) == -1)
		ret = err_sys(err, "cannot make the link '%s'", path);
	else
		ret = into_place(dir_fd, temp, name, path, err);
	close_failed(dir_fd);
	return ret;
}

int
beneath_delete(int root_fd, const char *path, bool dir, struct err *err)
{
	const char *name;
	int dir_fd = beneath_parent(root_fd, path, false, &name, err);
	int ret = 0;

	if (dir_fd == -1)
		return errno == ENOENT ? 0 : -1;
	if (unlinkat(dir_fd, name, dir ? AT_REMOVEDIR : 0) == -1 &&
	    errno != ENOENT)
		ret = err_sys(err, "cannot delete '%s'", path);
	close_failed(dir_fd);
	return ret;
}

void
beneath_times(const struct entry *e, struct timespec times[2])
{
	int64_t ns = e->mtime % 1000000000;

	if (ns < 0)
		ns += 1000000000;
	times[0] = (struct timespec){ .tv_nsec = UTIME_OMIT };
	times[1] = (struct timespec){
		.tv_sec = (time_t)((e->mtime - ns) / 1000000000),
		.tv_nsec = (long)ns,
	};
}

int
beneath_meta(int root_fd, const struct entry *e, struct err *err)
{
	const char *name;
	int dir_fd = beneath_parent(root_fd, e->path, false, &name, err);
	struct timespec times[2];
	int ret = 0;

	if (dir_fd == -1)
		return -1;
	beneath_times(e, times);
	/* By name and not by descriptor: it may be that we cannot open it. */
	if (e->type != ENTRY_LINK &&
	    fchmodat(dir_fd, name, e->mode & 0777, AT_SYMLINK_NOFOLLOW) == -1)
		ret = err_sys(err, "cannot set the mode of '%s'", e->path);
	else if (utimensat(dir_fd, name, times, AT_SYMLINK_NOFOLLOW) == -1)
		ret = err_sys(err, "cannot set the time of '%s'", e->path);
	close_failed(dir_fd);
	return ret;
}

/* The file itself, in f->dir_fd. */
static int
create_in(struct beneath_file *f, const char *path, struct err *err)
{
	temp_name(f->temp, sizeof(f->temp));
	f->fd = openat(f->dir_fd, f->temp,
	    O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (f->fd == -1)
		return err_sys(err, "cannot make a file beside '%s'", path);
	/* A file system without locks has to do without. */
	flock(f->fd, LOCK_EX | LOCK_NB);
	return 0;
}

static void
close_dir(struct beneath_file *f)
{
	if (!f->lent)
		close_failed(f->dir_fd);
	f->dir_fd = -1;
}

int
beneath_create(int root_fd, const char *path, struct beneath_file *f,
    struct err *err)
{
	f->fd = -1;
	f->lent = false;
	f->dir_fd = beneath_parent(root_fd, path, true, &f->name, err);
	if (f->dir_fd == -1)
		return -1;
	if (create_in(f, path, err) == 0)
		return 0;
	close_dir(f);
	return -1;
}

void
beneath_last_free(struct beneath_last *last)
{
	if (last->fd != -1)
		close(last->fd);
	free(last->dir);
	*last = BENEATH_NO_LAST;
}

int
beneath_create_next(int root_fd, struct beneath_last *last, const char *path,
    struct beneath_file *f, struct err *err)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash != NULL ? (size_t)(slash - path) : 0;

	f->fd = f->dir_fd = -1;
	f->lent = true;
	f->name = slash != NULL ? slash + 1 : path;
	if (check(path, err) == -1)
		return -1;
	if (last->fd == -1 || strlen(last->dir) != n ||
	    memcmp(last->dir, path, n) != 0) {
		beneath_last_free(last);
		last->fd = beneath_parent(root_fd, path, true, &f->name, err);
		if (last->fd == -1)
			return -1;
		last->dir = xstrndup(path, n);
	}
	f->dir_fd = last->fd;
	if (create_in(f, path, err) == 0)
		return 0;
	f->dir_fd = -1;
	return -1;
}

/*
 * Without fsync(): it would cost a hundred times the rest for small files.
 * After a crash of the machine a file may have its name and not its content,
 * but then its size is wrong as well, and the next run brings it again.
 */
static int
finish(struct beneath_file *f, const struct entry *e, struct err *err)
{
	struct timespec times[2];
	int failed;

	beneath_times(e, times);
	failed =
	    fchmod(f->fd, e->mode & 0777) == -1 || futimens(f->fd, times) == -1;
	if (failed)
		err_sys(err, "cannot set mode and time of '%s'", e->path);
	/* Some file systems say only now that the disk is full. */
	if (failed)
		close_failed(f->fd);
	else if (close(f->fd) == -1)
		failed = err_sys(err, "cannot write '%s'", e->path);
	f->fd = -1;
	return failed ? -1 : 0;
}

int
beneath_commit(struct beneath_file *f, const struct entry *e, struct err *err)
{
	int ret = finish(f, e, err);
	int why;

	if (ret == 0) {
		ret = into_place(f->dir_fd, f->temp, f->name, e->path, err);
		close_dir(f);
		return ret;
	}
	why = errno;
	beneath_abort(f);
	errno = why;
	return -1;
}

void
beneath_abort(struct beneath_file *f)
{
	if (f->dir_fd == -1)
		return;
	unlinkat(f->dir_fd, f->temp, 0);
	if (f->fd != -1)
		close(f->fd);
	f->fd = -1;
	close_dir(f);
}

/* Is nobody writing it?  Links, which cannot be locked, are never in the
 * making for long. */
static bool
left_over(int dir_fd, const char *name)
{
	struct stat st;
	bool ours;
	int fd;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1)
		return false;
	if (!S_ISREG(st.st_mode))
		return S_ISLNK(st.st_mode);
	fd = openat(dir_fd, name, FILE_FLAGS);
	if (fd == -1)
		return false;
	ours = flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
	close(fd);
	return ours;
}

/* Takes the descriptor. */
static void
sweep_dir(int fd)
{
	DIR *dir = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *d;

	if (dir == NULL) {
		close_failed(fd);
		return;
	}
	while ((d = readdir(dir)) != NULL) {
		if ((is_temp(d->d_name) && left_over(fd, d->d_name)) ||
		    (is_part(d->d_name) && is_forgotten(fd, d->d_name)))
			unlinkat(fd, d->d_name, 0);
	}
	closedir(dir);
}

void
beneath_sweep(int root_fd, const struct tree *t)
{
	struct err err;
	size_t i;

	sweep_dir(openat(root_fd, ".", O_RDONLY | DIR_FLAGS));
	for (i = 0; i < t->count; i++) {
		if (t->entries[i].type == ENTRY_DIR)
			sweep_dir(
			    beneath_dir(root_fd, t->entries[i].path, &err));
	}
}

void
beneath_drop_parts(int dir_fd, const char *part, size_t same)
{
	DIR *dir = fdopendir(openat(dir_fd, ".", O_RDONLY | DIR_FLAGS));
	const struct dirent *d;
	char *list;

	if (dir == NULL)
		return;
	while ((d = readdir(dir)) != NULL) {
		if (strncmp(d->d_name, part, same) != 0 ||
		    str_starts(d->d_name, part) || !is_part(d->d_name) ||
		    str_ends(d->d_name, ".done") ||
		    !left_over(dir_fd, d->d_name))
			continue;
		list = xasprintf("%s.done", d->d_name);
		unlinkat(dir_fd, list, 0);
		unlinkat(dir_fd, d->d_name, 0);
		free(list);
	}
	closedir(dir);
}
