#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/utf8.h"
#include "test.h"

static void
keeps_code_and_sentence_and_returns_minus_one(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(err.code, ERR_NONE);
	assert_int_equal(err_set(&err, ERR_INVALID, "no %s: %d", "x", 7), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.msg, "no x: 7");
}

static void
keeps_a_sentence_that_just_fits(void **state)
{
	char text[ERR_MSG_SIZE];
	struct err err = ERR_INIT;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_set(&err, ERR_IO, "%s", text);
	assert_string_equal(err.msg, text);
}

static void
ends_a_long_sentence_in_dots(void **state)
{
	char text[ERR_MSG_SIZE + 1];
	struct err err = ERR_INIT;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	err_set(&err, ERR_IO, "%s", text);
	assert_int_equal(strlen(err.msg), ERR_MSG_SIZE - 1);
	assert_string_equal(err.msg + ERR_MSG_SIZE - 5, "x...");
}

/* Whatever stands where the cut falls. */
static void
never_cuts_a_character_in_half(void **state)
{
	static const char *const characters[] = { "\u00e9", "\u20ac",
		"\U0001f600" };
	char text[3 * ERR_MSG_SIZE];
	struct err err = ERR_INIT;
	size_t i, shift, len;

	(void)state;
	for (i = 0; i < 3; i++) {
		for (shift = 0; shift < 4; shift++) {
			size_t n = strlen(characters[i]);

			memset(text, 'x', shift);
			for (len = shift; len + n < sizeof(text); len += n)
				memcpy(text + len, characters[i], n);
			text[len] = '\0';
			err_set(&err, ERR_IO, "%s", text);
			len = strlen(err.msg);
			assert_true(utf8_valid(err.msg, len));
			assert_true(len > ERR_MSG_SIZE - 5);
			assert_string_equal(err.msg + len - 3, "...");
		}
	}
}

static void
does_nothing_to_a_terminal(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	err_set(&err, ERR_IO, "%s",
	    "a\033]0;x\007\r\b\x7f\xc2\x9b"
	    "1m\n\tb \u00a0");
	assert_string_equal(err.msg, "a?]0;x??????1m\n\tb \u00a0");
	err_set(&err, ERR_IO, "%s", "\xc2");
	assert_string_equal(err.msg, "\xc2");
}

static void
appends_the_text_of_errno(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	errno = ENOENT;
	assert_int_equal(err_sys(&err, "cannot open %s", "f"), -1);
	assert_string_equal(err.msg,
	    "cannot open f: No such file or directory");
	assert_int_equal(errno, ENOENT);
}

static void
picks_the_code_by_errno(void **state)
{
	static const struct {
		int number;
		enum err_code code;
	} rows[] = {
		{ ENOENT, ERR_NOT_FOUND },
		{ ENOTDIR, ERR_NOT_FOUND },
		{ EACCES, ERR_DENIED },
		{ EPERM, ERR_DENIED },
		{ EROFS, ERR_DENIED },
		{ EIO, ERR_IO },
		{ ENOSPC, ERR_IO },
		{ ETIMEDOUT, ERR_IO },
	};
	struct err err = ERR_INIT;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		errno = rows[i].number;
		err_sys(&err, "x");
		assert_int_equal(err.code, rows[i].code);
	}
}

static void
says_something_of_an_unknown_errno(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	errno = 123456;
	err_sys(&err, "x");
	assert_true(strlen(err.msg) > strlen("x: "));
	assert_non_null(strstr(err.msg, "123456"));
}

static void
keeps_the_text_of_errno_whole_when_it_cuts(void **state)
{
	char path[2 * ERR_MSG_SIZE];
	struct err err = ERR_INIT;
	const char *end = "...: No such file or directory";

	(void)state;
	memset(path, 'p', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	errno = ENOENT;
	err_sys(&err, "cannot open %s", path);
	assert_int_equal(strlen(err.msg), ERR_MSG_SIZE - 1);
	assert_string_equal(err.msg + strlen(err.msg) - strlen(end), end);
}

static void
puts_context_in_front_and_keeps_the_code(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	err_set(&err, ERR_LIMIT, "too many");
	assert_int_equal(err_wrap(&err, "file %s", "f"), -1);
	assert_string_equal(err.msg, "file f: too many");
	assert_int_equal(err.code, ERR_LIMIT);
}

static void
wraps_until_nothing_more_fits(void **state)
{
	struct err err = ERR_INIT;
	int i;

	(void)state;
	err_set(&err, ERR_IO, "\u20ac\u20ac\u20ac");
	for (i = 0; i < ERR_MSG_SIZE; i++) {
		err_wrap(&err, "\u00e9");
		assert_true(utf8_valid(err.msg, strlen(err.msg)));
	}
	assert_true(strlen(err.msg) < ERR_MSG_SIZE);
	assert_string_equal(err.msg + strlen(err.msg) - 3, "...");
}

static void
may_use_its_own_sentence_as_an_argument(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	err_set(&err, ERR_IO, "inner");
	err_set(&err, ERR_DENIED, "outer (%s)", err.msg);
	assert_string_equal(err.msg, "outer (inner)");
	err_wrap(&err, "again %s", err.msg);
	assert_string_equal(err.msg, "again outer (inner): outer (inner)");
	errno = EIO;
	err_sys(&err, "%.5s", err.msg);
	assert_string_equal(err.msg, "again: Input/output error");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_code_and_sentence_and_returns_minus_one),
		cmocka_unit_test(keeps_a_sentence_that_just_fits),
		cmocka_unit_test(ends_a_long_sentence_in_dots),
		cmocka_unit_test(never_cuts_a_character_in_half),
		cmocka_unit_test(does_nothing_to_a_terminal),
		cmocka_unit_test(appends_the_text_of_errno),
		cmocka_unit_test(picks_the_code_by_errno),
		cmocka_unit_test(says_something_of_an_unknown_errno),
		cmocka_unit_test(keeps_the_text_of_errno_whole_when_it_cuts),
		cmocka_unit_test(puts_context_in_front_and_keeps_the_code),
		cmocka_unit_test(wraps_until_nothing_more_fits),
		cmocka_unit_test(may_use_its_own_sentence_as_an_argument),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
