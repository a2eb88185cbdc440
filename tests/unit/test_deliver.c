/* Deliveries, with a store, a server, curl and real commands. */
#include <fcntl.h>
#include <time.h>

#include "base/ident.h"
#include "httpd.h"
#include "store.h"
#include "store/events.h"
#include "store/watches.h"
#include "watch/deliver.h"
#include "watch/event.h"

static struct httpd httpd;
static struct until until;
static struct watch w;

static int
begin(void **state)
{
	store_begin(state);
	setenv("XDG_CONFIG_HOME", state_dir, 1);
	setenv("HOME", state_dir, 1);
	setenv("REMOTE_SANDBOX_ALLOW_EVENT_COMMAND", "1", 1);
	setenv("REMOTE_SANDBOX_ALLOW_PRIVATE_WEBHOOKS", "1", 1);
	httpd_start(&httpd, HTTPD_OK);
	until = until_in(120000);
	watch_init(&w);
	watch_set(&w.sandbox_name, "gpu1");
	watch_set(&w.tmux_session, "s");
	watch_set(&w.log_file, "/l");
	watch_set(&w.name, "n");
	w.notify_local = false;
	return 0;
}

static int
end(void **state)
{
	char *events = path_join(state_dir, "events");

	httpd_stop(&httpd);
	watch_free(&w);
	if (access(events, F_OK) == 0)
		remove_dir(events);
	else
		free(events);
	return store_end(state);
}

/* Add the watch as it is by now. */
static void
add_watch(void)
{
	if (watches_add(&w, &until, &err) == -1)
		fail_msg("%s", err.msg);
}

/* An event of it; its number. */
static int64_t
happen(const char *type)
{
	struct event e;
	int64_t id;

	event_make(&e, &w, type, "it happened", NULL, time(NULL));
	if (watches_save(&w, &e, 1, &until, &err) != 0)
		fail_msg("%s", err.msg);
	id = e.id;
	event_free(&e);
	return id;
}

/* Wait for the state of all its deliveries; how they went, as text. */
static void
becomes(int64_t id, const char *expected)
{
	char *text = NULL;
	json_t *list;

	for (;;) {
		struct until step = until_in(20);
		struct err ignored;

		list = deliveries_json(id, &until, &err);
		assert_non_null(list);
		free(text);
		text = json_dumps(list, JSON_COMPACT);
		json_decref(list);
		if (strstr(text, expected) != NULL &&
		    strstr(text, "\"pending\"") == NULL)
			break;
		if (until_check(&until, &ignored) == -1)
			fail_msg("%s never became %s", text, expected);
		until_poll(&step, NULL, 0, &ignored);
	}
	free(text);
}

static char *
in_state(const char *name)
{
	return path_join(state_dir, name);
}

static char *
content(const char *name)
{
	char *path = in_state(name);
	struct buf b;

	buf_init(&b, 1 << 20);
	if (fs_read(path, &b, &err) == -1)
		fail_msg("%s", err.msg);
	free(path);
	return buf_take(&b);
}

static void
every_channel_gets_it(void **state)
{
	char *url = xasprintf("http://127.0.0.1:%d/", httpd.port);
	char *command = xasprintf(
	    "echo \"$RSMCP_EVENT_TYPE $RSMCP_WATCH_ID $RSMCP_SANDBOX_NAME\" "
	    ">%s/ran; cat \"$RSMCP_EVENT_FILE\" >>%s/ran",
	    state_dir, state_dir);
	struct deliver *d;
	char *text, *path, *line;
	int64_t id;

	(void)state;
	watch_set(&w.webhook_url, url);
	watch_set(&w.event_command, command);
	add_watch();
	id = happen("completed");
	d = deliver_new(&err);
	assert_non_null(d);
	becomes(id, "\"done\"");
	deliver_free(d);
	path = xasprintf("events/event-%lld.json", (long long)id);
	text = content(path);
	says(text, "\"event_type\": \"completed\"");
	says(httpd_last(&httpd), text);
	assert_int_equal(httpd_count(&httpd), 1);
	free(text);
	text = content("ran");
	line = xasprintf("completed %lld gpu1\n{\n", (long long)w.id);
	says(text, line);
	free(line);
	free(text);
	free(path);
	path = in_state("ran");
	unlink(path);
	free(path);
	free(command);
	free(url);
}

static void
a_poke_is_heard(void **state)
{
	struct deliver *d;
	int64_t begun, id;

	(void)state;
	add_watch();
	d = deliver_new(&err);
	assert_non_null(d);
	begun = clock_ms();
	id = happen("completed");
	deliver_poke(d);
	becomes(id, "\"done\"");
	assert_true(clock_ms() - begun < 60000);
	deliver_free(d);
}

static void
who_never_answers_delays_nobody(void **state)
{
	struct httpd slow;
	struct deliver *d;
	char *url;
	int64_t begun, id;
	int i;

	(void)state;
	httpd_start(&slow, NULL);
	url = xasprintf("http://127.0.0.1:%d/", slow.port);
	watch_set(&w.webhook_url, url);
	watch_set(&w.event_command, "sleep 600");
	add_watch();
	for (i = 0; i < 20; i++)
		happen("completed");
	d = deliver_new(&err);
	assert_non_null(d);
	watch_free(&w);
	watch_init(&w);
	watch_set(&w.sandbox_name, "other");
	free(url);
	url = xasprintf("http://127.0.0.1:%d/", httpd.port);
	watch_set(&w.webhook_url, url);
	watch_set(&w.event_command, "true");
	w.notify_local = false;
	add_watch();
	begun = clock_ms();
	id = happen("completed");
	deliver_poke(d);
	becomes(id, "\"done\"");
	print_message("the other took %lld ms\n",
	    (long long)(clock_ms() - begun));
	assert_true(clock_ms() - begun < 10000);
	/* And the end does not wait for them. */
	begun = clock_ms();
	deliver_free(d);
	assert_true(clock_ms() - begun < 10000);
	free(url);
	httpd_stop(&slow);
}

