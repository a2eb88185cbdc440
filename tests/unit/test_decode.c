#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "help.h"

static struct err err;

static json_t *
accepted(const char *text, size_t len)
{
	json_t *v;

	err = (struct err)ERR_INIT;
	v = decode_json(text, len, &err);
	if (v == NULL)
		fail_msg("%.100s: %s", text, err.msg);
	assert_int_equal(err.code, ERR_NONE);
	return v;
}

static const char *
refused(const char *text, size_t len, enum err_code code)
{
	json_t *v = decode_json(text, len, &err);

	if (v != NULL)
		fail_msg("accepted: %.100s", text);
	assert_int_equal(err.code, code);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	return err.msg;
}

static void
a_nul_is_no_space(void **state)
{
	static const char text[] = "{\"x\": 0\0, \"y\": 1}";

	(void)state;
	says(refused(text, sizeof(text) - 1, ERR_INVALID), "NUL");
	says(refused("1\0", 2, ERR_INVALID), "NUL");
	says(refused("[\"a\0b\"]", 7, ERR_INVALID), "NUL");
	json_decref(accepted("[\"a\\u0000b\"]", 12));
}

static void
any_value_may_stand_at_the_top(void **state)
{
	static const char *const texts[] = { "{}", "[]", "null", "true", "17",
		"-0.5e3", "\"s\"", " \t\r\n[1]\n " };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		json_decref(accepted(texts[i], strlen(texts[i])));
}

static void
exactly_the_given_bytes_are_read(void **state)
{
	char *exact = xstrndup("[1,2]", 5);
	json_t *v;

	(void)state;
	v = accepted("[1]]]]garbage", 3);
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
	v = accepted(exact, 5);
	assert_int_equal(json_array_size(v), 2);
	json_decref(v);
	refused(exact, 4, ERR_INVALID);
	free(exact);
}

static void
what_is_not_json_is_refused_with_its_place(void **state)
{
	(void)state;
	says(refused(BYTES(""), ERR_INVALID), "not valid JSON");
	refused(BYTES("  "), ERR_INVALID);
	refused(BYTES("{"), ERR_INVALID);
	refused(BYTES("[1,]"), ERR_INVALID);
	refused(BYTES("{} {}"), ERR_INVALID);
	refused(BYTES("'a'"), ERR_INVALID);
	refused(BYTES("[NaN]"), ERR_INVALID);
	refused(BYTES("[01]"), ERR_INVALID);
	refused(BYTES("[\"\t\"]"), ERR_INVALID);
	refused(BYTES("[\"\xff\"]"), ERR_INVALID);
	refused(BYTES("[1e999]"), ERR_INVALID);
	refused(BYTES("[99999999999999999999]"), ERR_INVALID);
	says(refused(BYTES("[1,\n 2,\n x]"), ERR_INVALID), "line 3, column 2");
}

static void
a_key_may_not_stand_twice(void **state)
{
	(void)state;
	says(refused(BYTES("{\"a\":1,\"a\":2}"), ERR_INVALID), "duplicate");
	json_decref(accepted(BYTES("{\"a\":{\"a\":1},\"A\":2}")));
}

/* The text may be a list of sandboxes with their passwords. */
static void
an_error_repeats_nothing_of_the_text(void **state)
{
	static const char *const texts[] = {
		"{\"password\": hunter2}",
		"{\"password\": \"hunter2\" \"x\"}",
		"{\"password\": \"hunter2",
		"{\"password\": \"hunter2\n\"}",
		"{\"hunter2\": 1, \"hunter2\": 2}",
		"{\"password\": \"x\\uhunter2\"}",
		"{\"password\": \"x\\hunter2\"}",
		"{\"password\": \"\\uD800\\uhunter2\"}",
		"{\"hunter2\\u0000\": 1}",
		"[hunter2",
		"hunter2",
		"[\"a\"] hunter2",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		refused(texts[i], strlen(texts[i]), ERR_INVALID);
		says_not(err.msg, "hunt");
		says(err.msg, "line 1");
	}
}

static void
an_error_is_text_even_if_its_place_is_inside_a_character(void **state)
{
	(void)state;
	refused(BYTES("[\"\\ua\xc3\xa4\xc3\xb6\xc3\xbc\"]"), ERR_INVALID);
	refused(BYTES("[\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4]"), ERR_INVALID);
	refused(BYTES("[\"\xe2\x82\"]"), ERR_INVALID);
}

