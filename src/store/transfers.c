#include "store/transfers.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "store/db.h"
#include "store/row.h"

void
transfer_free(struct transfer *t)
{
	if (t == NULL)
		return;
	free(t->direction);
	free(t->sandbox_name);
	free(t->local_path);
	free(t->remote_path);
	free(t->excludes_json);
	free(t->exclude_file);
	free(t->options_json);
	free(t->status);
	free(t->log_file);
	free(t->last_error);
	free(t->result_json);
	free(t->progress_json);
	memset(t, 0, sizeof(*t));
}

bool
transfer_ended(const char *status)
{
	return strcmp(status, TRANSFER_COMPLETED) == 0 ||
	    strcmp(status, TRANSFER_FAILED) == 0 ||
	    strcmp(status, TRANSFER_CANCELLED) == 0;
}

static int
missing(int64_t id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
	    "there is no transfer task %" PRId64
	    "; task_id is the number that the sync returned",
	    id);
}

static void
bind_row(sqlite3_stmt *stmt, const struct transfer *t)
{
	row_bind_text(stmt, 1, t->direction);
	row_bind_text(stmt, 2, t->sandbox_name);
	row_bind_text(stmt, 3, t->local_path);
	row_bind_text(stmt, 4, t->remote_path);
	row_bind_int(stmt, 5, t->delete_extras);
	row_bind_text(stmt, 6, t->excludes_json);
	row_bind_text(stmt, 7, t->exclude_file);
	row_bind_text(stmt, 8, t->options_json);
	row_bind_int(stmt, 9, t->created_ts);
}

int
transfers_create(struct transfer *t, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "INSERT INTO transfer_tasks(direction, sandbox_name, local_path,"
	    " remote_path, delete_extras, excludes_json, exclude_file,"
	    " options_json, created_ts, updated_ts, status) "
	    "VALUES(?1, ?2, ?3, ?4, ?5, coalesce(?6, '[]'), coalesce(?7, ''),"
	    " coalesce(?8, '{}'), ?9, ?9, 'queued') RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	int64_t id = 0;
	bool did;

	if (db == NULL)
		return -1;
	t->created_ts = t->updated_ts = (int64_t)time(NULL);
	bind_row(stmt, t);
	if (row_finish(db, stmt, &did, &id, err) == -1)
		return -1;
	assert(did);
	t->id = id;
	free(t->status);
	t->status = xstrdup(TRANSFER_QUEUED);
	return 0;
}

int
transfers_restore(const struct transfer *t, const struct until *until,
    struct err *err)
{
	static const char sql[] =
	    "INSERT OR IGNORE INTO transfer_tasks(direction, sandbox_name,"
	    " local_path, remote_path, delete_extras, excludes_json,"
	    " exclude_file, options_json, created_ts, updated_ts, status, id,"
	    " pid, worker_start, log_file, started_ts) "
	    "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?9, 'running', ?10,"
	    " ?11, ?12, ?13, ?14)";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	bind_row(stmt, t);
	row_bind_int(stmt, 10, t->id);
	row_bind_int(stmt, 11, t->pid);
	row_bind_int(stmt, 12, t->worker_start);
	row_bind_text(stmt, 13, t->log_file);
	row_bind_int(stmt, 14, t->started_ts);
	return row_finish(db, stmt, &did, NULL, err);
}

