/*
 * Transfers with real workers: this program, started again, with a sync of its
 * own that does what its remote_path says.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/ident.h"
#include "base/str.h"
#include "store.h"
#include "tools/app.h"
#include "tools/target_lock.h"
#include "tools/tool.h"
#include "tools/transfer.h"

#define PASSWORD "p\xff ss'\"w\xc3\xb6rd"

extern const struct tool tool_check_file_transfer_task;
extern const struct tool tool_cancel_file_transfer_task;

/* --- the worker ------------------------------------------------------------
 */

static int signal_pipe[2];

static void
on_signal(int sig)
{
	(void)sig;
	(void)!write(signal_pipe[1], "s", 1);
}

static void
nap(int64_t ms)
{
	struct until until = until_in(ms);
	struct err why;

	until_poll(&until, NULL, 0, &why);
}

/* What this process can be seen with, into a file. */
static void
tell_all(const struct sandbox *sb, const char *path)
{
	struct buf b;
	struct err why;

	buf_init(&b, 1 << 20);
	buf_addf(&b, "password=%s\n", sb->password.data);
	buf_addf(&b, "sid=%d pid=%d\n", (int)getsid(0), (int)getpid());
	fs_read("/proc/self/environ", &b, &why);
	fs_read("/proc/self/cmdline", &b, &why);
	if (fs_replace(path, b.data, b.len, 0600, &why) == -1)
		abort();
	buf_free(&b);
}

static int
fake_sync(struct link *link, const struct sync_request *req,
    void (*progress)(void *data, const struct sync_progress *p), void *data,
    struct sync_report *report, const struct until *until, struct err *why)
{
	struct sync_progress p = { .phase = "uploading",
		.path = "dir/\xff file",
		.files_total = 1000,
		.bytes_total = 1000000,
		.problems = 3 };
	const char *what = req->remote_path;
	int64_t end = clock_ms() + 60000;

	memset(report, 0, sizeof(*report));
	report->local_path = xstrdup(req->local_path);
	report->problems = json_array();
	if (str_starts(what, "fail"))
		return err_set(why, ERR_IO, "the far side is on holiday");
	if (str_starts(what, "tell"))
		tell_all(link_sandbox(link), req->local_path);
	if (str_starts(what, "second"))
		end = clock_ms() + 2500;
	if (str_starts(what, "quick") || str_starts(what, "tell"))
		end = clock_ms();
	while (clock_ms() < end) {
		p.files_done++;
		p.bytes_done += 1000;
		progress(data, &p);
		nap(20);
		if (!str_starts(what, "deaf") && until_check(until, why) == -1)
			return -1;
	}
	report->files = p.files_done = 1000;
	report->duration_ms = 1;
	progress(data, &p);
	return 0;
}

static void
say_line(const char *line)
{
	printf("%s\n", line);
	fflush(stdout);
}

/* As src/cli/transfer_worker.c has it. */
static int
be_worker(char **argv)
{
	struct transfer_work w = { .fd = 3,
		.sync = fake_sync,
		.say = say_line };
	struct sigaction sa = { .sa_handler = on_signal };
	struct err why;

	if (strcmp(argv[2], "--task-id") != 0 || strcmp(argv[5], "3") != 0 ||
	    str_to_int(argv[3], 1, INT64_MAX, &w.id) == -1 ||
	    transfer_detach(&why) == -1 || fs_pipe(signal_pipe, &why) == -1)
		return 2;
	w.cancel_fd = signal_pipe[0];
	sigaction(SIGTERM, &sa, NULL);
	return transfer_work(&w, &why) == 0 ? 0 : 1;
}

/* --- help ------------------------------------------------------------------
 */

static struct sandbox sandbox;

static int
begin(void **state)
{
	json_t *entry = json_pack("{s:s, s:s, s:[s]}", "name", "box", "host",
	    "host.invalid", "ssh_options", "Compression=yes");
	json_t *unknown = json_array();

	store_begin(state);
	assert_int_equal(sandbox_parse(&sandbox, entry, "/", unknown, &err), 0);
	secret_set(&sandbox.password, PASSWORD, strlen(PASSWORD));
	json_decref(unknown);
	json_decref(entry);
	return 0;
}

