#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "test.h"

#define LONG 30000 /* ms; a test that waits this long has failed */
#define MB (1 << 20)

/* Run a shell script with "arg" as its $1. */
static int
run(const char *script, const char *arg, const struct until *until,
    struct proc_result *res, struct err *err)
{
	const char *argv[] = { "sh", "-c", script, "sh", arg, NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };

	return proc_run(&req, res, until, err);
}

static void
check(const char *script, const char *arg, struct proc_result *res)
{
	struct until until = until_in(LONG);
	struct err err = ERR_INIT;

	if (run(script, arg, &until, res, &err) == -1)
		fail_msg("%s", err.msg);
	assert_int_equal(err.code, ERR_NONE);
}

static void
tells_output_and_exit_code(void **state)
{
	struct proc_result res;

	(void)state;
	check("echo out; echo err >&2; exit 7", NULL, &res);
	assert_int_equal(res.exit_code, 7);
	assert_int_equal(res.signal, 0);
	assert_string_equal(res.out.data, "out\n");
	assert_string_equal(res.err.data, "err\n");
	proc_result_free(&res);
	proc_result_free(&res);
	proc_result_free(NULL);
}

static void
tells_the_largest_exit_code(void **state)
{
	struct proc_result res;

	(void)state;
	check("exit 255", NULL, &res);
	assert_int_equal(res.exit_code, 255);
	assert_string_equal(res.out.data, "");
	proc_result_free(&res);
}

static void
tells_the_signal(void **state)
{
	struct proc_result res;

	(void)state;
	check("echo x; kill -KILL $$", NULL, &res);
	assert_int_equal(res.exit_code, -1);
	assert_int_equal(res.signal, SIGKILL);
	assert_string_equal(res.out.data, "x\n");
	proc_result_free(&res);
}

static void
keeps_nul_bytes(void **state)
{
	struct proc_result res;

	(void)state;
	check("printf 'a\\000b'", NULL, &res);
	assert_int_equal(res.out.len, 3);
	assert_memory_equal(res.out.data, "a\0b", 3);
	proc_result_free(&res);
}

