#include <stdio.h>
#include <string.h>

#include "ssh/capture.h"
#include "test.h"

static struct trailer
accepted(const char *text)
{
	struct trailer t;

	memset(&t, 0xa5, sizeof(t));
	if (trailer_parse(text, &t) == -1)
		fail_msg("refused: \"%s\"", text);
	return t;
}

static void
refused(const char *text)
{
	struct trailer t;

	if (trailer_parse(text, &t) == 0)
		fail_msg("accepted: \"%s\"", text);
}

static void
a_plain_end_is_a_status(void **state)
{
	struct trailer t;

	(void)state;
	t = accepted(" 0 - ");
	assert_int_equal(t.status, 0);
	assert_string_equal(t.flag, "-");
	assert_int_equal(t.count, 0);
	t = accepted(" 255 -");
	assert_int_equal(t.status, 255);
	assert_int_equal(t.count, 0);
}

static void
a_flag_says_how_it_ended(void **state)
{
	(void)state;
	assert_string_equal(accepted(" 143 sig ").flag, "sig");
	assert_int_equal(accepted(" 143 sig ").status, 143);
	assert_string_equal(accepted(" 1 cwd ").flag, "cwd");
	assert_string_equal(accepted(" 1 stale ").flag, "stale");
}

static void
children_that_are_left_are_listed(void **state)
{
	struct trailer t = accepted(" 0 - 12 3456789 2147483647");

	(void)state;
	assert_int_equal(t.count, 3);
	assert_int_equal(t.pids[0], 12);
	assert_int_equal(t.pids[1], 3456789);
	assert_int_equal(t.pids[2], 2147483647);
	/* As /proc lists them: with a blank at the end. */
	t = accepted(" 0 - 12 13 ");
	assert_int_equal(t.count, 2);
	t = accepted(" 0 -   12   13  ");
	assert_int_equal(t.count, 2);
}

static void
only_the_first_children_are_kept(void **state)
{
	char text[2000] = " 0 -";
	struct trailer t;
	size_t len = strlen(text);
	int i;

	(void)state;
	for (i = 1; i <= 200; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, " %d",
		    1000 + i);
	t = accepted(text);
	assert_int_equal(t.count, 64);
	assert_int_equal(t.pids[0], 1001);
	assert_int_equal(t.pids[63], 1064);
}

static void
anything_else_is_no_trailer(void **state)
{
	static const char *const wrong[] = { "", " ", "  ", "0 - ", " 0", " 0 ",
		"  0 - ", " x - ", " -1 - ", " 256 - ", " 0x1 - ",
		" 99999999999999999999 - ", " 0 toolongflag ", " 0 12345678 ",
		" 0 - x", " 0 - 12 -5", " 0 - 0", " 0 - 2147483648", " 0 - 12x",
		" 0 - 1.5", " 0  12", " 0  ", "\t0 - ", "_0 - " };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		refused(wrong[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_end_is_a_status),
		cmocka_unit_test(a_flag_says_how_it_ended),
		cmocka_unit_test(children_that_are_left_are_listed),
		cmocka_unit_test(only_the_first_children_are_kept),
		cmocka_unit_test(anything_else_is_no_trailer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