static int
end(void **state)
{
	sandbox_free(&sandbox);
	return store_end(state);
}

static int
try_start(const char *what, json_t **result)
{
	struct sync_request req = { .direction = SYNC_UP,
		.local_path = "/some/where",
		.remote_path = what };

	*result = NULL;
	return transfer_start(NULL, &sandbox, &req, result, &err);
}

static int64_t
start(const char *what)
{
	json_t *result;
	int64_t id;

	if (try_start(what, &result) == -1)
		fail_msg("%s", err.msg);
	id = json_integer_value(json_object_get(result, "task_id"));
	json_decref(result);
	return id;
}

/* A call of a tool; the caller frees the result. */
static json_t *
call_tool(const struct tool *tool, int64_t id, double force_after)
{
	struct call call = { .until = until_in(60000) };
	json_t *given = json_pack("{s:I, s:f}", "task_id", (json_int_t)id,
	    "force_kill_after_s", force_after);
	json_t *result = NULL;

	if (tool_run(tool, &call, given, &result, &err) == -1)
		fail_msg("%s", err.msg);
	json_decref(given);
	return result;
}

static json_t *
check(int64_t id)
{
	return call_tool(&tool_check_file_transfer_task, id, 5);
}

static json_t *
cancel(int64_t id)
{
	return call_tool(&tool_cancel_file_transfer_task, id, 5);
}

static void
text_is(const json_t *o, const char *field, const char *expected)
{
	const char *text = json_string_value(json_object_get(o, field));

	assert_non_null(text);
	assert_string_equal(text, expected);
}

static void
is_true(const json_t *o, const char *field, bool expected)
{
	if (json_is_true(json_object_get(o, field)) != expected)
		fail_msg("%s is not %d in %s", field, expected,
		    json_dumps(o, 0));
}

static int64_t
int_in(const json_t *o, const char *field)
{
	return json_integer_value(json_object_get(o, field));
}

static void
wait_status(int64_t id, const char *status)
{
	int64_t end_ms = clock_ms() + 60000;
	struct until until = until_in(60000);
	struct transfer t;
	bool there = false;

	while (!there) {
		if (transfers_get(id, &t, &until, &err) == -1)
			fail_msg("%s", err.msg);
		there = strcmp(t.status, status) == 0;
		if (!there && clock_ms() > end_ms)
			fail_msg("it is %s, not %s: %s", t.status, status,
			    t.last_error);
		transfer_free(&t);
		nap(10);
	}
}

