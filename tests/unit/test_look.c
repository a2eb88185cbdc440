#include "watch/look.h"

#include "help.h"

#define MARK "0123456789abcdef"
#define HEAD(state, what)                                                    \
	"run 1\nstate " state "\nwhat " what "\nended 5\npid 7\nstarted 1\n" \
	"stop 0\nid abc\ntmux 0\norphans 0\nbegin 0\nsize 4\nfrom 0\nat 0\n" \
	"offset 4\nreplaced 0\nmark \nlog /l\n\n"

static const struct look_query query = { .log_lines = 10,
	.log_max = 1000,
	.checkpoint_max = 8 };
static struct watch watch;
static struct look look;
static struct err err;

static int
begin(void **state)
{
	(void)state;
	watch_init(&watch);
	watch_set(&watch.checkpoint_path, "ck");
	memset(&look, 0, sizeof(look));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	look_free(&look);
	watch_free(&watch);
	return 0;
}

static int
parse(const char *text)
{
	look_free(&look);
	return look_parse(&look, &watch, &query, MARK, text, strlen(text),
	    &err);
}

static void
a_look_is_read(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD("running", "-") "hi\n\n\n" MARK
	                                            "\nboot-1\nstep 3\n\n" MARK
	                                            " 0\n"),
	    0);
	assert_true(look.reached);
	assert_int_equal(look.seen.seen, SEEN_JOB);
	assert_int_equal(look.seen.state, JOB_RUNNING);
	assert_string_equal(look.seen.log_tail, "hi\n\n");
	assert_string_equal(look.seen.boot_id, "boot-1");
	assert_string_equal(look.seen.checkpoint, "step 3\n");
	assert_string_equal(look.seen.checkpoint_error, "");
}

static void
a_checkpoint_that_was_not_read_has_a_reason(void **state)
{
	static const char *const cases[][2] = { { "none", "no file 'ck'" },
		{ "denied", "may not be read" }, { "cwd", "(cwd)" },
		{ "124", "longer than" }, { "3", "exited with 3" },
		{ "odd", "not read in time" } };
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		text = xasprintf("%s\n%s\nb\nrest\n%s %s\n",
		    HEAD("exited", "0"), MARK, MARK, cases[i][0]);
		assert_int_equal(parse(text), 0);
		assert_int_equal(look.seen.state, JOB_EXITED);
		assert_null(look.seen.checkpoint);
		says(look.seen.checkpoint_error, cases[i][1]);
		free(text);
	}
	assert_int_equal(parse(HEAD("exited", "0") "\n" MARK "\nb\n\n" MARK
	                                           " -\n"),
	    0);
	assert_null(look.seen.checkpoint);
	assert_string_equal(look.seen.checkpoint_error, "");
}

static void
a_long_checkpoint_is_cut_and_said(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD("running",
	                     "-") "\n" MARK "\nb\n123456789\n" MARK " 141\n"),
	    0);
	assert_string_equal(look.seen.checkpoint, "12345678");
	says(look.seen.checkpoint_error, "longer than 8");
}

static void
a_checkpoint_that_hangs_hides_no_state(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD("lost", "runner") "\n" MARK "\nb\nhal"), 0);
	assert_int_equal(look.seen.state, JOB_LOST);
	assert_string_equal(look.seen.reason, "runner");
	assert_null(look.seen.checkpoint);
	says(look.seen.checkpoint_error, "in time");
	assert_int_equal(parse(HEAD("running", "-") "\n" MARK "\n"), 0);
	assert_string_equal(look.seen.boot_id, "");
}

static void
what_is_cut_off_is_no_word_about_the_job(void **state)
{
	(void)state;
	assert_int_equal(parse(""), -1);
	assert_int_equal(parse(HEAD("running", "-") "log\n"), -1);
	assert_int_equal(parse("\n" MARK "\nb\n\n" MARK " 0\n"), -1);
	assert_int_equal(parse("state flying\n\n\n" MARK "\nb\n"), -1);
	assert_int_equal(look.seen.seen, SEEN_UNREACHABLE);
}

/* Not seen is neither ended nor lost. */
static void
a_job_of_another_machine_is_not_seen(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD("running",
	                     "elsewhere n2") "b\n" MARK "\nb\n-\n" MARK " -\n"),
	    0);
	assert_int_equal(look.seen.seen, SEEN_UNREACHABLE);
	says(look.seen.error, "(n2)");
}

static void
remote_text_is_clean(void **state)
{
	(void)state;
	assert_int_equal(parse(HEAD("running", "-") "\033[mb\n" MARK
	                                            "\nb\n\033[1mx\xff\n" MARK
	                                            " 0\n"),
	    0);
	assert_string_equal(look.seen.log_tail, "b");
	assert_string_equal(look.seen.checkpoint, "x\xef\xbf\xbd");
}

/* The script must not be broken by what stands in a record. */
static void
words_are_quoted(void **state)
{
	struct buf b;

	(void)state;
	watch_set(&watch.cwd, "a'; rm -rf /");
	watch_set(&watch.checkpoint_path, "-n $(x)");
	buf_init(&b, SIZE_MAX);
	look_script(&b, &watch, &query, MARK);
	says(b.data, "cd -- ./'a'\\''; rm -rf /'");
	says(b.data, "p=./'-n $(x)'");
	buf_free(&b);
}

static void
a_plan_may_name_the_resumed_job(void **state)
{
	char name[JOB_NAME_MAX + 1];

	(void)state;
	watch_set(&watch.tmux_session, "own");
	look_resume_name(&watch, name);
	assert_string_equal(name, "own");
	watch_set(&watch.resume_plan_json, "{\"tmux_session\": \"a.b\"}");
	look_resume_name(&watch, name);
	assert_string_equal(name, "a_b");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_look_is_read),
		TEST(a_checkpoint_that_was_not_read_has_a_reason),
		TEST(a_long_checkpoint_is_cut_and_said),
		TEST(a_checkpoint_that_hangs_hides_no_state),
		TEST(what_is_cut_off_is_no_word_about_the_job),
		TEST(a_job_of_another_machine_is_not_seen),
		TEST(remote_text_is_clean),
		TEST(words_are_quoted),
		TEST(a_plan_may_name_the_resumed_job),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
