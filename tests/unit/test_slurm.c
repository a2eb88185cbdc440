/* What Slurm says, of old and new versions, and what it means. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "job/slurm.h"
#include "test.h"

static struct slurm_row
row(enum slurm_kind kind, const char *text)
{
	struct slurm_row r;

	assert_int_equal(slurm_row_parse(&r, kind, text), 0);
	return r;
}

static void
rows_are_read(void **state)
{
	struct slurm_row r;

	(void)state;
	r = row(SLURM_QUEUE,
	    "17|PENDING|Resources|N/A||1:00:00|rsmcp 0af3|my job|x");
	assert_int_equal(r.job, 17);
	assert_int_equal(r.task, -1);
	assert_string_equal(r.state, "PENDING");
	assert_string_equal(r.reason, "Resources");
	assert_int_equal(r.start, 0);
	assert_string_equal(r.mark, "0af3");
	assert_string_equal(r.name, "my job|x");
	r = row(SLURM_DONE, "5_3|TIMEOUT|TimeLimit|1794838979|n[1-2]|1:00||j");
	assert_int_equal(r.task, 3);
	assert_int_equal(r.start, 1794838979);
	assert_string_equal(r.nodes, "n[1-2]");
	r = row(SLURM_QUEUE, "5_[2-9%1]|PENDING|JobArrayTaskLimit");
	assert_string_equal(r.tasks, "2-9%1");
	r = row(SLURM_QUEUE, "8+1|RUNNING|None|1|n1|1:00|(null)|het");
	assert_int_equal(r.job, 8);
}

static void
accounts_are_read(void **state)
{
	struct slurm_row r;

	(void)state;
	r = row(SLURM_ACCT, "12|CANCELLED by 1000|0:15|1794838979|n1");
	assert_string_equal(r.state, "CANCELLED");
	assert_int_equal(r.code, 0);
	assert_int_equal(r.signal, 15);
	r = row(SLURM_ACCT, "12_4|OUT_OF_MEMORY|0:125|2026-01-02T03:04:05|n1");
	assert_int_equal(r.task, 4);
	assert_int_equal(r.start, 0);
	r = row(SLURM_ACCT, "12|CANCELLED+|0:0");
	assert_string_equal(r.state, "CANCELLED");
}

static void
what_is_no_row_is_refused(void **state)
{
	static const char *const texts[] = { "", "|", "x|RUNNING", "0|RUNNING",
		"5", "5|", "5x|RUNNING", "5_x|RUNNING", "5|running",
		"99999999999999999999999|RUNNING" };
	struct slurm_row r;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(slurm_row_parse(&r, SLURM_QUEUE, texts[i]),
		    -1);
	assert_int_equal(slurm_row_parse(&r, SLURM_OWN, "3 exited"), -1);
	assert_int_equal(slurm_row_parse(&r, SLURM_OWN, "a exited 0 1"), -1);
}

static void
tasks_are_counted(void **state)
{
	(void)state;
	assert_int_equal(slurm_tasks_count(""), 0);
	assert_int_equal(slurm_tasks_count("7"), 1);
	assert_int_equal(slurm_tasks_count("2-9%1"), 8);
	assert_int_equal(slurm_tasks_count("0-10:2,15,20-21%4"), 9);
	assert_int_equal(slurm_tasks_count("1,3,..."), 2);
	assert_int_equal(slurm_tasks_count("9-2"), 0);
	assert_true(slurm_tasks_have("0-10:2,15", 4));
	assert_false(slurm_tasks_have("0-10:2,15", 5));
	assert_true(slurm_tasks_have("0-10:2,15", 15));
	assert_false(slurm_tasks_have("2-9%1", 1));
}

/* Judge lines; "far" is what the far side has concluded itself. */
static struct job_status
judged(enum job_state far, int code, const char *lines)
{
	struct job_status s = { .state = far, .exit_code = code };
	char *copy = xstrdup(lines), *at = copy, *line;
	struct slurm_said said;

	slurm_said_init(&said);
	while ((line = strsep(&at, "\n")) != NULL) {
		char *word = strsep(&line, " ");

		if (line != NULL)
			assert_true(slurm_take(&said, word, line));
	}
	slurm_judge(&said, &s);
	slurm_said_free(&said);
	free(copy);
	return s;
}

