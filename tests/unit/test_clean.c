#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "help.h"
#include "ssh/clean.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

/* Clean, and see that it is text that cleaning leaves as it is. */
static void
clean(struct buf *out, const char *data, size_t len)
{
	struct buf twice;
	size_t i;

	buf_init(out, SIZE_MAX);
	clean_text(out, data, len);
	assert_true(utf8_valid(out->data, out->len));
	for (i = 0; i < out->len; i++) {
		unsigned char c = (unsigned char)out->data[i];

		assert_true(c >= ' ' || c == '\n' || c == '\t');
		assert_int_not_equal(c, 0x7f);
		if (c == 0xc2)
			assert_true((unsigned char)out->data[i + 1] >= 0xa0);
	}
	buf_init(&twice, SIZE_MAX);
	clean_text(&twice, out->data, out->len);
	assert_int_equal(twice.len, out->len);
	assert_memory_equal(twice.data, out->data, out->len);
	buf_free(&twice);
}

struct example {
	const char *data;
	size_t len;
	const char *want;
};

#define CASE(literal, want)                            \
	{                                              \
		(literal), sizeof(literal) - 1, (want) \
	}

static void
check_all(const struct example *e, size_t count)
{
	struct buf out;

	for (; count-- > 0; e++) {
		clean(&out, e->data, e->len);
		if (strcmp(out.data, e->want) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", e->data, out.data,
			    e->want);
		buf_free(&out);
	}
}

#define CHECK_ALL(list) check_all(list, sizeof(list) / sizeof((list)[0]))

