#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/utf8.h"
#include "help.h"
#include "ssh/capture.h"

#define NONCE "0123456789abcdeffedcba987654321f"
#define TRAILER NONCE " 0 - \n"
#define KEEP 64

static char *dir, *file;
static struct capture c;
static struct buf text;

static int
begin(void **state)
{
	(void)state;
	dir = make_dir();
	file = path_join(dir, "out");
	capture_init(&c, NONCE, KEEP, NULL, 0);
	buf_init(&text, SIZE_MAX);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	capture_free(&c);
	capture_free(&c);
	buf_free(&text);
	remove_dir(dir);
	free(file);
	return 0;
}

static void
again(size_t keep, const char *to, uint64_t max)
{
	capture_free(&c);
	capture_init(&c, NONCE, keep, to, max);
}

/* All of it is used. */
static void
add(const char *data)
{
	size_t len = strlen(data);

	assert_int_equal(capture_add(&c, data, len), len);
}

static const char *
shown(size_t max)
{
	buf_reset(&text);
	capture_text(&c, &text, max);
	assert_true(utf8_valid(text.data, text.len));
	return text.data;
}

static const char *
last_line(void)
{
	buf_reset(&text);
	capture_last_line(&c, &text);
	assert_true(utf8_valid(text.data, text.len));
	return text.data;
}

static void
what_stands_before_the_trailer_is_the_output(void **state)
{
	(void)state;
	add("hello\nworld" NONCE " 3 sig 12 13\n");
	assert_true(c.ended);
	assert_false(c.bad);
	assert_int_equal(c.total, 11);
	assert_string_equal(shown(1000), "hello\nworld");
	assert_string_equal(c.trailer.data, " 3 sig 12 13");
}

static void
there_may_be_no_output_at_all(void **state)
{
	(void)state;
	add(TRAILER);
	assert_true(c.ended);
	assert_int_equal(c.total, 0);
	assert_string_equal(shown(1000), "");
	assert_string_equal(last_line(), "");
}

static void
what_follows_the_trailer_is_not_touched(void **state)
{
	static const char data[] = "x" TRAILER "next";

	(void)state;
	assert_int_equal(capture_add(&c, data, strlen(data)),
	    strlen(data) - strlen("next"));
	assert_int_equal(capture_add(&c, "more", 4), 0);
	assert_string_equal(shown(1000), "x");
}

/* In two pieces, cut at every place; in three; and byte by byte. */
static void
the_trailer_may_be_cut_anywhere(void **state)
{
	static const char data[] = "output 0123456789abc" TRAILER "rest";
	size_t len = strlen(data), end_at = len - strlen("rest");
	size_t a, b, used;

	(void)state;
	for (a = 0; a <= end_at; a++) {
		for (b = a; b <= end_at; b++) {
			again(KEEP, NULL, 0);
			used = capture_add(&c, data, a);
			assert_int_equal(used, a);
			used += capture_add(&c, data + a, b - a);
			assert_int_equal(used, b);
			used += capture_add(&c, data + b, len - b);
			assert_int_equal(used, end_at);
			assert_true(c.ended);
			assert_false(c.bad);
			assert_string_equal(shown(1000),
			    "output 0123456789abc");
			assert_string_equal(c.trailer.data, " 0 - ");
		}
	}
	again(KEEP, NULL, 0);
	for (a = 0; a < end_at; a++)
		assert_int_equal(capture_add(&c, data + a, 1), 1);
	assert_true(c.ended);
	assert_string_equal(shown(1000), "output 0123456789abc");
	assert_int_equal(c.total, 20);
}

static void
what_only_looks_like_a_trailer_is_output(void **state)
{
	static const char *const alike[] = {
		"0",
		"0123456789abcdef",
		"0123456789abcdeffedcba987654321",
		"0123456789abcdeffedcba987654321X",
		"0123456789abcdeffedcba987654321X 0 -\n",
		"0123456789abcdeffedcba980123456789abcdef",
		"00000000000000000000000000000000 0 -\n",
		"123456789abcdeffedcba987654321f 0 -\n",
		"0123456789ABCDEFFEDCBA987654321F 0 -\n",
		"0012012301234012345",
		"fedcba98 \n\n 0123",
	};
	size_t i, k;

	(void)state;
	for (i = 0; i < sizeof(alike) / sizeof(alike[0]); i++) {
		again(KEEP, NULL, 0);
		add(alike[i]);
		assert_false(c.ended);
		add(TRAILER);
		assert_true(c.ended);
		assert_string_equal(shown(1000), alike[i]);
		again(KEEP, NULL, 0);
		for (k = 0; alike[i][k] != '\0'; k++)
			assert_int_equal(capture_add(&c, alike[i] + k, 1), 1);
		add(TRAILER);
		assert_string_equal(shown(1000), alike[i]);
		assert_int_equal(c.total, strlen(alike[i]));
	}
}

