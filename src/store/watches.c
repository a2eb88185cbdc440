/*
 * Rows of watches.  One table of fields says what is where; the statements,
 * the reading and the JSON are made from it.
 */
#include "store/watches.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/utf8.h"
#include "store/events_inside.h"
#include "store/row.h"

#define TOKEN_BYTES 16
#define LATEST_S 86400 /* the longest interval */

enum kind { TEXT, INT, BOOL, CODE };

struct field {
	const char *name;
	size_t offset;
	enum kind kind;
	bool state; /* the daemon changes it */
	bool ours;  /* the earlier server does not know it */
	const char *dflt;
	int64_t dflt_int;
	int64_t min, max; /* of INT; both 0: any that is not negative */
};

#define AT(field) #field, offsetof(struct watch, field)
#define STATE .state = true

/* In the order of the table. */
static const struct field fields[] = {
	{ AT(id), INT },
	{ AT(run_id), TEXT },
	{ AT(name), TEXT },
	{ AT(sandbox_name), TEXT },
	{ AT(tmux_session), TEXT },
	{ AT(log_file), TEXT },
	{ AT(cwd), TEXT },
	{ AT(launch_command), TEXT },
	{ AT(resume_command), TEXT },
	{ AT(resume_plan_json), TEXT, .dflt = "{}" },
	{ AT(checkpoint_path), TEXT },
	{ AT(checkpoint_format), TEXT, .dflt = "text" },
	{ AT(checkpoint_command), TEXT },
	{ AT(interval_s), INT, .dflt_int = 300, .min = 1, .max = LATEST_S },
	{ AT(max_log_lines), INT, .dflt_int = 80, .min = 1, .max = 10000 },
	{ AT(status), TEXT, STATE, .dflt = WATCH_ACTIVE },
	{ AT(last_state), TEXT, STATE },
	{ AT(last_summary), TEXT, STATE },
	{ AT(last_error), TEXT, STATE },
	{ AT(last_exit_code), CODE, STATE },
	{ AT(last_log_digest), TEXT, STATE },
	{ AT(last_log_tail), TEXT, STATE },
	{ AT(last_checkpoint_text), TEXT, STATE },
	{ AT(last_checkpoint_digest), TEXT, STATE },
	{ AT(checkpoint_updated_ts), INT, STATE },
	{ AT(webhook_url), TEXT },
	{ AT(event_command), TEXT },
	{ AT(auto_resume), BOOL },
	{ AT(resume_attempts), INT, STATE },
	{ AT(max_resume_attempts), INT, .dflt_int = 1 },
	{ AT(alert_after_failures), INT, .dflt_int = 2, .min = 1, .max = 1000 },
	{ AT(consecutive_ssh_failures), INT, STATE },
	{ AT(ssh_alert_sent), BOOL, STATE },
	{ AT(notify_local), BOOL, .dflt_int = 1 },
	{ AT(resume_delay_s), INT, .dflt_int = 300, .max = LATEST_S },
	{ AT(interrupted_ts), INT, STATE },
	{ AT(resume_due_ts), INT, STATE },
	{ AT(metadata_json), TEXT, .dflt = "{}" },
	{ AT(created_ts), INT },
	{ AT(updated_ts), INT, STATE },
	{ AT(last_checked_ts), INT, STATE },
	{ AT(next_check_ts), INT, STATE },
	{ AT(last_event_ts), INT, STATE },
	{ AT(token), TEXT, .ours = true },
	{ AT(resume_pending), INT, STATE, .ours = true },
	{ AT(boot_id), TEXT, STATE, .ours = true },
	{ AT(checkpoint_error), TEXT, STATE, .ours = true },
	{ AT(sandbox_key), TEXT, .ours = true },
	{ AT(job_run), TEXT, STATE, .ours = true },
	{ AT(revision), INT, STATE, .ours = true },
};

#define FIELDS (sizeof(fields) / sizeof(fields[0]))

static char **
text_at(const struct watch *w, const struct field *f)
{
	return (char **)((char *)(uintptr_t)w + f->offset);
}

static int64_t *
int_at(const struct watch *w, const struct field *f)
{
	return (int64_t *)((char *)(uintptr_t)w + f->offset);
}

static bool *
bool_at(const struct watch *w, const struct field *f)
{
	return (bool *)((char *)(uintptr_t)w + f->offset);
}

