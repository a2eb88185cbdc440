/*
 * What the files of tables share: taking the database for one statement,
 * binding, reading.  For src/store alone.
 */
#ifndef STORE_ROW_H
#define STORE_ROW_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "store/db.h"

/* Texts must live as long as the statement runs; NULL stays unbound. */
void row_bind_text(sqlite3_stmt *stmt, int at, const char *text);
void row_bind_int(sqlite3_stmt *stmt, int at, int64_t n);

/* A text of the row, never NULL; the caller frees it. */
char *row_text(sqlite3_stmt *stmt, int at);

/* Take the database for one statement. */
struct db *row_take(const char *sql, sqlite3_stmt **stmt,
    const struct until *until, struct err *err);

/* The first column of all rows of the statement; gives the database back.
 * *list is allocated. */
int row_ids(struct db *db, sqlite3_stmt *stmt, int64_t **list, size_t *count,
    struct err *err);

/* A statement whose one row tells the seconds until something is due, or NULL:
 * nothing is.  "longest" at most; gives the database back. */
int row_seconds(struct db *db, sqlite3_stmt *stmt, int64_t longest,
    int64_t *seconds, struct err *err);

/* Run the statement to its end and give the database back.  With RETURNING it
 * gives one row if it did something: *id (or NULL) is its first column. */
int row_finish(struct db *db, sqlite3_stmt *stmt, bool *did, int64_t *id,
    struct err *err);

/* The rows of a query with one parameter, the most it may give, as objects of
 * integers and texts named after its columns; NULL on failure. */
json_t *row_objects(const char *sql, size_t max, const struct until *until,
    struct err *err);

#endif