static void
what_fails_is_tried_again(void **state)
{
	char *url = xasprintf("http://127.0.0.1:%d/", httpd.port);
	struct deliver *d;
	int64_t id;

	(void)state;
	httpd_reply(&httpd, "HTTP/1.1 500 No\r\nConnection: close\r\n\r\n");
	watch_set(&w.webhook_url, url);
	add_watch();
	id = happen("completed");
	d = deliver_new(&err);
	assert_non_null(d);
	while (httpd_count(&httpd) < 1) {
		struct until step = until_in(20);
		struct err ignored;

		assert_int_equal(until_check(&until, &err), 0);
		until_poll(&step, NULL, 0, &ignored);
	}
	httpd_reply(&httpd, HTTPD_OK);
	becomes(id, "\"done\"");
	assert_true(httpd_count(&httpd) >= 2);
	deliver_free(d);
	free(url);
}

static void
a_local_command_needs_permission(void **state)
{
	char *command = xasprintf("touch %s/ran", state_dir);
	char *path = in_state("ran");
	struct deliver *d;
	int64_t id;

	(void)state;
	unsetenv("REMOTE_SANDBOX_ALLOW_EVENT_COMMAND");
	watch_set(&w.event_command, command);
	add_watch();
	id = happen("completed");
	d = deliver_new(&err);
	assert_non_null(d);
	becomes(id, "\"failed\"");
	becomes(id, "REMOTE_SANDBOX_ALLOW_EVENT_COMMAND");
	deliver_free(d);
	assert_int_equal(access(path, F_OK), -1);
	free(command);
	free(path);
}

/* A delivery to a command, by itself. */
static int
run_command(const char *command, int64_t ms)
{
	struct until soon = until_in(ms);
	struct allow allow = { .event_command = true };
	struct delivery one = { .channel = CHANNEL_COMMAND,
		.tries = 1,
		.watch_name = w.name,
		.sandbox_name = w.sandbox_name,
		.tmux_session = w.tmux_session,
		.log_file = w.log_file,
		.webhook_url = w.webhook_url,
		.event_command = (char *)(uintptr_t)command };
	int rc;

	event_make(&one.event, &w, "failed", "s", NULL, 5);
	one.event.id = 9;
	rc = deliver_one(&one, &allow, &soon, &err);
	event_free(&one.event);
	return rc;
}

/* The same with what is logged in a file of this name. */
static int
run_logged(const char *command, int64_t ms, const char *name)
{
	char *path = in_state(name);
	int real = dup(STDERR_FILENO), rc;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(real != -1 && fd != -1);
	assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
	rc = run_command(command, ms);
	dup2(real, STDERR_FILENO);
	close(real);
	close(fd);
	free(path);
	return rc;
}

static void
a_command_that_hangs_is_ended_with_its_children(void **state)
{
	char *command = xasprintf("sh -c 'echo $$ >%s/pid; sleep 600' & "
	                          "echo half; echo way >&2; sleep 600",
	    state_dir);
	char *text, *path = in_state("pid"), *log = in_state("log");
	struct err ignored;

	(void)state;
	assert_int_equal(run_logged(command, 3000, "log"), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	text = content("log");
	says(text, "event_command of event 9: half\n");
	says(text, "event_command of event 9: way\n");
	unlink(log);
	free(log);
	free(text);
	text = content("pid");
	while (kill((pid_t)strtol(text, NULL, 10), 0) == 0) {
		struct until step = until_in(20);

		/* It may be a zombie until init has seen it. */
		if (until_check(&until, &ignored) == -1)
			fail_msg("%s still runs", text);
		if (ident_start((pid_t)strtol(text, NULL, 10)) == 0)
			break;
		until_poll(&step, NULL, 0, &ignored);
	}
	unlink(path);
	free(path);
	free(text);
	free(command);
}

static void
how_a_command_ended_is_told(void **state)
{
	(void)state;
	assert_int_equal(run_command("exit 3", 60000), -1);
	says(err.msg, "status 3");
	assert_int_equal(err.code, ERR_IO);
	assert_int_equal(run_command("kill -9 $$", 60000), -1);
	says(err.msg, "signal 9");
	assert_int_equal(run_command("echo a; echo b >&2", 60000), 0);
}

static void
when_to_try_again(void **state)
{
	struct delivery one = { .channel = CHANNEL_WEBHOOK, .tries = 1 };
	struct err why = { .code = ERR_IO };

	(void)state;
	assert_true(deliver_again(&one, &why, 1000) > 1000);
	one.tries = 1000;
	assert_int_equal(deliver_again(&one, &why, 1000), 0);
	why.code = ERR_CANCELLED;
	assert_int_equal(deliver_again(&one, &why, 1000), 1000);
	one.tries = 1;
	why.code = ERR_DENIED;
	assert_int_equal(deliver_again(&one, &why, 1000), 0);
	one.channel = CHANNEL_FILE;
	assert_true(deliver_again(&one, &why, 1000) > 1000);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_channel_gets_it),
		T(a_poke_is_heard),
		T(who_never_answers_delays_nobody),
		T(what_fails_is_tried_again),
		T(a_local_command_needs_permission),
		T(a_command_that_hangs_is_ended_with_its_children),
		T(how_a_command_ended_is_told),
		T(when_to_try_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
