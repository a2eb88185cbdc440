#include "help.h"
#include "job/job.h"

#define HEAD "run 2\nstate running\nwhat -\nended 0\npid 7\nstarted 100\n"

static struct job_status
parsed(const char *text, size_t max)
{
	struct job_status s;
	struct err err;

	assert_int_equal(job_status_parse(&s, text, strlen(text), max, &err),
	    0);
	return s;
}

static void
log_is(const char *text, size_t max, const char *log, int64_t offset)
{
	struct job_status s = parsed(text, max);

	assert_string_equal(s.log.data, log);
	assert_int_equal(s.log_offset, offset);
	job_status_free(&s);
}

static void
name_is(const char *given, const char *want)
{
	char out[JOB_NAME_MAX + 1];

	job_name(out, given);
	assert_string_equal(out, want);
}

static void
names_are_safe(void **state)
{
	char out[JOB_NAME_MAX + 1], *text = xmalloc(300);

	(void)state;
	name_is("train-1_A", "train-1_A");
	name_is("v1.2:x", "v1_2_x");
	name_is(" a b", "a_b");
	name_is("-x", "_x");
	name_is("../..", "_____");
	name_is("\xc3\xa4", "__");
	memset(text, 'x', 299);
	text[299] = '\0';
	job_name(out, text);
	assert_int_equal(strlen(out), JOB_NAME_MAX);
	free(text);
	job_name(out, " ");
	assert_int_equal(strncmp(out, "bg-", 3), 0);
}

static void
a_status_is_read(void **state)
{
	struct job_status s = parsed("run 2\nstate killed\nwhat 9\nended 160\n"
	                             "pid 7\nstarted 100\nstop 1\nid abc\n"
	                             "tmux 1\nsize 12\nfrom 0\nat 0\noffset 0\n"
	                             "new 5\nlog /a b/c\n\n",
	    100);

	(void)state;
	assert_int_equal(s.state, JOB_KILLED);
	assert_int_equal(s.signal, 9);
	assert_int_equal(s.exit_code, 137);
	assert_int_equal(s.run, 2);
	assert_int_equal(s.ended, 160);
	assert_true(s.stopped && s.tmux && s.log_more);
	assert_string_equal(s.log_file, "/a b/c");
	assert_string_equal(s.id, "abc");
	job_status_free(&s);
	s = parsed("state lost\nwhat reboot\n\n", 100);
	assert_string_equal(s.reason, "reboot");
	assert_int_equal(s.exit_code, -1);
	job_status_free(&s);
	s = parsed("state exited\nwhat 300\n\n", 100);
	assert_int_equal(s.exit_code, -1);
	job_status_free(&s);
}

static void
what_was_left_running_is_read(void **state)
{
	struct job_status s;
	struct buf text;
	int i;

	(void)state;
	s = parsed("state exited\nwhat 0\norphans 2\nleft 71 x 72 0 \n\n", 100);
	assert_int_equal(s.orphans, 2);
	assert_int_equal(s.left_count, 2);
	assert_int_equal(s.left[0], 71);
	assert_int_equal(s.left[1], 72);
	job_status_free(&s);
	s = parsed("state exited\nwhat 0\norphans 0\nleft \n\n", 100);
	assert_int_equal(s.left_count, 0);
	job_status_free(&s);
	buf_init(&text, SIZE_MAX);
	buf_adds(&text, "state exited\nleft");
	for (i = 0; i < 1000; i++)
		buf_adds(&text, " 9");
	buf_adds(&text, "\n\n");
	s = parsed(text.data, 100);
	assert_int_equal(s.left_count, JOB_LEFT_MAX);
	job_status_free(&s);
	buf_free(&text);
}

static void
a_job_of_another_machine_is_not_known(void **state)
{
	struct job_status s = parsed("run 1\nstate running\n"
	                             "what elsewhere login-2.example\n\n",
	    100);

	(void)state;
	assert_int_equal(s.state, JOB_UNKNOWN);
	says(s.problem, "(login-2.example)");
	job_status_free(&s);
}