static void
read_row(sqlite3_stmt *stmt, struct transfer *t)
{
	int at = 0;

	t->id = sqlite3_column_int64(stmt, at++);
	t->direction = row_text(stmt, at++);
	t->sandbox_name = row_text(stmt, at++);
	t->local_path = row_text(stmt, at++);
	t->remote_path = row_text(stmt, at++);
	t->delete_extras = sqlite3_column_int64(stmt, at++) != 0;
	t->excludes_json = row_text(stmt, at++);
	t->exclude_file = row_text(stmt, at++);
	t->options_json = row_text(stmt, at++);
	t->status = row_text(stmt, at++);
	t->pid = sqlite3_column_int64(stmt, at++);
	t->worker_start = sqlite3_column_int64(stmt, at++);
	t->log_file = row_text(stmt, at++);
	t->created_ts = sqlite3_column_int64(stmt, at++);
	t->started_ts = sqlite3_column_int64(stmt, at++);
	t->finished_ts = sqlite3_column_int64(stmt, at++);
	t->updated_ts = sqlite3_column_int64(stmt, at++);
	t->last_error = row_text(stmt, at++);
	t->result_json = row_text(stmt, at++);
	t->progress_json = row_text(stmt, at);
}

int
transfers_get(int64_t id, struct transfer *t, const struct until *until,
    struct err *err)
{
	static const char sql[] =
	    "SELECT id, direction, sandbox_name, local_path, remote_path,"
	    " delete_extras, excludes_json, exclude_file, options_json, status,"
	    " pid, worker_start, log_file, created_ts, started_ts, finished_ts,"
	    " updated_ts, last_error, result_json, progress_json "
	    "FROM transfer_tasks WHERE id = ?1";
	sqlite3_stmt *stmt;
	struct db *db;
	int rc;

	memset(t, 0, sizeof(*t));
	db = row_take(sql, &stmt, until, err);
	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	rc = db_step(db, stmt, err);
	if (rc == 1)
		read_row(stmt, t);
	db_give(db);
	if (rc == 0)
		return missing(id, err);
	return rc == 1 ? 0 : -1;
}

int
transfers_set_log(int64_t id, const char *log_file, const char *progress_json,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "UPDATE transfer_tasks SET log_file = ?2, progress_json = ?3,"
	    " updated_ts = ?4 WHERE id = ?1 RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_text(stmt, 2, log_file);
	row_bind_text(stmt, 3, progress_json);
	row_bind_int(stmt, 4, (int64_t)time(NULL));
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : missing(id, err);
}

int
transfers_begin(int64_t id, int64_t pid, int64_t worker_start,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "UPDATE transfer_tasks SET status = 'running', pid = ?2,"
	    " worker_start = ?3, started_ts = ?4, updated_ts = ?4 "
	    "WHERE id = ?1 AND status = 'queued' RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_int(stmt, 2, pid);
	row_bind_int(stmt, 3, worker_start);
	row_bind_int(stmt, 4, (int64_t)time(NULL));
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : 1;
}

int
transfers_progress(int64_t id, const char *progress_json,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "UPDATE transfer_tasks SET progress_json = ?2, updated_ts = ?3 "
	    "WHERE id = ?1 RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_text(stmt, 2, progress_json);
	row_bind_int(stmt, 3, (int64_t)time(NULL));
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : missing(id, err);
}

int
transfers_end(int64_t id, const struct transfer_end *end,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "UPDATE transfer_tasks SET status = ?2, finished_ts = ?3,"
	    " updated_ts = ?3, last_error = coalesce(?4, last_error),"
	    " result_json = coalesce(?5, result_json),"
	    " progress_json = coalesce(?6, progress_json) "
	    "WHERE id = ?1 AND status IN ('queued', 'running') RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_text(stmt, 2, end->status);
	row_bind_int(stmt, 3, (int64_t)time(NULL));
	row_bind_text(stmt, 4, end->last_error);
	row_bind_text(stmt, 5, end->result_json);
	row_bind_text(stmt, 6, end->progress_json);
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : 1;
}

int
transfers_unfinished(size_t max, int64_t **ids, size_t *count,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT id FROM transfer_tasks WHERE status IN ('queued', "
	    "'running') ORDER BY id LIMIT ?1";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, (int64_t)max);
	return row_ids(db, stmt, ids, count, err);
}

json_t *
transfers_newest(size_t max, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT id, sandbox_name, direction, status FROM transfer_tasks "
	    "ORDER BY id DESC LIMIT ?1";

	return row_objects(sql, max, until, err);
}
