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
	becomes("(\\w)\\1", "([[:alnum:]_])\\1");
}

static void
the_shortest_match_is_in_the_same_lines(void **state)
{
	(void)state;
	becomes("a.*?b", "a.*b");
	becomes("a+?b?"
	        "?c{2}?",
	    "a+b?c{2}");
	becomes("a?b+c*", "a?b+c*");
	becomes("a\\*?[*]?(d)?", "a\\*?[*]?(d)?");
	becomes("{?", "\\{?");
}

static void
a_brace_that_repeats_nothing_is_a_sign(void **state)
{
	(void)state;
	becomes("{\"loss\": ", "\\{\"loss\": ");
	becomes("a{ b{x} c{1 d{,} e{1,2 f{}",
	    "a\\{ b\\{x} c\\{1 d\\{,} "
	    "e\\{1,2 f\\{}");
	becomes("a{2}b{2,}c{2,3}d\\{2}[{]", "a{2}b{2,}c{2,3}d\\{2}[{]");
	becomes("a{,3}", "a{0,3}");
}

/* That is the host's, and what libraries need for these is hours. */
static void
nothing_is_judged_here(void **state)
{
	(void)state;
	becomes("(", "(");
	becomes("[a", "[a");
	becomes("a{2,1}", "a{2,1}");
	becomes("\\", "\\");
	becomes("[\\", "[\\");
	becomes("((a{99}){99}){99}", "((a{99}){99}){99}");
	becomes("a{9999999999999}", "a{9999999999999}");
}

static void
refused(const char *given, const char *because)
{
	struct err err = ERR_INIT;

	assert_null(expression_new(given, &err));
	assert_int_equal(err.code, ERR_INVALID);
	says(err.msg, because);
}

static void
what_grep_does_not_know_is_refused(void **state)
{
	char *longest = xmalloc(4002);

	(void)state;
	refused("a\nb", "newline");
	refused("(?i)error", "'(?i)' is unknown to grep");
	refused("(?i)error", "[Ee]rror");
	refused("(?si:error)", "'(?si:' is unknown to grep");
	refused("a(?=b)", "'(?=' is unknown to grep");
	refused("(?P<n>b)", "'(?P' is unknown to grep");
	refused("(?", "'(?' is unknown to grep");
	refused("(?i", "'(?i' is unknown to grep");
	memset(longest, 'x', 4001);
	longest[4001] = '\0';
	refused(longest, "4000");
	becomes(longest + 1, longest + 1);
	free(longest);
	becomes("[(?i)]\\(?", "[(?i)]\\(?");
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

static void
attach_is(const char *name, const char *want)
{
	char host[] = "h", user[] = "u";
	char key[] = "/my key";
	struct sandbox sb = { .host = host,
		.user = user,
		.port = 7,
		.key_file = key };
	json_t *o = json_object();

	jobs_set_attach(o, &sb, name);
	assert_string_equal(json_string_value(
	                        json_object_get(o, "attach_command")),
	    want);
	json_decref(o);
}

static void
what_a_person_pastes_is_quoted_twice(void **state)
{
	(void)state;
	attach_is("train-1",
	    "ssh -t -p 7 -i '/my key' u@h \"tmux attach -t '=train-1'\"");
	attach_is("$(id)",
	    "ssh -t -p 7 -i '/my key' u@h 'tmux attach -t '\\''=$(id)'\\'''");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_are_spelled_out),
		cmocka_unit_test(the_shortest_match_is_in_the_same_lines),
		cmocka_unit_test(a_brace_that_repeats_nothing_is_a_sign),
		cmocka_unit_test(nothing_is_judged_here),
		cmocka_unit_test(what_grep_does_not_know_is_refused),
		cmocka_unit_test(a_bar_is_shown_as_it_was_at_last),
		cmocka_unit_test(names_of_variables),
		cmocka_unit_test(what_a_person_pastes_is_quoted_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