static void
grep_says(const char *word, const char *want)
{
	char text[100];
	struct job_status s;

	snprintf(text, sizeof(text), "expression 0\nstate none\n%s\n\n", word);
	s = parsed(text, 100);
	assert_string_equal(s.bad_grep, want);
	job_status_free(&s);
}

static void
what_grep_says_about_an_expression(void **state)
{
	(void)state;
	grep_says("", "");
	grep_says("expression 1 grep: warning", "");
	grep_says("expression 2 grep: Unmatched [", "Unmatched [");
	grep_says("expression 2 /bin/grep: bad regex 'a: b'",
	    "bad regex 'a: b'");
	grep_says("expression 2 what", "it ended with 2 what");
	grep_says("expression 2", "it ended with 2");
	grep_says("expression 127 sh: grep: not found",
	    "it ended with 127 sh: grep: not found");
	grep_says("expression 152 ", "it takes too much time or memory");
}

static void
what_makes_no_sense_is_refused(void **state)
{
	static const char *const texts[] = { "", "\n", "state running\n",
		"state wild\n\n", "run 1\n\n", "noise", "state\n\n" };
	struct job_status s;
	struct err err;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(job_status_parse(&s, texts[i],
		                     strlen(texts[i]), 100, &err),
		    -1);
}

static void
bytes_around_those_asked_for_go(void **state)
{
	(void)state;
	log_is(HEAD "size 9\nfrom 0\nat 4\noffset 9\n\nxxx\nabc\nd", 100,
	    "abc\nd", 9);
	/* The file grew meanwhile. */
	log_is(HEAD "size 9\nfrom 0\nat 4\noffset 9\n\nxxx\nabc\ndef", 100,
	    "abc\nd", 9);
	/* It was replaced by a shorter one. */
	log_is(HEAD "size 9\nfrom 0\nat 4\noffset 9\n\nxx", 100, "", 4);
	log_is(HEAD "size -1\nfrom 0\nat 0\noffset 0\n\n", 100, "", 0);
	log_is(HEAD "from 9\nat 4\noffset 2\n\nabc", 100, "", 4);
}

/* Sums and differences of them would have no place. */
static void
numbers_that_cannot_be_are_not_taken(void **state)
{
	struct job_status s;

	(void)state;
	log_is(HEAD "from -9223372036854775808\nat 4\noffset "
	            "9223372036854775807\n\nabc",
	    100, "", 4);
	log_is(HEAD "from 0\nat -9223372036854775808\noffset 3\n\nabc", 100,
	    "abc", 3);
	/* One that says less than it sends does not go back. */
	log_is(HEAD "size 9\nfrom 2\nat 2\noffset 3\nmark MM\n\nabcdMM\n", 100,
	    "", 2);
	s = parsed(HEAD "begin -5\nsize 9223372036854775807\n\n", 100);
	assert_int_equal(s.log_begin, 0);
	assert_int_equal(s.log_size, -1);
	job_status_free(&s);
	s = parsed(HEAD "size -2\n\n", 100);
	assert_int_equal(s.log_size, -1);
	job_status_free(&s);
}

static void
half_a_character_comes_later(void **state)
{
	(void)state;
	log_is(HEAD "size 4\nfrom 0\nat 0\noffset 4\n\nab\xe2\x98", 100, "ab",
	    2);
	log_is(HEAD "size 2\nfrom 0\nat 0\noffset 2\n\n\xe2\x98", 100, "", 0);
	log_is(HEAD "size 3\nfrom 0\nat 0\noffset 3\n\n\xe2\x98\x83", 100,
	    "\xe2\x98\x83", 3);
	/* What is no character is no half one. */
	log_is(HEAD "size 5\nfrom 0\nat 0\noffset 5\n\n\x98\x98\x98\x98\x98",
	    100, "\x98\x98\x98\x98\x98", 5);
	/* Nothing comes after the end. */
	log_is("state exited\nwhat 0\nsize 3\nfrom 0\nat 0\noffset 3\n\n"
	       "a\xe2\x98",
	    100, "a\xe2\x98", 3);
}