static void
gives_arguments_as_they_are(void **state)
{
	const char *argv[] = { "printf", "%s|", "$HOME `x` *", "", "a b",
		NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_string_equal(res.out.data, "$HOME `x` *||a b|");
	proc_result_free(&res);
}

static void
gives_our_environment_or_another(void **state)
{
	const char *argv[] = { "/bin/sh", "-c", "echo $TEST_A-$TEST_B", NULL };
	const char *env[] = { "TEST_B=b", NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;

	(void)state;
	setenv("TEST_A", "a", 1);
	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_string_equal(res.out.data, "a-\n");
	proc_result_free(&res);
	req.env = env;
	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_string_equal(res.out.data, "-b\n");
	proc_result_free(&res);
	unsetenv("TEST_A");
}

static void
check_cannot_start(const char *program, enum err_code code, const char *msg)
{
	const char *argv[] = { program, NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };
	struct until until = until_in(LONG);
	struct proc_result res = { .exit_code = 77 };
	struct err err = ERR_INIT;

	assert_int_equal(proc_run(&req, &res, &until, &err), -1);
	assert_int_equal(err.code, code);
	assert_string_equal(err.msg, msg);
	assert_int_equal(res.exit_code, 77);
	assert_null(res.out.data);
}

static void
says_what_it_cannot_start(void **state)
{
	(void)state;
	check_cannot_start("no-such-program", ERR_NOT_FOUND,
	    "cannot start no-such-program: No such file or directory");
	check_cannot_start("/no/such/program", ERR_NOT_FOUND,
	    "cannot start /no/such/program: No such file or directory");
	check_cannot_start("", ERR_NOT_FOUND,
	    "cannot start : No such file or directory");
	check_cannot_start("/dev/null", ERR_DENIED,
	    "cannot start /dev/null: Permission denied");
}

static void
gives_empty_input_if_there_is_none(void **state)
{
	struct proc_result res;

	(void)state;
	check("cat; echo $?", NULL, &res);
	assert_string_equal(res.out.data, "0\n");
	proc_result_free(&res);
}

/* cat with an input that fills pipes many times in both directions. */
static void
gives_input_larger_than_pipes(void **state)
{
	const char *argv[] = { "cat", NULL };
	size_t len = 5 * MB, i;
	char *input = xmalloc(len);
	struct proc_request req = { .argv = argv,
		.input = input,
		.input_len = len,
		.max_output = len };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;

	(void)state;
	for (i = 0; i < len; i++)
		input[i] = (char)(i * 7 / 3);
	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_int_equal(res.exit_code, 0);
	assert_int_equal(res.out.len, len);
	assert_memory_equal(res.out.data, input, len);
	assert_false(res.out.full);
	proc_result_free(&res);
	free(input);
}

static void
run_with_unread_input(const char *script, int exit_code)
{
	static const char input[MB];
	const char *argv[] = { "sh", "-c", script, NULL };
	struct proc_request req = { .argv = argv,
		.input = input,
		.input_len = sizeof(input),
		.max_output = 1000 };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;

	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_int_equal(res.exit_code, exit_code);
	assert_int_equal(res.signal, 0);
	proc_result_free(&res);
}

static int
sigpipe_pending(void)
{
	sigset_t pending;

	assert_int_equal(sigpending(&pending), 0);
	return sigismember(&pending, SIGPIPE);
}

/* Whatever SIGPIPE would do to us. */
static void
does_not_mind_input_that_nobody_reads(void **state)
{
	static const char *const scripts[] = { "exit 3", "exec <&-; exit 3",
		"exec <&-; head -c 200000 /dev/zero; exit 3",
		"head -c 5 >/dev/null; exit 3" };
	sigset_t sigpipe, before;
	size_t i;

	(void)state;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	for (i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		signal(SIGPIPE, SIG_DFL);
		run_with_unread_input(scripts[i], 3);
		pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
		run_with_unread_input(scripts[i], 3);
		assert_int_equal(sigpipe_pending(), 0);
		pthread_sigmask(SIG_SETMASK, &before, NULL);
		signal(SIGPIPE, SIG_IGN);
		run_with_unread_input(scripts[i], 3);
	}
	signal(SIGPIPE, SIG_DFL);
}

static void
leaves_a_pending_sigpipe_pending(void **state)
{
	sigset_t sigpipe, before;
	int taken;

	(void)state;
	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	pthread_kill(pthread_self(), SIGPIPE);
	run_with_unread_input("exit 0", 0);
	assert_int_equal(sigpipe_pending(), 1);
	assert_int_equal(sigwait(&sigpipe, &taken), 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
drops_what_exceeds_the_limit(void **state)
{
	struct proc_result res;

	(void)state;
	check("head -c 10485760 /dev/zero; head -c 10485760 /dev/zero >&2",
	    NULL, &res);
	assert_int_equal(res.exit_code, 0);
	assert_int_equal(res.out.len, 1000);
	assert_true(res.out.full);
	assert_int_equal(res.err.len, 1000);
	assert_true(res.err.full);
	proc_result_free(&res);
}

/* The program may be gone before we have read much; so try it often. */
static void
takes_all_that_was_written_before_the_end(void **state)
{
	const char *argv[] = { "sh", "-c", "printf %060000d 0", NULL };
	struct proc_request req = { .argv = argv, .max_output = MB };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;
	int i;

	(void)state;
	for (i = 0; i < 100; i++) {
		assert_int_equal(proc_run(&req, &res, &until, &err), 0);
		assert_int_equal(res.out.len, 60000);
		proc_result_free(&res);
	}
}

static void
takes_both_streams_at_once(void **state)
{
	struct proc_result res;

	(void)state;
	check(
	    "head -c 1000000 /dev/zero >&2 & head -c 1000000 /dev/zero; wait; "
	    "exit 4",
	    NULL, &res);
	assert_int_equal(res.exit_code, 4);
	assert_true(res.out.full);
	assert_true(res.err.full);
	proc_result_free(&res);
}

static void
resets_signals_for_the_program(void **state)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGPIPE, SIGHUP };
	struct proc_result res;
	sigset_t blocked, before;
	char number[12];
	size_t i;

	(void)state;
	sigfillset(&blocked);
	pthread_sigmask(SIG_BLOCK, &blocked, &before);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		signal(signals[i], SIG_IGN);
		snprintf(number, sizeof(number), "%d", signals[i]);
		check("kill -$1 $$; exit 1", number, &res);
		assert_int_equal(res.signal, signals[i]);
		proc_result_free(&res);
		signal(signals[i], SIG_DFL);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void
gives_the_program_a_group_of_its_own(void **state)
{
	struct proc_result res;

	(void)state;
	check("kill -KILL 0", NULL, &res); /* else it would end us as well */
	assert_int_equal(res.signal, SIGKILL);
	proc_result_free(&res);
}

/*
 * Programs that are to be killed tell through a FIFO.  They hold it open as
 * descriptor 9, and so do their children, so that its end of file is the end
 * of the last of them.
 */

static char dir[PATH_MAX];
static char fifo[PATH_MAX + 8];
static int fifo_fd;

static int
make_fifo(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	snprintf(dir, sizeof(dir), "%s/test_proc.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	fifo_fd = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(fifo_fd >= 0);
	return 0;
}

static int
remove_fifo(void **state)
{
	(void)state;
	close(fifo_fd);
	unlink(fifo);
	rmdir(dir);
	return 0;
}

static void
wait_fifo(void)
{
	struct pollfd fd = { .fd = fifo_fd, .events = POLLIN };
	struct until until = until_in(LONG);
	struct err err = ERR_INIT;

	if (until_poll(&until, &fd, 1, &err) == -1)
		fail_msg("nothing from the FIFO: %s", err.msg);
}

/* Wait for a byte or for nobody to hold the FIFO: 1 or 0. */
static ssize_t
read_fifo(void)
{
	ssize_t n;
	char c;

	while ((n = read(fifo_fd, &c, 1)) == -1 && errno == EAGAIN)
		wait_fifo();
	return n;
}

/*
 * Run a script that would take a minute with a short until: all of it must be
 * gone.  On a slow machine it may be over before the script has written its
 * byte to the FIFO, so it gets more time until it has.
 */
static void
check_killed_in_time(const char *script)
{
	struct proc_result res = { .exit_code = 77 };
	struct err err = ERR_INIT;
	struct until until;
	int64_t ms;
	bool ran = false;

	for (ms = 200; !ran; ms *= 2) {
		assert_true(ms < LONG);
		until = until_in(ms);
		assert_int_equal(run(script, fifo, &until, &res, &err), -1);
		assert_int_equal(err.code, ERR_TIMEOUT);
		assert_string_equal(err.msg, "running sh: timed out");
		assert_int_equal(res.exit_code, 77);
		while (read_fifo() == 1)
			ran = true;
	}
}

static void
kills_what_takes_too_long(void **state)
{
	(void)state;
	check_killed_in_time("exec 9>$1; echo >&9; exec sleep 60");
}

static void
kills_what_ignores_signals(void **state)
{
	(void)state;
	check_killed_in_time(
	    "trap '' TERM INT HUP; exec 9>$1; echo >&9; sleep 60; sleep 60");
}

static void
kills_children_too(void **state)
{
	(void)state;
	check_killed_in_time("exec 9>$1; sleep 60 & (sleep 60; :) & "
	                     "echo >&9; wait");
}

static void
kills_what_closed_its_output(void **state)
{
	(void)state;
	check_killed_in_time("exec 9>$1 >&- 2>&-; echo >&9; sleep 60");
}

static void
kills_what_never_stops_writing(void **state)
{
	(void)state;
	check_killed_in_time("exec 9>$1; echo >&9; exec yes");
}

/* Returns NULL if something went wrong, as asserts belong to the main thread.
 */
static void *
cancel_when_it_runs(void *arg)
{
	struct pollfd fd = { .fd = fifo_fd, .events = POLLIN };
	char c;

	if (poll(&fd, 1, LONG) != 1 || read(fifo_fd, &c, 1) != 1)
		return NULL;
	return write(*(int *)arg, "x", 1) == 1 ? arg : NULL;
}

static void
kills_what_is_cancelled(void **state)
{
	struct proc_result res;
	struct until until = until_in(LONG);
	struct err err = ERR_INIT;
	int cancel[2];
	pthread_t thread;
	void *told;

	(void)state;
	assert_int_equal(fs_pipe(cancel, &err), 0);
	until.cancel_fd = cancel[0];
	assert_int_equal(pthread_create(&thread, NULL, cancel_when_it_runs,
	                     &cancel[1]),
	    0);
	assert_int_equal(run("exec 9>$1; sleep 60 & echo >&9; wait", fifo,
	                     &until, &res, &err),
	    -1);
	assert_int_equal(pthread_join(thread, &told), 0);
	assert_non_null(told);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_string_equal(err.msg, "running sh: cancelled");
	assert_int_equal(read_fifo(), 0);
	close(cancel[0]);
	close(cancel[1]);
}

static void
does_not_start_what_is_over_already(void **state)
{
	struct until until = until_in(0);
	struct proc_result res;
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(run("echo >$1", fifo, &until, &res, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_string_equal(err.msg, "cannot start sh: timed out");
}

/* End what a script left behind, whose number it printed. */
static void
end_leftover(const struct buf *printed)
{
	int64_t pid;

	assert_int_equal(str_to_int(printed->data, 2, INT_MAX, &pid), 0);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	assert_int_equal(read_fifo(), 0);
}

static void
does_not_wait_for_a_child_left_behind(void **state)
{
	struct proc_result res;
	int64_t start = clock_ms();

	(void)state;
	check("exec 9>$1; sleep 60 & echo $! >&2; echo done; exit 5", fifo,
	    &res);
	assert_true(clock_ms() - start < LONG / 2);
	assert_int_equal(res.exit_code, 5);
	assert_string_equal(res.out.data, "done\n");
	end_leftover(&res.err);
	proc_result_free(&res);
}

static void
does_not_wait_for_one_in_another_session(void **state)
{
	const char *argv[] = { "setsid", "true", NULL };
	struct proc_request req = { .argv = argv };
	struct until until = until_in(LONG);
	struct proc_result res;
	struct err err = ERR_INIT;
	int64_t start = clock_ms();

	(void)state;
	if (proc_run(&req, &res, &until, &err) == -1)
		skip(); /* macOS has no such program */
	proc_result_free(&res);
	check("exec 9>$1; setsid sleep 60 & echo $! >&2; echo done", fifo,
	    &res);
	assert_true(clock_ms() - start < LONG / 2);
	assert_int_equal(res.exit_code, 0);
	assert_string_equal(res.out.data, "done\n");
	end_leftover(&res.err);
	proc_result_free(&res);
}

static void
does_not_wait_for_one_that_never_stops_writing(void **state)
{
	struct proc_result res;

	(void)state;
	/* It is gone as soon as its pipe is. */
	check("exec 9>$1; yes & exit 6", fifo, &res);
	assert_int_equal(res.exit_code, 6);
	assert_int_equal(read_fifo(), 0);
	proc_result_free(&res);
}

static void
waits_for_a_program_that_closed_its_output(void **state)
{
	struct proc_result res;

	(void)state;
	check("echo x; exec >&- 2>&-; sleep 0.2; exit 8", NULL, &res);
	assert_int_equal(res.exit_code, 8);
	assert_string_equal(res.out.data, "x\n");
	proc_result_free(&res);
}

static int
open_descriptors(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

static void
leaves_no_descriptors_and_no_children(void **state)
{
	struct until soon;
	struct proc_result res;
	struct err err = ERR_INIT;
	int before = open_descriptors();

	(void)state;
	check("echo x", NULL, &res);
	proc_result_free(&res);
	run_with_unread_input("exit 0", 0);
	check_cannot_start("no-such-program", ERR_NOT_FOUND,
	    "cannot start no-such-program: No such file or directory");
	soon = until_in(10);
	assert_int_equal(run("exec sleep 60", NULL, &soon, &res, &err), -1);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

enum { THREADS = 4, RUNS = 25 };

/* Returns its argument if something went wrong. */
static void *
run_many(void *arg)
{
	const char *argv[] = { "cat", NULL };
	struct proc_request req = { .argv = argv,
		.input = arg,
		.input_len = strlen(arg),
		.max_output = 1000 };
	struct proc_result res;
	struct err err = ERR_INIT;
	bool good;
	int i;

	for (i = 0; i < RUNS; i++) {
		struct until until = until_in(LONG);

		if (proc_run(&req, &res, &until, &err) == -1)
			return arg;
		good = res.exit_code == 0 && strcmp(res.out.data, arg) == 0;
		proc_result_free(&res);
		if (!good)
			return arg;
	}
	return NULL;
}

/* If a program inherited the pipes of another thread's, cat would not end. */
static void
runs_side_by_side_in_threads(void **state)
{
	static char inputs[THREADS][8] = { "one", "two", "three", "four" };
	pthread_t threads[THREADS];
	void *wrong;
	int i;

	(void)state;
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, run_many,
		                     inputs[i]),
		    0);
	}
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &wrong), 0);
		assert_null(wrong);
	}
}

int
main(void)
{
#define WITH_FIFO(test) \
	cmocka_unit_test_setup_teardown(test, make_fifo, remove_fifo)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_output_and_exit_code),
		cmocka_unit_test(tells_the_largest_exit_code),
		cmocka_unit_test(tells_the_signal),
		cmocka_unit_test(keeps_nul_bytes),
		cmocka_unit_test(gives_arguments_as_they_are),
		cmocka_unit_test(gives_our_environment_or_another),
		cmocka_unit_test(says_what_it_cannot_start),
		cmocka_unit_test(gives_empty_input_if_there_is_none),
		cmocka_unit_test(gives_input_larger_than_pipes),
		cmocka_unit_test(does_not_mind_input_that_nobody_reads),
		cmocka_unit_test(leaves_a_pending_sigpipe_pending),
		cmocka_unit_test(drops_what_exceeds_the_limit),
		cmocka_unit_test(takes_all_that_was_written_before_the_end),
		cmocka_unit_test(takes_both_streams_at_once),
		cmocka_unit_test(resets_signals_for_the_program),
		cmocka_unit_test(gives_the_program_a_group_of_its_own),
		WITH_FIFO(kills_what_takes_too_long),
		WITH_FIFO(kills_what_ignores_signals),
		WITH_FIFO(kills_children_too),
		WITH_FIFO(kills_what_closed_its_output),
		WITH_FIFO(kills_what_never_stops_writing),
		WITH_FIFO(kills_what_is_cancelled),
		WITH_FIFO(does_not_start_what_is_over_already),
		WITH_FIFO(does_not_wait_for_a_child_left_behind),
		WITH_FIFO(does_not_wait_for_one_in_another_session),
		WITH_FIFO(does_not_wait_for_one_that_never_stops_writing),
		cmocka_unit_test(waits_for_a_program_that_closed_its_output),
		cmocka_unit_test(leaves_no_descriptors_and_no_children),
		cmocka_unit_test(runs_side_by_side_in_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