/* --- structs --------------------------------------------------------------
 */

void
watch_set(char **field, const char *text)
{
	char *old = *field;

	*field = xstrdup(text);
	free(old);
}

void
watch_init(struct watch *w)
{
	char token[RANDOM_HEX(TOKEN_BYTES)];
	const struct field *f;

	memset(w, 0, sizeof(*w));
	for (f = fields; f < fields + FIELDS; f++) {
		if (f->kind == TEXT)
			*text_at(w, f) =
			    xstrdup(f->dflt != NULL ? f->dflt : "");
		else if (f->kind == BOOL)
			*bool_at(w, f) = f->dflt_int != 0;
		else
			*int_at(w, f) =
			    f->kind == CODE ? WATCH_NO_CODE : f->dflt_int;
	}
	random_hex(token, TOKEN_BYTES);
	watch_set(&w->token, token);
}

void
watch_free(struct watch *w)
{
	const struct field *f;

	if (w == NULL)
		return;
	for (f = fields; f < fields + FIELDS; f++) {
		if (f->kind == TEXT)
			free(*text_at(w, f));
	}
	memset(w, 0, sizeof(*w));
}

void
watch_copy(struct watch *to, const struct watch *from)
{
	const struct field *f;

	*to = *from;
	for (f = fields; f < fields + FIELDS; f++) {
		if (f->kind == TEXT)
			*text_at(to, f) = xstrdup(*text_at(from, f));
	}
}

void
watches_free(struct watch *list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		watch_free(&list[i]);
	free(list);
}

/* --- as JSON --------------------------------------------------------------
 */

static json_t *
object_of(const char *text)
{
	struct err err;
	json_t *o = decode_json(text, strlen(text), &err);

	if (json_is_object(o))
		return o;
	json_decref(o);
	return json_object();
}

static json_t *
field_json(const struct watch *w, const struct field *f)
{
	const char *text;

	switch (f->kind) {
	case TEXT:
		text = *text_at(w, f);
		return utf8_json(text, strlen(text));
	case BOOL:
		return json_boolean(*bool_at(w, f));
	case CODE:
		if (*int_at(w, f) == WATCH_NO_CODE)
			return json_null();
		break;
	case INT:
		break;
	}
	return json_integer(*int_at(w, f));
}

json_t *
watch_json(const struct watch *w)
{
	json_t *o = json_object();
	const struct field *f;

	for (f = fields; f < fields + FIELDS; f++) {
		if (!f->ours && strstr(f->name, "_json") == NULL)
			json_object_set_new(o, f->name, field_json(w, f));
	}
	if (w->checkpoint_error[0] != '\0')
		json_object_set_new(o, "checkpoint_error",
		    utf8_json(w->checkpoint_error,
		        strlen(w->checkpoint_error)));
	json_object_set_new(o, "metadata", object_of(w->metadata_json));
	json_object_set_new(o, "resume_plan", object_of(w->resume_plan_json));
	return o;
}

/* --- statements -----------------------------------------------------------
 */

static struct {
	char *insert, *save, *get, *list, *find;
} sql;

static void
add_names(struct buf *b)
{
	const struct field *f;

	for (f = fields; f < fields + FIELDS; f++)
		buf_addf(b, "%s%s", f == fields ? "" : ", ", f->name);
}

static char *
make_select(const char *rest)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "SELECT ");
	add_names(&b);
	buf_addf(&b, " FROM watches %s", rest);
	return buf_take(&b);
}

/* A field has the number of its place, from 1 on. */
static char *
make_insert(void)
{
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "INSERT INTO watches(");
	add_names(&b);
	buf_adds(&b, ") VALUES(");
	for (i = 0; i < FIELDS; i++)
		buf_addf(&b, "%s?%zu", i == 0 ? "" : ", ", i + 1);
	buf_adds(&b, ") RETURNING id");
	return buf_take(&b);
}

static char *
make_save(void)
{
	const char *comma = "";
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "UPDATE watches SET ");
	for (i = 0; i < FIELDS; i++) {
		if (!fields[i].state)
			continue;
		buf_addf(&b, "%s%s = ?%zu", comma, fields[i].name, i + 1);
		comma = ", ";
	}
	buf_addf(&b,
	    " WHERE id = ?1 AND status = 'active' AND revision = ?%zu - 1 "
	    "RETURNING id",
	    FIELDS);
	return buf_take(&b);
}

