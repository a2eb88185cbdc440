#include "store/meta.h"

#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "store/row.h"

int
meta_set(const char *key, const json_t *value, int64_t now,
    const struct until *until, struct err *err)
{
	static const char sql[] =
	    "INSERT INTO daemon_meta(key, value, updated_ts) "
	    "VALUES(?1, ?2, ?3) ON CONFLICT(key) DO UPDATE SET "
	    "value = excluded.value, updated_ts = excluded.updated_ts";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	char *text;
	bool did;
	int rc;

	if (db == NULL)
		return -1;
	text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
	if (text == NULL)
		out_of_memory();
	row_bind_text(stmt, 1, key);
	row_bind_text(stmt, 2, text);
	row_bind_int(stmt, 3, now);
	rc = row_finish(db, stmt, &did, NULL, err);
	free(text);
	return rc;
}

static json_t *
row_json(sqlite3_stmt *stmt, const char *key)
{
	char *text = row_text(stmt, 0);
	json_t *o = json_object();
	struct err err;
	json_t *value = decode_json(text, strlen(text), &err);

	json_object_set_new(o, "key", json_string(key));
	json_object_set_new(o, "value", value != NULL ? value : json_null());
	json_object_set_new(o, "updated_ts",
	    json_integer(sqlite3_column_int64(stmt, 1)));
	free(text);
	return o;
}

json_t *
meta_get(const char *key, const struct until *until, struct err *err)
{
	static const char sql[] =
	    "SELECT value, updated_ts FROM daemon_meta WHERE key = ?1";
	sqlite3_stmt *stmt;
	struct db *db = row_take(sql, &stmt, until, err);
	json_t *o = NULL;
	int rc;

	if (db == NULL)
		return NULL;
	row_bind_text(stmt, 1, key);
	rc = db_step(db, stmt, err);
	if (rc == 1)
		o = row_json(stmt, key);
	db_give(db);
	return rc == 0 ? json_null() : o;
}
