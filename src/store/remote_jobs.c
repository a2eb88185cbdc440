#include "store/remote_jobs.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "config/dirs.h"
#include "store/row.h"

void
remote_job_free(struct remote_job *j)
{
	free(j->sandbox_name);
	memset(j, 0, sizeof(*j));
}

/* The largest number as the name of a file, for a database that has to be
 * begun anew: see skip_used_ids() of schema.c.  It is no loss if it fails. */
static void
leave_trace(int64_t id)
{
	struct err err;
	char *dir = dirs_state_sub("remote", &err);
	char *path, *old;

	if (dir == NULL)
		return;
	path = xasprintf("%s/remote-%" PRId64, dir, id);
	old = xasprintf("%s/remote-%" PRId64, dir, id - 1);
	if (fs_replace(path, "", 0, 0600, &err) == 0)
		(void)unlink(old);
	free(old);
	free(path);
	free(dir);
}

int
remote_jobs_add(struct remote_job *j, const char *sandbox_name,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "INSERT INTO remote_jobs(sandbox_name, token, created_ts) "
	    "VALUES(?1, ?2, ?3) RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	memset(j, 0, sizeof(*j));
	if (db == NULL)
		return -1;
	random_hex(j->token, REMOTE_JOB_TOKEN);
	row_bind_text(stmt, 1, sandbox_name);
	row_bind_text(stmt, 2, j->token);
	row_bind_int(stmt, 3, (int64_t)time(NULL));
	if (row_finish(db, stmt, &did, &j->id, err) == -1)
		return -1;
	assert(did);
	j->sandbox_name = xstrdup(sandbox_name);
	leave_trace(j->id);
	return 0;
}

int
remote_jobs_get(int64_t id, struct remote_job *j, const struct until *until,
    struct err *err)
{
	static const char sql[] =
	    "SELECT sandbox_name, token FROM remote_jobs WHERE id = ?1";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	char *token;
	int rc;

	memset(j, 0, sizeof(*j));
	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	rc = db_step(db, stmt, err);
	if (rc == 1) {
		j->id = id;
		j->sandbox_name = row_text(stmt, 0);
		token = row_text(stmt, 1);
		snprintf(j->token, sizeof(j->token), "%s", token);
		free(token);
	}
	db_give(db);
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such job");
	return rc == 1 ? 0 : -1;
}
