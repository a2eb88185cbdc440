#include "store/events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/utf8.h"
#include "store/events_inside.h"
#include "store/row.h"

#define FIRST_S 5
#define LONGEST_S 3600

static const char *const channels[CHANNELS] = {
	[CHANNEL_FILE] = "file",
	[CHANNEL_DESKTOP] = "desktop",
	[CHANNEL_WEBHOOK] = "webhook",
	[CHANNEL_COMMAND] = "command",
};

const char *
event_channel_name(enum event_channel c)
{
	return channels[c];
}

void
event_free(struct event *e)
{
	if (e == NULL)
		return;
	free(e->event_type);
	free(e->summary);
	free(e->payload_json);
	memset(e, 0, sizeof(*e));
}

void
events_free(struct event *list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++)
		event_free(&list[i]);
	free(list);
}

json_t *
event_json(const struct event *e)
{
	json_t *o = json_object(), *payload;
	struct err err;

	payload = decode_json(e->payload_json, strlen(e->payload_json), &err);
	if (!json_is_object(payload)) {
		json_decref(payload);
		payload = json_object();
	}
	json_object_set_new(o, "id", json_integer(e->id));
	json_object_set_new(o, "watch_id", json_integer(e->watch_id));
	json_object_set_new(o, "event_type",
	    utf8_json(e->event_type, strlen(e->event_type)));
	json_object_set_new(o, "summary",
	    utf8_json(e->summary, strlen(e->summary)));
	json_object_set_new(o, "created_ts", json_integer(e->created_ts));
	json_object_set_new(o, "payload", payload);
	return o;
}

/* --- writing --------------------------------------------------------------
 */

static int
insert_delivery(struct db *db, const struct event *e, enum event_channel c,
    struct err *err)
{
	static const char sql[] =
	    "INSERT INTO event_deliveries(event_id, channel, updated_ts) "
	    "VALUES(?1, ?2, ?3)";
	sqlite3_stmt *stmt = db_statement(db, sql, err);

	if (stmt == NULL)
		return -1;
	row_bind_int(stmt, 1, e->id);
	row_bind_text(stmt, 2, channels[c]);
	row_bind_int(stmt, 3, e->created_ts);
	return db_step(db, stmt, err);
}

int
events_insert(struct db *db, struct event *e, struct err *err)
{
	static const char sql[] =
	    "INSERT INTO watch_events(watch_id, event_type, summary,"
	    " payload_json, created_ts) VALUES(?1, ?2, ?3, ?4, ?5) "
	    "RETURNING id";
	sqlite3_stmt *stmt = db_statement(db, sql, err);
	int c, rc;

	if (stmt == NULL)
		return -1;
	row_bind_int(stmt, 1, e->watch_id);
	row_bind_text(stmt, 2, e->event_type);
	row_bind_text(stmt, 3, e->summary);
	row_bind_text(stmt, 4, e->payload_json);
	row_bind_int(stmt, 5, e->created_ts);
	while ((rc = db_step(db, stmt, err)) == 1)
		e->id = sqlite3_column_int64(stmt, 0);
	for (c = 0; rc == 0 && c < CHANNELS; c++) {
		if ((e->channels & (1u << c)) != 0)
			rc = insert_delivery(db, e, (enum event_channel)c, err);
	}
	return rc;
}

/* --- reading --------------------------------------------------------------
 */

/* Six columns from "at" on. */
static void
read_event(sqlite3_stmt *stmt, int at, struct event *e)
{
	memset(e, 0, sizeof(*e));
	e->id = sqlite3_column_int64(stmt, at);
	e->watch_id = sqlite3_column_int64(stmt, at + 1);
	e->event_type = row_text(stmt, at + 2);
	e->summary = row_text(stmt, at + 3);
	e->payload_json = row_text(stmt, at + 4);
	e->created_ts = sqlite3_column_int64(stmt, at + 5);
}