#define LIVE "slurm 5 \nqueue 100 ok\n"
#define OVER "slurm 5 \nqueue 0 \n"

static void
what_is_there_is_alive(void **state)
{
	struct job_status s;

	(void)state;
	s = judged(JOB_RUNNING, -1, LIVE "q 5|PENDING|Priority|N/A||1:00||j");
	assert_int_equal(s.state, JOB_PENDING);
	assert_string_equal(s.reason, "Priority");
	assert_string_equal(s.slurm_id, "5");
	s = judged(JOB_RUNNING, -1, LIVE "q 5|COMPLETING|None|9|n1|1:00||j");
	assert_int_equal(s.state, JOB_RUNNING);
	assert_string_equal(s.slurm_state, "COMPLETING");
	assert_string_equal(s.nodes, "n1");
	s = judged(JOB_RUNNING, -1, LIVE "q 5|SOMETHING_NEW|None|9|n1|1:00||j");
	assert_int_equal(s.state, JOB_RUNNING);
	s = judged(JOB_RUNNING, -1, LIVE "q 5|REQUEUE_HOLD|None|9||1:00||j");
	assert_int_equal(s.state, JOB_PENDING);
	/* Its first run had an end; it goes on all the same. */
	s = judged(JOB_RUNNING, -1,
	    LIVE "done 5|NODE_FAIL|NodeDown|9|n1|1:00||j\n"
	         "q 5|RUNNING|None|20|n2|1:00||j");
	assert_int_equal(s.state, JOB_RUNNING);
	/* It was submitted just now. */
	s = judged(JOB_RUNNING, -1, LIVE);
	assert_int_equal(s.state, JOB_PENDING);
}

static void
silence_says_nothing(void **state)
{
	struct job_status s;

	(void)state;
	s = judged(JOB_RUNNING, -1,
	    "slurm 5 \nqueue 100 down Unable to contact slurm controller");
	assert_int_equal(s.state, JOB_UNKNOWN);
	assert_non_null(strstr(s.problem, "Unable to contact"));
	s = judged(JOB_RUNNING, -1, "slurm  \nqueue 100 down x");
	assert_int_equal(s.state, JOB_UNKNOWN);
	s = judged(JOB_RUNNING, -1, "slurm 5 \nqueue 0 ");
	assert_int_equal(s.state, JOB_UNKNOWN);
	s = judged(JOB_RUNNING, -1,
	    "slurm 5 \nqueue 9 down x\ndone 5_1|COMPLETED|None|1|n1|1||j");
	assert_int_equal(s.state, JOB_UNKNOWN);
}

struct end_case {
	enum job_state far;
	int code;
	const char *line;
	enum job_state state;
	int want;
	bool stopped;
};

