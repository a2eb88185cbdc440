#include "help.h"
#include "ssh/cut.h"

#define ANY ((struct cut_limit){ SIZE_MAX, 0 })
#define AT_MOST(n) ((struct cut_limit){ (n), 0 })
#define CHARS(n) ((struct cut_limit){ SIZE_MAX, (n) })

/* What was chosen is this, and something was left out or not. */
static void
is(struct cut c, const char *s, const char *want, bool less)
{
	char *got = xstrndup(s + c.at, c.end - c.at);

	assert_string_equal(got, want);
	free(got);
	assert_int_equal(c.less, less);
}

static struct cut
bytes(const char *s, size_t at, struct cut_limit limit)
{
	return cut_bytes(s, strlen(s), at, &limit);
}

static struct cut
lines(const char *s, size_t at, int64_t n, struct cut_limit limit)
{
	return cut_lines(s, strlen(s), at, n, &limit);
}

static struct cut
tail(const char *s, int64_t n, bool whole, struct cut_limit limit)
{
	return cut_tail(s, strlen(s), n, whole, &limit);
}

static void
bytes_up_to_the_limit(void **state)
{
	(void)state;
	is(bytes("abc", 0, ANY), "abc", "abc", false);
	is(bytes("abc", 1, ANY), "abc", "bc", false);
	is(bytes("abc", 3, ANY), "abc", "", false);
	is(bytes("abc", 0, AT_MOST(3)), "abc", "abc", false);
	is(bytes("abc", 0, AT_MOST(2)), "abc", "ab", true);
	is(bytes("", 0, AT_MOST(2)), "", "", false);
}

static void
characters_stay_whole(void **state)
{
	static const char snow[] = "a☃b";

	(void)state;
	is(bytes(snow, 0, AT_MOST(3)), snow, "a", true);
	is(bytes(snow, 0, AT_MOST(4)), snow, "a☃", true);
	is(bytes(snow, 0, AT_MOST(5)), snow, "a☃b", false);
	/* Never nothing, or whoever asks for the rest does so for ever. */
	is(bytes(snow, 1, AT_MOST(1)), snow, "☃", true);
	is(bytes("𝄞", 0, AT_MOST(1)), "𝄞", "𝄞", false);
}

static void
knows_what_is_no_text(void **state)
{
	(void)state;
	assert_false(cut_bytes(BYTES("gr\xc3\xbcn\n\t\x1b"), 0, &ANY).binary);
	assert_true(cut_bytes(BYTES("a\0b"), 0, &ANY).binary);
	assert_true(cut_bytes(BYTES("a\xff"), 0, &ANY).binary);
	/* A character that the file itself cuts. */
	assert_true(cut_bytes(BYTES("a\xe2\x98"), 0, &ANY).binary);
	/* What is cut off does not count. */
	assert_false(cut_bytes(BYTES("ab\0"), 0, &AT_MOST(2)).binary);
	assert_true(cut_lines(BYTES("a\0b\n"), 0, 1, &ANY).binary);
	assert_true(cut_tail(BYTES("a\0b\n"), 1, true, &ANY).binary);
}

/* Characters are those of a JSON string. */
static void
characters_count_as_in_json(void **state)
{
	struct cut c;

	(void)state;
	is(bytes("abcdef", 0, CHARS(6)), "abcdef", "abcdef", false);
	is(bytes("abcdef", 0, CHARS(5)), "abcdef", "abcde", true);
	is(bytes("☃☃☃", 0, CHARS(2)), "☃☃☃", "☃☃", true);
	is(bytes("\n\n\n", 0, CHARS(5)), "\n\n\n", "\n\n", true);
	is(bytes("a\"b\\", 0, CHARS(4)), "a\"b\\", "a\"b", true);
	is(bytes("\x1b\x1b", 0, CHARS(11)), "\x1b\x1b", "\x1b", true);
	c = cut_bytes(BYTES("\0\0\0\0\0\0\0"), 0, &CHARS(8));
	assert_int_equal(c.end, 6); /* 8 letters of base64 */
	assert_true(c.less);
	is(tail("☃\n☃☃☃", 5, true, CHARS(2)), "☃\n☃☃☃", "☃☃", true);
	is(tail("a\nb\nc\n", 3, true, CHARS(6)), "a\nb\nc\n", "b\nc\n", true);
}

static void
lines_from_a_place(void **state)
{
	static const char abc[] = "a\nbb\nc";

	(void)state;
	is(lines(abc, 0, 1, ANY), abc, "a\n", false);
	is(lines(abc, 2, 1, ANY), abc, "bb\n", false);
	is(lines(abc, 2, 2, ANY), abc, "bb\nc", false);
	is(lines(abc, 0, 99, ANY), abc, abc, false);
	is(lines(abc, 0, 0, ANY), abc, abc, false);
	is(lines(abc, 6, 3, ANY), abc, "", false);
	is(lines("", 0, 3, ANY), "", "", false);
	is(lines("\n\n\n", 0, 2, ANY), "\n\n\n", "\n\n", false);
}