static void
a_line_that_is_not_whole_waits(void **state)
{
	(void)state;
	log_is(HEAD "size 20\nfrom 0\nat 0\noffset 20\nmark MM\n\nabc\nde"
	            "MM\n",
	    100, "abc\n", 18);
	log_is(HEAD "size 3\nfrom 0\nat 0\noffset 3\nmark MM\n\nabcMM\n", 100,
	    "", 0);
	log_is(HEAD "size 4\nfrom 0\nat 0\noffset 4\nmark MM\n\nMM\n", 100, "",
	    4);
	/* One that is too long does not wait for ever. */
	log_is(HEAD "size 8\nfrom 0\nat 0\noffset 8\nmark MM\n\nabcdefghMM\n",
	    10, "abcdefgh", 8);
}

static void
the_end_is_kept(void **state)
{
	struct job_status s = parsed(HEAD "size 30\nfrom 0\nat 0\noffset 30\n\n"
	                                  "123456789\n123456789\n123456789\n",
	    22);

	(void)state;
	assert_true(s.log_cut);
	assert_string_equal(s.log.data, "123456789\n123456789\n");
	job_status_free(&s);
	s = parsed(HEAD "size 6\nfrom 0\nat 0\noffset 6\n\nab\xe2\x98\x83z", 3);
	assert_string_equal(s.log.data, "z");
	job_status_free(&s);
}

static void
count(void *data, const char *name, struct job_status *s)
{
	(void)name;
	*(int *)data += s->state == JOB_RUNNING ? 1 : 100;
}

static int64_t
list(const char *text, int *seen)
{
	struct err err;

	*seen = 0;
	return job_list_parse(text, strlen(text), count, seen, &err);
}

static void
a_list_is_read_to_its_end(void **state)
{
	int seen;

	(void)state;
	assert_int_equal(list("gone 3\n\n", &seen), 3);
	assert_int_equal(list("name a\nstate running\n\nname b\nstate exited\n"
	                      "what 0\n\ngone 0\n\n",
	                     &seen),
	    0);
	assert_int_equal(seen, 101);
	/* What else is in a scheduler's queue, but not what has ended. */
	assert_int_equal(list("name a\nstate running\nslurm 5\n"
	                      "queue 9 ok\nq 5|RUNNING|None\n\n"
	                      "queue 9 ok\nq 5|RUNNING|None\n"
	                      "q 6|RUNNING|None\nq 7|COMPLETED|None\n\n"
	                      "gone 0\n\n",
	                     &seen),
	    0);
	assert_int_equal(seen, 2);
	assert_int_equal(list("queue 9 ok\nq 6|RUNNING|None\n", &seen), -1);
	assert_int_equal(list("", &seen), -1);
	assert_int_equal(list("name a\nstate running\n\n", &seen), -1);
	assert_int_equal(list("name a\nstate wild\n\ngone 0\n\n", &seen), -1);
	assert_int_equal(list("gone x\n", &seen), -1);
}

