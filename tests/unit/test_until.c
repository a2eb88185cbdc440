#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/until.h"
#include "test.h"

#define LONG 60000 /* ms; a test that waits this long has failed */

struct fixture {
	int cancel[2];
	int data[2];
	struct until until;
};

static int
open_pipes(void **state)
{
	static struct fixture f;
	struct err err = ERR_INIT;

	assert_int_equal(fs_pipe(f.cancel, &err), 0);
	assert_int_equal(fs_pipe(f.data, &err), 0);
	f.until = until_in(LONG);
	f.until.cancel_fd = f.cancel[0];
	*state = &f;
	return 0;
}

static int
close_pipes(void **state)
{
	struct fixture *f = *state;
	int i;

	for (i = 0; i < 2; i++) {
		if (f->cancel[i] != -1)
			close(f->cancel[i]);
		close(f->data[i]);
	}
	return 0;
}

static void
put_byte(int fd)
{
	assert_int_equal(write(fd, "x", 1), 1);
}

static void
has_a_clock_that_goes_forward(void **state)
{
	int64_t last = clock_ms();
	int i;

	(void)state;
	for (i = 0; i < 10000; i++) {
		int64_t now = clock_ms();

		assert_true(now >= last);
		last = now;
	}
}

static void
never_ends(void **state)
{
	struct until u = until_never();
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(until_left(&u), -1);
	assert_int_equal(until_check(&u, &err), 0);
	assert_int_equal(err.code, ERR_NONE);
}

static void
counts_down(void **state)
{
	struct until u = until_in(LONG);
	int left = until_left(&u);

	(void)state;
	assert_true(left > LONG - 30000 && left <= LONG);
}