static void
make_statements(void)
{
	sql.insert = make_insert();
	sql.save = make_save();
	sql.get = make_select("WHERE id = ?1");
	sql.list = make_select("WHERE ?1 = '' OR status = ?1 ORDER BY id DESC");
	sql.find = make_select("WHERE sandbox_name = ?1 AND (job_run = ?3 OR "
	                       "(status = 'active' AND tmux_session = ?2 AND "
	                       "(resume_attempts > 0 OR job_run = ''))) "
	                       "ORDER BY job_run = ?3 DESC, id DESC LIMIT 1");
}

static void
ready(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_statements);
}

/* --- rows -----------------------------------------------------------------
 */

/* What stands in a database may be anything. */
static int64_t
within(int64_t n, const struct field *f)
{
	int64_t max = f->max != 0 ? f->max : INT64_MAX / 4;

	return n < f->min ? f->min : n > max ? max : n;
}

static void
read_row(sqlite3_stmt *stmt, struct watch *w)
{
	int i;

	memset(w, 0, sizeof(*w));
	for (i = 0; i < (int)FIELDS; i++) {
		const struct field *f = &fields[i];

		if (f->kind == TEXT)
			*text_at(w, f) = row_text(stmt, i);
		else if (f->kind == BOOL)
			*bool_at(w, f) = sqlite3_column_int64(stmt, i) != 0;
		else if (f->kind == CODE)
			*int_at(w, f) =
			    sqlite3_column_type(stmt, i) == SQLITE_NULL
			    ? WATCH_NO_CODE
			    : sqlite3_column_int64(stmt, i);
		else
			*int_at(w, f) =
			    within(sqlite3_column_int64(stmt, i), f);
	}
}

static void
bind_row(sqlite3_stmt *stmt, const struct watch *w, bool all)
{
	int i;

	for (i = 0; i < (int)FIELDS; i++) {
		const struct field *f = &fields[i];

		if (!all && !f->state && i > 0)
			continue;
		if (f->kind == TEXT)
			row_bind_text(stmt, i + 1, *text_at(w, f));
		else if (f->kind == BOOL)
			row_bind_int(stmt, i + 1, *bool_at(w, f));
		else if (f->kind == INT || *int_at(w, f) != WATCH_NO_CODE)
			row_bind_int(stmt, i + 1, *int_at(w, f));
	}
}

static int
missing(int64_t id, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
	    "there is no watch %" PRId64
	    "; list_background_watches tells which there are",
	    id);
}

int
watches_add(struct watch *w, const struct until *until, struct err *err)
{
	sqlite3_stmt *stmt;
	struct db *db;
	int64_t id = 0;
	bool did;

	ready();
	db = row_take(sql.insert, &stmt, until, err);
	if (db == NULL)
		return -1;
	w->created_ts = w->updated_ts = (int64_t)time(NULL);
	if (w->next_check_ts == 0)
		w->next_check_ts = w->created_ts;
	bind_row(stmt, w, true);
	sqlite3_bind_null(stmt, 1);
	if (row_finish(db, stmt, &did, &id, err) == -1)
		return -1;
	assert(did);
	w->id = id;
	return 0;
}

/* The first row of a statement that is bound; 1 if there is none. */
static int
one_row(struct db *db, sqlite3_stmt *stmt, struct watch *w, struct err *err)
{
	int rc = db_step(db, stmt, err);

	if (rc == 1)
		read_row(stmt, w);
	db_give(db);
	return rc == -1 ? -1 : rc == 1 ? 0 : 1;
}

int
watches_get(int64_t id, struct watch *w, const struct until *until,
    struct err *err)
{
	sqlite3_stmt *stmt;
	struct db *db;
	int rc;

	ready();
	memset(w, 0, sizeof(*w));
	db = row_take(sql.get, &stmt, until, err);
	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	rc = one_row(db, stmt, w, err);
	return rc == 1 ? missing(id, err) : rc;
}

int
watches_find(const char *sandbox_name, const char *tmux_session,
    const char *job_run, struct watch *w, const struct until *until,
    struct err *err)
{
	sqlite3_stmt *stmt;
	struct db *db;
	int rc;

