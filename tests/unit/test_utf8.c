#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "test.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

/* A literal as bytes with their length, NULs included. */
#define BYTES(literal) (literal), sizeof(literal) - 1

static void
accepts_well_formed_text(void **state)
{
	(void)state;
	assert_true(utf8_valid("", 0));
	assert_true(utf8_valid(NULL, 0));
	assert_true(utf8_valid(BYTES("plain")));
	assert_true(utf8_valid(BYTES("a\0b")));
	assert_true(utf8_valid(BYTES("\x7f\xc2\x80\xdf\xbf")));
	assert_true(utf8_valid(BYTES("\xe0\xa0\x80\xef\xbf\xbf")));
	assert_true(utf8_valid(BYTES("\xed\x9f\xbf\xee\x80\x80")));
	assert_true(utf8_valid(BYTES("\xf0\x90\x80\x80\xf4\x8f\xbf\xbf")));
}

static void
refuses_ill_formed_text(void **state)
{
	(void)state;
	assert_false(utf8_valid(BYTES("\x80")));
	assert_false(utf8_valid(BYTES("\xc0\x80")));
	assert_false(utf8_valid(BYTES("\xc1\xbf")));
	assert_false(utf8_valid(BYTES("\xe0\x9f\xbf")));
	assert_false(utf8_valid(BYTES("\xed\xa0\x80")));
	assert_false(utf8_valid(BYTES("\xf0\x8f\xbf\xbf")));
	assert_false(utf8_valid(BYTES("\xf4\x90\x80\x80")));
	assert_false(utf8_valid(BYTES("\xf5\x80\x80\x80")));
	assert_false(utf8_valid(BYTES("\xff")));
	assert_false(utf8_valid(BYTES("ok\xe2\x82")));
	assert_false(utf8_valid(BYTES("\xe2\x82xy")));
}

/* Every lead byte with every second byte, against the ranges of table 3-7. */
static void
agrees_with_the_table_of_the_standard(void **state)
{
	int lead, second;

	(void)state;
	for (lead = 0xc0; lead <= 0xff; lead++) {
		for (second = 0; second <= 0xff; second++) {
			char s[] = { (char)lead, (char)second, '\x80', '\x80' };
			int low = lead == 0xe0 ? 0xa0
			    : lead == 0xf0     ? 0x90
			                       : 0x80;
			int high = lead == 0xed ? 0x9f
			    : lead == 0xf4      ? 0x8f
			                        : 0xbf;
			size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
			bool want = lead >= 0xc2 && lead <= 0xf4 &&
			    second >= low && second <= high;

			assert_int_equal(utf8_valid(s, len), want);
		}
	}
}

static void
check_fix(const char *s, size_t len, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	utf8_fix(&b, s, len);
	assert_string_equal(b.data, want);
	assert_int_equal(b.len, strlen(want));
	assert_false(b.full);
	buf_free(&b);
}

static void
leaves_well_formed_text_alone(void **state)
{
	(void)state;
	check_fix(BYTES(""), "");
	check_fix(BYTES("a\u00e9\u20ac\U0001f600z\n"),
	    "a\u00e9\u20ac\U0001f600z\n");
	check_fix(BYTES(R), R);
}

static void
replaces_each_maximal_subpart(void **state)
{
	(void)state;
	check_fix(BYTES("\xf0\x80\x80\x41"), R R R "A");
	check_fix(BYTES("\xe1\x80\x41"), R "A");
	check_fix(BYTES("\xf1\x80\x80\x41"), R "A");
	check_fix(BYTES("\xc2\x41"), R "A");
	check_fix(BYTES("\x80\x80"), R R);
	check_fix(BYTES("\xff\xfe"
	                "A"),
	    R R "A");
	check_fix(BYTES("\xe2\x82"), R);
	check_fix(BYTES("\xf0\x9f\x98"), R);
}