#define EVENT_COLUMNS                                                 \
	"e.id, e.watch_id, e.event_type, e.summary, e.payload_json, " \
	"e.created_ts"

int
events_get(int64_t id, struct event *e, const struct until *until,
    struct err *err)
{
	static const char sql[] =
	    "SELECT " EVENT_COLUMNS " FROM watch_events e WHERE e.id = ?1";
	sqlite3_stmt *stmt;
	struct db *db;
	int rc;

	memset(e, 0, sizeof(*e));
	db = row_take(sql, &stmt, until, err);
	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	rc = db_step(db, stmt, err);
	if (rc == 1)
		read_event(stmt, 0, e);
	db_give(db);
	if (rc == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no event %" PRId64,
		    id);
	return rc == 1 ? 0 : -1;
}

int
events_list(const struct events_query *q, struct event **list, size_t *count,
    const struct until *until, struct err *err)
{
	static const char old[] =
	    "SELECT " EVENT_COLUMNS " FROM watch_events e WHERE e.id > ?1 "
	    "AND (?2 = 0 OR e.watch_id = ?2) ORDER BY e.id LIMIT ?3";
	static const char new[] =
	    "SELECT " EVENT_COLUMNS " FROM watch_events e WHERE e.id > ?1 "
	    "AND (?2 = 0 OR e.watch_id = ?2) ORDER BY e.id DESC LIMIT ?3";
	struct event *rows = NULL;
	sqlite3_stmt *stmt;
	struct db *db = row_take(q->newest ? new : old, &stmt, until, err);
	size_t n = 0;
	int rc;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, q->after);
	row_bind_int(stmt, 2, q->watch_id);
	row_bind_int(stmt, 3, (int64_t)q->max);
	while ((rc = db_step(db, stmt, err)) == 1) {
		rows = xreallocarray(rows, n + 1, sizeof(*rows));
		read_event(stmt, 0, &rows[n++]);
	}
	db_give(db);
	if (rc == -1) {
		events_free(rows, n);
		return -1;
	}
	*list = rows;
	*count = n;
	return 0;
}

int
events_last(int64_t *id, const struct until *until, struct err *err)
{
	struct db *db = db_take(until, err);
	int rc;

	if (db == NULL)
		return -1;
	rc = db_int(db, "SELECT coalesce(max(id), 0) FROM watch_events", 0, id,
	    err);
	db_give(db);
	return rc;
}

/* --- the end of their time ------------------------------------------------
 */

int
events_old(const struct events_keep *keep, int64_t now, size_t max,
    int64_t **list, size_t *count, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT id FROM watch_events WHERE id <= (SELECT id FROM "
	    "watch_events ORDER BY id DESC LIMIT 1 OFFSET ?1) AND "
	    "(created_ts < ?2 OR id <= (SELECT id FROM watch_events "
	    "ORDER BY id DESC LIMIT 1 OFFSET ?3)) AND NOT EXISTS (SELECT 1 "
	    "FROM event_deliveries d WHERE d.event_id = watch_events.id "
	    "AND d.state = 'pending') ORDER BY id LIMIT ?4";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, (int64_t)keep->least);
	row_bind_int(stmt, 2, now - keep->age_s);
	row_bind_int(stmt, 3, (int64_t)keep->most);
	row_bind_int(stmt, 4, (int64_t)max);
	return row_ids(db, stmt, list, count, err);
}

static int
remove_one(struct db *db, const char *sql, int64_t id, struct err *err)
{
	sqlite3_stmt *stmt = db_statement(db, sql, err);

	if (stmt == NULL)
		return -1;
	row_bind_int(stmt, 1, id);
	return db_step(db, stmt, err);
}

int
events_remove(const int64_t *list, size_t count, const struct until *until,
    struct err *err)
{
	struct db *db = db_take(until, err);
	size_t i;
	int rc;