static void
lines_are_cut_only_if_there_is_but_one(void **state)
{
	static const char abc[] = "aa\nbbbb\ncc\n";

	(void)state;
	is(lines(abc, 0, 3, AT_MOST(9)), abc, "aa\nbbbb\n", true);
	is(lines(abc, 0, 3, AT_MOST(8)), abc, "aa\nbbbb\n", true);
	is(lines(abc, 0, 3, AT_MOST(7)), abc, "aa\n", true);
	is(lines(abc, 0, 2, AT_MOST(8)), abc, "aa\nbbbb\n", false);
	is(lines(abc, 3, 1, AT_MOST(3)), abc, "bbb", true);
	is(lines("☃☃☃\n", 0, 1, AT_MOST(7)), "☃☃☃\n", "☃☃", true);
}

static void
the_last_lines(void **state)
{
	static const char abc[] = "a\nbb\nc\n";

	(void)state;
	is(tail(abc, 1, true, ANY), abc, "c\n", false);
	is(tail(abc, 2, true, ANY), abc, "bb\nc\n", false);
	is(tail(abc, 3, true, ANY), abc, abc, false);
	is(tail(abc, 4, true, ANY), abc, abc, false);
	is(tail("a\nb", 1, true, ANY), "a\nb", "b", false);
	is(tail("a\n\n", 1, true, ANY), "a\n\n", "\n", false);
	is(tail("\n\n\n", 2, true, ANY), "\n\n\n", "\n\n", false);
	is(tail("", 2, true, ANY), "", "", false);
	is(tail("\n", 1, true, ANY), "\n", "\n", false);
}

/* These bytes are the end of a longer file. */
static void
a_line_whose_beginning_is_not_known_is_left_out(void **state)
{
	static const char abc[] = "a\nbb\nc\n";

	(void)state;
	is(tail(abc, 2, false, ANY), abc, "bb\nc\n", false);
	is(tail(abc, 3, false, ANY), abc, "bb\nc\n", true);
	is(tail("abc", 1, false, ANY), "abc", "abc", true);
	is(tail("abc\n", 1, false, ANY), "abc\n", "abc\n", true);
}

static void
the_last_lines_that_fit(void **state)
{
	static const char abc[] = "aa\nbbbb\ncc\n";

	(void)state;
	is(tail(abc, 3, true, AT_MOST(10)), abc, "bbbb\ncc\n", true);
	is(tail(abc, 3, true, AT_MOST(8)), abc, "bbbb\ncc\n", true);
	is(tail(abc, 3, true, AT_MOST(7)), abc, "cc\n", true);
	is(tail(abc, 3, true, AT_MOST(2)), abc, "c\n", true);
	is(tail("☃☃☃", 1, true, AT_MOST(7)), "☃☃☃", "☃☃", true);
	is(tail("☃☃☃", 1, true, AT_MOST(1)), "☃☃☃", "☃", true);
	is(tail("☃☃☃", 1, true, CHARS(1)), "☃☃☃", "☃", true);
}

static void
counts_lines(void **state)
{
	(void)state;
	assert_int_equal(cut_count(BYTES("")), 0);
	assert_int_equal(cut_count(BYTES("a")), 1);
	assert_int_equal(cut_count(BYTES("a\n")), 1);
	assert_int_equal(cut_count(BYTES("a\nb")), 2);
	assert_int_equal(cut_count(BYTES("\n\n\0\n")), 3);
}

/* Going on at the end of each piece gives back the whole, and ends. */
static void
pieces_make_the_whole(void **state)
{
	static const char text[] = "a☃\n\xff\0𝄞\"\n\n\xe2\x98日本";
	size_t bytes_max, chars, at;

	(void)state;
	for (bytes_max = 1; bytes_max < sizeof(text) + 2; bytes_max++) {
		for (chars = 0; chars < 30; chars++) {
			struct cut_limit limit = { bytes_max, chars };

			for (at = 0; at < sizeof(text);) {
				struct cut c =
				    cut_bytes(text, sizeof(text), at, &limit);

				assert_int_equal(c.at, at);
				assert_true(c.end > at);
				assert_int_equal(c.less, c.end < sizeof(text));
				at = c.end;
			}
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_up_to_the_limit),
		cmocka_unit_test(characters_stay_whole),
		cmocka_unit_test(knows_what_is_no_text),
		cmocka_unit_test(characters_count_as_in_json),
		cmocka_unit_test(lines_from_a_place),
		cmocka_unit_test(lines_are_cut_only_if_there_is_but_one),
		cmocka_unit_test(the_last_lines),
		cmocka_unit_test(
		    a_line_whose_beginning_is_not_known_is_left_out),
		cmocka_unit_test(the_last_lines_that_fit),
		cmocka_unit_test(counts_lines),
		cmocka_unit_test(pieces_make_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
