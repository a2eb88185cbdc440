/*
 * The handle: opening, the journal, errors in words, and what happens to a
 * database that is broken.
 *
 * The journal is a rollback journal (docs/decisions/007-sqlite.md).  The
 * earlier Python server used WAL mode and sets it again with every operation.
 * While such a one lives, we work in WAL mode along with it and leave
 * checkpoints to it.
 */
#include "store/db.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/gate.h"
#include "base/ident.h"
#include "base/lockfile.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"
#include "config/dirs.h"
#include "store/schema.h"

#define STATEMENTS_MAX 64
#define VALUE_MAX (16 << 20)       /* bytes of one value or row */
#define CHECK_MAX ((off_t)8 << 20) /* larger files are not read through */
#define STEP_MS 10                 /* between two looks at a lock */
#define SWITCH_TRIES 10            /* to leave WAL mode */
#define LOOK_AGAIN_MS 30000        /* whether it is back */
#define HEARTBEAT_S 180            /* older than this: that daemon is gone */
#define NOTES_MAX 8

struct kept {
	const char *sql;
	sqlite3_stmt *stmt;
};

struct db {
	sqlite3 *handle;
	char *path, *dir;
	dev_t dev; /* of the file that was opened */
	ino_t ino;
	struct until until; /* of who has it */
	bool broken;        /* SQLite found it corrupt */
	bool doubted;       /* it did so before: look through all of it */
	bool read_only;
	int64_t looked; /* clock_ms() of the last look at the journal */
	struct kept kept[STATEMENTS_MAX];
	size_t kept_count;
};