	ready();
	memset(w, 0, sizeof(*w));
	db = row_take(sql.find, &stmt, until, err);
	if (db == NULL)
		return -1;
	row_bind_text(stmt, 1, sandbox_name);
	row_bind_text(stmt, 2, tmux_session);
	row_bind_text(stmt, 3, job_run);
	rc = one_row(db, stmt, w, err);
	if (rc != 1)
		return rc;
	return err_set(err, ERR_NOT_FOUND, "nothing watches '%s' on %s",
	    tmux_session, sandbox_name);
}

/* All rows of a statement that is bound. */
static int
all_rows(struct db *db, sqlite3_stmt *stmt, struct watch **list, size_t *count,
    struct err *err)
{
	struct watch *rows = NULL;
	size_t n = 0;
	int rc;

	while ((rc = db_step(db, stmt, err)) == 1) {
		rows = xreallocarray(rows, n + 1, sizeof(*rows));
		read_row(stmt, &rows[n++]);
	}
	db_give(db);
	if (rc == -1) {
		watches_free(rows, n);
		return -1;
	}
	*list = rows;
	*count = n;
	return 0;
}

static bool
is_status(const char *text)
{
	return strcmp(text, WATCH_ACTIVE) == 0 ||
	    strcmp(text, WATCH_COMPLETED) == 0 ||
	    strcmp(text, WATCH_FAILED) == 0 ||
	    strcmp(text, WATCH_CANCELLED) == 0;
}

int
watches_list(const char *status, struct watch **list, size_t *count,
    const struct until *until, struct err *err)
{
	sqlite3_stmt *stmt;
	struct db *db;

	if (status[0] != '\0' && !is_status(status))
		return err_set(err, ERR_INVALID,
		    "there is no status '%.60s' of watches; it is active, "
		    "completed, failed or cancelled",
		    status);
	ready();
	db = row_take(sql.list, &stmt, until, err);
	if (db == NULL)
		return -1;
	row_bind_text(stmt, 1, status);
	return all_rows(db, stmt, list, count, err);
}

void
watches_due_free(struct watch_due *list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		free(list[i].sandbox_name);
		free(list[i].sandbox_key);
	}
	free(list);
}

/* A time further ahead than any that is set is due: the clock was set back. */
#define DUE                        \
	"(next_check_ts <= ?1 OR " \
	"next_check_ts > ?1 + max(interval_s, ?2))"

bool
watch_due_at(const struct watch *w, int64_t now)
{
	int64_t ahead = w->next_check_ts - now;

	return strcmp(w->status, WATCH_ACTIVE) == 0 &&
	    (ahead <= 0 || (ahead > w->interval_s && ahead > WATCH_START_S));
}

int
watches_due(int64_t now, size_t max, struct watch_due **list, size_t *count,
    const struct until *until, struct err *err)
{
	static const char text[] =
	    "SELECT id, sandbox_name, sandbox_key FROM watches "
	    "WHERE status = 'active' AND " DUE
	    " ORDER BY next_check_ts, id LIMIT ?3";
	struct watch_due *rows = NULL;
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);
	size_t n = 0;
	int rc;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, now);
	row_bind_int(stmt, 2, WATCH_START_S);
	row_bind_int(stmt, 3, (int64_t)max);
	while ((rc = db_step(db, stmt, err)) == 1) {
		rows = xreallocarray(rows, n + 1, sizeof(*rows));
		rows[n].id = sqlite3_column_int64(stmt, 0);
		rows[n].sandbox_name = row_text(stmt, 1);
		rows[n++].sandbox_key = row_text(stmt, 2);
	}
	db_give(db);
	if (rc == -1) {
		watches_due_free(rows, n);
		return -1;
	}
	*list = rows;
	*count = n;
	return 0;
}

int
watches_wait(int64_t now, int64_t longest, int64_t *seconds,
    const struct until *until, struct err *err)
{
	static const char text[] =
	    "SELECT min(CASE WHEN " DUE " THEN 0 ELSE next_check_ts - ?1 END) "
	    "FROM watches WHERE status = 'active'";
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, now);
	row_bind_int(stmt, 2, WATCH_START_S);
	return row_seconds(db, stmt, longest, seconds, err);
}

