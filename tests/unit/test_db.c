#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <time.h>

#include "base/str.h"
#include "store.h"

/* As the earlier Python server made it. */
static const char seed_transfers[] =
    "CREATE TABLE transfer_tasks (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " direction TEXT NOT NULL, sandbox_name TEXT NOT NULL,"
    " local_path TEXT NOT NULL, remote_path TEXT NOT NULL,"
    " delete_extras INTEGER NOT NULL DEFAULT 0,"
    " excludes_json TEXT NOT NULL DEFAULT '[]',"
    " exclude_file TEXT NOT NULL DEFAULT '',"
    " status TEXT NOT NULL DEFAULT 'queued', pid INTEGER NOT NULL DEFAULT 0,"
    " log_file TEXT NOT NULL DEFAULT '', started_ts INTEGER NOT NULL DEFAULT 0,"
    " finished_ts INTEGER NOT NULL DEFAULT 0,"
    " last_error TEXT NOT NULL DEFAULT '',"
    " result_json TEXT NOT NULL DEFAULT '{}',"
    " progress_json TEXT NOT NULL DEFAULT '{}',"
    " created_ts INTEGER NOT NULL, updated_ts INTEGER NOT NULL);"
    "CREATE INDEX seed_index ON transfer_tasks(status, id DESC);"
    "INSERT INTO transfer_tasks(direction, sandbox_name, local_path,"
    " remote_path, status, created_ts, updated_ts) VALUES"
    " ('local_to_remote', 'gpu', '/a', 'b', 'completed', 5, 6),"
    " ('local_to_remote', 'gpu', '/c', 'd', 'running', 7, 8);";

static const char seed_watches[] =
    "CREATE TABLE watches (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " run_id TEXT NOT NULL DEFAULT '', sandbox_name TEXT NOT NULL,"
    " tmux_session TEXT NOT NULL, status TEXT NOT NULL DEFAULT 'active');"
    "CREATE TABLE watch_events (id INTEGER PRIMARY KEY, watch_id INTEGER"
    " NOT NULL REFERENCES watches(id), event_type TEXT NOT NULL);"
    "CREATE TABLE daemon_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL,"
    " updated_ts INTEGER NOT NULL);"
    "INSERT INTO watches(sandbox_name, tmux_session) VALUES('gpu', 'train');";

static void
seed(const char *more)
{
	sqlite3 *db = other_open();

	other_run(db, "PRAGMA journal_mode = WAL");
	other_run(db, seed_transfers);
	other_run(db, seed_watches);
	if (more != NULL)
		other_run(db, more);
	sqlite3_close(db);
}

/* The database can be had, and gives no error. */
static void
opens(void)
{
	struct until until = until_in(20000);
	struct db *db = db_take(&until, &err);

	if (db == NULL)
		fail_msg("%s", err.msg);
	db_give(db);
}

static void
fails(int64_t patience_ms, enum err_code code, const char *part)
{
	struct until until = until_in(patience_ms);
	struct db *db = db_take(&until, &err);

	assert_null(db);
	says(err.msg, part);
	assert_int_equal(err.code, code);
}

static void
write_at(const char *path, off_t at, const char *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd != -1);
	assert_int_equal(pwrite(fd, bytes, len, at), (ssize_t)len);
	close(fd);
}

static int
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (int)(st.st_mode & 0777);
}

/* How many databases of the state directory have this in their name? */
static int
files_with(const char *part)
{
	DIR *d = opendir(state_dir);
	const struct dirent *entry;
	int count = 0;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		count += strstr(entry->d_name, part) != NULL &&
		    strstr(entry->d_name, "-journal") == NULL;
	closedir(d);
	return count;
}

static void
a_new_one_is_for_this_user_alone(void **state)
{
	char *path = db_path();

	(void)state;
	opens();
	assert_int_equal(mode_of(path), 0600);
	gives("PRAGMA user_version", "4");
	gives("PRAGMA integrity_check", "ok");
	gives("SELECT count(*) FROM transfer_tasks", "0");
	free(path);
}

static void
one_that_others_can_read_is_closed_to_them(void **state)
{
	char *path = db_path();

	(void)state;
	seed(NULL);
	assert_int_equal(chmod(path, 0644), 0);
	opens();
	assert_int_equal(mode_of(path), 0600);
	free(path);
}

