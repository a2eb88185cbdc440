/* What the lease says, and what is made of it; the far side is two pipes. */
#include <fcntl.h>
#include <pthread.h>

#include "base/until.h"
#include "help.h"
#include "ssh/lease.h"
#include "ssh/link_inside.h"

#define SOON_MS 50     /* for what does not come */
#define LATE_MS 300000 /* for what does */

static struct lease *lease;
static int hears, speaks; /* the far side's ends */

static int
begin(void **state)
{
	int in[2], out[2], none[2];

	(void)state;
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	assert_int_equal(pipe(none), 0);
	close(none[1]);
	lease = xcalloc(1, sizeof(*lease));
	lease->ch.mux.fd = -1;
	lease->ch.in = in[1];
	lease->ch.out = out[0];
	lease->ch.err = none[0];
	assert_int_equal(fcntl(in[1], F_SETFL, O_NONBLOCK), 0);
	hears = in[0];
	speaks = out[1];
	buf_init(&lease->seen, (size_t)4 << 20);
	pthread_mutex_init(&lease->lock, NULL);
	pthread_mutex_init(&lease->saying, NULL);
	lease->standing = true;
	lease->users = 1;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	lease_give(lease);
	close(hears);
	close(speaks);
	return 0;
}

static void
answer(const char *text)
{
	assert_int_equal(write(speaks, text, strlen(text)), strlen(text));
}

static enum err_code
ping(int ms)
{
	struct until until = until_in(ms);
	struct err err = { 0 };

	return lease_ping(lease, &until, &err) == 0 ? ERR_NONE : err.code;
}

static void
an_answer_that_comes_too_late_is_nobodys(void **state)
{
	(void)state;
	assert_int_equal(ping(SOON_MS), ERR_TIMEOUT); /* 1 */
	answer("p 1 .\n");
	assert_int_equal(ping(SOON_MS), ERR_TIMEOUT); /* 2 */
	answer("p 2 .\np 3 .\n");
	assert_int_equal(ping(LATE_MS), ERR_NONE); /* 3 */
	answer("p 40 .\nx 4 p 4 .\np 4 .\n");
	assert_int_equal(ping(LATE_MS), ERR_NONE);
	assert_string_equal(lease->seen.data,
	    "p 1 .\np 2 .\np 40 .\nx 4 p 4 .\n");
}

static void *
speak_much(void *text)
{
	answer(text);
	return NULL;
}

/* Only so much of them is kept, and the cut is within a line. */
static void
the_rest_of_a_stale_answer_is_none(void **state)
{
	char *text = repeated("p 1 ", 40000);
	struct until until = until_in(LATE_MS);
	struct buf left;
	struct lease_kill kill = { .mark = "m.1." };
	pthread_t thread;
	struct err err;

	(void)state;
	memcpy(text, "x 9 ", 4);
	memcpy(text + strlen(text) - 9, "\nk 1 ok \n", 9);
	assert_int_equal(pthread_create(&thread, NULL, speak_much, text), 0);
	buf_init(&left, 64);
	assert_int_equal(lease_end(lease, &kill, &left, &until, &err), 0);
	assert_string_equal(left.data, "ok ");
	pthread_join(thread, NULL);
	assert_false(lease->seen.len > ((size_t)64 << 10) + 4096);
	lease->asked = 0;
	assert_int_equal(ping(SOON_MS), ERR_TIMEOUT);
	buf_free(&left);
	free(text);
}

/* It would be taken for the rest of the one before. */
static void
nothing_is_said_behind_half_a_word(void **state)
{
	char *text = repeated("echo many words\n", 3000);
	struct lease_script script = { .text = text };
	struct until until = until_in(SOON_MS);
	struct buf said;
	struct err err;
	bool sent;
	ssize_t n;

	(void)state;
	buf_init(&said, 64);
	assert_int_equal(lease_run(lease, &script, &said, &sent, &until, &err),
	    -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	/* The pipe has no room for another one. */
	assert_int_equal(lease_run(lease, &script, &said, &sent, &until, &err),
	    -1);
	assert_int_equal(err.code, ERR_IO);
	assert_true(sent);
	n = read(hears, text, strlen(text));
	assert_true(n > 0);
	answer("p 3 .\n");
	assert_int_equal(ping(LATE_MS), ERR_IO);
	buf_free(&said);
	free(text);
}

static int
end_command(int ms, int busy_ms, struct err *err)
{
	struct lease_kill kill = { .mark = "m.1.", .busy_ms = busy_ms };
	struct until until = until_in(ms);
	struct buf left;
	int rc;

	buf_init(&left, 64);
	rc = lease_end(lease, &kill, &left, &until, err);
	buf_free(&left);
	return rc;
}

static void *
end_late(void *nothing)
{
	struct until until = until_in(4L * SOON_MS);
	struct err err;

	until_poll(&until, NULL, 0, &err);
	answer("k 1 \n");
	return nothing;
}

/* The answer to the ping behind it tells that. */
static void
a_kill_that_has_begun_gets_more_time(void **state)
{
	pthread_t thread;
	struct err err;

	(void)state;
	buf_adds(&lease->seen, "p 2 .\n");
	assert_int_equal(pthread_create(&thread, NULL, end_late, NULL), 0);
	assert_int_equal(end_command(SOON_MS, LATE_MS, &err), 0);
	pthread_join(thread, NULL);
	buf_adds(&lease->seen, "p 4 .\n");
	assert_int_equal(end_command(SOON_MS, SOON_MS, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(lease->seen.len, 0);
}

static void
one_of_which_nothing_is_heard_does_not(void **state)
{
	int64_t begun = clock_ms();
	struct err err;

	(void)state;
	assert_int_equal(end_command(SOON_MS, 2 * LATE_MS, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(clock_ms() - begun < LATE_MS);
}

/* After another login the numbers of processes may be another machine's. */
static void
a_command_is_ended_by_the_lease_of_its_own_connection(void **state)
{
	struct sandbox sb = { .name = (char[]){ "box" } };
	struct links *links = links_new(true);
	struct link *link = links_get(links, &sb);
	struct shell shell = { .generation = 0 };
	struct lease_kill kill = { .mark = "m.1.", .waiter = 5, .shell = 6 };
	struct until until = until_in(LATE_MS);
	struct buf left;
	struct err err;
	char some[64];

	(void)state;
	link->lease = lease_take(lease);
	link->generation = 1;
	buf_init(&left, 64);
	assert_int_equal(fcntl(hears, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(link_end(link, &shell, &kill, &left, &until, &err),
	    -1);
	link_release(link, &shell, "m.1.", 5);
	assert_int_equal(read(hears, some, sizeof(some)), -1);
	shell.generation = 1;
	answer("k 1 \n");
	assert_int_equal(link_end(link, &shell, &kill, &left, &until, &err), 0);
	link_release(link, &shell, "m.1.", 5);
	assert_true(read(hears, some, sizeof(some)) > 0);
	buf_free(&left);
	links_free(links);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(an_answer_that_comes_too_late_is_nobodys),
		TEST(the_rest_of_a_stale_answer_is_none),
		TEST(nothing_is_said_behind_half_a_word),
		TEST(a_kill_that_has_begun_gets_more_time),
		TEST(one_of_which_nothing_is_heard_does_not),
		TEST(a_command_is_ended_by_the_lease_of_its_own_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