	if (db == NULL)
		return -1;
	rc = db_begin(db, err);
	for (i = 0; rc == 0 && i < count; i++) {
		rc = remove_one(db,
		    "DELETE FROM event_deliveries WHERE event_id = ?1", list[i],
		    err);
		if (rc == 0)
			rc = remove_one(db,
			    "DELETE FROM watch_events WHERE id = ?1", list[i],
			    err);
	}
	if (rc == 0)
		rc = db_commit(db, err);
	db_give(db);
	return rc;
}

/* --- delivery -------------------------------------------------------------
 */

void
deliveries_free(struct delivery *list, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		event_free(&list[i].event);
		free(list[i].watch_name);
		free(list[i].sandbox_name);
		free(list[i].tmux_session);
		free(list[i].log_file);
		free(list[i].webhook_url);
		free(list[i].event_command);
	}
	free(list);
}

static void
read_delivery(sqlite3_stmt *stmt, enum event_channel c, struct delivery *d)
{
	memset(d, 0, sizeof(*d));
	read_event(stmt, 0, &d->event);
	d->channel = c;
	d->tries = sqlite3_column_int64(stmt, 6) + 1;
	d->watch_name = row_text(stmt, 7);
	d->sandbox_name = row_text(stmt, 8);
	d->tmux_session = row_text(stmt, 9);
	d->log_file = row_text(stmt, 10);
	d->webhook_url = row_text(stmt, 11);
	d->event_command = row_text(stmt, 12);
}

/* May the row be taken?  Its long texts are not touched for that. */
static bool
is_wanted(sqlite3_stmt *stmt, const struct deliveries_query *q)
{
	char *receiver;
	bool yes;

	if (q->may == NULL)
		return true;
	if (q->channel == CHANNEL_WEBHOOK)
		receiver = row_text(stmt, 11);
	else if (q->channel == CHANNEL_COMMAND)
		receiver = row_text(stmt, 12);
	else
		receiver = xstrdup("");
	yes = q->may(receiver, q->data);
	free(receiver);
	return yes;
}

/* One that was noted in the future is due: the clock was set back since. */
static int
select_due(struct db *db, const struct deliveries_query *q,
    struct delivery **list, size_t *count, struct err *err)
{
	static const char sql[] =
	    "SELECT " EVENT_COLUMNS ", d.tries, w.name, w.sandbox_name,"
	    " w.tmux_session, w.log_file, w.webhook_url, w.event_command "
	    "FROM event_deliveries d JOIN watch_events e ON e.id = d.event_id "
	    "LEFT JOIN watches w ON w.id = e.watch_id "
	    "WHERE d.state = 'pending' AND d.channel = ?1 "
	    "AND (d.next_ts <= ?2 OR d.updated_ts > ?2) "
	    "ORDER BY d.id";
	sqlite3_stmt *stmt = db_statement(db, sql, err);
	int rc = 0;

	if (stmt == NULL)
		return -1;
	row_bind_text(stmt, 1, channels[q->channel]);
	row_bind_int(stmt, 2, q->now);
	while (*count < q->max && (rc = db_step(db, stmt, err)) == 1) {
		if (!is_wanted(stmt, q))
			continue;
		*list = xreallocarray(*list, *count + 1, sizeof(**list));
		read_delivery(stmt, q->channel, &(*list)[(*count)++]);
	}
	return rc == -1 ? -1 : 0;
}

static int
hide(struct db *db, const struct delivery *d, int64_t now, int64_t lease_s,
    struct err *err)
{
	static const char sql[] =
	    "UPDATE event_deliveries SET tries = ?3, next_ts = ?4,"
	    " updated_ts = ?5 WHERE event_id = ?1 AND channel = ?2";
	sqlite3_stmt *stmt = db_statement(db, sql, err);

	if (stmt == NULL)
		return -1;
	row_bind_int(stmt, 1, d->event.id);
	row_bind_text(stmt, 2, channels[d->channel]);
	row_bind_int(stmt, 3, d->tries);
	row_bind_int(stmt, 4, now + lease_s);
	row_bind_int(stmt, 5, now);
	return db_step(db, stmt, err);
}