/* "n" times "unit", then "rest", decoded. */
static json_t *
decode_many(const char *first, const char *unit, size_t n, const char *rest)
{
	struct buf b;
	json_t *v;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, first);
	while (n-- > 0)
		buf_adds(&b, unit);
	buf_adds(&b, rest);
	err = (struct err)ERR_INIT;
	v = decode_json(b.data, b.len, &err);
	buf_free(&b);
	return v;
}

static void
nesting_has_a_limit(void **state)
{
	char *close = repeated("]", DECODE_DEPTH_MAX);
	json_t *v = decode_many("", "[", DECODE_DEPTH_MAX, close);

	(void)state;
	assert_non_null(v);
	json_decref(v);
	assert_null(decode_many("[", "[", DECODE_DEPTH_MAX, close));
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(decode_many("", "{\"a\":", DECODE_DEPTH_MAX + 1, "1"));
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(decode_many("", "[", 10000000, ""));
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "100 levels");
	free(close);
}

static void
depth_counts_what_is_open_not_what_there_is(void **state)
{
	json_t *v = decode_many("[", "[[]],", 5000, "0]");

	(void)state;
	assert_non_null(v);
	json_decref(v);
}

static void
the_number_of_values_has_a_limit(void **state)
{
	/* The outer list counts as one. */
	json_t *v = decode_many("[", "1,", DECODE_VALUES_MAX - 1, "1]");

	(void)state;
	assert_non_null(v);
	assert_int_equal(json_array_size(v), DECODE_VALUES_MAX);
	json_decref(v);
	assert_null(decode_many("[", "1,", DECODE_VALUES_MAX, "1]"));
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(decode_many("[", "[],", DECODE_VALUES_MAX / 2, "1]"));
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "100000 values");
}

static void
what_stands_in_strings_is_not_counted(void **state)
{
	char *brackets = repeated("[{,", 60000);
	json_t *v = decode_many("[\"", brackets, 1, "\"]");

	(void)state;
	assert_non_null(v);
	json_decref(v);
	v = decode_many("[\"\\\"", brackets, 1, "\\\\\"]");
	assert_non_null(v);
	json_decref(v);
	/* The string ends at the quote behind the two backslashes. */
	assert_null(decode_many("[\"\\\\\",", "[", 200, ""));
	assert_int_equal(err.code, ERR_LIMIT);
	free(brackets);
}

static void
closing_brackets_before_any_other_are_no_credit(void **state)
{
	char *close = repeated("]", 500);

	(void)state;
	assert_null(decode_many(close, "[", DECODE_DEPTH_MAX + 1, ""));
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(decode_many(close, "[", 1, ""));
	assert_int_equal(err.code, ERR_INVALID);
	free(close);
}

static void
strings_may_hold_nul_and_whoever_wants_text_asks(void **state)
{
	json_t *v = accepted(BYTES("[\"a\\u0000b\", \"\", \"abc\", 5, null]"));

	(void)state;
	assert_int_equal(json_string_length(json_array_get(v, 0)), 3);
	assert_null(decode_text(json_array_get(v, 0)));
	assert_string_equal(decode_text(json_array_get(v, 1)), "");
	assert_string_equal(decode_text(json_array_get(v, 2)), "abc");
	assert_null(decode_text(json_array_get(v, 3)));
	assert_null(decode_text(json_array_get(v, 4)));
	assert_null(decode_text(json_array_get(v, 5)));
	assert_null(decode_text(NULL));
	json_decref(v);
}

static void
reals_are_dumped_as_people_write_them(void **state)
{
	json_t *v = accepted(BYTES("[0.1,1.87]"));
	char *text = json_dumps(v, JSON_COMPACT | JSON_SHORT_REALS);

	(void)state;
	assert_string_equal(text, "[0.1,1.87]");
	free(text);
	json_decref(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_nul_is_no_space),
		cmocka_unit_test(any_value_may_stand_at_the_top),
		cmocka_unit_test(exactly_the_given_bytes_are_read),
		cmocka_unit_test(what_is_not_json_is_refused_with_its_place),
		cmocka_unit_test(a_key_may_not_stand_twice),
		cmocka_unit_test(an_error_repeats_nothing_of_the_text),
		cmocka_unit_test(
		    an_error_is_text_even_if_its_place_is_inside_a_character),
		cmocka_unit_test(nesting_has_a_limit),
		cmocka_unit_test(depth_counts_what_is_open_not_what_there_is),
		cmocka_unit_test(the_number_of_values_has_a_limit),
		cmocka_unit_test(what_stands_in_strings_is_not_counted),
		cmocka_unit_test(
		    closing_brackets_before_any_other_are_no_credit),
		cmocka_unit_test(
		    strings_may_hold_nul_and_whoever_wants_text_asks),
		cmocka_unit_test(reals_are_dumped_as_people_write_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