static void
ends_are_told_apart(void **state)
{
	static const struct end_case cases[] = {
		{ JOB_EXITED, 0, "done 5|COMPLETED|None", JOB_EXITED, 0 },
		{ JOB_EXITED, 3, "done 5|FAILED|NonZeroExitCode", JOB_EXITED,
		    3 },
		{ JOB_LOST, -1, "done 5|COMPLETED|None", JOB_EXITED, 0 },
		{ JOB_LOST, -1, "acct 5|FAILED|7:0|1|n1", JOB_EXITED, 7 },
		{ JOB_LOST, -1, "acct 5|FAILED|0:11|1|n1", JOB_KILLED, 139 },
		{ JOB_LOST, -1, "done 5|FAILED|RaisedSignal:53", JOB_KILLED,
		    -1 },
		{ JOB_LOST, -1, "done 5|OUT_OF_MEMORY|OutOfMemory", JOB_KILLED,
		    137 },
		{ JOB_EXITED, 0, "done 5|OUT_OF_MEMORY|OutOfMemory", JOB_KILLED,
		    137 },
		{ JOB_EXITED, 0, "done 5|TIMEOUT|TimeLimit", JOB_LOST, -1 },
		{ JOB_KILLED, 143, "done 5|PREEMPTED|None", JOB_LOST, -1 },
		{ JOB_LOST, -1, "done 5|NODE_FAIL|NodeDown", JOB_LOST, -1 },
		{ JOB_LOST, -1, "acct 5|CANCELLED by 0|0:0", JOB_KILLED, -1,
		    true },
		{ JOB_KILLED, 143, "done 5|CANCELLED|None", JOB_KILLED, 143,
		    true },
		{ JOB_EXITED, 2, "gone -", JOB_EXITED, 2 },
		{ JOB_LOST, -1, "gone -", JOB_LOST, -1 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = xasprintf(OVER "%s", cases[i].line);
		struct job_status s = judged(cases[i].far, cases[i].code, text);

		print_message("%s\n", cases[i].line);
		assert_int_equal(s.state, cases[i].state);
		assert_int_equal(s.exit_code, cases[i].want);
		assert_int_equal(s.stopped, cases[i].stopped);
		free(text);
	}
}

static const char array[] =
    LIVE "q 5_[6-9%2]|PENDING|JobArrayTaskLimit|N/A||1:00||j\n"
         "q 5_4|RUNNING|None|20|n1|1:00||j\n"
         "q 5_0|RUNNING|None|30|n1|1:00||j\n"
         "done 5_0|NODE_FAIL|NodeDown|5|n1|1:00||j\n"
         "done 5_1|FAILED|NonZeroExitCode|5|n1|1:00||j\n"
         "done 5_2|CANCELLED|None|5|n1|1:00||j\n"
         "task 1 exited 4 90\n"
         "task 2 killed 15 90\n"
         "task 3 exited 0 90\n"
         "task 5 killed 9 90";

static void
an_array_is_summed_up(void **state)
{
	struct job_status s = judged(JOB_RUNNING, -1, array);

	(void)state;
	assert_true(s.array.is);
	assert_int_equal(s.state, JOB_RUNNING);
	assert_int_equal(s.array.pending, 4);
	assert_int_equal(s.array.running, 2);
	assert_int_equal(s.array.completed, 1);
	assert_int_equal(s.array.failed, 2);
	assert_int_equal(s.array.cancelled, 1);
	assert_string_equal(s.array.bad, "1,2,5");
	s = judged(JOB_LOST, -1,
	    OVER "done 5_[2-3]|CANCELLED|None|N/A\ntask 0 exited 4 9\n"
	         "task 1 exited 7 9");
	assert_int_equal(s.state, JOB_EXITED);
	assert_int_equal(s.exit_code, 7);
	assert_true(s.stopped);
	s = judged(JOB_LOST, -1,
	    OVER "task 0 exited 4 9\ndone 5_1|TIMEOUT|TimeLimit|9");
	assert_int_equal(s.state, JOB_LOST);
	assert_string_equal(s.reason, "TIMEOUT");
	s = judged(JOB_LOST, -1,
	    OVER "acct 5_0|OUT_OF_MEMORY|0:125|9|n1\ntask 1 exited 4 9");
	assert_int_equal(s.exit_code, 137);
	s = judged(JOB_LOST, -1,
	    OVER "acct 5_0|OUT_OF_MEMORY|0:125|9|n1\ntask 0 exited 4 9");
	assert_int_equal(s.exit_code, 4);
}

static void
tasks_that_nobody_speaks_of(void **state)
{
	struct job_status s;

	(void)state;
	/* Forgotten by Slurm, and without a record. */
	s = judged(JOB_LOST, -1,
	    OVER "array 0-6:2,9%2\ngone -\ntask 0 exited 0 9\n"
	         "task 2 exited 0 9\ndone 5_[4-5]|CANCELLED|None|N/A");
	assert_int_equal(s.state, JOB_LOST);
	assert_string_equal(s.reason, "gone");
	assert_int_equal(s.array.completed, 2);
	assert_int_equal(s.array.lost, 2);
	assert_string_equal(s.array.bad, "6,9");
	s = judged(JOB_LOST, -1, OVER "array 0-1\ngone -");
	assert_int_equal(s.state, JOB_LOST);
	assert_int_equal(s.array.lost, 2);
	/* Those that are told twice are one. */
	s = judged(JOB_LOST, -1,
	    OVER "array 0-1,1\ntask 0 exited 0 9\ntask 1 exited 0 9\n"
	         "acct 5_1|COMPLETED|0:0|1|n1");
	assert_int_equal(s.state, JOB_EXITED);
	assert_int_equal(s.array.completed, 2);
	/* The copy of the queue is older than the job. */
	s = judged(JOB_RUNNING, -1, LIVE "array 0-3\ntask 0 exited 0 9");
	assert_int_equal(s.state, JOB_PENDING);
	assert_int_equal(s.array.pending, 3);
	s = judged(JOB_RUNNING, -1, LIVE "array 0-0\ntask 0 exited 0 9");
	assert_int_equal(s.state, JOB_RUNNING);
	assert_int_equal(s.exit_code, -1);
	/* It is newer, and what it does not have has been. */
	s = judged(JOB_RUNNING, -1,
	    LIVE "array 0-3\ntask 0 exited 0 9\nq 5_3|RUNNING|None|9|n1");
	assert_int_equal(s.state, JOB_RUNNING);
	assert_int_equal(s.array.pending, 0);
	/* No end of it, whoever asks for it. */
	s = judged(JOB_LOST, -1, OVER "array 0-999999999:0\ngone -");
	assert_int_equal(s.state, JOB_LOST);
}

static struct job_status
judged_lists(int count)
{
	struct job_status s;
	struct buf b;
	int i;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, OVER "array 0-99999\n");
	for (i = 0; i < count; i++)
		buf_addf(&b, "done 5_[%d,%d]|CANCELLED|None|N/A\n", i, i + 100);
	s = judged(JOB_LOST, -1, b.data);
	buf_free(&b);
	return s;
}

