#include <string.h>

#include "base/proc.h"
#include "base/quote.h"
#include "test.h"

static void
check(const char *word, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	quote_sh(&b, word);
	assert_string_equal(b.data, want);
	buf_free(&b);
}

static void
leaves_harmless_words_unchanged(void **state)
{
	(void)state;
	check("a", "a");
	check("/usr/bin/x-1.2_3", "/usr/bin/x-1.2_3");
	check("user@host:22,+%", "user@host:22,+%");
	check("--flag", "--flag");
}

static void
quotes_an_empty_word(void **state)
{
	(void)state;
	check("", "''");
}

static void
quotes_what_a_shell_would_read_otherwise(void **state)
{
	static const char special[] =
	    " \t\n\r\\\"`$&|;<>(){}[]*?!#~^=\x01\x7f\xc3\x28";
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(special) - 1; i++) {
		char word[] = { 'a', special[i], 'b', '\0' };
		char want[] = { '\'', 'a', special[i], 'b', '\'', '\0' };

		check(word, want);
	}
}

static void
quotes_quotes(void **state)
{
	(void)state;
	check("'", "''\\'''");
	check("it's", "'it'\\''s'");
	check("''", "''\\'''\\'''");
}

static void
appends(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	buf_adds(&b, "ls ");
	quote_sh(&b, "a b");
	assert_string_equal(b.data, "ls 'a b'");
	buf_free(&b);
}

static void
check_path(const char *path, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	quote_path(&b, path);
	assert_string_equal(b.data, want);
	buf_free(&b);
}

static void
paths_are_absolute_or_begin_with_a_dot(void **state)
{
	(void)state;
	check_path("/a b", "'/a b'");
	check_path("a", "./a");
	check_path("-n", "./-n");
	check_path(".", "./.");
	check_path("it's", "./'it'\\''s'");
	check_path("", "./''");
}

static void
the_home_is_the_far_sides(void **state)
{
	(void)state;
	check_path("~", "\"$HOME\"");
	check_path("~/", "\"$HOME\"/");
	check_path("~/a b", "\"$HOME\"'/a b'");
	check_path("~ada/x", "./'~ada/x'");
	check_path("~~", "./'~~'");
	check_path("a/~/b", "./'a/~/b'");
}

/* The real judge: what sh makes of a word with every byte there is. */
static void
survives_a_shell(void **state)
{
	const char *argv[] = { "sh", "-c", NULL, NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };
	struct proc_result res;
	struct until until = until_in(20000);
	struct err err = ERR_INIT;
	struct buf script;
	char word[2 * 255 + 1];
	size_t i;

	(void)state;
	for (i = 0; i < 255; i++) {
		word[i] = (char)(i + 1);
		word[255 + i] = (char)(255 - i);
	}
	word[510] = '\0';
	buf_init(&script, 10000);
	buf_adds(&script, "printf %s ");
	quote_sh(&script, word);
	argv[2] = script.data;
	assert_int_equal(proc_run(&req, &res, &until, &err), 0);
	assert_int_equal(res.exit_code, 0);
	assert_int_equal(res.out.len, 510);
	assert_memory_equal(res.out.data, word, 510);
	proc_result_free(&res);
	buf_free(&script);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_harmless_words_unchanged),
		cmocka_unit_test(quotes_an_empty_word),
		cmocka_unit_test(quotes_what_a_shell_would_read_otherwise),
		cmocka_unit_test(quotes_quotes),
		cmocka_unit_test(appends),
		cmocka_unit_test(paths_are_absolute_or_begin_with_a_dot),
		cmocka_unit_test(the_home_is_the_far_sides),
		cmocka_unit_test(survives_a_shell),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
