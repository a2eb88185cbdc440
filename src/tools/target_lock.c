/*
 * The lock file of a target is named after a hash of it.  Paths are compared
 * as text: "x", "~/x" and "./x" are one target; a symbolic link on the far
 * side, or a directory above or below, is another.
 */
#include "tools/target_lock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lockfile.h"
#include "base/mem.h"
#include "base/path.h"
#include "ssh/sshconf.h"
#include "tools/transfer_files.h"

/* A process that was killed may hold its locks for a last moment. */
#define ENDING_MS 1000
#define STEP_MS 10

static char *
remote_key(const struct sandbox *sb, const char *path)
{
	char *home = path_home(path, ".");
	char *clean = path_clean(home);
	char name[17], *key;

	sshconf_name(sb, name);
	key = xasprintf("%s:%s", name, clean);
	free(home);
	free(clean);
	return key;
}

/* The real path if it is there already. */
static char *
local_key(const char *path)
{
	char *whole = transfer_local_path(path);
	char *real = realpath(whole, NULL);
	char *key = real != NULL ? xstrdup(real) : path_clean(whole);

	free(whole);
	free(real);
	return key;
}

static char *
lock_path(const struct sandbox *sb, const struct sync_request *req,
    struct err *err)
{
	uint64_t hash = 14695981039346656037u;
	char *key = req->direction == SYNC_UP ? remote_key(sb, req->remote_path)
	                                      : local_key(req->local_path);
	char *path, name[64];
	const char *c;

	for (c = key; *c != '\0'; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211u;
	snprintf(name, sizeof(name), "target-%016" PRIx64 ".lock", hash);
	path = transfer_file(name, err);
	free(key);
	return path;
}

static int
held(const struct sandbox *sb, const struct sync_request *req,
    const char *holder, struct err *err)
{
	const char *who = holder[0] != '\0' ? holder : "another sync";

	if (req->direction == SYNC_UP)
		return err_set(err, ERR_DENIED,
		    "%s is writing to '%.300s' on %s; wait for its end "
		    "(check_file_transfer_task) or cancel it "
		    "(cancel_file_transfer_task)",
		    who, req->remote_path, sb->name);
	return err_set(err, ERR_DENIED,
	    "%s is writing to the local path '%.300s'; wait for its end "
	    "(check_file_transfer_task) or cancel it "
	    "(cancel_file_transfer_task)",
	    who, req->local_path);
}

int
target_take(struct target_lock *lock, const struct sandbox *sb,
    const struct sync_request *req, const char *who, const struct until *until,
    struct err *err)
{
	char holder[LOCKFILE_TEXT];

	lock->fd = -1;
	lock->path = lock_path(sb, req, err);
	if (lock->path == NULL)
		return -1;
	lock->fd = lockfile_take(lock->path, who, holder, until, err);
	if (lock->fd != -1)
		return 0;
	if (err->code == ERR_DENIED && holder[0] != '\0')
		held(sb, req, holder, err);
	free(lock->path);
	lock->path = NULL;
	return -1;
}

void
target_give(struct target_lock *lock)
{
	if (lock->path == NULL)
		return;
	lockfile_give(lock->path, lock->fd);
	free(lock->path);
	lock->path = NULL;
	lock->fd = -1;
}

int
target_check(const struct sandbox *sb, const struct sync_request *req,
    struct err *err)
{
	char *path = lock_path(sb, req, err);
	struct until until = until_in(ENDING_MS), step;
	char holder[LOCKFILE_TEXT];
	struct err why;
	int rc = 0;

	if (path == NULL)
		return -1;
	while (rc == 0 && lockfile_held(path, holder)) {
		if (until_check(&until, &why) == -1)
			rc = held(sb, req, holder, err);
		step = until_within(&until, STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
	free(path);
	return rc;
}