static struct transfer
row_of(int64_t id)
{
	struct until until = until_in(20000);
	struct transfer t;

	if (transfers_get(id, &t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	return t;
}

static struct ident
worker_of(int64_t id)
{
	struct transfer t = row_of(id);
	struct ident who = { (pid_t)t.pid, t.worker_start };

	transfer_free(&t);
	return who;
}

static void
wait_gone(const struct ident *who)
{
	int64_t end_ms = clock_ms() + 60000;

	while (ident_alive(who)) {
		assert_true(clock_ms() < end_ms);
		nap(5);
	}
}

static int
mode_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (int)(st.st_mode & 0777);
}

/* --- tests -----------------------------------------------------------------
 */

static void
one_that_is_quick_completes(void **state)
{
	json_t *result, *o;
	const char *log;
	int64_t id;
	struct ident who;

	(void)state;
	assert_int_equal(try_start("quick", &result), 0);
	text_is(result, "mode", "background");
	text_is(result, "status", "running");
	id = int_in(result, "task_id");
	assert_int_equal(id, 1);
	assert_true(int_in(result, "pid") > 0);
	log = json_string_value(json_object_get(result, "log_file"));
	assert_int_equal(mode_of(log), 0600);
	wait_status(id, TRANSFER_COMPLETED);
	who = worker_of(id);
	assert_int_equal(who.pid, int_in(result, "pid"));
	o = check(id);
	text_is(o, "status", "completed");
	is_true(o, "running", false);
	is_true(o, "stale", false);
	assert_null(json_object_get(o, "error"));
	text_is(json_object_get(o, "progress"), "phase", "complete");
	assert_int_equal(int_in(json_object_get(o, "progress"), "files_done"),
	    1000);
	says(json_string_value(json_object_get(o, "log_tail")),
	    "== transfer task: 1\n== created_at: 2");
	says(json_string_value(json_object_get(o, "log_tail")),
	    "Z\n== sandbox: box\n== local_path: /some/where\n"
	    "== remote_path: quick\n");
	json_decref(o);
	o = cancel(id);
	is_true(o, "already_finished", true);
	text_is(o, "status", "completed");
	assert_null(json_object_get(o, "terminated"));
	json_decref(o);
	json_decref(result);
	wait_gone(&who);
}

static void
it_tells_how_far_it_is(void **state)
{
	int64_t id = start("slow");
	int64_t end_ms = clock_ms() + 60000;
	json_t *o = NULL;
	const json_t *p;

	(void)state;
	do {
		json_decref(o);
		nap(50);
		o = check(id);
		p = json_object_get(o, "progress");
		assert_true(clock_ms() < end_ms);
	} while (int_in(p, "rate_bytes_s") == 0);
	text_is(o, "status", "running");
	is_true(o, "running", true);
	is_true(o, "stale", false);
	text_is(p, "phase", "uploading");
	text_is(p, "current_path", "dir/\xef\xbf\xbd file");
	assert_true(int_in(p, "files_done") > 0);
	assert_int_equal(int_in(p, "files_total"), 1000);
	assert_int_equal(int_in(p, "bytes_total"), 1000000);
	assert_int_equal(int_in(p, "problem_count"), 3);
	assert_true(int_in(p, "eta_s") > 0);
	json_decref(o);
	json_decref(cancel(id));
}

/* Nobody has to wait for it, and no zombie looks alive. */
static void
it_is_nobodys_child(void **state)
{
	int64_t id = start("slow");
	struct ident who = worker_of(id);

	(void)state;
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(getsid(who.pid), who.pid);
	assert_int_equal(getpgid(who.pid), who.pid);
	json_decref(cancel(id));
}

static void
secrets_reach_it_unseen(void **state)
{
	char *path = path_join(state_dir, "told");
	struct sync_request req = { .direction = SYNC_UP,
		.local_path = path,
		.remote_path = "tell" };
	struct buf b;
	json_t *result = NULL;
	size_t i;

	(void)state;
	setenv("REMOTE_PASSWORD", "SECRET-1", 1);
	setenv("REMOTE_SANDBOX_LIST", "SECRET-2", 1);
	setenv("REMOTE_KEY_PASSPHRASE", "SECRET-3", 1);
	setenv("REMOTE_HARMLESS", "harmless", 1);
	if (transfer_start(NULL, &sandbox, &req, &result, &err) == -1)
		fail_msg("%s", err.msg);
	json_decref(result);
	wait_status(1, TRANSFER_COMPLETED);
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(path, &b, &err), 0);
	says(b.data, "password=" PASSWORD "\n");
	for (i = 0; i < b.len; i++) {
		if (b.data[i] == '\0')
			b.data[i] = '\n';
	}
	says(b.data, "REMOTE_HARMLESS=harmless");
	says(b.data, "\ntransfer-worker\n--task-id\n1\n");
	says_not(b.data, "SECRET-");
	says_not(strchr(b.data, '\n'), PASSWORD);
	buf_free(&b);
	free(path);
	gives("SELECT count(*) FROM transfer_tasks WHERE options_json || "
	      "progress_json || result_json LIKE '%p_ ss%'",
	    "0");
	unsetenv("REMOTE_PASSWORD");
	unsetenv("REMOTE_SANDBOX_LIST");
	unsetenv("REMOTE_KEY_PASSPHRASE");
}

/* Less than a second; more only if the machine is busy. */
static void
cancelling_takes_a_moment(void **state)
{
	int64_t id = start("slow"), begun = clock_ms();
	struct ident who = worker_of(id);
	json_t *o = cancel(id);

	(void)state;
	assert_true(clock_ms() - begun < 30000);
	text_is(o, "status", "cancelled");
	is_true(o, "terminated", true);
	is_true(o, "force_killed", false);
	is_true(o, "already_finished", false);
	json_decref(o);
	wait_gone(&who);
	o = check(id);
	text_is(o, "status", "cancelled");
	is_true(o, "running", false);
	is_true(o, "stale", false);
	text_is(json_object_get(o, "progress"), "phase", "cancelled");
	json_decref(o);
	o = cancel(id);
	is_true(o, "already_finished", true);
	text_is(o, "status", "cancelled");
	json_decref(o);
}