/* Tables 3-8 to 3-11 of the Unicode standard. */
static void
replaces_as_the_standard_shows(void **state)
{
	(void)state;
	check_fix(BYTES("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"),
	    R R R R R R R R "A");
	check_fix(BYTES("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41"),
	    R R R R R R R R "A");
	check_fix(BYTES("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42"),
	    R R R R R "A" R R "B");
	check_fix(BYTES("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), R R R R "A");
}

static void
replaces_nul(void **state)
{
	(void)state;
	check_fix(BYTES("a\0b\0"), "a" R "b" R);
}

static void
fixes_into_a_limit_without_splitting(void **state)
{
	static const char text[] = "a\u20ac\xff\U0001f600";
	struct buf b;
	size_t max;

	(void)state;
	for (max = 0; max < 12; max++) {
		buf_init(&b, max);
		utf8_fix(&b, text, sizeof(text) - 1);
		assert_true(utf8_valid(b.data, b.len));
		assert_true(b.len <= max && b.len + 4 > max);
		assert_int_equal(b.full, max < 11);
		buf_free(&b);
	}
}

static void
adds_nothing_behind_a_gap(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 3);
	utf8_fix(&b, BYTES("a\u20acb"));
	assert_string_equal(b.data, "a");
	utf8_fix(&b, BYTES("c"));
	assert_string_equal(b.data, "a");
	assert_true(b.full);
	buf_free(&b);
}

static void
cuts_between_characters(void **state)
{
	static const char text[] = "a\u00e9\u20ac\U0001f600z"; /* 1 2 3 4 1 */
	static const size_t want[] = { 0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11,
		11 };
	size_t max;

	(void)state;
	for (max = 0; max < sizeof(want) / sizeof(want[0]); max++)
		assert_int_equal(utf8_cut(text, 11, max), want[max]);
}

static void
cuts_anywhere_between_bytes_that_are_no_character(void **state)
{
	size_t max;

	(void)state;
	for (max = 0; max <= 5; max++) {
		assert_int_equal(utf8_cut(BYTES("\x80\x80\x80\x80\x80"), max),
		    max);
		assert_int_equal(utf8_cut(BYTES("\xf0\x80\x80\x80\x80"), max),
		    max);
	}
	assert_int_equal(utf8_cut(BYTES("\xe2\x82"), 1), 1);
	assert_int_equal(utf8_cut("", 0, 10), 0);
}

static void
check_json(const char *s, size_t len, const char *want)
{
	json_t *json = utf8_json(s, len);

	assert_non_null(json);
	assert_string_equal(json_string_value(json), want);
	assert_int_equal(json_string_length(json), strlen(want));
	json_decref(json);
}

static void
makes_json_strings_of_any_bytes(void **state)
{
	char every[256];
	char *text;
	json_t *json;
	int i;

	(void)state;
	check_json(NULL, 0, "");
	check_json(BYTES("plain \u20ac"), "plain \u20ac");
	check_json(BYTES("a\0b\xff"), "a" R "b" R);

	for (i = 0; i < 256; i++)
		every[i] = (char)i;
	json = utf8_json(every, sizeof(every));
	text = json_dumps(json, JSON_ENCODE_ANY);
	assert_non_null(text);
	assert_true(utf8_valid(text, strlen(text)));
	free(text);
	json_decref(json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(accepts_well_formed_text),
		cmocka_unit_test(refuses_ill_formed_text),
		cmocka_unit_test(agrees_with_the_table_of_the_standard),
		cmocka_unit_test(leaves_well_formed_text_alone),
		cmocka_unit_test(replaces_each_maximal_subpart),
		cmocka_unit_test(replaces_as_the_standard_shows),
		cmocka_unit_test(replaces_nul),
		cmocka_unit_test(fixes_into_a_limit_without_splitting),
		cmocka_unit_test(adds_nothing_behind_a_gap),
		cmocka_unit_test(cuts_between_characters),
		cmocka_unit_test(
		    cuts_anywhere_between_bytes_that_are_no_character),
		cmocka_unit_test(makes_json_strings_of_any_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
