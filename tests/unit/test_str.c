#include <limits.h>
#include <string.h>

#include "base/str.h"
#include "test.h"

static void
reads_whole_integers(void **state)
{
	int64_t n = 0;

	(void)state;
	assert_int_equal(str_to_int("42", 0, 100, &n), 0);
	assert_int_equal(n, 42);
	assert_int_equal(str_to_int(" -7\n", -10, 10, &n), 0);
	assert_int_equal(n, -7);
	assert_int_equal(str_to_int("+7", -10, 10, &n), 0);
	assert_int_equal(n, 7);
	assert_int_equal(str_to_int("010", 0, 100, &n), 0);
	assert_int_equal(n, 10);
}

static void
reads_the_largest_and_smallest(void **state)
{
	int64_t n = 0;

	(void)state;
	assert_int_equal(str_to_int("9223372036854775807", INT64_MIN, INT64_MAX,
	                     &n),
	    0);
	assert_true(n == INT64_MAX);
	assert_int_equal(str_to_int("-9223372036854775808", INT64_MIN,
	                     INT64_MAX, &n),
	    0);
	assert_true(n == INT64_MIN);
}

static void
refuses_integers_out_of_range(void **state)
{
	int64_t n = 5;

	(void)state;
	assert_int_equal(str_to_int("1", 1, 3, &n), 0);
	assert_int_equal(str_to_int("3", 1, 3, &n), 0);
	n = 5;
	assert_int_equal(str_to_int("0", 1, 3, &n), -1);
	assert_int_equal(str_to_int("4", 1, 3, &n), -1);
	assert_int_equal(str_to_int("9223372036854775808", INT64_MIN, INT64_MAX,
	                     &n),
	    -1);
	assert_int_equal(str_to_int("-9223372036854775809", INT64_MIN,
	                     INT64_MAX, &n),
	    -1);
	assert_int_equal(n, 5);
}

static void
refuses_what_is_no_integer(void **state)
{
	static const char *const bad[] = { "", " ", "x", "1x", "x1", "1 2",
		"1.0", "0x10", "1e3", "--1", "- 1", "1,000", "1\xc2\xa0" };
	int64_t n = 5;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(str_to_int(bad[i], INT64_MIN, INT64_MAX, &n),
		    -1);
	assert_int_equal(str_to_int(NULL, INT64_MIN, INT64_MAX, &n), -1);
	assert_int_equal(n, 5);
}

static void
reads_numbers(void **state)
{
	double x = 0;

	(void)state;
	assert_int_equal(str_to_num("1.5", &x), 0);
	assert_true(x == 1.5);
	assert_int_equal(str_to_num(" -.25e+2 ", &x), 0);
	assert_true(x == -25.0);
	assert_int_equal(str_to_num("7", &x), 0);
	assert_true(x == 7.0);
	assert_int_equal(str_to_num("1e-400", &x), 0);
	assert_true(x == 0.0);
}

static void
refuses_what_is_no_finite_decimal_number(void **state)
{
	static const char *const bad[] = { "", " ", ".", "e", "-", "1x", "1 2",
		"1e", "1e999", "-1e999", "inf", "nan", "infinity", "0x10",
		"1.5.2", "1,5" };
	double x = 5;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(str_to_num(bad[i], &x), -1);
	assert_int_equal(str_to_num(NULL, &x), -1);
	assert_true(x == 5);
}

static void
reads_yes_and_no_in_any_case(void **state)
{
	static const char *const yes[] = { "true", "True", "YES", "on", "1",
		"y", "T" };
	static const char *const no[] = { "false", "False", "NO", "off", "0",
		"n", "F" };
	size_t i;
	bool b;

	(void)state;
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		b = false;
		assert_int_equal(str_to_bool(yes[i], &b), 0);
		assert_true(b);
		assert_int_equal(str_to_bool(no[i], &b), 0);
		assert_false(b);
	}
}

static void
refuses_what_is_neither_yes_nor_no(void **state)
{
	static const char *const bad[] = { "", "2", "tru", "truee", "none",
		"-1", "yesno" };
	bool b = true;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(str_to_bool(bad[i], &b), -1);
	assert_int_equal(str_to_bool(NULL, &b), -1);
	assert_true(b);
}