/* The beginning of the nonce again and again, as far as it overlaps. */
static void
a_nonce_that_repeats_itself_is_found(void **state)
{
	static const char nonce[] = "abababababababababababababababab";
	struct capture r;
	size_t i, k;

	(void)state;
	for (i = 0; i < 40; i++) {
		char *noise = repeated("ab", i);
		size_t n = strlen(noise);

		/* Its first occurrence counts; what follows is a trailer. */
		capture_init(&r, nonce, 1000, NULL, 0);
		for (k = 0; k < n && !r.in_trailer; k++)
			assert_int_equal(capture_add(&r, noise + k, 1), 1);
		assert_int_equal(r.in_trailer, n >= NONCE_LEN);
		capture_free(&r);
		free(noise);
	}
}

static void
bytes_are_bytes(void **state)
{
	(void)state;
	assert_int_equal(capture_add(&c, "a\0b\xff", 4), 4);
	add(TRAILER);
	assert_int_equal(c.total, 4);
	assert_memory_equal(c.head.data, "a\0b\xff", 4);
	assert_string_equal(shown(100), "ab\xef\xbf\xbd");
}

/* The link broke: nothing follows that could be a trailer. */
static void
what_may_begin_a_trailer_is_output_if_nothing_follows(void **state)
{
	(void)state;
	add("count: 0");
	assert_string_equal(shown(1000), "count: 0");
	again(KEEP, NULL, 0);
	add("0123456789abcdeffedcba987654321");
	assert_string_equal(shown(1000), "0123456789abcdeffedcba987654321");
	again(KEEP, NULL, 0);
	add("50%\n01");
	assert_string_equal(last_line(), "01");
	/* Shown before the end, and then something did follow. */
	again(KEEP, NULL, 0);
	add("a 012");
	assert_string_equal(last_line(), "a 012");
	add("3");
	add("456789abcdeffedcba987654321f 0 - \n");
	assert_true(c.ended);
	assert_string_equal(shown(1000), "a ");
}

static void
a_trailer_that_was_cut_off_is_no_output(void **state)
{
	(void)state;
	add("done\n" NONCE " 0 ");
	assert_false(c.ended);
	assert_string_equal(shown(1000), "done\n");
	assert_int_equal(c.total, 5);
}

static void
a_trailer_with_very_many_children_is_still_one(void **state)
{
	struct trailer t;
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "x" NONCE " 7 -");
	for (i = 0; i < 3000; i++)
		buf_addf(&b, " %d", 100000 + i);
	buf_adds(&b, "\n");
	assert_int_equal(capture_add(&c, b.data, b.len), b.len);
	assert_true(c.ended);
	assert_false(c.bad);
	assert_int_equal(trailer_parse(c.trailer.data, &t), 0);
	assert_int_equal(t.status, 7);
	assert_int_equal(t.count, 64);
	assert_int_equal(t.pids[0], 100000);
	assert_int_equal(t.pids[63], 100063);
	/* The same in small pieces. */
	again(KEEP, NULL, 0);
	for (i = 0; (size_t)i < b.len; i++)
		assert_int_equal(capture_add(&c, b.data + i, 1), 1);
	assert_true(c.ended);
	assert_false(c.bad);
	assert_int_equal(trailer_parse(c.trailer.data, &t), 0);
	assert_int_equal(t.count, 64);
	buf_free(&b);
}

static void
a_trailer_without_end_is_bad(void **state)
{
	char *much = repeated(" 12345", 500000);

	(void)state;
	add(NONCE);
	capture_add(&c, much, strlen(much));
	assert_true(c.ended);
	assert_true(c.bad);
	assert_true(c.trailer.len < 100000);
	free(much);
}

/* --- memory --------------------------------------------------------------- */

/* Byte number "i" of an output where each place can be told. */
static char
nth(uint64_t i)
{
	return (char)('a' + (i * 7 + i / 26) % 26);
}