/* A sync that does not heed the signal is ended all the same. */
static void
a_deaf_one_ends_in_good_order_too(void **state)
{
	int64_t id = start("deaf"), begun = clock_ms();
	struct ident who = worker_of(id);
	json_t *o = cancel(id);

	(void)state;
	assert_true(clock_ms() - begun < 30000);
	text_is(o, "status", "cancelled");
	is_true(o, "terminated", true);
	is_true(o, "force_killed", false);
	json_decref(o);
	wait_gone(&who);
}

static void
a_stopped_one_is_killed(void **state)
{
	int64_t id = start("slow");
	struct ident who = worker_of(id);
	json_t *o;

	(void)state;
	assert_int_equal(ident_signal(&who, SIGSTOP), 0);
	o = call_tool(&tool_cancel_file_transfer_task, id, 0.3);
	text_is(o, "status", "cancelled");
	is_true(o, "terminated", true);
	is_true(o, "force_killed", true);
	json_decref(o);
	wait_gone(&who);
}

static void
a_killed_one_is_stale(void **state)
{
	int64_t id = start("slow");
	struct ident who = worker_of(id);
	json_t *o;

	(void)state;
	assert_int_equal(ident_signal(&who, SIGKILL), 0);
	wait_gone(&who);
	o = check(id);
	text_is(o, "status", "running");
	is_true(o, "stale", true);
	is_true(o, "running", false);
	json_decref(o);
	o = cancel(id);
	text_is(o, "status", "cancelled");
	assert_true(json_is_false(json_object_get(o, "terminated")));
	json_decref(o);
	/* And its target is free again. */
	json_decref(cancel(start("slow")));
}

/* A process of ours that waits, started as "words" say. */
static pid_t
bystander(const char *a, const char *b, const char *c)
{
	char self[4096];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t pid;

	assert_true(n > 0);
	self[n] = '\0';
	pid = fork();
	assert_true(pid != -1);
	if (pid == 0) {
		execl(self, self, "bystander", a, b, c, (char *)NULL);
		_exit(1);
	}
	while (!ident_has_args(pid, a, b))
		nap(2);
	return pid;
}

static void
set_running(int64_t id, pid_t pid, int64_t worker_start)
{
	struct until until = until_in(20000);

	assert_int_equal(transfers_begin(id, pid, worker_start, &until, &err),
	    0);
}

