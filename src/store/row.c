#include "store/row.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

void
row_bind_text(sqlite3_stmt *stmt, int at, const char *text)
{
	if (text != NULL)
		sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

void
row_bind_int(sqlite3_stmt *stmt, int at, int64_t n)
{
	sqlite3_bind_int64(stmt, at, n);
}

char *
row_text(sqlite3_stmt *stmt, int at)
{
	const unsigned char *text = sqlite3_column_text(stmt, at);

	return xstrdup(text != NULL ? (const char *)text : "");
}

struct db *
row_take(const char *sql, sqlite3_stmt **stmt, const struct until *until,
    struct err *err)
{
	struct db *db = db_take(until, err);

	if (db == NULL)
		return NULL;
	*stmt = db_statement(db, sql, err);
	if (*stmt == NULL) {
		db_give(db);
		return NULL;
	}
	return db;
}

int
row_ids(struct db *db, sqlite3_stmt *stmt, int64_t **list, size_t *count,
    struct err *err)
{
	int64_t *ids = NULL;
	size_t n = 0;
	int rc;

	while ((rc = db_step(db, stmt, err)) == 1) {
		ids = xreallocarray(ids, n + 1, sizeof(*ids));
		ids[n++] = sqlite3_column_int64(stmt, 0);
	}
	db_give(db);
	if (rc == -1) {
		free(ids);
		return -1;
	}
	*list = ids;
	*count = n;
	return 0;
}

int
row_seconds(struct db *db, sqlite3_stmt *stmt, int64_t longest,
    int64_t *seconds, struct err *err)
{
	int rc = db_step(db, stmt, err);

	if (rc == 1) {
		*seconds = sqlite3_column_type(stmt, 0) == SQLITE_NULL
		    ? longest
		    : sqlite3_column_int64(stmt, 0);
		if (*seconds > longest)
			*seconds = longest;
	}
	db_give(db);
	return rc == -1 ? -1 : 0;
}

int
row_finish(struct db *db, sqlite3_stmt *stmt, bool *did, int64_t *id,
    struct err *err)
{
	int rc;

	*did = false;
	while ((rc = db_step(db, stmt, err)) == 1) {
		*did = true;
		if (id != NULL)
			*id = sqlite3_column_int64(stmt, 0);
	}
	db_give(db);
	return rc;
}

static json_t *
object_of(sqlite3_stmt *stmt)
{
	json_t *o = json_object();
	int i;

	for (i = 0; i < sqlite3_column_count(stmt); i++) {
		const char *text = (const char *)sqlite3_column_text(stmt, i);
		json_t *v;

		if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER)
			v = json_integer(sqlite3_column_int64(stmt, i));
		else
			v = utf8_json(text != NULL ? text : "",
			    text != NULL ? strlen(text) : 0);
		json_object_set_new(o, sqlite3_column_name(stmt, i), v);
	}
	return o;
}

json_t *
row_objects(const char *sql, size_t max, const struct until *until,
    struct err *err)
{
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	json_t *list;
	int rc;

	if (db == NULL)
		return NULL;
	row_bind_int(stmt, 1, (int64_t)max);
	list = json_array();
	while ((rc = db_step(db, stmt, err)) == 1)
		json_array_append_new(list, object_of(stmt));
	db_give(db);
	if (rc == 0)
		return list;
	json_decref(list);
	return NULL;
}