/* Add "len" bytes of it in pieces of "piece", then the trailer. */
static void
add_numbered(uint64_t len, size_t piece)
{
	char chunk[1000];
	uint64_t at = 0;
	size_t n, i;

	while (at < len) {
		n = piece < len - at ? piece : (size_t)(len - at);
		for (i = 0; i < n; i++)
			chunk[i] = nth(at + i);
		assert_int_equal(capture_add(&c, chunk, n), n);
		at += n;
	}
	add("\n" TRAILER);
}

static void
head_and_tail_are_kept_whatever_the_pieces(void **state)
{
	static const size_t pieces[] = { 1, 2, 3, 7, KEEP - 1, KEEP, KEEP + 1,
		2 * KEEP, 3 * KEEP - 1, 999 };
	static const uint64_t lens[] = { 0, 1, KEEP - 2, KEEP - 1, KEEP,
		KEEP + 1, 2 * KEEP - 2, 2 * KEEP - 1, 2 * KEEP, 2 * KEEP + 1,
		3 * KEEP, 10 * KEEP + 5, 5000 };
	char raw[2 * KEEP + 1];
	size_t p, l, i, n;

	(void)state;
	for (p = 0; p < sizeof(pieces) / sizeof(pieces[0]); p++) {
		for (l = 0; l < sizeof(lens) / sizeof(lens[0]); l++) {
			uint64_t len = lens[l];

			again(KEEP, NULL, 0);
			add_numbered(len, pieces[p]);
			assert_int_equal(c.total, len + 1);
			assert_true(c.head.len <= KEEP);
			assert_true(c.tail.len <= KEEP);
			n = len + 1 < KEEP ? (size_t)len + 1 : KEEP;
			assert_int_equal(c.head.len, n);
			for (i = 0; i < n && i < len; i++)
				assert_int_equal(c.head.data[i], nth(i));
			/* The ring, laid straight. */
			n = c.tail.len;
			memcpy(raw, c.tail.data + c.tail_at, n - c.tail_at);
			memcpy(raw + n - c.tail_at, c.tail.data, c.tail_at);
			for (i = 0; i + 1 < n; i++)
				assert_int_equal(raw[i], nth(len + 1 - n + i));
		}
	}
}

static void
memory_does_not_grow_with_the_output(void **state)
{
	(void)state;
	add_numbered(1000000, 997);
	assert_int_equal(c.total, 1000001);
	assert_true(c.head.cap <= KEEP + 1);
	assert_true(c.tail.cap <= KEEP + 1);
	assert_true(c.held.cap + c.trailer.cap < 4096);
}

static void
nothing_may_be_kept_at_all(void **state)
{
	(void)state;
	again(0, NULL, 0);
	add_numbered(100, 7);
	assert_int_equal(c.total, 101);
	assert_true(capture_text(&c, &text, 10) > 0);
	says(text.data, "...<truncated>");
}

/* --- text ----------------------------------------------------------------- */

static void
text_within_the_limit_is_whole(void **state)
{
	(void)state;
	add("0123456789" TRAILER);
	assert_int_equal(capture_text(&c, &text, 10), 0);
	assert_string_equal(text.data, "0123456789");
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 1000000), 0);
}

/* Head and tail join without a gap, as long as both hold all of it. */
static void
text_that_head_and_tail_hold_together_is_whole(void **state)
{
	size_t len, i;

	(void)state;
	for (len = KEEP - 3; len <= 2 * KEEP - 1; len++) {
		again(KEEP, NULL, 0);
		add_numbered(len, 5);
		buf_reset(&text);
		assert_int_equal(capture_text(&c, &text, 1000), 0);
		assert_int_equal(text.len, len + 1);
		for (i = 0; i < len; i++)
			assert_int_equal(text.data[i], nth(i));
	}
}

/* What is shown of "text": its parts before and behind the line between. */
static void
parts(const char *first, const char *last, uint64_t left)
{
	char between[100];

	snprintf(between, sizeof(between),
	    "\n...<truncated> %" PRIu64 " characters left out here ...\n",
	    left);
	says(text.data, between);
	assert_int_equal(text.len,
	    strlen(first) + strlen(between) + strlen(last));
	assert_memory_equal(text.data, first, strlen(first));
	assert_string_equal(text.data + text.len - strlen(last), last);
}

static void
longer_text_keeps_its_head_and_its_tail(void **state)
{
	(void)state;
	add("abcdefghijklmnopqrstuvwxyz" TRAILER);
	assert_int_equal(capture_text(&c, &text, 10), 16);
	parts("abcde", "vwxyz", 16);
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 25), 1);
	parts("abcdefghijklm", "opqrstuvwxyz", 1);
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 1), 25);
	parts("a", "", 25);
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 2), 24);
	parts("a", "z", 24);
}