static void
one_of_the_earlier_server_goes_on(void **state)
{
	struct until until = until_in(20000);
	struct transfer t;

	(void)state;
	seed(NULL);
	assert_int_equal(new_transfer(), 3);
	gives("PRAGMA journal_mode", "delete");
	gives("PRAGMA user_version", "4");
	gives("SELECT tmux_session FROM watches", "train");
	gives("SELECT count(*) FROM transfer_tasks WHERE options_json = '{}'",
	    "3");
	if (transfers_get(2, &t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(t.status, TRANSFER_RUNNING);
	assert_string_equal(t.remote_path, "d");
	assert_int_equal(t.worker_start, 0);
	transfer_free(&t);
	/* And that server can still write its rows. */
	{
		sqlite3 *db = other_open();

		other_run(db,
		    "INSERT INTO transfer_tasks(direction, sandbox_name,"
		    " local_path, remote_path, created_ts, updated_ts)"
		    " VALUES('local_to_remote', 's', 'l', 'r', 1, 1)");
		sqlite3_close(db);
	}
}

static void
columns_that_are_missing_are_added(void **state)
{
	sqlite3 *db = other_open();

	(void)state;
	other_run(db,
	    "CREATE TABLE transfer_tasks (id INTEGER PRIMARY KEY AUTOINCREMENT,"
	    " sandbox_name TEXT NOT NULL, local_path TEXT NOT NULL,"
	    " status TEXT NOT NULL DEFAULT 'queued');"
	    "INSERT INTO transfer_tasks(sandbox_name, local_path)"
	    " VALUES('a', '/b')");
	sqlite3_close(db);
	assert_int_equal(new_transfer(), 2);
	gives("SELECT direction || '.' || created_ts || progress_json "
	      "FROM transfer_tasks WHERE id = 1",
	    ".0{}");
}

static void
a_newer_one_is_left_alone(void **state)
{
	sqlite3 *db = other_open();

	(void)state;
	other_run(db, "CREATE TABLE things(x); PRAGMA user_version = 99");
	sqlite3_close(db);
	fails(5000, ERR_INVALID, "made by a newer version");
	says(err.msg, "update remote-sandbox-mcp");
	gives("PRAGMA user_version", "99");
	gives("SELECT count(*) FROM sqlite_master", "1");
}

static void
a_locked_one_is_waited_for_and_named(void **state)
{
	struct until until = until_in(300);
	int64_t begun, id = new_transfer();
	sqlite3 *db = other_open();

	(void)state;
	other_run(db, "BEGIN EXCLUSIVE");
	begun = clock_ms();
	assert_int_equal(transfers_progress(id, "{}", &until, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	says(err.msg, "is locked by another program");
	assert_true(clock_ms() - begun < 30000);
	db_end();
	fails(300, ERR_TIMEOUT, "is locked by another program");
	other_run(db, "COMMIT");
	sqlite3_close(db);
	opens();
}

static void *
unlock_soon(void *db)
{
	struct timespec nap = { .tv_nsec = 200000000 };

	nanosleep(&nap, NULL);
	other_run(db, "COMMIT");
	return NULL;
}

static void
a_lock_that_ends_in_time_is_no_error(void **state)
{
	struct until until = until_in(20000);
	int64_t id = new_transfer();
	sqlite3 *db = other_open();
	pthread_t thread;

	(void)state;
	other_run(db, "BEGIN EXCLUSIVE");
	assert_int_equal(pthread_create(&thread, NULL, unlock_soon, db), 0);
	assert_int_equal(transfers_progress(id, "{}", &until, &err), 0);
	pthread_join(thread, NULL);
	sqlite3_close(db);
}

static void
waiting_for_a_lock_can_be_cancelled(void **state)
{
	struct until until = until_in(20000);
	int64_t id = new_transfer();
	sqlite3 *db = other_open();
	int pair[2];

	(void)state;
	assert_int_equal(fs_pipe(pair, &err), 0);
	assert_int_equal(write(pair[1], "c", 1), 1);
	until.cancel_fd = pair[0];
	other_run(db, "BEGIN EXCLUSIVE");
	assert_int_equal(transfers_progress(id, "{}", &until, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	sqlite3_close(db);
	close(pair[0]);
	close(pair[1]);
}

/* A process that keeps the database open in WAL mode until it is killed. */
static pid_t
keep_wal(void)
{
	int pair[2];
	char c;
	pid_t pid;

	assert_int_equal(fs_pipe(pair, &err), 0);
	pid = fork();
	assert_true(pid != -1);
	if (pid == 0) {
		sqlite3 *db = other_open();

		other_run(db,
		    "PRAGMA journal_mode = WAL;"
		    "SELECT count(*) FROM sqlite_master");
		(void)!write(pair[1], "r", 1);
		pause();
		_exit(0);
	}
	close(pair[1]);
	assert_int_equal(read(pair[0], &c, 1), 1);
	close(pair[0]);
	return pid;
}

static void
end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
who_keeps_wal_mode_is_named_and_both_work(void **state)
{
	char pid_text[32];
	char *text;
	pid_t pid;

	(void)state;
	seed(NULL);
	pid = keep_wal();
	assert_int_equal(new_transfer(), 3);
	text = notes_text();
	says(text, "WAL mode");
	snprintf(pid_text, sizeof(pid_text), "process %ld (", (long)pid);
	says(text, pid_text);
	free(text);
	gives("PRAGMA journal_mode", "wal");
	end_child(pid);
	db_end();
	/* Nothing is lost, and it is switched now. */
	assert_int_equal(new_transfer(), 4);
	gives("PRAGMA journal_mode", "delete");
	text = notes_text();
	assert_string_equal(text, "[]");
	free(text);
}

static void
a_living_daemon_is_known_by_its_pulse(void **state)
{
	char *sql = xasprintf("INSERT INTO daemon_meta VALUES('heartbeat', "
	                      "'{}', %ld)",
	    (long)time(NULL));
	char *text;

	(void)state;
	seed(sql);
	free(sql);
	opens();
	text = notes_text();
	says(text, "watchdog of the earlier Python server is running");
	free(text);
	gives("PRAGMA journal_mode", "wal");
}

static void
a_daemon_of_last_week_is_not(void **state)
{
	char *text;

	(void)state;
	seed("INSERT INTO daemon_meta VALUES('heartbeat', '{}', 1000000)");
	opens();
	text = notes_text();
	assert_string_equal(text, "[]");
	free(text);
	gives("PRAGMA journal_mode", "delete");
}

static void
what_is_no_database_is_set_aside(void **state)
{
	char *path = db_path();
	char *garbage = repeated("no database ", 1000);
	char *text;

	(void)state;
	write_at(path, 0, garbage, strlen(garbage));
	assert_int_equal(new_transfer(), 1);
	assert_int_equal(files_with(".broken-2"), 1);
	text = notes_text();
	says(text, "was broken; it is kept as");
	free(text);
	free(garbage);
	free(path);
}

/* Numbers are not given twice, as old logs and old workers still have them. */
static void
a_new_beginning_gives_new_numbers(void **state)
{
	char *dir = path_join(state_dir, "transfers");
	char *log = path_join(dir, "transfer-41.log");
	char *path = db_path();

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	write_at(log, 0, "x", 1);
	write_at(path, 0, BYTES("this is not a database at all, is it?"));
	assert_int_equal(new_transfer(), 42);
	free(path);
	free(log);
	free(dir);
}

static void
a_page_that_broke_is_noticed(void **state)
{
	char *path = db_path();
	char *zeros = repeated("\xee", 4096);
	struct stat st;
	off_t at;
	int i;

	(void)state;
	for (i = 0; i < 200; i++)
		new_transfer();
	db_end();
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 4 * 4096);
	for (at = 4096; at < st.st_size; at += 4096)
		write_at(path, at, zeros, 4096);
	opens();
	assert_int_equal(files_with(".broken-2"), 1);
	gives("PRAGMA integrity_check", "ok");
	free(zeros);
	free(path);
}

/* While the handle is open: the next take sees it. */
static void
breaking_under_an_open_handle_is_noticed(void **state)
{
	struct until until = until_in(20000);
	char *path = db_path();
	char *junk = repeated("\xee", 65536);
	struct transfer t;

	(void)state;
	new_transfer();
	write_at(path, 0, junk, 65536);
	assert_int_equal(transfers_get(1, &t, &until, &err), -1);
	transfer_free(&t);
	says(err.msg, "is broken");
	opens();
	assert_int_equal(files_with(".broken-2"), 1);
	free(junk);
	free(path);
}

/* One that is not read through when it is opened.  "page" gets the root of the
 * table of transfers; where that is, in bytes. */
static off_t
make_large(const char *path, char page[4096])
{
	sqlite3 *db;
	char *root;
	int64_t n;
	off_t at;
	int fd;

	new_transfer();
	db_end();
	db = other_open();
	other_run(db, "CREATE TABLE big(x)");
	other_run(db, "INSERT INTO big VALUES(zeroblob(9000000))");
	sqlite3_close(db);
	root = asked("SELECT rootpage FROM sqlite_master "
	             "WHERE name = 'transfer_tasks'");
	assert_int_equal(str_to_int(root, 2, 1000, &n), 0);
	at = (off_t)(n - 1) * 4096;
	free(root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(pread(fd, page, 4096, at), 4096);
	close(fd);
	return at;
}

static void
a_large_one_that_broke_is_set_aside(void **state)
{
	struct until until = until_in(20000);
	char *path = db_path(), *junk = repeated("\xee", 4096), page[4096];
	off_t at = make_large(path, page);
	struct transfer t;

	(void)state;
	write_at(path, at, junk, 4096);
	opens();
	assert_int_equal(files_with(".broken-2"), 0);
	assert_int_equal(transfers_get(1, &t, &until, &err), -1);
	transfer_free(&t);
	says(err.msg, "is broken");
	opens();
	assert_int_equal(files_with(".broken-2"), 1);
	gives("SELECT count(*) FROM transfer_tasks", "0");
	free(junk);
	free(path);
}

/* Somebody mended it: nothing is lost. */
static void
a_large_one_that_is_whole_again_stays(void **state)
{
	struct until until = until_in(20000);
	char *path = db_path(), *junk = repeated("\xee", 4096), page[4096];
	off_t at = make_large(path, page);
	struct transfer t;

	(void)state;
	write_at(path, at, junk, 4096);
	assert_int_equal(transfers_get(1, &t, &until, &err), -1);
	transfer_free(&t);
	write_at(path, at, page, 4096);
	assert_int_equal(transfers_get(1, &t, &until, &err), 0);
	transfer_free(&t);
	assert_int_equal(files_with(".broken-2"), 0);
	free(junk);
	free(path);
}

static void
a_file_that_was_replaced_is_opened_anew(void **state)
{
	char *path = db_path();

	(void)state;
	new_transfer();
	new_transfer();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(new_transfer(), 1);
	gives("SELECT count(*) FROM transfer_tasks", "1");
	free(path);
}

static void
a_directory_in_its_place_is_an_error(void **state)
{
	char *path = db_path();

	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	fails(5000, ERR_INVALID, "is not a file");
	free(path);
}

/* Run in a child as nobody (root may write everything); its exit status. */
static int
as_nobody(int (*what)(void))
{
	int status;
	pid_t pid = fork();

	assert_true(pid != -1);
	if (pid == 0) {
		if (geteuid() == 0 &&
		    (setgid(65534) == -1 || setuid(65534) == -1))
			_exit(99);
		_exit(what());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Can be read, but not written. */
static int
try_read_only(void)
{
	struct until until = until_in(5000);
	struct transfer t;

	if (transfers_get(1, &t, &until, &err) == -1)
		return 1;
	transfer_free(&t);
	if (transfers_progress(1, "{}", &until, &err) == 0)
		return 2;
	if (err.code != ERR_DENIED ||
	    strstr(err.msg, "cannot be written") == NULL)
		return 3;
	return 0;
}

static int
try_no_entry(void)
{
	struct until until = until_in(5000);
	struct db *db = db_take(&until, &err);

	return db == NULL && err.code == ERR_DENIED ? 0 : 1;
}

static void
a_read_only_one_can_be_read(void **state)
{
	char *path = db_path();

	(void)state;
	new_transfer();
	db_end();
	assert_int_equal(chmod(path, 0444), 0);
	assert_int_equal(chmod(state_dir, 0555), 0);
	assert_int_equal(as_nobody(try_read_only), 0);
	assert_int_equal(chmod(path, 0000), 0);
	assert_int_equal(as_nobody(try_no_entry), 0);
	assert_int_equal(chmod(state_dir, 0700), 0);
	free(path);
}

/* On a disk with room for little; its exit status. */
static int
try_full(void)
{
	char *text = repeated("x", 400000);
	struct until until = until_in(5000);
	int64_t id;

	if (unshare(CLONE_NEWNS) == -1 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == -1 ||
	    mount("tmpfs", state_dir, "tmpfs", 0, "size=256k") == -1)
		return 77;
	id = new_transfer();
	if (transfers_progress(id, text, &until, &err) == 0)
		return 1;
	if (strstr(err.msg, "no room to write") == NULL)
		return 2;
	/* What was there is still there, and small things still work. */
	if (transfers_progress(id, "{}", &until, &err) == -1)
		return 3;
	return 0;
}

static void
a_full_disk_is_said_and_loses_nothing(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0)
		_exit(try_full());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Write numbers, and tell each once it is stored. */
static void
write_on(int64_t id, int fd)
{
	struct until until = until_in(60000);
	char text[64];
	int n;

	for (n = 1;; n++) {
		snprintf(text, sizeof(text), "{\"n\": %d}", n);
		if (transfers_progress(id, text, &until, &err) == -1)
			_exit(1);
		if (write(fd, &n, sizeof(n)) != sizeof(n))
			_exit(1);
	}
}

/* What was stored last, at least, after a writer was killed. */
static void
kill_a_writer(int64_t id, long nap_us)
{
	struct timespec nap = { .tv_nsec = nap_us * 1000 };
	struct until until = until_in(20000);
	int pair[2], n, told = 0, status, stored = -1;
	struct transfer t;
	pid_t pid;

	assert_int_equal(transfers_progress(id, "{\"n\": 0}", &until, &err), 0);
	db_end();
	assert_int_equal(fs_pipe(pair, &err), 0);
	pid = fork();
	assert_true(pid != -1);
	if (pid == 0)
		write_on(id, pair[1]);
	close(pair[1]);
	nanosleep(&nap, NULL);
	kill(pid, SIGKILL);
	while (read(pair[0], &n, sizeof(n)) == sizeof(n))
		told = n;
	close(pair[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	if (transfers_get(id, &t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	assert_int_equal(sscanf(t.progress_json, "{\"n\": %d}", &stored), 1);
	transfer_free(&t);
	assert_in_range(stored, told, told + 1);
}

static void
killing_a_writer_loses_nothing(void **state)
{
	int64_t id = new_transfer();
	int round;

	(void)state;
	for (round = 0; round < 40; round++)
		kill_a_writer(id, 2000 + round * 731);
	gives("PRAGMA integrity_check", "ok");
	assert_int_equal(files_with(".broken-"), 0);
}

static void
many_processes_write_side_by_side(void **state)
{
	enum { PROCESSES = 4, ROWS = 15 };
	pid_t pids[PROCESSES];
	int i, k, status;

	(void)state;
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] != -1);
		if (pids[i] == 0) {
			for (k = 0; k < ROWS; k++)
				new_transfer();
			_exit(0);
		}
	}
	for (i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	gives("SELECT count(*) || ' ' || max(id) FROM transfer_tasks", "60 60");
}

static void *
write_rows(void *data)
{
	struct until until = until_in(60000);
	struct err why;
	int *failed = data;
	int i;

	for (i = 0; i < 20; i++)
		*failed |= transfers_progress(1, "{}", &until, &why) == -1;
	return NULL;
}

static void
threads_share_the_handle(void **state)
{
	pthread_t threads[4];
	int failed[4] = { 0 };
	int i;

	(void)state;
	new_transfer();
	for (i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, write_rows,
		                     &failed[i]),
		    0);
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_false(failed[i]);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_begin, store_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_one_is_for_this_user_alone),
		TEST(one_that_others_can_read_is_closed_to_them),
		TEST(one_of_the_earlier_server_goes_on),
		TEST(columns_that_are_missing_are_added),
		TEST(a_newer_one_is_left_alone),
		TEST(a_locked_one_is_waited_for_and_named),
		TEST(a_lock_that_ends_in_time_is_no_error),
		TEST(waiting_for_a_lock_can_be_cancelled),
		TEST(who_keeps_wal_mode_is_named_and_both_work),
		TEST(a_living_daemon_is_known_by_its_pulse),
		TEST(a_daemon_of_last_week_is_not),
		TEST(what_is_no_database_is_set_aside),
		TEST(a_new_beginning_gives_new_numbers),
		TEST(a_page_that_broke_is_noticed),
		TEST(breaking_under_an_open_handle_is_noticed),
		TEST(a_large_one_that_broke_is_set_aside),
		TEST(a_large_one_that_is_whole_again_stays),
		TEST(a_file_that_was_replaced_is_opened_anew),
		TEST(a_directory_in_its_place_is_an_error),
		TEST(a_read_only_one_can_be_read),
		TEST(a_full_disk_is_said_and_loses_nothing),
		TEST(killing_a_writer_loses_nothing),
		TEST(many_processes_write_side_by_side),
		TEST(threads_share_the_handle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