int
deliveries_take(const struct deliveries_query *q, struct delivery **list,
    size_t *count, const struct until *until, struct err *err)
{
	struct delivery *found = NULL;
	struct db *db = db_take(until, err);
	size_t i, n = 0;
	int rc;

	if (db == NULL)
		return -1;
	rc = db_begin(db, err);
	if (rc == 0)
		rc = select_due(db, q, &found, &n, err);
	for (i = 0; rc == 0 && i < n; i++)
		rc = hide(db, &found[i], q->now, q->lease_s, err);
	if (rc == 0)
		rc = db_commit(db, err);
	db_give(db);
	if (rc == -1) {
		deliveries_free(found, n);
		return -1;
	}
	*list = found;
	*count = n;
	return 0;
}

static int
end_delivery(int64_t event_id, enum event_channel c, const char *state,
    const char *why, int64_t when, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "UPDATE event_deliveries SET state = ?3, last_error = ?4,"
	    " next_ts = ?5, updated_ts = ?6 "
	    "WHERE event_id = ?1 AND channel = ?2 AND state = 'pending'";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	bool did;

	if (db == NULL)
		return -1;
	row_bind_int(stmt, 1, event_id);
	row_bind_text(stmt, 2, channels[c]);
	row_bind_text(stmt, 3, state);
	row_bind_text(stmt, 4, why);
	row_bind_int(stmt, 5, when);
	row_bind_int(stmt, 6, (int64_t)time(NULL));
	return row_finish(db, stmt, &did, NULL, err);
}

int
delivery_done(int64_t event_id, enum event_channel c, const struct until *until,
    struct err *err)
{
	return end_delivery(event_id, c, "done", "", 0, until, err);
}

int
delivery_failed(int64_t event_id, enum event_channel c, const char *why,
    int64_t when, const struct until *until, struct err *err)
{
	return end_delivery(event_id, c, when == 0 ? "failed" : "pending", why,
	    when, until, err);
}

int64_t
delivery_next(int64_t tries, int64_t give_up, int64_t now)
{
	int64_t wait = FIRST_S;
	uint8_t chance;

	if (tries >= give_up)
		return 0;
	while (--tries > 0 && wait < LONGEST_S)
		wait *= 2;
	if (wait > LONGEST_S)
		wait = LONGEST_S;
	random_bytes(&chance, sizeof(chance));
	return now + wait + wait * chance / 2560;
}

int
deliveries_wait(enum event_channel c, int64_t now, int64_t longest,
    int64_t *seconds, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT min(CASE WHEN updated_ts > ?2 THEN 0 "
	    "ELSE max(next_ts - ?2, 0) END) FROM event_deliveries "
	    "WHERE state = 'pending' AND channel = ?1";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);

	if (db == NULL)
		return -1;
	row_bind_text(stmt, 1, channels[c]);
	row_bind_int(stmt, 2, now);
	return row_seconds(db, stmt, longest, seconds, err);
}

json_t *
deliveries_json(int64_t event_id, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT channel, state, tries, last_error FROM event_deliveries "
	    "WHERE event_id = ?1 ORDER BY id";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	json_t *list, *o;
	char *text;
	int rc, i;

	if (db == NULL)
		return NULL;
	list = json_array();
	row_bind_int(stmt, 1, event_id);
	while ((rc = db_step(db, stmt, err)) == 1) {
		static const char *const names[] = { "channel", "state",
			"tries", "last_error" };

		o = json_object();
		for (i = 0; i < 4; i++) {
			text = row_text(stmt, i);
			json_object_set_new(o, names[i],
			    i == 2 ? json_integer(sqlite3_column_int64(stmt, 2))
			           : utf8_json(text, strlen(text)));
			free(text);
		}
		json_array_append_new(list, o);
	}
	db_give(db);
	if (rc == -1) {
		json_decref(list);
		return NULL;
	}
	return list;
}
