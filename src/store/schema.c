/*
 * Migrations by number (PRAGMA user_version).
 *
 * A step makes sure that a table and its columns are there rather than
 * altering one known form to the next: databases of the earlier server have
 * number 0 and may hold any of its own versions' columns.
 */
#include "store/schema.h"

#include <dirent.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define SQL_MAX 16384

struct column {
	const char *name;
	const char *type;
};

struct table {
	const char *name;
	const struct column *columns;
	const char *indexes;
};

static const struct column transfer_columns[] = {
	{ "id", "INTEGER PRIMARY KEY AUTOINCREMENT" },
	{ "direction", "TEXT NOT NULL" },
	{ "sandbox_name", "TEXT NOT NULL" },
	{ "local_path", "TEXT NOT NULL" },
	{ "remote_path", "TEXT NOT NULL" },
	{ "delete_extras", "INTEGER NOT NULL DEFAULT 0" },
	{ "excludes_json", "TEXT NOT NULL DEFAULT '[]'" },
	{ "exclude_file", "TEXT NOT NULL DEFAULT ''" },
	{ "status", "TEXT NOT NULL DEFAULT 'queued'" },
	{ "pid", "INTEGER NOT NULL DEFAULT 0" },
	{ "log_file", "TEXT NOT NULL DEFAULT ''" },
	{ "started_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "finished_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "last_error", "TEXT NOT NULL DEFAULT ''" },
	{ "result_json", "TEXT NOT NULL DEFAULT '{}'" },
	{ "progress_json", "TEXT NOT NULL DEFAULT '{}'" },
	{ "created_ts", "INTEGER NOT NULL" },
	{ "updated_ts", "INTEGER NOT NULL" },
	/* From here on ours: the earlier server does not know them. */
	{ "options_json", "TEXT NOT NULL DEFAULT '{}'" },
	{ "worker_start", "INTEGER NOT NULL DEFAULT 0" },
	{ 0 },
};

static const struct table transfer_tasks = {
	.name = "transfer_tasks",
	.columns = transfer_columns,
	.indexes = "CREATE INDEX IF NOT EXISTS idx_transfer_tasks_status_id "
	           "ON transfer_tasks(status, id DESC)",
};

