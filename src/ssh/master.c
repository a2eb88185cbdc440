/* Finding and starting masters. */
#include "ssh/master.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"
#include "config/dirs.h"
#include "ssh/login.h"
#include "ssh/mux.h"
#include "ssh/sshconf.h"

/* A living master answers at once. */
#define ALIVE_MS 2000
#define LOCK_STEP_MS 20

void
master_free(struct master *m)
{
	free(m->path);
	m->path = NULL;
}

static int
alive(const char *path, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, ALIVE_MS);
	pid_t pid;

	return mux_alive(path, &pid, &soon, err);
}

/*
 * Take the lock that serialises logins, so that of several processes only
 * one logs in and the others find its master.
 */
static int
lock(const char *path, const struct until *until, struct err *err)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd == -1)
		return err_sys(err, "cannot open %s", path);
	while (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		struct until step = until_within(until, LOCK_STEP_MS);
		struct err why;

		until_poll(&step, NULL, 0, &why);
		if (until_check(until, err) == -1) {
			close(fd);
			return err_wrap(err, "another process is logging in");
		}
	}
	return fd;
}

static int
start(struct master *m, const struct sandbox *sb, const char *dir,
    const struct until *until, struct err *err)
{
	/* Nobody answered on it: what is left there would be in the way. */
	unlink(m->path);
	if (login_start(sb, dir, m->path, m->new_key, sizeof(m->new_key), until,
	        err) == -1)
		return -1;
	if (alive(m->path, until, err) == -1)
		return err_wrap(err, "logged in to %s, but", sb->name);
	return 0;
}

int
master_ensure(struct master *m, const struct sandbox *sb, int number,
    const struct until *until, struct err *err)
{
	char *dir = dirs_runtime(err);
	char *lock_path;
	char name[17];
	int fd, rc;

	memset(m, 0, sizeof(*m));
	if (dir == NULL)
		return -1;
	sshconf_name(sb, name);
	m->path = xasprintf("%s/%s.%d", dir, name, number);
	rc = alive(m->path, until, err);
	if (rc == -1 && err->code != ERR_CANCELLED) {
		lock_path = xasprintf("%s.lock", m->path);
		fd = lock(lock_path, until, err);
		free(lock_path);
		if (fd != -1) {
			rc = alive(m->path, until, err);
			if (rc == -1)
				rc = start(m, sb, dir, until, err);
			close(fd);
		}
	}
	free(dir);
	return rc;
}

static void
tell(const struct master *m, enum mux_type what)
{
	struct until soon = until_in(ALIVE_MS);
	struct err err;

	mux_tell(m->path, what, &soon, &err);
}

void
master_retire(const struct master *m)
{
	tell(m, MUX_STOP_LISTENING);
	unlink(m->path);
}

void
master_end(const struct master *m)
{
	char *lock_path = xasprintf("%s.lock", m->path);
	char *base = xstrndup(m->path, strlen(m->path) - 1);
	static const char *const ends[] = { "conf", "look", "pin", NULL };
	char *path;
	size_t i;

	tell(m, MUX_TERMINATE);
	unlink(lock_path);
	free(lock_path);
	for (i = 0; ends[i] != NULL; i++) {
		path = xasprintf("%s%s", base, ends[i]);
		unlink(path);
		free(path);
	}
	free(base);
}