static void
characters_are_counted_not_bytes(void **state)
{
	static const char ten[] = "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80x"
	                          "\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x81y"
	                          "\xc3\xbc"
	                          "z";

	(void)state;
	add(ten);
	add(TRAILER);
	assert_int_equal(capture_text(&c, &text, 10), 0);
	assert_string_equal(text.data, ten);
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 5), 5);
	parts("\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
	    "\xc3\xbc"
	    "z",
	    5);
}

static void
bad_bytes_count_as_the_character_that_stands_for_them(void **state)
{
	(void)state;
	add("\xff\xff\xff\xff" TRAILER);
	assert_int_equal(capture_text(&c, &text, 4), 0);
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 2), 2);
	parts("\xef\xbf\xbd", "\xef\xbf\xbd", 2);
}

static void
colours_do_not_count(void **state)
{
	(void)state;
	add("\x1b[31mred\x1b[0m \x1b[1;32mgreen\x1b[0m\r\n" TRAILER);
	assert_int_equal(capture_text(&c, &text, 10), 0);
	assert_string_equal(text.data, "red green\n");
	buf_reset(&text);
	assert_int_equal(capture_text(&c, &text, 9), 1);
	parts("red g", "een\n", 1);
}

/* Cut at the border of head and tail, which is nobody's border. */
static void
characters_and_sequences_across_the_border_stay_whole(void **state)
{
	size_t fill, keep = 16;
	char want[100];

	(void)state;
	for (fill = 0; fill < keep + 4; fill++) {
		char *x = repeated("x", fill);

		again(keep, NULL, 0);
		add(x);
		add("\xe2\x82\xac\x1b[31mA" TRAILER);
		buf_reset(&text);
		assert_int_equal(capture_text(&c, &text, 1000), 0);
		snprintf(want, sizeof(want), "%s\xe2\x82\xac%s", x, "A");
		assert_string_equal(text.data, want);
		free(x);
	}
}

static void
what_was_never_kept_is_counted_as_left_out(void **state)
{
	size_t max;

	(void)state;
	for (max = 1; max < 2 * KEEP; max++) {
		again(KEEP, NULL, 0);
		add_numbered(1000, 13);
		buf_reset(&text);
		assert_int_equal(capture_text(&c, &text, max), 1001 - max);
		assert_int_equal(text.data[0], nth(0));
		if (max >= 4)
			assert_int_equal(text.data[text.len - 2], nth(999));
		says(text.data, "...<truncated>");
		assert_true(text.len <= max + 100);
	}
}

/* Much output, little text: what is missing is still told. */
static void
something_left_out_is_never_nothing(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		add("\x1b[31m");
	add("x" TRAILER);
	assert_true(capture_text(&c, &text, 5000) >= 1);
	says(text.data, "...<truncated>");
}

static void
what_may_be_shown_twice_is_the_same(void **state)
{
	char *first;

	(void)state;
	add_numbered(1000, 13);
	shown(20);
	first = xstrdup(text.data);
	assert_string_equal(shown(20), first);
	free(first);
}

/* --- the file ------------------------------------------------------------- */

/* Is all of it there? */
static bool
in_file(void)
{
	return c.file_fd != -1 && capture_missing(&c) == 0;
}

static void
file_is(uint64_t len)
{
	struct buf b;
	struct err err;
	struct stat st;
	uint64_t i;

	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(file, &b, &err), 0);
	assert_int_equal(b.len, len);
	for (i = 0; i + 1 < len; i++)
		assert_int_equal(b.data[i], nth(i));
	buf_free(&b);
}

static void
short_output_makes_no_file(void **state)
{
	(void)state;
	again(KEEP, file, 1000);
	add_numbered(10, 3);
	assert_string_equal(shown(1000) + 10, "\n");
	assert_int_equal(c.file_fd, -1);
	assert_int_equal(access(file, F_OK), -1);
	assert_false(in_file());
	assert_int_equal(capture_missing(&c), 0);
}

static void
what_is_no_plain_text_goes_to_the_file(void **state)
{
	(void)state;
	again(KEEP, file, 1000);
	add("\x1b[31mred\x1b[0m\n");
	assert_string_equal(shown(1000), "red\n");
	assert_int_equal(c.file_fd, -1);
	add("N\bN\n");
	assert_string_equal(shown(1000), "red\nNN\n");
	assert_true(in_file());
}