/* The one handle of the process. */
static struct {
	pthread_mutex_t lock;
	struct gate gate;
	bool taken;
	struct db *db;
	json_t *notes;
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Once each; nobody may ask for the notes, so they are logged as well. */
static void
note(const char *sentence)
{
	const json_t *old;
	size_t i;

	pthread_mutex_lock(&shared.lock);
	if (shared.notes == NULL)
		shared.notes = json_array();
	json_array_foreach (shared.notes, i, old) {
		if (strcmp(json_string_value(old), sentence) == 0)
			break;
	}
	if (i == json_array_size(shared.notes) && i < NOTES_MAX) {
		json_array_append_new(shared.notes,
		    utf8_json(sentence, strlen(sentence)));
		log_warn("%s", sentence);
	}
	pthread_mutex_unlock(&shared.lock);
}

json_t *
db_notes(void)
{
	json_t *copy;

	pthread_mutex_lock(&shared.lock);
	copy =
	    shared.notes != NULL ? json_deep_copy(shared.notes) : json_array();
	pthread_mutex_unlock(&shared.lock);
	return copy;
}

const char *
db_dir(const struct db *db)
{
	return db->dir;
}

/* What SQLite's code means for who reads it. */
static int
explain(struct db *db, int code, struct err *err)
{
	struct err why;
	int sys;

	switch (code & 0xff) {
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		if (until_check(&db->until, &why) == -1 &&
		    why.code == ERR_CANCELLED)
			return err_set(err, ERR_CANCELLED,
			    "cancelled while %s was locked", db->path);
		return err_set(err, ERR_TIMEOUT,
		    "the database %s is locked by another program; try again, "
		    "or end the program that holds it (fuser shows which)",
		    db->path);
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return err_set(err, ERR_DENIED,
		    "the database %s cannot be written; make it and its "
		    "directory writable, or set REMOTE_SANDBOX_MCP_HOME to "
		    "another place",
		    db->path);
	case SQLITE_CANTOPEN:
		return err_set(err, ERR_DENIED,
		    "cannot open the database %s; make its directory "
		    "writable, or set REMOTE_SANDBOX_MCP_HOME to another place",
		    db->path);
	case SQLITE_FULL:
		return err_set(err, ERR_IO,
		    "there is no room to write the database %s; free some "
		    "space on its disk",
		    db->path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		db->broken = true;
		return err_set(err, ERR_IO,
		    "the database %s is broken; it will be set aside and begun "
		    "anew",
		    db->path);
	case SQLITE_NOMEM:
		out_of_memory();
	case SQLITE_IOERR:
		sys = db->handle != NULL ? sqlite3_system_errno(db->handle) : 0;
		return err_set(err, ERR_IO,
		    "cannot read or write the database %s: %s", db->path,
		    sys != 0 ? strerror(sys) : sqlite3_errstr(code));
	default:
		break;
	}
	return err_set(err, ERR_IO, "the database %s: %s", db->path,
	    db->handle != NULL ? sqlite3_errmsg(db->handle)
	                       : sqlite3_errstr(code));
}

/* SQLite asks whether to try again. */
static int
on_busy(void *data, int count)
{
	const struct db *db = data;
	struct until step = until_within(&db->until, STEP_MS);
	struct err err;

	(void)count;
	until_poll(&step, NULL, 0, &err);
	return until_check(&db->until, &err) == 0;
}

/* --- statements ------------------------------------------------------------
 */

struct sqlite3_stmt *
db_statement(struct db *db, const char *sql, struct err *err)
{
	sqlite3_stmt *stmt;
	size_t i;
	int rc;

	for (i = 0; i < db->kept_count; i++) {
		if (db->kept[i].sql == sql) {
			sqlite3_reset(db->kept[i].stmt);
			sqlite3_clear_bindings(db->kept[i].stmt);
			return db->kept[i].stmt;
		}
	}
	assert(db->kept_count < STATEMENTS_MAX);
	rc = sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
	    &stmt, NULL);
	if (rc != SQLITE_OK) {
		explain(db, rc, err);
		return NULL;
	}
	db->kept[db->kept_count++] = (struct kept){ sql, stmt };
	return stmt;
}

int
db_step(struct db *db, struct sqlite3_stmt *stmt, struct err *err)
{
	int rc = sqlite3_step(stmt);

	if (rc == SQLITE_ROW)
		return 1;
	/* Whatever it was, the locks it held are not needed any more. */
	sqlite3_reset(stmt);
	return rc == SQLITE_DONE ? 0 : explain(db, rc, err);
}

int
db_run(struct db *db, const char *sql, struct err *err)
{
	int rc = sqlite3_exec(db->handle, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : explain(db, rc, err);
}

/* The first column of the first row as text, cut; "" if there is none. */
static int
get_text(struct db *db, const char *sql, char *out, size_t size,
    struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	const unsigned char *text = NULL;
	int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(stmt);
		if (rc == SQLITE_ROW)
			text = sqlite3_column_text(stmt, 0);
		snprintf(out, size, "%s",
		    text != NULL ? (const char *)text : "");
	}
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		explain(db, rc, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int
db_int(struct db *db, const char *sql, int64_t missing, int64_t *out,
    struct err *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc = sqlite3_prepare_v2(db->handle, sql, -1, &stmt, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(stmt);
		*out =
		    rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : missing;
	}
	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		explain(db, rc, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int
db_begin(struct db *db, struct err *err)
{
	/* The lock at once: a reader that wants to write later may be refused
	 * without having waited. */
	return db_run(db, "BEGIN IMMEDIATE", err);
}

int
db_commit(struct db *db, struct err *err)
{
	return db_run(db, "COMMIT", err);
}

/* --- opening ---------------------------------------------------------------
 */

static void
db_close(struct db *db)
{
	size_t i;

	if (db == NULL)
		return;
	for (i = 0; i < db->kept_count; i++)
		sqlite3_finalize(db->kept[i].stmt);
	sqlite3_close(db->handle);
	free(db->path);
	free(db->dir);
	free(db);
}

/* The file is for this user alone; SQLite gives its journal the same mode. */
static int
prepare_file(struct db *db, struct err *err)
{
	struct stat st;
	int fd = open(db->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd != -1)
		close(fd);
	else if (errno != EEXIST)
		return err_sys(err, "cannot make the database %s", db->path);
	if (stat(db->path, &st) == -1)
		return err_sys(err, "cannot look at %s", db->path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID,
		    "%s is not a file; move it away", db->path);
	if ((st.st_mode & 077) != 0 && st.st_uid == geteuid())
		(void)chmod(db->path, 0600); /* a disk may know no modes */
	db->dev = st.st_dev;
	db->ino = st.st_ino;
	return 0;
}

static int
connect_file(struct db *db, struct err *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	int rc = sqlite3_open_v2(db->path, &db->handle, flags, NULL);

	if (rc != SQLITE_OK)
		return explain(db, rc, err);
	sqlite3_busy_handler(db->handle, on_busy, db);
	sqlite3_limit(db->handle, SQLITE_LIMIT_LENGTH, VALUE_MAX);
	sqlite3_limit(db->handle, SQLITE_LIMIT_ATTACHED, 0);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1,
	    NULL);
	return db_run(db,
	    "PRAGMA mmap_size = 0; PRAGMA synchronous = FULL;"
	    "PRAGMA cell_size_check = ON; PRAGMA wal_autocheckpoint = 0",
	    err);
}

/* Does the daemon of the earlier server live?  It leaves its pulse in a
 * table, as ours does, but with no pid. */
static bool
heartbeat(struct db *db)
{
	int64_t pulse = 0, now = (int64_t)time(NULL);
	struct err err;

	return db_int(db,
	           "SELECT updated_ts FROM daemon_meta WHERE key = 'heartbeat' "
	           "AND value NOT LIKE '%\"pid\"%'",
	           0, &pulse, &err) == 0 &&
	    pulse > now - HEARTBEAT_S && pulse <= now + HEARTBEAT_S;
}

static void
note_wal(struct db *db)
{
	char name[64] = "";
	pid_t pid = ident_holder(db->path, name, sizeof(name));
	char *text;

	if (heartbeat(db))
		text = xasprintf("the watchdog of the earlier Python server is "
		                 "running and keeps %s in WAL mode; both work, "
		                 "but stop it and let this program watch",
		    db->path);
	else if (pid != 0)
		text = xasprintf("process %ld (%s) keeps the database %s in "
		                 "WAL mode; probably the earlier Python "
		                 "server: end it if it is not needed",
		    (long)pid, name, db->path);
	else
		text = xasprintf("another program keeps the database %s in WAL "
		                 "mode; probably the earlier Python server: "
		                 "end it if it is not needed",
		    db->path);
	note(text);
	free(text);
}

/*
 * Leave WAL mode.  That takes a moment in which nobody else has the file
 * open.  Who keeps it open is noted, and the mode stays as it is.
 */
static int
set_journal(struct db *db, struct err *err)
{
	struct until step;
	struct err why;
	char mode[16];
	int tries;

	db->looked = clock_ms();
	if (get_text(db, "PRAGMA journal_mode", mode, sizeof(mode), err) == -1)
		return -1;
	if (strcmp(mode, "wal") != 0)
		return db->read_only
		    ? 0
		    : db_run(db, "PRAGMA journal_mode = TRUNCATE", err);
	/* It would switch back at once. */
	for (tries = heartbeat(db) ? SWITCH_TRIES : 0; tries < SWITCH_TRIES;
	     tries++) {
		if (db_run(db, "PRAGMA journal_mode = TRUNCATE", &why) == 0)
			return 0;
		if (db->broken) {
			*err = why;
			return -1;
		}
		step = until_within(&db->until, STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
	note_wal(db);
	return 0;
}

/* Small files are read through; others speak up when a page is needed, and are
 * read through then. */
static int
check_pages(struct db *db, struct err *err)
{
	char answer[128];
	struct stat st;

	if (!db->doubted &&
	    (stat(db->path, &st) == -1 || st.st_size > CHECK_MAX))
		return 0;
	if (get_text(db, "PRAGMA quick_check(1)", answer, sizeof(answer),
	        err) == -1)
		return -1;
	return strcmp(answer, "ok") == 0 ? 0 : explain(db, SQLITE_CORRUPT, err);
}

static int
open_steps(struct db *db, struct err *err)
{
	int64_t version = 0;

	if (prepare_file(db, err) == -1 || connect_file(db, err) == -1 ||
	    db_int(db, "PRAGMA user_version", 0, &version, err) == -1)
		return -1;
	db->read_only = sqlite3_db_readonly(db->handle, "main") == 1;
	if (set_journal(db, err) == -1 || check_pages(db, err) == -1)
		return -1;
	if (db->read_only && version == 0)
		return explain(db, SQLITE_READONLY, err);
	return schema_migrate(db, err);
}

static struct db *
open_once(const char *path, bool doubted, const struct until *until,
    bool *broken, struct err *err)
{
	const char *slash = strrchr(path, '/');
	struct db *db = xcalloc(1, sizeof(*db));

	db->path = xstrdup(path);
	db->dir = xstrndup(path, slash != NULL ? (size_t)(slash - path) : 0);
	db->until = *until;
	db->doubted = doubted;
	if (open_steps(db, err) == 0)
		return db;
	*broken = db->broken;
	db_close(db);
	return NULL;
}

/* --- a broken database -----------------------------------------------------
 */

/* Give the file and what belongs to it other names. */
static int
rename_aside(const char *path, struct err *err)
{
	static const char *const ends[] = { "-journal", "-wal", "-shm", "" };
	time_t now = time(NULL);
	char date[32], *to, *from, *text;
	struct tm tm;
	size_t i;
	int n = 1;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y%m%dT%H%M%SZ", &tm);
	to = xasprintf("%s.broken-%s", path, date);
	while (access(to, F_OK) == 0) {
		free(to);
		to = xasprintf("%s.broken-%s-%d", path, date, ++n);
	}
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		from = xasprintf("%s%s", path, ends[i]);
		text = xasprintf("%s%s", to, ends[i]);
		if (rename(from, text) == -1 && ends[i][0] == '\0')
			n = err_sys(err, "cannot set %s aside", path);
		free(from);
		free(text);
	}
	if (n != -1) {
		text = xasprintf("the database %s was broken; it is kept as %s "
		                 "and a new one was begun, so transfers and "
		                 "watches before that are not known any more: "
		                 "jobs run on, but nobody looks after them",
		    path, to);
		note(text);
		free(text);
	}
	free(to);
	return n == -1 ? -1 : 0;
}

/*
 * Of several processes that find it broken, one sets it aside; the others wait
 * for that one and find the new one.
 */
static struct db *
begin_anew(const char *path, const struct until *until, struct err *err)
{
	char *lock = xasprintf("%s.lock", path);
	char holder[LOCKFILE_TEXT];
	struct db *db = NULL;
	bool broken = false;
	int fd = lockfile_take(lock, "setting aside", holder, until, err);

	if (fd != -1) {
		db = open_once(path, true, until, &broken, err);
		if (db == NULL && broken && rename_aside(path, err) == 0)
			db = open_once(path, false, until, &broken, err);
	}
	lockfile_give(lock, fd);
	free(lock);
	return db;
}

static struct db *
db_open(const char *path, bool doubted, const struct until *until,
    struct err *err)
{
	bool broken = false;
	struct db *db = open_once(path, doubted, until, &broken, err);

	if (db == NULL && broken)
		db = begin_anew(path, until, err);
	return db;
}

/* --- the one handle --------------------------------------------------------
 */

/* Is the name still that of the file we have open? */
static bool
in_place(const struct db *db)
{
	struct stat st;

	return stat(db->path, &st) == 0 && st.st_dev == db->dev &&
	    st.st_ino == db->ino;
}

static char *
default_path(struct err *err)
{
	char *dir = dirs_state(err);
	char *path = dir != NULL ? path_join(dir, DB_FILE) : NULL;

	free(dir);
	return path;
}

bool
db_exists(void)
{
	struct err err;
	char *path = default_path(&err);
	bool there = path != NULL && access(path, F_OK) == 0;

	free(path);
	return there;
}

/* The handle is ours for now: make it good. */
static int
make_ready(const struct until *until, struct err *err)
{
	bool doubted = shared.db != NULL && shared.db->broken;
	struct err why;
	char *path;

	if (shared.db != NULL && (doubted || !in_place(shared.db))) {
		db_close(shared.db);
		shared.db = NULL;
	}
	if (shared.db == NULL) {
		path = default_path(err);
		if (path != NULL)
			shared.db = db_open(path, doubted, until, err);
		free(path);
		return shared.db != NULL ? 0 : -1;
	}
	shared.db->until = *until;
	if (clock_ms() - shared.db->looked > LOOK_AGAIN_MS)
		(void)set_journal(shared.db, &why);
	return 0;
}

static void
let_go(void)
{
	pthread_mutex_lock(&shared.lock);
	shared.taken = false;
	gate_open(&shared.gate);
	pthread_mutex_unlock(&shared.lock);
}

struct db *
db_take(const struct until *until, struct err *err)
{
	struct until bounded = until_within(until, DB_BUSY_MS);
	int rc = 0;

	pthread_mutex_lock(&shared.lock);
	while (rc == 0 && shared.taken)
		rc = gate_wait(&shared.gate, &shared.lock, &bounded, err);
	if (rc == 0)
		shared.taken = true;
	pthread_mutex_unlock(&shared.lock);
	if (rc == -1) {
		err_wrap(err, "waiting for the database");
		return NULL;
	}
	if (make_ready(&bounded, err) == 0)
		return shared.db;
	let_go();
	return NULL;
}

void
db_give(struct db *db)
{
	size_t i;

	if (db == NULL)
		return;
	/* A statement that was not stepped to its end would keep a lock. */
	for (i = 0; i < db->kept_count; i++)
		sqlite3_reset(db->kept[i].stmt);
	if (sqlite3_get_autocommit(db->handle) == 0)
		sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
	let_go();
}

void
db_end(void)
{
	pthread_mutex_lock(&shared.lock);
	assert(!shared.taken);
	db_close(shared.db);
	shared.db = NULL;
	json_decref(shared.notes);
	shared.notes = NULL;
	pthread_mutex_unlock(&shared.lock);
}