/* Each task was looked for in each of them, for hours. */
static void
many_lists_take_no_time(void **state)
{
	int64_t began = clock_ms();
	struct job_status s;

	(void)state;
	s = judged_lists(64);
	assert_int_equal(s.state, JOB_LOST);
	assert_int_equal(s.array.cancelled, 128);
	assert_int_equal(s.array.lost, 100000 - 128);
	/* What was not kept is not lost. */
	s = judged_lists(5000);
	assert_int_equal(s.state, JOB_KILLED);
	assert_int_equal(s.array.lost, 0);
	assert_true(clock_ms() - began < 15000);
}

static void
a_task_is_picked(void **state)
{
	char *text;
	struct job_status s;

	(void)state;
	text = xasprintf("%s\nslurm 5 7", array);
	s = judged(JOB_RUNNING, -1, text);
	assert_int_equal(s.state, JOB_PENDING);
	assert_string_equal(s.slurm_id, "5_7");
	free(text);
	text = xasprintf("%s\nslurm 5 1", array);
	s = judged(JOB_EXITED, 4, text);
	assert_int_equal(s.state, JOB_EXITED);
	assert_int_equal(s.exit_code, 4);
	assert_string_equal(s.slurm_state, "FAILED");
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_read),
		cmocka_unit_test(accounts_are_read),
		cmocka_unit_test(what_is_no_row_is_refused),
		cmocka_unit_test(tasks_are_counted),
		cmocka_unit_test(what_is_there_is_alive),
		cmocka_unit_test(silence_says_nothing),
		cmocka_unit_test(ends_are_told_apart),
		cmocka_unit_test(an_array_is_summed_up),
		cmocka_unit_test(tasks_that_nobody_speaks_of),
		cmocka_unit_test(many_lists_take_no_time),
		cmocka_unit_test(a_task_is_picked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