static void
long_output_goes_to_the_file_whole(void **state)
{
	static const size_t pieces[] = { 1, 63, 64, 65, 999 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		again(KEEP, file, 100000);
		add_numbered(5000, pieces[i]);
		assert_true(in_file());
		file_is(5001);
		unlink(file);
	}
}

static void
nothing_of_the_trailer_is_in_the_file(void **state)
{
	struct buf b;
	struct err err;

	(void)state;
	again(KEEP, file, 100000);
	add_numbered(500, 1);
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(file, &b, &err), 0);
	says_not(b.data, "0123");
	buf_free(&b);
}

static void
the_file_has_a_limit(void **state)
{
	static const uint64_t limits[] = { 0, 1, 10, KEEP - 1, KEEP, KEEP + 1,
		100, 500, 5000 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		again(KEEP, file, limits[i]);
		add_numbered(5000, 13);
		assert_int_equal(c.total, 5001);
		assert_false(in_file());
		file_is(limits[i]);
		unlink(file);
	}
	again(KEEP, file, 5001);
	add_numbered(5000, 13);
	assert_true(in_file());
}

/* The limit in memory is in bytes, the one of the text in characters: what
 * fits the one may be cut by the other. */
static void
whenever_text_is_left_out_the_file_holds_it(void **state)
{
	static const uint64_t lens[] = { 11, 30, KEEP - 1, KEEP, KEEP + 10,
		2 * KEEP - 1, 2 * KEEP, 500 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		again(KEEP, file, 100000);
		add_numbered(lens[i], 13);
		buf_reset(&text);
		assert_true(capture_text(&c, &text, 10) > 0);
		assert_true(in_file());
		file_is(lens[i] + 1);
		unlink(file);
	}
}

static void
a_file_that_is_there_already_is_left_alone(void **state)
{
	struct buf b;
	struct err err;

	(void)state;
	assert_int_equal(fs_replace(file, "mine", 4, 0644, &err), 0);
	again(KEEP, file, 100000);
	add_numbered(5000, 13);
	assert_int_equal(c.file_fd, -1);
	assert_false(in_file());
	buf_init(&b, 1000);
	assert_int_equal(fs_read(file, &b, &err), 0);
	assert_string_equal(b.data, "mine");
	buf_free(&b);
}

static void
a_file_that_could_not_be_made_is_not_made_later(void **state)
{
	char *sub = path_join(dir, "sub");
	char *inner = path_join(sub, "out");
	int i;

	(void)state;
	again(KEEP, inner, 100000);
	for (i = 0; i < 20; i++)
		add("0123456789 ");
	assert_int_equal(c.file_fd, -1);
	assert_int_equal(mkdir(sub, 0700), 0);
	for (i = 0; i < 20; i++)
		add("0123456789 ");
	assert_int_equal(c.file_fd, -1);
	assert_int_equal(access(inner, F_OK), -1);
	assert_false(in_file());
	shown(20);
	assert_int_equal(capture_missing(&c), c.total);
	free(sub);
	free(inner);
}

static void
a_text_that_is_whole_lacks_nothing_for_want_of_a_file(void **state)
{
	int i;

	(void)state;
	again(1000, "/nonexistent/out", 100000);
	for (i = 0; i < 60; i++)
		add("\x1b[1mx\x1b[0m..........\n"); /* 20 bytes, 12 to see */
	assert_true(c.file_wanted);
	assert_null(strstr(shown(1000), "left out"));
	assert_int_equal(capture_missing(&c), 0);
	shown(100);
	assert_int_equal(capture_missing(&c), c.total);
}

static void
a_full_disk_costs_the_file_and_nothing_else(void **state)
{
	(void)state;
	if (access("/dev/full", W_OK) == -1)
		skip();
	assert_int_equal(symlink("/dev/full", file), 0);
	again(KEEP, file, 100000);
	add_numbered(5000, 13);
	assert_int_equal(c.total, 5001);
	assert_int_equal(shown(20)[0], nth(0));
	assert_int_equal(capture_missing(&c), 5001);
	unlink(file);
}

/* --- the last line -------------------------------------------------------- */