static void
a_stranger_is_left_alone(void **state)
{
	pid_t pid = bystander("one", "two", "three");
	int64_t starts[] = { 0, 1, ident_start(pid) };
	size_t i;

	(void)state;
	for (i = 0; i < 3; i++) {
		int64_t id = new_transfer();
		json_t *o;

		set_running(id, pid, starts[i]);
		o = check(id);
		is_true(o, "stale", true);
		json_decref(o);
		o = cancel(id);
		text_is(o, "status", "cancelled");
		assert_true(json_is_false(json_object_get(o, "terminated")));
		json_decref(o);
		assert_true(ident_start(pid) != 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
a_worker_of_the_earlier_server_is_known(void **state)
{
	int64_t id = new_transfer();
	pid_t pid = bystander("transfer-worker", "--task-id", "1");
	json_t *o;

	(void)state;
	assert_int_equal(id, 1);
	set_running(id, pid, 0);
	o = check(id);
	is_true(o, "running", true);
	is_true(o, "stale", false);
	json_decref(o);
	o = cancel(id);
	text_is(o, "status", "cancelled");
	is_true(o, "terminated", true);
	json_decref(o);
	waitpid(pid, NULL, 0);
	/* That of another task is not. */
	id = new_transfer();
	pid = bystander("transfer-worker", "--task-id", "1");
	set_running(id, pid, 0);
	o = cancel(id);
	assert_true(json_is_false(json_object_get(o, "terminated")));
	json_decref(o);
	assert_true(ident_start(pid) != 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void
of_two_on_one_target_the_second_is_told(void **state)
{
	int64_t id = start("slow/x");
	json_t *result;

	(void)state;
	assert_int_equal(try_start("~/slow//x/", &result), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "transfer task 1 is writing to '~/slow//x/' on box");
	assert_null(result);
	json_decref(cancel(start("slow/y")));
	json_decref(cancel(id));
	json_decref(cancel(start("slow/x")));
}

static void
a_target_can_be_taken_without_a_worker(void **state)
{
	struct sync_request up = { .direction = SYNC_UP,
		.local_path = "/a",
		.remote_path = "slow" };
	struct sync_request down = { .direction = SYNC_DOWN,
		.local_path = state_dir,
		.remote_path = "slow" };
	char *inner = xasprintf("%s/./transfers/..", state_dir);
	struct until until = until_in(0);
	struct target_lock one, two, three;
	json_t *result;

	(void)state;
	assert_int_equal(target_take(&one, &sandbox, &up, "a sync", &until,
	                     &err),
	    0);
	assert_int_equal(target_take(&two, &sandbox, &down, "another", &until,
	                     &err),
	    0);
	assert_int_equal(try_start("slow", &result), -1);
	says(err.msg, "a sync is writing to 'slow' on box");
	down.local_path = inner;
	assert_int_equal(target_take(&three, &sandbox, &down, "x", &until,
	                     &err),
	    -1);
	says(err.msg, "another is writing to the local path");
	target_give(&three);
	target_give(&two);
	target_give(&one);
	assert_int_equal(target_check(&sandbox, &up, &err), 0);
	assert_int_equal(target_check(&sandbox, &down, &err), 0);
	free(inner);
}

static void
a_failure_is_told(void **state)
{
	int64_t id = start("fail");
	json_t *o;

	(void)state;
	wait_status(id, TRANSFER_FAILED);
	o = check(id);
	text_is(o, "error", "the far side is on holiday");
	text_is(json_object_get(o, "progress"), "phase", "failed");
	says(json_string_value(json_object_get(o, "log_tail")),
	    "failed: the far side is on holiday");
	json_decref(o);
}

/* Locked for longer than anybody waits for a write of progress. */
static void
a_locked_store_does_not_harm_it(void **state)
{
	int64_t id = start("second");
	sqlite3 *db = other_open();

	(void)state;
	sqlite3_busy_timeout(db, 10000);
	other_run(db, "BEGIN EXCLUSIVE");
	nap(3500);
	other_run(db, "COMMIT");
	sqlite3_close(db);
	wait_status(id, TRANSFER_COMPLETED);
}

static void
a_lost_store_does_not_harm_it(void **state)
{
	int64_t id = start("second");
	char *path = db_path();
	struct transfer t;

	(void)state;
	assert_int_equal(unlink(path), 0);
	free(path);
	db_end();
	/* Numbers go on, since the log of this one is there. */
	assert_int_equal(new_transfer(), id + 1);
	nap(1500);
	wait_status(id, TRANSFER_COMPLETED);
	t = row_of(id);
	assert_string_equal(t.remote_path, "second");
	assert_true(t.log_file[0] == '/');
	transfer_free(&t);
}

static void
one_that_was_cancelled_before_it_began_does_nothing(void **state)
{
	struct transfer_end gone = { .status = TRANSFER_CANCELLED };
	struct until until = until_in(20000);
	struct transfer_work w = { .fd = -1, .cancel_fd = -1, .say = say_line };

	(void)state;
	w.id = new_transfer();
	assert_int_equal(transfers_end(w.id, &gone, &until, &err), 0);
	assert_int_equal(transfer_work(&w, &err), 0);
	w.id = 99;
	assert_int_equal(transfer_work(&w, &err), -1);
	says(err.msg, "no transfer task 99");
}

static void
a_request_survives_its_row(void **state)
{
	json_t *excludes = json_pack("[s, s]", "*.o", "d\xc3\xb6/");
	struct sync_request req = { .direction = SYNC_DOWN,
		.local_path = "here/",
		.remote_path = "fail",
		.delete_extras = true,
		.confirm_delete = true,
		.checksum = true,
		.use_gitignore = true,
		.excludes = excludes,
		.exclude_file = "ex" };
	struct sync_request back;
	char *cwd = getcwd(NULL, 0);
	json_t *result = NULL, *keep;
	struct transfer t;
	char *expected;

	(void)state;
	assert_int_equal(transfer_start(NULL, &sandbox, &req, &result, &err),
	    0);
	json_decref(result);
	t = row_of(1);
	transfer_request(&t, &back, &keep);
	assert_int_equal(back.direction, SYNC_DOWN);
	expected = xasprintf("%s/here/", cwd);
	assert_string_equal(back.local_path, expected);
	free(expected);
	expected = xasprintf("%s/ex", cwd);
	assert_string_equal(back.exclude_file, expected);
	free(expected);
	assert_string_equal(back.remote_path, "fail");
	assert_true(back.delete_extras && back.confirm_delete &&
	    back.checksum && back.use_gitignore && !back.dry_run);
	assert_true(json_equal(back.excludes, excludes));
	json_decref(keep);
	transfer_free(&t);
	json_decref(excludes);
	free(cwd);
	wait_status(1, TRANSFER_FAILED);
}

static void
a_sandbox_arrives_whole_or_not_at_all(void **state)
{
	struct sandbox back;
	struct buf b;
	size_t n;

	(void)state;
	buf_init(&b, 1 << 16);
	transfer_pack_sandbox(&b, &sandbox);
	assert_int_equal(transfer_unpack_sandbox(&back, b.data, b.len, &err),
	    0);
	assert_string_equal(back.name, "box");
	assert_string_equal(back.host, "host.invalid");
	assert_true(secret_equal(&back.password, &sandbox.password));
	assert_false(secret_given(&back.key_passphrase));
	assert_int_equal(json_array_size(back.ssh_options), 1);
	assert_false(back.throwaway);
	sandbox_free(&back);
	for (n = 0; n < b.len; n++) {
		assert_int_equal(transfer_unpack_sandbox(&back, b.data, n,
		                     &err),
		    -1);
		says_not(err.msg, "p\xff");
		sandbox_free(&back);
	}
	buf_free(&b);
}

static void
odd_rows_are_shown_without_harm(void **state)
{
	int64_t id = new_transfer();
	sqlite3 *db = other_open();
	json_t *o;

	(void)state;
	other_run(db,
	    "UPDATE transfer_tasks SET status = 'r\xff', pid = -1,"
	    " progress_json = '[1', result_json = '{\"a\": 0, \"b\": [1],"
	    " \"c\": null}', log_file = '/dev/zero', created_ts = 5");
	sqlite3_close(db);
	o = check(id);
	text_is(o, "status", "r\xef\xbf\xbd");
	assert_null(json_object_get(o, "progress"));
	assert_int_equal(json_object_size(json_object_get(o, "result")), 1);
	assert_null(json_object_get(o, "log_tail"));
	json_decref(o);
	json_decref(cancel(id));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(one_that_is_quick_completes),
		TEST(it_tells_how_far_it_is),
		TEST(it_is_nobodys_child),
		TEST(secrets_reach_it_unseen),
		TEST(cancelling_takes_a_moment),
		TEST(a_deaf_one_ends_in_good_order_too),
		TEST(a_stopped_one_is_killed),
		TEST(a_killed_one_is_stale),
		TEST(a_stranger_is_left_alone),
		TEST(a_worker_of_the_earlier_server_is_known),
		TEST(of_two_on_one_target_the_second_is_told),
		TEST(a_target_can_be_taken_without_a_worker),
		TEST(a_failure_is_told),
		TEST(a_locked_store_does_not_harm_it),
		TEST(a_lost_store_does_not_harm_it),
		TEST(one_that_was_cancelled_before_it_began_does_nothing),
		TEST(a_request_survives_its_row),
		TEST(a_sandbox_arrives_whole_or_not_at_all),
		TEST(odd_rows_are_shown_without_harm),
	};

	signal(SIGPIPE, SIG_IGN);
	if (argc == 6 && strcmp(argv[1], "transfer-worker") == 0)
		return be_worker(argv);
	if (argc > 1 && strcmp(argv[1], "bystander") == 0)
		pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