static void
has_nothing_left_when_it_is_over(void **state)
{
	struct until u = until_in(0);
	struct until past = until_in(-5);
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(until_left(&u), 0);
	assert_int_equal(until_left(&past), 0);
	assert_int_equal(until_check(&u, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_string_equal(err.msg, "timed out");
}

static void
does_not_overflow(void **state)
{
	struct until u = until_in(INT64_MAX);

	(void)state;
	assert_int_equal(until_left(&u), -1);
	u = until_in(INT64_MAX - 1);
	assert_int_equal(until_left(&u), -1);
	u = until_in((int64_t)INT_MAX * 1000);
	assert_int_equal(until_left(&u), INT_MAX);
	u = until_in(INT64_MIN);
	assert_int_equal(until_left(&u), 0);
	u.deadline = INT64_MIN;
	assert_int_equal(until_left(&u), 0);
}

static void
only_gets_shorter_within_another(void **state)
{
	struct until outer = until_in(LONG);
	struct until inner;

	(void)state;
	outer.cancel_fd = 77;
	inner = until_within(&outer, 1000);
	assert_true(until_left(&inner) <= 1000);
	assert_int_equal(inner.cancel_fd, 77);
	inner = until_within(&outer, 10 * LONG);
	assert_true(inner.deadline == outer.deadline);
	inner = until_within(&outer, INT64_MAX);
	assert_true(inner.deadline == outer.deadline);
	inner = until_within(&outer, -1);
	assert_int_equal(until_left(&inner), 0);
}

static void
notices_that_it_was_cancelled(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	assert_int_equal(until_check(&f->until, &err), 0);
	put_byte(f->cancel[1]);
	assert_int_equal(until_check(&f->until, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_string_equal(err.msg, "cancelled");
	/* It stays so: the byte is not read. */
	assert_int_equal(until_check(&f->until, &err), -1);
}

static void
takes_a_closed_pipe_as_cancelled(void **state)
{
	struct fixture *f = *state;
	struct err err = ERR_INIT;

	close(f->cancel[1]);
	f->cancel[1] = -1;
	assert_int_equal(until_check(&f->until, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_int_equal(until_poll(&f->until, NULL, 0, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
}

static void
says_cancelled_if_it_is_both(void **state)
{
	struct fixture *f = *state;
	struct until u = until_within(&f->until, 0);
	struct err err = ERR_INIT;

	put_byte(f->cancel[1]);
	assert_int_equal(until_check(&u, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_int_equal(until_poll(&u, NULL, 0, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
}

static void
polls_until_something_is_ready(void **state)
{
	struct fixture *f = *state;
	struct pollfd fds[] = {
		{ .fd = f->data[0], .events = POLLIN },
		{ .fd = -1, .events = POLLIN, .revents = POLLERR },
		{ .fd = f->data[1], .events = POLLOUT },
	};
	struct err err = ERR_INIT;

	assert_int_equal(until_poll(&f->until, fds, 3, &err), 1);
	assert_int_equal(fds[0].revents, 0);
	assert_int_equal(fds[1].revents, 0);
	assert_int_equal(fds[2].revents, POLLOUT);
	put_byte(f->data[1]);
	assert_int_equal(until_poll(&f->until, fds, 3, &err), 2);
	assert_int_equal(fds[0].revents, POLLIN);
	assert_int_equal(err.code, ERR_NONE);
}

static void
polls_many(void **state)
{
	struct fixture *f = *state;
	struct pollfd fds[100];
	struct err err = ERR_INIT;
	size_t n;

	put_byte(f->data[1]);
	for (n = 1; n <= 100; n++) {
		size_t i;

		for (i = 0; i < n; i++) {
			fds[i] = (struct pollfd){ .fd = f->data[0],
				.events = POLLIN };
		}
		assert_int_equal(until_poll(&f->until, fds, n, &err), n);
		assert_int_equal(fds[n - 1].revents, POLLIN);
	}
}

static void
stops_polling_at_the_deadline(void **state)
{
	struct fixture *f = *state;
	struct pollfd fd = { .fd = f->data[0], .events = POLLIN };
	struct until u = until_within(&f->until, 20);
	struct err err = ERR_INIT;
	int64_t start = clock_ms();

	assert_int_equal(until_poll(&u, &fd, 1, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(clock_ms() - start >= 20);
	u = until_within(&f->until, 5);
	assert_int_equal(until_poll(&u, NULL, 0, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
}

static void
ends_a_loop_that_always_has_something_to_read(void **state)
{
	struct fixture *f = *state;
	struct pollfd fd = { .fd = f->data[0], .events = POLLIN };
	struct until u = until_within(&f->until, 20);
	struct err err = ERR_INIT;
	int rounds = 0;

	put_byte(f->data[1]);
	while (until_poll(&u, &fd, 1, &err) == 1)
		rounds++;
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(rounds > 0);
}

static void
lets_cancelling_win_over_readiness(void **state)
{
	struct fixture *f = *state;
	struct pollfd fd = { .fd = f->data[0], .events = POLLIN };
	struct err err = ERR_INIT;

	put_byte(f->data[1]);
	put_byte(f->cancel[1]);
	assert_int_equal(until_poll(&f->until, &fd, 1, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
}

static void *
cancel(void *arg)
{
	put_byte(*(int *)arg);
	return NULL;
}

static void
wakes_up_when_another_thread_cancels(void **state)
{
	struct fixture *f = *state;
	struct pollfd fd = { .fd = f->data[0], .events = POLLIN };
	struct err err = ERR_INIT;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, cancel, &f->cancel[1]),
	    0);
	assert_int_equal(until_poll(&f->until, &fd, 1, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

int
main(void)
{
#define WITH_PIPES(test) \
	cmocka_unit_test_setup_teardown(test, open_pipes, close_pipes)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_a_clock_that_goes_forward),
		cmocka_unit_test(never_ends),
		cmocka_unit_test(counts_down),
		cmocka_unit_test(has_nothing_left_when_it_is_over),
		cmocka_unit_test(does_not_overflow),
		cmocka_unit_test(only_gets_shorter_within_another),
		WITH_PIPES(notices_that_it_was_cancelled),
		WITH_PIPES(takes_a_closed_pipe_as_cancelled),
		WITH_PIPES(says_cancelled_if_it_is_both),
		WITH_PIPES(polls_until_something_is_ready),
		WITH_PIPES(polls_many),
		WITH_PIPES(stops_polling_at_the_deadline),
		WITH_PIPES(ends_a_loop_that_always_has_something_to_read),
		WITH_PIPES(lets_cancelling_win_over_readiness),
		WITH_PIPES(wakes_up_when_another_thread_cancels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