static void
answers_of_a_start(void **state)
{
	struct job_handle h = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(job_answer_parse(&h, "ok 3 1 85 /a b", true, "box",
	                     &err),
	    0);
	assert_int_equal(h.how, JOB_STARTED);
	assert_int_equal(h.run, 3);
	assert_int_equal(h.begin, 85);
	assert_true(h.tmux);
	assert_string_equal(h.log_file, "/a b");
	job_handle_free(&h);
	assert_int_equal(job_answer_parse(&h, "exists 3 0 2 0 f00 name /a b",
	                     true, "box", &err),
	    0);
	assert_int_equal(h.how, JOB_EXISTS);
	assert_int_equal(h.orphans, 2);
	assert_string_equal(h.id, "f00");
	assert_string_equal(h.name, "name");
	job_handle_free(&h);
	assert_int_equal(job_answer_parse(&h, "again 1 0 0 17 - n ", true,
	                     "box", &err),
	    0);
	assert_int_equal(h.how, JOB_AGAIN);
	assert_int_equal(h.slurm_job, 17);
	job_handle_free(&h);
	assert_int_equal(job_answer_parse(&h, "queued 5 1 0 85 /a b", true,
	                     "box", &err),
	    0);
	assert_int_equal(h.how, JOB_STARTED);
	assert_int_equal(h.slurm_job, 5);
	assert_int_equal(h.begin, 85);
	job_handle_free(&h);
	assert_int_equal(job_answer_parse(&h, "queued 0 1 0 85 /a b", true,
	                     "box", &err),
	    0);
	assert_int_equal(h.slurm_job, 0); /* sbatch did not tell */
	job_handle_free(&h);
	assert_int_equal(job_answer_parse(&h, "cwd /x", true, "box", &err), -1);
	assert_non_null(strstr(err.msg, "'/x' (cwd) does not exist on box"));
	says(err.msg, "Make it there (mkdir -p, in exec_bash with cwd '~')");
	assert_int_equal(job_answer_parse(&h, "stale", true, "box", &err), -1);
	says(err.msg, "; call again");
	assert_int_equal(job_answer_parse(&h, "bad full", true, "box", &err),
	    -1);
	assert_int_equal(job_answer_parse(&h, "", true, "box", &err), -1);
	assert_int_equal(job_answer_parse(&h, "ok", true, "box", &err), -1);
	assert_int_equal(job_answer_parse(&h, "ok 1 2", true, "box", &err), -1);
	assert_int_equal(job_answer_parse(&h, "ok 1 1 -1 /a", true, "box",
	                     &err),
	    -1);
	assert_int_equal(job_answer_parse(&h, "ok 1 1 9223372036854775807 /a",
	                     true, "box", &err),
	    -1);
	assert_int_equal(job_answer_parse(&h, "queued -1 1 0 85 /a", true,
	                     "box", &err),
	    -1);
	assert_int_equal(job_answer_parse(&h, "exists 1 0 0 0 i n", true, "box",
	                     &err),
	    -1);
	/* Nobody asked for that of another name. */
	assert_int_equal(job_answer_parse(&h, "again 1 0 0 17 - n ", false,
	                     "box", &err),
	    -1);
	assert_int_equal(job_answer_parse(&h, "exists 1 0 0 x i n /a", true,
	                     "box", &err),
	    -1);
}

static void
names_of_a_host_are_safe(void **state)
{
	static const char *const texts[] = { "exists 1 1 0 0 i n;id /a",
		"exists 1 1 0 0 i $(id) /a", "exists 1 1 0 0 i n\nid /a",
		"exists 1 1 0 0 i n.x /a", "again 1 1 0 0 `id` n /a",
		"again 1 1 0 0  n /a", "again 1 1 0 0 i  /a" };
	struct job_handle h = { 0 };
	struct err err;
	char text[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(job_answer_parse(&h, texts[i], true, "box",
		                     &err),
		    -1);
		says(err.msg, "strange answer");
	}
	/* Nor is one cut that is too long. */
	snprintf(text, sizeof(text), "exists 1 1 0 0 i %0101d /a", 0);
	assert_int_equal(job_answer_parse(&h, text, true, "box", &err), -1);
	snprintf(text, sizeof(text), "exists 1 1 0 0 i %0100d /a", 0);
	assert_int_equal(job_answer_parse(&h, text, true, "box", &err), 0);
	job_handle_free(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_safe),
		cmocka_unit_test(names_of_a_host_are_safe),
		cmocka_unit_test(a_status_is_read),
		cmocka_unit_test(what_was_left_running_is_read),
		cmocka_unit_test(a_job_of_another_machine_is_not_known),
		cmocka_unit_test(what_grep_says_about_an_expression),
		cmocka_unit_test(what_makes_no_sense_is_refused),
		cmocka_unit_test(bytes_around_those_asked_for_go),
		cmocka_unit_test(numbers_that_cannot_be_are_not_taken),
		cmocka_unit_test(half_a_character_comes_later),
		cmocka_unit_test(a_line_that_is_not_whole_waits),
		cmocka_unit_test(the_end_is_kept),
		cmocka_unit_test(a_list_is_read_to_its_end),
		cmocka_unit_test(answers_of_a_start),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