static void
compares_starts_and_ends(void **state)
{
	(void)state;
	assert_true(str_starts("abc", "ab"));
	assert_true(str_starts("abc", "abc"));
	assert_true(str_starts("abc", ""));
	assert_true(str_starts("", ""));
	assert_false(str_starts("ab", "abc"));
	assert_false(str_starts("xab", "ab"));
	assert_true(str_ends("abc", "bc"));
	assert_true(str_ends("abc", "abc"));
	assert_true(str_ends("abc", ""));
	assert_false(str_ends("bc", "abc"));
	assert_false(str_ends("abc", "ab"));
	assert_false(str_ends("", "a"));
}

static void
compares_without_ascii_case(void **state)
{
	(void)state;
	assert_true(str_same("", ""));
	assert_true(str_same("Warn", "wARN"));
	assert_false(str_same("warn", "war"));
	assert_false(str_same("war", "warn"));
	assert_false(str_same("@", "`"));
	assert_false(str_same("[", "{"));
	assert_false(str_same("\xc3\x84", "\xc3\xa4"));
}

static void
knows_blank_strings(void **state)
{
	(void)state;
	assert_true(str_blank(NULL));
	assert_true(str_blank(""));
	assert_true(str_blank(" \t\r\n\v\f"));
	assert_false(str_blank(" x "));
}

static void
counts_changes_between_names(void **state)
{
	(void)state;
	assert_int_equal(str_distance("", "", 5), 0);
	assert_int_equal(str_distance("abc", "abc", 5), 0);
	assert_int_equal(str_distance("abc", "", 5), 3);
	assert_int_equal(str_distance("", "abc", 5), 3);
	assert_int_equal(str_distance("abc", "abd", 5), 1);
	assert_int_equal(str_distance("abc", "ab", 5), 1);
	assert_int_equal(str_distance("abc", "xabc", 5), 1);
	assert_int_equal(str_distance("abc", "acb", 5), 1);
	assert_int_equal(str_distance("abcd", "badc", 5), 2);
	assert_int_equal(str_distance("abc", "cab", 5), 2);
	assert_int_equal(str_distance("abc", "cba", 5), 2);
	assert_int_equal(str_distance("kitten", "sitting", 5), 3);
	assert_int_equal(str_distance("saturday", "sunday", 5), 3);
}

static void
stops_counting_beyond_the_limit(void **state)
{
	(void)state;
	assert_int_equal(str_distance("kitten", "sitting", 3), 3);
	assert_int_equal(str_distance("kitten", "sitting", 2), 3);
	assert_int_equal(str_distance("abc", "abd", 0), 1);
	assert_int_equal(str_distance("abcdef", "ab", 2), 3);
	assert_int_equal(str_distance("ab", "abcdef", 4), 4);
	assert_int_equal(str_distance("abc", "abc", 0), 0);
	assert_int_equal(str_distance("aaaaaaaa", "bbbbbbbb", 2), 3);
	assert_int_equal(str_distance("ab", "cd", UINT_MAX), 2);
}

static void
does_not_compare_very_long_names(void **state)
{
	char name[66];

	(void)state;
	memset(name, 'x', sizeof(name));
	name[64] = '\0';
	assert_int_equal(str_distance(name, name, 3), 0);
	assert_int_equal(str_distance(name, "", UINT_MAX), 64);
	name[64] = 'x';
	name[65] = '\0';
	assert_int_equal(str_distance(name, name, 3), 4);
	assert_int_equal(str_distance("x", name, 100), 101);
	assert_true(str_distance(name, "x", UINT_MAX) == UINT_MAX);
}

static void
says_one_of_one(void **state)
{
	(void)state;
	assert_string_equal(str_plural(1, "job", "jobs"), "job");
	assert_string_equal(str_plural(0, "job", "jobs"), "jobs");
	assert_string_equal(str_plural(2, "job", "jobs"), "jobs");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_whole_integers),
		cmocka_unit_test(reads_the_largest_and_smallest),
		cmocka_unit_test(refuses_integers_out_of_range),
		cmocka_unit_test(refuses_what_is_no_integer),
		cmocka_unit_test(reads_numbers),
		cmocka_unit_test(refuses_what_is_no_finite_decimal_number),
		cmocka_unit_test(reads_yes_and_no_in_any_case),
		cmocka_unit_test(refuses_what_is_neither_yes_nor_no),
		cmocka_unit_test(compares_starts_and_ends),
		cmocka_unit_test(compares_without_ascii_case),
		cmocka_unit_test(knows_blank_strings),
		cmocka_unit_test(says_one_of_one),
		cmocka_unit_test(counts_changes_between_names),
		cmocka_unit_test(stops_counting_beyond_the_limit),
		cmocka_unit_test(does_not_compare_very_long_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
