#include <string.h>

#include "help.h"
#include "ssh/shell.h"

#define MARK "0011223344556677.12."

static struct buf seen;
static long pid, waiter;
static int64_t when;

static int
end(void **state)
{
	(void)state;
	buf_free(&seen);
	return 0;
}

static int
parse(const char *text)
{
	buf_free(&seen);
	buf_init(&seen, SIZE_MAX);
	buf_adds(&seen, text);
	pid = waiter = 0;
	when = 0;
	return shell_parse_ready(&seen, MARK, &pid, &waiter, &when);
}

static void
a_ready_line_tells_processes_and_time(void **state)
{
	(void)state;
	assert_int_equal(parse(MARK " 4711 4710 1760000000\n"), 0);
	assert_int_equal(pid, 4711);
	assert_int_equal(waiter, 4710);
	assert_int_equal(when, 1760000000);
	assert_int_equal(seen.len, 0);
}

static void
noise_before_it_goes_and_what_follows_stays(void **state)
{
	(void)state;
	assert_int_equal(parse("Welcome!\n12 13 14\n" MARK
	                       " 4711 4710 1760000000\noutput\nmore"),
	    0);
	assert_int_equal(pid, 4711);
	assert_string_equal(seen.data, "output\nmore");
	/* Noise without an end of its line. */
	assert_int_equal(parse("prompt$ " MARK " 5 6 7\n"), 0);
	assert_int_equal(pid, 5);
	assert_int_equal(when, 7);
}

static void
noise_may_be_any_bytes(void **state)
{
	static const char text[] = "\0\xff\n\0" MARK " 5 6 7\nx";

	(void)state;
	buf_free(&seen);
	buf_init(&seen, SIZE_MAX);
	buf_add(&seen, text, sizeof(text) - 1);
	assert_int_equal(shell_parse_ready(&seen, MARK, &pid, &waiter, &when),
	    0);
	assert_int_equal(pid, 5);
	assert_string_equal(seen.data, "x");
}

static void
a_line_that_is_not_whole_is_waited_for(void **state)
{
	static const char line[] = "hi\n" MARK " 4711 4710 1760000000\n";
	size_t len;

	(void)state;
	buf_init(&seen, SIZE_MAX);
	assert_int_equal(shell_parse_ready(&seen, MARK, &pid, &waiter, &when),
	    1);
	for (len = 0; len < strlen(line) - 1; len++) {
		buf_addc(&seen, line[len]);
		assert_int_equal(shell_parse_ready(&seen, MARK, &pid, &waiter,
		                     &when),
		    1);
		assert_int_equal(seen.len, len + 1);
	}
	buf_addc(&seen, '\n');
	assert_int_equal(shell_parse_ready(&seen, MARK, &pid, &waiter, &when),
	    0);
	assert_int_equal(when, 1760000000);
}

static void
lines_of_others_are_noise(void **state)
{
	(void)state;
	assert_int_equal(parse("0011223344556677.1. 5 6 7\n"), 1);
	assert_int_equal(parse("0011223344556677.1. 5 6 7\n" MARK " 8 9 10\n"),
	    0);
	assert_int_equal(pid, 8);
}

/* A mark that is the beginning of another one is not that one. */
static void
a_longer_mark_is_another_mark(void **state)
{
	(void)state;
	assert_int_not_equal(parse(MARK "3 5 6 7\n"), 0);
	assert_int_not_equal(parse(MARK "5 6 7\n"), 0);
}

static void
nonsense_behind_the_mark_is_refused(void **state)
{
	static const char *const wrong[] = { MARK "\n", MARK " \n",
		MARK " x y z\n", MARK " 5\n", MARK " 5 6\n", MARK " 5 x 7\n",
		MARK " 0 6 7\n", MARK " 5 0 7\n", MARK " -5 6 7\n",
		MARK " 1 6 7\n", MARK " 5 1 7\n", MARK " 5 6 x\n",
		MARK " 5 6 -1\n", MARK " 5 6 9223372036854775807\n" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (parse(wrong[i]) != -1)
			fail_msg("accepted: %s", wrong[i]);
	}
}

static void
a_line_without_end_is_refused_in_the_end(void **state)
{
	char *much = repeated("123456789 ", 500000);

	(void)state;
	buf_init(&seen, SIZE_MAX);
	buf_adds(&seen, MARK " ");
	buf_adds(&seen, much);
	assert_int_equal(shell_parse_ready(&seen, MARK, &pid, &waiter, &when),
	    -1);
	free(much);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(a_ready_line_tells_processes_and_time),
		TEST(noise_before_it_goes_and_what_follows_stays),
		TEST(noise_may_be_any_bytes),
		TEST(a_line_that_is_not_whole_is_waited_for),
		TEST(lines_of_others_are_noise),
		TEST(a_longer_mark_is_another_mark),
		TEST(nonsense_behind_the_mark_is_refused),
		TEST(a_line_without_end_is_refused_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
