#include "base/lockfile.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

#define STEP_MS 10

static void
read_text(int fd, char *text)
{
	ssize_t n = pread(fd, text, LOCKFILE_TEXT - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
}

/* A holder removes its file: what is locked may have no name any more. */
static bool
has_its_name(int fd, const char *path)
{
	struct stat mine, named;

	return fstat(fd, &mine) == 0 && stat(path, &named) == 0 &&
	    mine.st_dev == named.st_dev && mine.st_ino == named.st_ino;
}

/* 1 and *fd if it is ours, 0 if somebody else has it, -1 with errno. */
static int
try_lock(const char *path, char *holder, int *fd)
{
	int f;

	for (;;) {
		f = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (f == -1)
			return -1;
		if (flock(f, LOCK_EX | LOCK_NB) == -1)
			break;
		if (has_its_name(f, path)) {
			*fd = f;
			return 1;
		}
		close(f);
	}
	if (errno == EWOULDBLOCK) {
		read_text(f, holder);
		close(f);
		return 0;
	}
	close(f);
	return -1;
}

int
lockfile_take(const char *path, const char *text, char *holder,
    const struct until *until, struct err *err)
{
	struct until step;
	struct err why;
	int fd, rc;

	holder[0] = '\0';
	while ((rc = try_lock(path, holder, &fd)) == 0) {
		if (until_check(until, &why) == -1)
			return err_set(err, ERR_DENIED, "%s is locked by %s",
			    path, holder[0] != '\0' ? holder : "another");
		step = until_within(until, STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
	if (rc == -1)
		return err_sys(err, "cannot lock %s", path);
	if (ftruncate(fd, 0) == -1 ||
	    pwrite(fd, text, strlen(text), 0) != (ssize_t)strlen(text)) {
		err_sys(err, "cannot write %s", path);
		lockfile_give(path, fd);
		return -1;
	}
	return fd;
}

void
lockfile_give(const char *path, int fd)
{
	if (fd == -1)
		return;
	unlink(path);
	close(fd);
}

bool
lockfile_held(const char *path, char *holder)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	bool held;

	holder[0] = '\0';
	if (fd == -1)
		return false;
	/* Shared, so that those who ask do not see each other. */
	held = flock(fd, LOCK_SH | LOCK_NB) == -1 && errno == EWOULDBLOCK;
	if (held)
		read_text(fd, holder);
	close(fd);
	return held;
}
