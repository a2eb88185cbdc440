#include "help.h"
#include "tools/expression.h"
#include "tools/jobs.h"

static void
becomes(const char *given, const char *want)
{
	struct err err;
	char *got = expression_new(given, &err);

	assert_non_null(got);
	assert_string_equal(got, want);
	free(got);
}

static void
expressions_are_spelled_out(void **state)
{
	(void)state;
	becomes("", "");
	becomes("a.b|c*", "a.b|c*");
	becomes("\\d+\\s\\w", "[0-9]+[[:space:]][[:alnum:]_]");
	becomes("[\\d.]+", "[0-9.]+");
	becomes("[^\\s]", "[^[:space:]]");
	becomes("\\.\\[\\\\", "\\.\\[\\\\");
	becomes("[]\\d]\\d", "[]0-9][0-9]");
	becomes("[^]\\d]\\d", "[^]0-9][0-9]");
	becomes("[[:alpha:]\\d]", "[[:alpha:]0-9]");
	becomes("[\\.\\w]", "[.[:alnum:]_]");
	becomes("[a\\-z]", "[a\\-z]");
	becomes("\\\\d", "\\\\d");
	becomes("\\b", "\\b");
	becomes("(?:a|b)c\\(?:[(?:]", "(a|b)c\\(?:[(?:]");
	becomes("(a+ b+ c+ d+ e+ f+ g+ h+ i+ j+ k+ l+ m+){3}",
	    "(a+ b+ c+ d+ e+ f+ g+ h+ i+ j+ k+ l+ m+){3}");
	becomes("x{1,100}", "x{1,100}");
}

static void
bad_expressions_are_refused(void **state)
{
	static const char *const bad[] = { "(", "[", "[a", "a{2,1}", "[[:x:]]",
		"\\", "a\nb", "[\\", "((a{99}){99}){99}",
		"a++++++++++++++++++++",
		"(((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)",
		"a{9999999999999}" };
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_null(expression_new(bad[i], &err));
		assert_true(err.code == ERR_INVALID && err.msg[0] != '\0');
	}
}

static void
shows(const char *log, const char *want)
{
	struct buf out;

	buf_init(&out, SIZE_MAX);
	jobs_log_text(&out, log, strlen(log));
	assert_string_equal(out.data, want);
	buf_free(&out);
}

static void
a_bar_is_shown_as_it_was_at_last(void **state)
{
	(void)state;
	shows("", "");
	shows("a\nb\n", "a\nb\n");
	shows("a\r\nb\r\n", "a\nb\n");
	shows("10%\r20%\r30%", "30%");
	shows("10%\r20%\r", "20%");
	shows("x\n10%\r20%\r\ny", "x\n20%\ny");
	shows("\r\r\n", "\n");
	shows("\033[1mbold\033[0m\n", "bold\n");
	shows("no newline", "no newline");
}

static void
names_of_variables(void **state)
{
	(void)state;
	assert_true(jobs_variable_name("A"));
	assert_true(jobs_variable_name("_a1"));
	assert_false(jobs_variable_name(""));
	assert_false(jobs_variable_name("1a"));
	assert_false(jobs_variable_name("a b"));
	assert_false(jobs_variable_name("a="));
	assert_false(jobs_variable_name("\xc3\xa4"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_are_spelled_out),
		cmocka_unit_test(bad_expressions_are_refused),
		cmocka_unit_test(a_bar_is_shown_as_it_was_at_last),
		cmocka_unit_test(names_of_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