static const struct column watch_columns[] = {
	{ "id", "INTEGER PRIMARY KEY AUTOINCREMENT" },
	{ "run_id", "TEXT NOT NULL DEFAULT ''" },
	{ "name", "TEXT NOT NULL DEFAULT ''" },
	{ "sandbox_name", "TEXT NOT NULL" },
	{ "tmux_session", "TEXT NOT NULL" },
	{ "log_file", "TEXT NOT NULL" },
	{ "cwd", "TEXT NOT NULL DEFAULT ''" },
	{ "launch_command", "TEXT NOT NULL DEFAULT ''" },
	{ "resume_command", "TEXT NOT NULL DEFAULT ''" },
	{ "resume_plan_json", "TEXT NOT NULL DEFAULT '{}'" },
	{ "checkpoint_path", "TEXT NOT NULL DEFAULT ''" },
	{ "checkpoint_format", "TEXT NOT NULL DEFAULT 'text'" },
	{ "checkpoint_command", "TEXT NOT NULL DEFAULT ''" },
	{ "interval_s", "INTEGER NOT NULL DEFAULT 60" },
	{ "max_log_lines", "INTEGER NOT NULL DEFAULT 80" },
	{ "status", "TEXT NOT NULL DEFAULT 'active'" },
	{ "last_state", "TEXT NOT NULL DEFAULT ''" },
	{ "last_summary", "TEXT NOT NULL DEFAULT ''" },
	{ "last_error", "TEXT NOT NULL DEFAULT ''" },
	{ "last_exit_code", "INTEGER" },
	{ "last_log_digest", "TEXT NOT NULL DEFAULT ''" },
	{ "last_log_tail", "TEXT NOT NULL DEFAULT ''" },
	{ "last_checkpoint_text", "TEXT NOT NULL DEFAULT ''" },
	{ "last_checkpoint_digest", "TEXT NOT NULL DEFAULT ''" },
	{ "checkpoint_updated_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "webhook_url", "TEXT NOT NULL DEFAULT ''" },
	{ "event_command", "TEXT NOT NULL DEFAULT ''" },
	{ "auto_resume", "INTEGER NOT NULL DEFAULT 0" },
	{ "resume_attempts", "INTEGER NOT NULL DEFAULT 0" },
	{ "max_resume_attempts", "INTEGER NOT NULL DEFAULT 1" },
	{ "alert_after_failures", "INTEGER NOT NULL DEFAULT 2" },
	{ "consecutive_ssh_failures", "INTEGER NOT NULL DEFAULT 0" },
	{ "ssh_alert_sent", "INTEGER NOT NULL DEFAULT 0" },
	{ "notify_local", "INTEGER NOT NULL DEFAULT 1" },
	{ "resume_delay_s", "INTEGER NOT NULL DEFAULT 300" },
	{ "interrupted_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "resume_due_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "metadata_json", "TEXT NOT NULL DEFAULT '{}'" },
	{ "created_ts", "INTEGER NOT NULL" },
	{ "updated_ts", "INTEGER NOT NULL" },
	{ "last_checked_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "next_check_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "last_event_ts", "INTEGER NOT NULL DEFAULT 0" },
	/* From here on ours. */
	{ "token", "TEXT NOT NULL DEFAULT ''" },
	{ "resume_pending", "INTEGER NOT NULL DEFAULT 0" },
	{ "boot_id", "TEXT NOT NULL DEFAULT ''" },
	{ "checkpoint_error", "TEXT NOT NULL DEFAULT ''" },
	{ "sandbox_key", "TEXT NOT NULL DEFAULT ''" },
	{ "job_run", "TEXT NOT NULL DEFAULT ''" },
	{ "revision", "INTEGER NOT NULL DEFAULT 0" },
	{ 0 },
};

static const struct table watches = {
	.name = "watches",
	.columns = watch_columns,
	.indexes = "CREATE INDEX IF NOT EXISTS idx_watches_status_next_check "
	           "ON watches(status, next_check_ts)",
};

static const struct column event_columns[] = {
	{ "id", "INTEGER PRIMARY KEY AUTOINCREMENT" },
	{ "watch_id", "INTEGER NOT NULL REFERENCES watches(id)" },
	{ "event_type", "TEXT NOT NULL" },
	{ "summary", "TEXT NOT NULL" },
	{ "payload_json", "TEXT NOT NULL" },
	{ "created_ts", "INTEGER NOT NULL" },
	{ 0 },
};

static const struct table watch_events = {
	.name = "watch_events",
	.columns = event_columns,
	.indexes = "CREATE INDEX IF NOT EXISTS idx_watch_events_watch_created "
	           "ON watch_events(watch_id, created_ts DESC)",
};

static const struct column meta_columns[] = {
	{ "key", "TEXT PRIMARY KEY" },
	{ "value", "TEXT NOT NULL" },
	{ "updated_ts", "INTEGER NOT NULL" },
	{ 0 },
};

static const struct table daemon_meta = {
	.name = "daemon_meta",
	.columns = meta_columns,
	.indexes = "",
};

/* Ours alone: see store/events.h. */
static const struct column delivery_columns[] = {
	{ "id", "INTEGER PRIMARY KEY" },
	{ "event_id", "INTEGER NOT NULL" },
	{ "channel", "TEXT NOT NULL" },
	{ "state", "TEXT NOT NULL DEFAULT 'pending'" },
	{ "tries", "INTEGER NOT NULL DEFAULT 0" },
	{ "next_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ "last_error", "TEXT NOT NULL DEFAULT ''" },
	{ "updated_ts", "INTEGER NOT NULL DEFAULT 0" },
	{ 0 },
};

static const struct table event_deliveries = {
	.name = "event_deliveries",
	.columns = delivery_columns,
	.indexes =
	    "CREATE UNIQUE INDEX IF NOT EXISTS idx_event_deliveries_event "
	    "ON event_deliveries(event_id, channel);"
	    "CREATE INDEX IF NOT EXISTS idx_event_deliveries_pending "
	    "ON event_deliveries(channel, next_ts) WHERE state = 'pending'",
};

/* Ours alone: see store/remote_jobs.h. */
static const struct column remote_job_columns[] = {
	{ "id", "INTEGER PRIMARY KEY AUTOINCREMENT" },
	{ "sandbox_name", "TEXT NOT NULL" },
	{ "token", "TEXT NOT NULL" },
	{ "created_ts", "INTEGER NOT NULL" },
	{ 0 },
};

static const struct table remote_jobs = {
	.name = "remote_jobs",
	.columns = remote_job_columns,
	.indexes = "",
};

/* Names and types are ours, so they go into the text as they are. */
static int
create(struct db *db, const struct table *t, struct err *err)
{
	const struct column *c;
	struct buf sql;
	int rc;

	buf_init(&sql, SQL_MAX);
	buf_addf(&sql, "CREATE TABLE IF NOT EXISTS %s (", t->name);
	for (c = t->columns; c->name != NULL; c++)
		buf_addf(&sql, "%s%s %s", c == t->columns ? "" : ", ", c->name,
		    c->type);
	buf_adds(&sql, ")");
	rc = db_run(db, sql.data, err);
	buf_free(&sql);
	return rc;
}

static int
has_column(struct db *db, const struct table *t, const struct column *c,
    struct err *err)
{
	char *sql = xasprintf("SELECT count(*) FROM pragma_table_info('%s') "
	                      "WHERE name = '%s'",
	    t->name, c->name);
	int64_t count = 0;
	int rc = db_int(db, sql, 0, &count, err);

	free(sql);
	return rc == -1 ? -1 : count > 0;
}

/* A column that is added needs a default for the rows that are there. */
static int
add_column(struct db *db, const struct table *t, const struct column *c,
    struct err *err)
{
	const char *dflt = "";
	char *sql;
	int rc;

	if (strstr(c->type, "DEFAULT") == NULL)
		dflt =
		    str_starts(c->type, "TEXT") ? " DEFAULT ''" : " DEFAULT 0";
	sql = xasprintf("ALTER TABLE %s ADD COLUMN %s %s%s", t->name, c->name,
	    c->type, dflt);
	rc = db_run(db, sql, err);
	free(sql);
	return rc;
}

static int
ensure_table(struct db *db, const struct table *t, struct err *err)
{
	const struct column *c;
	int there;

	if (create(db, t, err) == -1)
		return -1;
	for (c = t->columns; c->name != NULL; c++) {
		there = has_column(db, t, c, err);
		if (there == -1 ||
		    (there == 0 && add_column(db, t, c, err) == -1))
			return -1;
	}
	return db_run(db, t->indexes, err);
}

/* The largest N of the files "PREFIX-N.*" that are there. */
static int64_t
last_file(const char *dir_path, const char *prefix)
{
	const struct dirent *entry;
	DIR *dir = opendir(dir_path);
	int64_t n, last = 0;
	char *digits;

	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		if (!str_starts(entry->d_name, prefix))
			continue;
		digits = xstrdup(entry->d_name + strlen(prefix));
		digits[strcspn(digits, ".")] = '\0';
		if (str_to_int(digits, 1, INT64_MAX / 2, &n) == 0 && n > last)
			last = n;
		free(digits);
	}
	closedir(dir);
	return last;
}

/*
 * In a database that was begun anew, numbers must not come again: a worker of
 * the old one may still be at its task, its log is there, and receivers of
 * events know them by their number.
 */
static int
skip_used_ids(struct db *db, const char *table, const char *sub,
    const char *prefix, struct err *err)
{
	char *dir = path_join(db_dir(db), sub);
	int64_t last = last_file(dir, prefix);
	int64_t known = 0;
	char *sql;
	int rc;

	free(dir);
	sql = xasprintf("SELECT seq FROM sqlite_sequence WHERE name = '%s'",
	    table);
	rc = db_int(db, sql, -1, &known, err);
	free(sql);
	if (rc == -1 || last <= known)
		return rc;
	sql =
	    xasprintf(known == -1 ? "INSERT INTO sqlite_sequence(seq, name) "
	                            "VALUES(%" PRId64 ", '%s')"
	                          : "UPDATE sqlite_sequence SET seq = %" PRId64
	                            " WHERE name = '%s'",
	        last, table);
	rc = db_run(db, sql, err);
	free(sql);
	return rc;
}

static int
to_1(struct db *db, struct err *err)
{
	if (ensure_table(db, &transfer_tasks, err) == -1)
		return -1;
	return skip_used_ids(db, "transfer_tasks", "transfers", "transfer-",
	    err);
}

/* Watches of the earlier server get a name for their resumes, too. */
static int
to_2(struct db *db, struct err *err)
{
	if (ensure_table(db, &watches, err) == -1 ||
	    ensure_table(db, &watch_events, err) == -1 ||
	    ensure_table(db, &daemon_meta, err) == -1 ||
	    ensure_table(db, &event_deliveries, err) == -1 ||
	    db_run(db,
	        "UPDATE watches SET token = lower(hex(randomblob(16))) "
	        "WHERE token = ''",
	        err) == -1)
		return -1;
	return skip_used_ids(db, "watch_events", "events", "event-", err);
}

static int
to_3(struct db *db, struct err *err)
{
	if (ensure_table(db, &remote_jobs, err) == -1)
		return -1;
	return skip_used_ids(db, "remote_jobs", "remote", "remote-", err);
}

/* A watch knows the run that it looks after. */
static int
to_4(struct db *db, struct err *err)
{
	return ensure_table(db, &watches, err);
}

/* Step n brings a database from number n to n + 1. */
static int (*const steps[])(struct db *db, struct err *err) = { to_1, to_2,
	to_3, to_4 };

#define VERSION ((int64_t)(sizeof(steps) / sizeof(steps[0])))

static int
get_version(struct db *db, int64_t *version, struct err *err)
{
	if (db_int(db, "PRAGMA user_version", 0, version, err) == -1)
		return -1;
	if (*version < 0 || *version > VERSION)
		return err_set(err, ERR_INVALID,
		    "%s/%s was made by a newer version of this program (form "
		    "%" PRId64 ", this one knows %" PRId64
		    "); update remote-sandbox-mcp",
		    db_dir(db), DB_FILE, *version, VERSION);
	return 0;
}

/* One step, in a transaction: another process may be at it, too. */
static int
step(struct db *db, struct err *err)
{
	int64_t version;
	char *sql;
	int rc;

	if (db_begin(db, err) == -1 || get_version(db, &version, err) == -1)
		return -1;
	if (version == VERSION)
		return db_commit(db, err);
	if (steps[version](db, err) == -1)
		return -1;
	sql = xasprintf("PRAGMA user_version = %" PRId64, version + 1);
	rc = db_run(db, sql, err);
	free(sql);
	return rc == -1 ? -1 : db_commit(db, err);
}

int
schema_migrate(struct db *db, struct err *err)
{
	int64_t version;

	for (;;) {
		if (get_version(db, &version, err) == -1)
			return -1;
		if (version == VERSION)
			return 0;
		if (step(db, err) == -1)
			return -1;
	}
}
