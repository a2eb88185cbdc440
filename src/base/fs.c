#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"

#define CHUNK 16384

static ssize_t
read_some(int fd, void *data, size_t len)
{
	ssize_t n;

	do {
		n = read(fd, data, len);
	} while (n == -1 && errno == EINTR);
	return n;
}

/* 0 at the end of the file, 1 if it does not fit, -1 with errno. */
static int
read_all(int fd, struct buf *out)
{
	char extra;
	size_t room;
	ssize_t n;

	for (;;) {
		char *space = buf_space(out, CHUNK, &room);

		if (room == 0)
			return (int)read_some(fd, &extra, 1);
		n = read_some(fd, space, room);
		if (n <= 0)
			return (int)n;
		buf_grew(out, (size_t)n);
	}
}

int
fs_read(const char *path, struct buf *out, struct err *err)
{
	size_t before = out->len;
	size_t room = out->max - before;
	int fd, failed;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd == -1)
		return err_sys(err, "cannot open %s", path);
	failed = read_all(fd, out);
	if (failed == -1)
		err_sys(err, "cannot read %s", path);
	if (failed == 1)
		err_set(err, ERR_LIMIT, "%s is larger than %zu bytes", path,
		    room);
	close(fd);
	if (failed == 0)
		return 0;
	out->len = before;
	if (out->cap > 0)
		out->data[before] = '\0';
	return -1;
}

/* After a failed write: is it worth trying again?  A descriptor may not
 * block because of somebody else who shares it; then wait until it is ready. */
static bool
write_again(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (errno == EINTR)
		return true;
	if (errno != EAGAIN && errno != EWOULDBLOCK)
		return false;
	return poll(&p, 1, -1) == 1 || errno == EINTR;
}

int
fs_write_all(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t n = write(fd, at, len);

		if (n == -1 && !write_again(fd))
			return -1;
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

/* A name for mkostemp() beside "path"; short, as path's own name may be as
 * long as names can be. */
static char *
temporary(const char *path)
{
	const char *slash = strrchr(path, '/');
	int dir = slash == NULL ? 0 : (int)(slash - path) + 1;

	return xasprintf("%.*s.new-XXXXXX", dir, path);
}

/* What root replaces stays its owner's. */
static int
keep_owner(int fd, const char *path)
{
	struct stat old;

	if (geteuid() != 0 || lstat(path, &old) == -1 || !S_ISREG(old.st_mode))
		return 0;
	return fchown(fd, old.st_uid, old.st_gid);
}

static int
fill(int fd, const void *data, size_t len, mode_t mode)
{
	if (fchmod(fd, mode) == -1 || fs_write_all(fd, data, len) == -1)
		return -1;
	return fsync(fd);
}

int
fs_replace(const char *path, const void *data, size_t len, mode_t mode,
    struct err *err)
{
	char *tmp = temporary(path);
	int fd, failed;

	fd = mkostemp(tmp, O_CLOEXEC);
	if (fd == -1) {
		err_sys(err, "cannot make a file beside %s", path);
		free(tmp);
		return -1;
	}
	failed = keep_owner(fd, path);
	if (failed == 0)
		failed = fill(fd, data, len, mode);
	if (failed == -1)
		err_sys(err, "cannot write %s", path);
	if (close(fd) == -1 && failed == 0)
		failed = err_sys(err, "cannot write %s", path);
	if (failed == 0 && rename(tmp, path) == -1)
		failed = err_sys(err, "cannot replace %s", path);
	if (failed == -1)
		unlink(tmp);
	free(tmp);
	return failed;
}

/* mkdir() first and questions later, so that two of us may do it at once. */
static int
make_dir(const char *dir, mode_t mode, struct err *err)
{
	struct stat st;
	int why;

	if (mkdir(dir, mode) == 0)
		return 0;
	why = errno;
	if (stat(dir, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			return 0;
		return err_set(err, ERR_INVALID, "%s is not a directory", dir);
	}
	errno = why;
	return err_sys(err, "cannot make the directory %s", dir);
}

int
fs_mkdirs(const char *path, mode_t mode, struct err *err)
{
	char *dir = xstrdup(path);
	char *at = dir + strspn(dir, "/");
	int ret = 0;

	while (ret == 0 && (at = strchr(at, '/')) != NULL) {
		*at = '\0';
		ret = make_dir(dir, mode, err);
		*at = '/';
		at += strspn(at, "/");
	}
	if (ret == 0)
		ret = make_dir(dir, mode, err);
	free(dir);
	return ret;
}

#ifdef __APPLE__
/* No pipe2() there: proc.c lets children inherit nothing by default. */
static int
pipe_cloexec(int fds[2])
{
	if (pipe(fds) == -1)
		return -1;
	fcntl(fds[0], F_SETFD, FD_CLOEXEC);
	fcntl(fds[1], F_SETFD, FD_CLOEXEC);
	return 0;
}

int
fs_accept(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd != -1)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	return fd;
}

char *
fs_fd_path(int fd)
{
	char path[PATH_MAX];

	return fcntl(fd, F_GETPATH, path) == 0 ? xstrdup(path) : NULL;
}
#else
static int
pipe_cloexec(int fds[2])
{
	return pipe2(fds, O_CLOEXEC);
}

int
fs_accept(int listener)
{
	return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
}

char *
fs_fd_path(int fd)
{
	char name[32];

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return realpath(name, NULL);
}
#endif

bool
fs_others_write(const struct stat *st)
{
	return (st->st_uid != geteuid() && st->st_uid != 0) ||
	    (st->st_mode & 022) != 0;
}

bool
fs_own_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_uid == geteuid();
}

int
fs_pipe(int fds[2], struct err *err)
{
	int pair[2];

	if (pipe_cloexec(pair) == -1)
		return err_sys(err, "cannot make a pipe");
	fds[0] = pair[0];
	fds[1] = pair[1];
	return 0;
}

void
fs_std_fds(void)
{
	int fd;

	/* From 0 up, so that open() gives the very one that is missing.  They
	 * are for our children too: no O_CLOEXEC. */
	for (fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) != -1)
			continue;
		if (open("/dev/null", O_RDWR) != fd)
			_exit(1); /* what we print would end up anywhere */
	}
}

/* macOS refuses more. */
#define FDS_MAX 10240

void
fs_many_fds(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == -1 || limit.rlim_cur >= FDS_MAX)
		return;
	limit.rlim_cur = limit.rlim_max < FDS_MAX ? limit.rlim_max : FDS_MAX;
	setrlimit(RLIMIT_NOFILE, &limit); /* if not, fewer calls at once */
}
