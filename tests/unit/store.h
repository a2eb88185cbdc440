/*
 * What the tests of the store share: a state directory of their own, and a
 * look at the database with SQLite itself.
 */
#ifndef UNIT_STORE_H
#define UNIT_STORE_H

#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "help.h"
#include "store/db.h"
#include "store/transfers.h"

static char *state_dir;
static struct err err;

static inline char *
db_path(void)
{
	return path_join(state_dir, DB_FILE);
}

static inline int
store_begin(void **state)
{
	(void)state;
	state_dir = make_dir();
	setenv("REMOTE_SANDBOX_MCP_HOME", state_dir, 1);
	memset(&err, 0, sizeof(err));
	return 0;
}

static inline int
store_end(void **state)
{
	char *transfers = path_join(state_dir, "transfers");

	(void)state;
	db_end();
	if (access(transfers, F_OK) == 0)
		remove_dir(transfers);
	else
		free(transfers);
	remove_dir(state_dir);
	return 0;
}

/* Another connection to the same file. */
static inline sqlite3 *
other_open(void)
{
	char *path = db_path();
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	free(path);
	return db;
}

static inline void
other_run(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

/* What a query gives, with nobody else looking; the caller frees it. */
static inline char *
asked(const char *sql)
{
	sqlite3 *db = other_open();
	sqlite3_stmt *stmt;
	char *answer;

	sqlite3_busy_timeout(db, 10000);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	answer = xstrdup((const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return answer;
}

static inline void
gives(const char *sql, const char *expected)
{
	char *answer = asked(sql);

	assert_string_equal(answer, expected);
	free(answer);
}

/* A new row; its number. */
static inline int64_t
new_transfer(void)
{
	struct transfer t = { 0 };
	struct until until = until_in(20000);
	int64_t id;

	t.direction = xstrdup(TRANSFER_UP);
	t.sandbox_name = xstrdup("box");
	t.local_path = xstrdup("/from/here");
	t.remote_path = xstrdup("to/there");
	if (transfers_create(&t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	id = t.id;
	transfer_free(&t);
	return id;
}

/* The sentences of db_notes() in one; the caller frees it. */
static inline char *
notes_text(void)
{
	json_t *notes = db_notes();
	char *text = json_dumps(notes, 0);

	json_decref(notes);
	return text;
}

#endif