static void
text_stays_as_it_is(void **state)
{
	static const struct example list[] = {
		CASE("", ""),
		CASE("plain", "plain"),
		CASE("a\tb\nc\n", "a\tb\nc\n"),
		CASE("[31m is no sequence", "[31m is no sequence"),
		CASE("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
		    "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
		CASE("\xc2\xa0\xc2\xad", "\xc2\xa0\xc2\xad"),
		CASE(R, R),
		CASE("\n\n \n", "\n\n \n"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
csi_sequences_vanish(void **state)
{
	static const struct example list[] = {
		CASE("\x1b[31mred\x1b[0m", "red"),
		CASE("\x1b[1;38;5;208mx\x1b[m", "x"),
		CASE("\x1b[38:2::1:2:3mx", "x"),
		CASE("a\x1b[2Kb\x1b[1Ac\x1b[?25ld\x1b[?25h", "abcd"),
		CASE("\x1b[>0;276;0cx", "x"),
		CASE("\x1b[0 qx", "x"),
		CASE("\x1b[!px", "x"),
		CASE("\x1b[200~paste\x1b[201~", "paste"),
		CASE("\x1b[@x\x1b[~y", "xy"),
		CASE("\x1b[31m\x1b[1m\x1b[0m", ""),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
strings_for_the_terminal_vanish(void **state)
{
	static const struct example list[] = {
		CASE("\x1b]0;title\x07text", "text"),
		CASE("\x1b]0;title\x1b\\text", "text"),
		CASE("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\.", "link."),
		CASE("\x1b]52;c;aGVsbG8=\x07x", "x"),
		CASE("\x1b]133;A\x1b\\$ ls", "$ ls"),
		CASE("\x1b]0;caf\xc3\xa9\x07x", "x"),
		CASE("\x1bPq#0;2;0;0;0\x1b\\x", "x"),
		CASE("\x1bP+q544e\x1b\\x", "x"),
		CASE("\x1bXsos\x1b\\x", "x"),
		CASE("\x1b^pm\x1b\\x", "x"),
		CASE("\x1b_Gf=100;abc\x1b\\x", "x"),
		CASE("\x1bPtmux;\x1b\x1b]0;t\x07\x1b\\x", "x"),
		/* Another sequence ends it, as it does in terminals. */
		CASE("\x1b]0;t\x1b[31mx", "x"),
		CASE("\x1b]0;t\x1b]0;u\x07x", "x"),
	};

	(void)state;
	CHECK_ALL(list);
}

/* Whatever the string swallows, it is not the lines that follow. */
static void
a_string_without_end_swallows_its_line_at_most(void **state)
{
	static const struct example list[] = {
		CASE("\x1b]0;title\nnext line\n", "\nnext line\n"),
		CASE("a\n\x1bPoops\nb\n\x1b_x\nc", "a\n\nb\n\nc"),
		CASE("\x1b]\n", "\n"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
other_sequences_vanish(void **state)
{
	static const struct example list[] = {
		CASE("\x1b(Bx\x1b)0y", "xy"),
		CASE("\x1b=x\x1b>y\x1b"
		     "7z\x1b"
		     "8",
		    "xyz"),
		CASE("\x1b"
		     "Mx\x1b"
		     "cy",
		    "xy"),
		CASE("\x1b#8x", "x"),
		CASE("\x1b%Gx", "x"),
		CASE("\x1b\x1b[31mx", "x"),
		CASE("\x1b\\x", "x"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
what_fits_no_sequence_is_kept(void **state)
{
	static const struct example list[] = {
		CASE("\x1b[31\nx", "\nx"),
		CASE("\x1b[3\xc3\xa4x", "\xc3\xa4x"),
		CASE("\x1b\nx", "\nx"),
		CASE("\x1b\xc3\xa4x", "\xc3\xa4x"),
		CASE("\x1b(\nx", "\nx"),
		CASE("\x1b[\x1b[31mx", "x"),
		CASE("\x1b\0x", "x"),
		CASE("\x1b[31\0mx", "mx"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
sequences_that_are_cut_off_vanish(void **state)
{
	static const struct example list[] = {
		CASE("x\x1b", "x"),
		CASE("x\x1b[", "x"),
		CASE("x\x1b[31", "x"),
		CASE("x\x1b[31;", "x"),
		CASE("x\x1b(", "x"),
		CASE("x\x1b]", "x"),
		CASE("x\x1b]0;tit", "x"),
		CASE("x\x1b]0;title\x1b", "x"),
		CASE("x\x1bP", "x"),
		CASE("x\x1bPq#0\x1b", "x"),
		CASE("x\r", "x"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
control_characters_vanish(void **state)
{
	static const struct example list[] = {
		CASE("a\0b", "ab"),
		CASE("\x01\x02\x07\x08\x0b\x0c\x0e\x1f\x7f", ""),
		CASE("beep\x07", "beep"),
		CASE("a\bb", "ab"),
		/* U+0080 to U+009F, as UTF-8 has them. */
		CASE("a\xc2\x80"
		     "b\xc2\x85"
		     "c\xc2\x9f"
		     "d",
		    "abcd"),
		CASE("\xc2\x9c", ""),
	};
	unsigned char every[256];
	struct buf out;
	size_t i;

	(void)state;
	CHECK_ALL(list);
	for (i = 0; i < 256; i++)
		every[i] = (unsigned char)i;
	clean(&out, (char *)every, 256);
	buf_free(&out);
}

static void
lines_end_in_one_way(void **state)
{
	static const struct example list[] = {
		CASE("a\r\nb\r\n", "a\nb\n"),
		CASE("a\rb", "a\nb"),
		CASE("10%\r20%\r30%\n", "10%\n20%\n30%\n"),
		CASE("a\r\n\r\nb", "a\n\nb"),
		CASE("a\n\rb", "a\n\nb"),
	};

	(void)state;
	CHECK_ALL(list);
}

static void
bytes_that_are_no_text_are_replaced(void **state)
{
	static const struct example list[] = {
		CASE("\xff", R),
		CASE("a\x80"
		     "b",
		    "a" R "b"),
		CASE("caf\xe9\n", "caf" R "\n"),
		CASE("\xe2\x82", R),
		CASE("\xe2\x82\n", R "\n"),
		CASE("\xed\xa0\x80", R R R),
		CASE("\xc0\x80", R R),
		CASE("\x9b"
		     "31mx",
		    R "31mx"),
		CASE("\xc2", R),
		CASE("\xc2\nx", R "\nx"),
	};

	(void)state;
	CHECK_ALL(list);
}

/* Two halves that a sequence kept apart must not become a character. */
static void
removing_a_sequence_joins_nothing(void **state)
{
	static const struct example list[] = {
		CASE("\xc2\x1b[m\x9b"
		     "31m",
		    R R "31m"),
		CASE("\xc2\0\x85", R R),
		CASE("\xc2\x07\x9b", R R),
		CASE("\xe2\xc2\x85\x82\xac", R R R),
		CASE("\xe2\x1b]0;t\x07\x82\xac", R R R),
		CASE("\xc2\r\x9b", R "\n" R),
		CASE("\xc2\xc2\x80\x9b", R R),
		CASE("\x1b\x1b[m[31mx", "[31mx"),
	};

	(void)state;
	CHECK_ALL(list);
}

static bool
same(const char *data, size_t len)
{
	struct buf out;
	bool all;

	buf_init(&out, SIZE_MAX);
	all = clean_text(&out, data, len);
	buf_free(&out);
	return all;
}

static void
what_is_lost_is_told(void **state)
{
	(void)state;
	assert_true(same(BYTES("")));
	assert_true(same(BYTES("plain\ttext \xe2\x98\x83\n")));
	assert_true(same(BYTES("\x1b[1;31mred\x1b[0m \x1b(B\x1b=\x1b[K")));
	assert_true(same(BYTES("\x1b[?25lx\x1b[?25h\x1b>")));

	assert_false(same(BYTES("a\r\n")));
	assert_false(same(BYTES("a\rb")));
	assert_false(same(BYTES("N\bN")));
	assert_false(same(BYTES("\a")));
	assert_false(same(BYTES("a\0b")));
	assert_false(same(BYTES("\x7f")));
	assert_false(same(BYTES("\xc2\x85")));
	assert_false(same(BYTES("\xff")));
	assert_false(same(BYTES("x\xc3")));
	/* A number that was written over, a link, a word. */
	assert_false(same(BYTES("50%\x1b[4D80%")));
	assert_false(same(BYTES("\x1b[2J")));
	assert_false(same(BYTES("\x1b[4h")));
	assert_false(same(BYTES("\x1b]0;title\x07x")));
	assert_false(same(BYTES("\x1b]8;;u\x1b\\y")));
	assert_false(same(BYTES("\x1bPq\x1b\\")));
	assert_false(same(BYTES("\x1b"
	                        "7")));
	/* No whole sequences: words may go with them. */
	assert_false(same(BYTES("\x1b")));
	assert_false(same(BYTES("\x1b[")));
	assert_false(same(BYTES("\x1b[1;")));
	assert_false(same(BYTES("\x1b[1;\n")));
	assert_false(same(BYTES("x\x1bPhello world\ny\n")));
	assert_false(same(BYTES("x\x1b]hello world\ny\n")));
	assert_false(same(BYTES("\x1b]hello\x1b[0m")));
	assert_false(same(BYTES("\x1b]hello")));
	assert_false(same(BYTES("\x1b(\n")));
}

static void
it_is_added_within_the_limit(void **state)
{
	struct buf out;

	(void)state;
	buf_init(&out, 6);
	buf_adds(&out, ">");
	clean_text(&out, BYTES("\x1b[1ma\xe2\x82\xac\xe2\x82\xac"));
	assert_string_equal(out.data, ">a\xe2\x82\xac");
	assert_true(out.full);
	clean_text(&out, BYTES("x\ry"));
	assert_true(utf8_valid(out.data, out.len));
	assert_true(out.len <= 6);
	buf_free(&out);
}

/* Any two or three bytes out of those that matter. */
static void
every_short_mixture_comes_out_clean(void **state)
{
	static const char set[] = "\0\x07\t\n\r\x1b []0;m\\P(c~\x7f"
	                          "\x80\x9b\x9c\xc2\xc3\xe2\x82\xac\xf0\xff";
	size_t n = sizeof(set) - 1, a, b, c, d;
	struct buf out;
	char s[4];

	(void)state;
	for (a = 0; a < n; a++) {
		for (b = 0; b < n; b++) {
			for (c = 0; c < n; c++) {
				for (d = 0; d < n; d += 3) {
					s[0] = set[a];
					s[1] = set[b];
					s[2] = set[c];
					s[3] = set[d];
					clean(&out, s, 4);
					buf_free(&out);
				}
			}
		}
	}
}

/* Hostile output must not cost more than its length. */
static void
much_of_it_is_cleaned_in_no_time(void **state)
{
	static const char *const units[] = { "\x1b]", "\x1b[", "\x1b", "\x1bP;",
		"\r", "\xc2\x80", "\xff", "a\x1b[0m", "\x1b[0;" };
	struct buf out;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		char *much = repeated(units[i], 200000);

		buf_init(&out, SIZE_MAX);
		clean_text(&out, much, strlen(much));
		assert_true(out.len <= 3 * strlen(much));
		buf_free(&out);
		free(much);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_as_it_is),
		cmocka_unit_test(csi_sequences_vanish),
		cmocka_unit_test(strings_for_the_terminal_vanish),
		cmocka_unit_test(
		    a_string_without_end_swallows_its_line_at_most),
		cmocka_unit_test(other_sequences_vanish),
		cmocka_unit_test(what_fits_no_sequence_is_kept),
		cmocka_unit_test(sequences_that_are_cut_off_vanish),
		cmocka_unit_test(control_characters_vanish),
		cmocka_unit_test(lines_end_in_one_way),
		cmocka_unit_test(bytes_that_are_no_text_are_replaced),
		cmocka_unit_test(removing_a_sequence_joins_nothing),
		cmocka_unit_test(what_is_lost_is_told),
		cmocka_unit_test(it_is_added_within_the_limit),
		cmocka_unit_test(every_short_mixture_comes_out_clean),
		cmocka_unit_test(much_of_it_is_cleaned_in_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