/* In a transaction.  1: the row is not as it was read. */
static int
save_row(struct db *db, struct watch *w, struct err *err)
{
	sqlite3_stmt *stmt = db_statement(db, sql.save, err);
	bool did = false;
	int rc;

	if (stmt == NULL)
		return -1;
	w->revision++;
	bind_row(stmt, w, false);
	while ((rc = db_step(db, stmt, err)) == 1)
		did = true;
	if (rc == 0 && did)
		return 0;
	w->revision--;
	return rc == -1 ? -1 : 1;
}

int
watches_save(struct watch *w, struct event *events, size_t count,
    const struct until *until, struct err *err)
{
	struct db *db;
	size_t i;
	int rc;

	ready();
	db = db_take(until, err);
	if (db == NULL)
		return -1;
	if (count > 0)
		w->last_event_ts = events[count - 1].created_ts;
	rc = db_begin(db, err);
	if (rc == 0)
		rc = save_row(db, w, err);
	for (i = 0; rc == 0 && i < count; i++)
		rc = events_insert(db, &events[i], err);
	if (rc == 0 && db_commit(db, err) == -1)
		rc = -1;
	db_give(db);
	return rc;
}

/* --- small changes --------------------------------------------------------
 */

int
watches_started(int64_t id, const char *tmux_session, const char *job_run,
    const char *log_file, const struct until *until, struct err *err)
{
	static const char text[] =
	    "UPDATE watches SET tmux_session = ?2, log_file = ?3,"
	    " job_run = ?5, updated_ts = ?4, next_check_ts = ?4 "
	    "WHERE id = ?1 RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_text(stmt, 2, tmux_session);
	row_bind_text(stmt, 3, log_file);
	row_bind_int(stmt, 4, (int64_t)time(NULL));
	row_bind_text(stmt, 5, job_run);
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : missing(id, err);
}

int
watches_cancel(int64_t id, const struct until *until, struct err *err)
{
	return watches_leave(id, NULL, NULL, until, err);
}

int
watches_leave(int64_t id, const char *state, const char *summary,
    const struct until *until, struct err *err)
{
	static const char text[] =
	    "UPDATE watches SET status = 'cancelled', next_check_ts = 0,"
	    " resume_pending = 0, updated_ts = ?2,"
	    " last_state = coalesce(?3, last_state),"
	    " last_summary = coalesce(?4, last_summary)"
	    " WHERE id = ?1 RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	row_bind_int(stmt, 2, (int64_t)time(NULL));
	row_bind_text(stmt, 3, state);
	row_bind_text(stmt, 4, summary);
	if (row_finish(db, stmt, &did, NULL, err) == -1)
		return -1;
	return did ? 0 : missing(id, err);
}

int
watches_remove(int64_t id, const struct until *until, struct err *err)
{
	static const char text[] = "DELETE FROM watches WHERE id = ?1 "
	                           "AND last_checked_ts = 0 RETURNING id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	return row_finish(db, stmt, &did, NULL, err);
}

json_t *
watches_jobs(size_t max, const struct until *until, struct err *err)
{
	/* Of each group SQLite takes the other columns from the row with the
	 * greatest id. */
	static const char text[] =
	    "SELECT sandbox_name, tmux_session, status, max(id) AS id "
	    "FROM watches WHERE tmux_session <> '' "
	    "GROUP BY sandbox_name, tmux_session ORDER BY id DESC LIMIT ?1";

	return row_objects(text, max, until, err);
}

json_t *
watches_counts(const struct until *until, struct err *err)
{
	static const char text[] =
	    "SELECT status, count(*) FROM watches GROUP BY status";
	static const char *const known[] = { WATCH_ACTIVE, WATCH_COMPLETED,
		WATCH_FAILED, WATCH_CANCELLED };
	sqlite3_stmt *stmt;
	struct db *db = row_take(text, &stmt, until, err);
	json_t *o;
	size_t i;
	int rc;

	if (db == NULL)
		return NULL;
	o = json_object();
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		json_object_set_new(o, known[i], json_integer(0));
	while ((rc = db_step(db, stmt, err)) == 1) {
		char *status = row_text(stmt, 0);

		if (json_object_get(o, status) != NULL)
			json_object_set_new(o, status,
			    json_integer(sqlite3_column_int64(stmt, 1)));
		free(status);
	}
	db_give(db);
	if (rc == -1) {
		json_decref(o);
		return NULL;
	}
	return o;
}
