/*
 * The database of this user: SQLite, in one file of the state directory that
 * several processes of ours share.
 *
 * A process has one handle.  It is taken for a few statements and given back;
 * taking opens it if need be, and again if its file was replaced meanwhile.
 * Only files of src/store use this header; others see tables, not SQL.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"

#define DB_FILE "watchdog.sqlite3"

/* Nobody waits longer than this for a lock that another process has. */
#define DB_BUSY_MS 5000

struct db;
struct sqlite3_stmt;

/*
 * Take the handle.  NULL with the reason: locked (ERR_TIMEOUT), made by a
 * newer version (ERR_INVALID), no right to it (ERR_DENIED), ...  A database
 * that is broken is set aside and begun anew, with a note.  The statements
 * that follow end with the same until.
 */
struct db *db_take(const struct until *until, struct err *err);
void db_give(struct db *db);

/* Let go of the handle; the next db_take() opens it again. */
void db_end(void);

/* Is there a database yet?  For who wants to look and not to make one. */
bool db_exists(void);

/* What a user should know of (sentences), so far; a new array. */
json_t *db_notes(void);

/* A transaction that writes.  What is not committed is undone by db_give(). */
int db_begin(struct db *db, struct err *err);
int db_commit(struct db *db, struct err *err);

/* The statement of this text, kept for the next time: "sql" must be a literal.
 * Parameters are not bound.  Owned by the handle. */
struct sqlite3_stmt *db_statement(struct db *db, const char *sql,
    struct err *err);

/* 1: there is a row; 0: it is done; -1.  Read a row before the next step. */
int db_step(struct db *db, struct sqlite3_stmt *stmt, struct err *err);

/* Run statements that return nothing of interest. */
int db_run(struct db *db, const char *sql, struct err *err);

/* A statement that gives one integer; "missing" if it gives no row. */
int db_int(struct db *db, const char *sql, int64_t missing, int64_t *out,
    struct err *err);

/* The directory of the file. */
const char *db_dir(const struct db *db);

#endif