static void
the_last_line_is_the_last_with_something_on_it(void **state)
{
	static const struct {
		const char *output, *want;
	} cases[] = {
		{ "", "" },
		{ "one", "one" },
		{ "one\n", "one" },
		{ "one\ntwo", "two" },
		{ "one\ntwo\n", "two" },
		{ "one\ntwo\n\n\n", "two" },
		{ "one\r\ntwo\r\n", "two" },
		{ "done\n   \n\t\n", "done" },
		{ "\n\n", "" },
		{ "  \n", "" },
		{ "10%\r20%\r30%", "30%" },
		{ "10%\r20%\r30%\r", "30%" },
		{ "\x1b[2K\x1b[1mbold\x1b[0m\n", "bold" },
		{ "text\n\x1b[0m\n", "text" },
		{ "caf\xc3\xa9\n", "caf\xc3\xa9" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		again(KEEP, NULL, 0);
		add(cases[i].output);
		assert_string_equal(last_line(), cases[i].want);
	}
}

static void
the_last_line_may_cross_the_border_of_head_and_tail(void **state)
{
	size_t fill;

	(void)state;
	for (fill = 0; fill < KEEP; fill++) {
		char *x = repeated("x", fill);

		again(KEEP, NULL, 0);
		add(x);
		add("\nstep 3 of \xc3\xa4\xc3\xb6\n");
		assert_string_equal(last_line(), "step 3 of \xc3\xa4\xc3\xb6");
		free(x);
	}
}

static void
the_last_line_of_long_output_is_found_in_the_ring(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		char line[40], want[40];

		snprintf(line, sizeof(line), "line %d\n", i);
		snprintf(want, sizeof(want), "line %d", i);
		add(line);
		assert_string_equal(last_line(), want);
	}
}

static void
a_long_last_line_shows_its_end(void **state)
{
	static const char *const ends[] = { "z", "zz", "zzz" };
	char *wide = repeated("\xe2\x82\xac", 5000);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
		again(4096, NULL, 0);
		add("first\n");
		add(wide);
		add(ends[i]);
		last_line();
		assert_true(text.len <= 400);
		assert_true(text.len >= 390);
		says_not(text.data, "\xef\xbf\xbd");
		assert_int_equal(text.data[text.len - 1], 'z');
	}
	free(wide);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_stands_before_the_trailer_is_the_output),
		TEST(there_may_be_no_output_at_all),
		TEST(what_follows_the_trailer_is_not_touched),
		TEST(the_trailer_may_be_cut_anywhere),
		TEST(what_only_looks_like_a_trailer_is_output),
		TEST(a_nonce_that_repeats_itself_is_found),
		TEST(bytes_are_bytes),
		TEST(what_may_begin_a_trailer_is_output_if_nothing_follows),
		TEST(a_trailer_that_was_cut_off_is_no_output),
		TEST(a_trailer_with_very_many_children_is_still_one),
		TEST(a_trailer_without_end_is_bad),
		TEST(head_and_tail_are_kept_whatever_the_pieces),
		TEST(memory_does_not_grow_with_the_output),
		TEST(nothing_may_be_kept_at_all),
		TEST(text_within_the_limit_is_whole),
		TEST(text_that_head_and_tail_hold_together_is_whole),
		TEST(longer_text_keeps_its_head_and_its_tail),
		TEST(characters_are_counted_not_bytes),
		TEST(bad_bytes_count_as_the_character_that_stands_for_them),
		TEST(colours_do_not_count),
		TEST(characters_and_sequences_across_the_border_stay_whole),
		TEST(what_was_never_kept_is_counted_as_left_out),
		TEST(something_left_out_is_never_nothing),
		TEST(what_may_be_shown_twice_is_the_same),
		TEST(short_output_makes_no_file),
		TEST(long_output_goes_to_the_file_whole),
		TEST(nothing_of_the_trailer_is_in_the_file),
		TEST(the_file_has_a_limit),
		TEST(whenever_text_is_left_out_the_file_holds_it),
		TEST(a_file_that_is_there_already_is_left_alone),
		TEST(what_is_no_plain_text_goes_to_the_file),
		TEST(a_file_that_could_not_be_made_is_not_made_later),
		TEST(a_text_that_is_whole_lacks_nothing_for_want_of_a_file),
		TEST(a_full_disk_costs_the_file_and_nothing_else),
		TEST(the_last_line_is_the_last_with_something_on_it),
		TEST(the_last_line_may_cross_the_border_of_head_and_tail),
		TEST(the_last_line_of_long_output_is_found_in_the_ring),
		TEST(a_long_last_line_shows_its_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
