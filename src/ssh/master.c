/* Finding and starting masters. */
#include "ssh/master.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "config/dirs.h"
#include "ssh/backoff.h"
#include "ssh/explain.h"
#include "ssh/login.h"
#include "ssh/mux.h"
#include "ssh/sshconf.h"

/* A living master answers at once. */
#define ALIVE_MS 2000
#define LOCK_STEP_MS 20

/* For so long it counts that somebody wants a session. */
#define WANTED_S 2

void
master_free(struct master *m)
{
	free(m->path);
	free(m->fail);
	m->path = m->fail = NULL;
}

/* "NAME.end": a file that all masters of the sandbox share. */
static char *
beside(const struct master *m, const char *end)
{
	const char *dot = strrchr(m->path, '.');

	return xasprintf("%.*s.%s", (int)(dot - m->path), m->path, end);
}

static int
alive(struct master *m, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, ALIVE_MS);

	return mux_alive(m->path, &m->pid, &soon, err);
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

/*
 * A login was refused, as where it asks for a code that only a person has.
 * Then take the connection that the user's own ssh keeps, as `ssh HOST` would.
 * Only for an entry that leaves everything to ssh: of a user, a key or a host
 * key that another one names, that connection knows nothing.
 */
static bool
adopt(struct master *m, const struct sandbox *sb, const char *dir,
    const struct until *until)
{
	struct master own = { .theirs = true };
	struct login_target t;
	struct err err;
	bool found;

	if (sb->user != NULL || sb->port != 0 || sb->key_file != NULL ||
	    secret_given(&sb->password) || sb->password_command != NULL ||
	    sb->ssh_options != NULL || sb->host_key != NULL ||
	    sb->host_key_policy == HOST_KEY_STRICT)
		return false;
	if (login_target(&t, sb, dir, until, &err) == -1)
		return false;
	found = t.control != NULL && fs_own_socket(t.control);
	if (found) {
		own.path = xstrdup(t.control);
		found = alive(&own, until, &err) == 0;
		master_free(found ? m : &own);
		if (found)
			*m = own;
	}
	login_target_free(&t);
	return found;
}

/* With the lock held: log in, unless it has just failed. */
static int
start(struct master *m, const struct sandbox *sb, const char *dir,
    const struct until *until, struct err *err)
{
	int rc = backoff_check(m->fail, err);

	/* Nobody answered on it: what is left would be in the way. */
	if (rc == 0 && unlink(m->path) == -1 && errno != ENOENT)
		rc =
		    err_sys(err, "something is in the way; remove %s", m->path);
	if (rc == 0) {
		rc = login_start(sb, dir, m->path, m->new_key,
		    sizeof(m->new_key), until, err);
		if (rc == 0)
			backoff_clear(m->fail);
		else if (err->code != ERR_CANCELLED)
			backoff_note(m->fail, err);
	}
	if (rc == 0 && alive(m, until, err) == -1)
		rc = err_wrap(err, "logged in to %s, but", sb->name);
	return rc;
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
	m->fail = backoff_path(sb, dir);
	rc = alive(m, until, err);
	m->found = rc == 0;
	if (rc == -1 && until_check(until, err) == 0) {
		lock_path = beside(m, "lock");
		fd = lock(lock_path, until, err);
		free(lock_path);
		if (fd != -1) {
			rc = alive(m, until, err);
			if (rc == -1 && until_check(until, err) == 0)
				rc = start(m, sb, dir, until, err);
			if (rc == -1 && number == 0 && explain_refused(err) &&
			    adopt(m, sb, dir, until))
				rc = 0;
			close(fd);
		}
	}
	free(dir);
	return rc;
}

void
master_try_again(const struct sandbox *sb)
{
	struct err err;
	char *dir = dirs_runtime(&err), *fail;

	if (dir == NULL)
		return;
	fail = backoff_path(sb, dir);
	backoff_clear(fail);
	free(fail);
	free(dir);
}

void
master_want(const struct master *m)
{
	char *path;
	int fd;

	if (m->theirs)
		return; /* what is beside it is not ours */
	path = beside(m, "want");
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd != -1) {
		futimens(fd, NULL);
		close(fd);
	}
	free(path);
}

bool
master_wanted(const struct master *m)
{
	struct timespec now;
	struct stat st;
	time_t age;
	char *path;
	bool there;

	if (m->theirs)
		return false;
	path = beside(m, "want");
	there = stat(path, &st) == 0;
	free(path);
	clock_gettime(CLOCK_REALTIME, &now);
	age = there ? now.tv_sec - st.st_mtime : -1;
	return age >= 0 && age <= WANTED_S; /* or a clock was set */
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
	struct until soon = until_in(ALIVE_MS);
	struct err err;
	pid_t now;

	if (m->theirs)
		return;
	if (mux_alive(m->path, &now, &soon, &err) == 0 && now != m->pid)
		return;
	tell(m, MUX_STOP_LISTENING);
	unlink(m->path);
}

int
master_leave(const struct sandbox *sb, const struct until *until)
{
	struct err err;
	char *dir = dirs_runtime(&err), name[17];
	int i, count = 0;

	sshconf_name(sb, name);
	for (i = 0; dir != NULL && i < MASTERS_MAX; i++) {
		struct master m = { .path =
			                xasprintf("%s/%s.%d", dir, name, i) };

		if (alive(&m, until, &err) == 0) {
			master_retire(&m);
			count++;
		}
		master_free(&m);
	}
	free(dir);
	return count;
}

void
master_end(const struct master *m)
{
	static const char *const ends[] = { "lock", "want", "conf", "look",
		"pin", "log", NULL };
	char *path;
	size_t i;

	if (m->theirs)
		return;
	tell(m, MUX_TERMINATE);
	for (i = 0; ends[i] != NULL; i++) {
		path = beside(m, ends[i]);
		unlink(path);
		free(path);
	}
	if (m->fail != NULL)
		backoff_clear(m->fail);
}
