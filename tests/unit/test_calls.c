#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "mcp/calls.h"
#include "test.h"

#define SOON_MS 20000 /* to wait for what will happen */
#define RACES 5000

enum what {
	AT_ONCE,         /* returns */
	TOGETHER,        /* waits until all of the test are inside */
	AT_THE_GATE,     /* waits for the gate to open */
	UNTIL_CANCELLED, /* waits for that alone */
};

/* A request and what to do with it; "rq" first, as the ops get that. */
struct job {
	struct request rq;
	enum what what;
	int number;
};

/* What happened in a test so far.  The lock guards all of it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct calls *calls;
	bool gate;          /* open */
	int together;       /* how many TOGETHER waits for */
	int inside;         /* jobs in run(), TOGETHER and AT_THE_GATE */
	int ran;            /* run() was entered */
	int replied;        /* reply() was called */
	int dropped;        /* drop() was called */
	int saw_cancel;     /* run() noticed a cancellation */
	int order[100];     /* numbers in the order of run() */
	int newest;         /* largest number in a run() so far */
	int last_reply;     /* number of the last one replied to */
	bool had_while_run; /* calls_have() was true in every run() */
	bool had_in_reply;  /* and in a reply() */
} seen = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static void
wait_inside(struct job *j)
{
	seen.inside++;
	pthread_cond_broadcast(&seen.changed);
	while (j->what == TOGETHER ? seen.inside < seen.together : !seen.gate)
		pthread_cond_wait(&seen.changed, &seen.lock);
}

static json_t *
run(struct request *rq)
{
	struct job *j = (struct job *)rq;
	bool have = calls_have(seen.calls, rq->msg.id);
	struct err err;

	pthread_mutex_lock(&seen.lock);
	if (seen.ran < (int)(sizeof(seen.order) / sizeof(seen.order[0])))
		seen.order[seen.ran] = j->number;
	seen.ran++;
	if (j->number > seen.newest)
		seen.newest = j->number;
	seen.had_while_run = seen.had_while_run && have;
	pthread_cond_broadcast(&seen.changed);
	if (j->what == TOGETHER || j->what == AT_THE_GATE)
		wait_inside(j);
	pthread_mutex_unlock(&seen.lock);

	if (j->what == UNTIL_CANCELLED)
		until_poll(&rq->call.until, NULL, 0, &err);
	if (until_check(&rq->call.until, &err) == -1) {
		pthread_mutex_lock(&seen.lock);
		seen.saw_cancel += err.code == ERR_CANCELLED;
		pthread_mutex_unlock(&seen.lock);
	}
	return json_integer(j->number);
}

static void
reply(struct request *rq, json_t *message)
{
	struct job *j = (struct job *)rq;
	bool have = calls_have(seen.calls, rq->msg.id);

	pthread_mutex_lock(&seen.lock);
	seen.replied++;
	seen.last_reply =
	    json_integer_value(message) == j->number ? j->number : -1;
	seen.had_in_reply = seen.had_in_reply || have;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void
job_free(struct job *j)
{
	rpc_msg_free(&j->rq.msg);
	free(j);
}

static void
drop(struct request *rq)
{
	job_free((struct job *)rq);
	pthread_mutex_lock(&seen.lock);
	seen.dropped++;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static const struct calls_ops ops = {
	.run = run,
	.reply = reply,
	.drop = drop,
};

static void
begin(unsigned max_running, unsigned max_queued)
{
	struct err err;

	seen.gate = false;
	seen.together = seen.inside = seen.ran = seen.replied = seen.dropped =
	    seen.saw_cancel = seen.newest = 0;
	seen.last_reply = -1;
	seen.had_while_run = true;
	seen.had_in_reply = false;
	seen.calls = calls_new(max_running, max_queued, &ops, &err);
	assert_non_null(seen.calls);
}

static void
end(void)
{
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	calls_free(seen.calls);
	assert_true(seen.had_while_run);
	assert_false(seen.had_in_reply);
}

static struct job *
job_new(enum what what, int number)
{
	struct job *j = xcalloc(1, sizeof(*j));

	j->what = what;
	j->number = number;
	j->rq.call.until = until_never();
	j->rq.msg.root = json_object();
	json_object_set_new(j->rq.msg.root, "id", json_integer(number));
	j->rq.msg.id = json_object_get(j->rq.msg.root, "id");
	return j;
}

static int
try_add(enum what what, int number)
{
	struct job *j = job_new(what, number);
	int rc = calls_add(seen.calls, &j->rq);

	if (rc == -1)
		job_free(j); /* it stayed ours */
	return rc;
}

static void
add(enum what what, int number)
{
	assert_int_equal(try_add(what, number), 0);
}

static void
cancel(int number)
{
	json_t *id = json_integer(number);

	calls_cancel(seen.calls, id);
	json_decref(id);
}

static bool
have(int number)
{
	json_t *id = json_integer(number);
	bool yes = calls_have(seen.calls, id);

	json_decref(id);
	return yes;
}

/* Until one of the numbers of "seen" has come to "n". */
static void
wait_for(const int *what, int n)
{
	int reached;

	pthread_mutex_lock(&seen.lock);
	while (*what < n)
		pthread_cond_wait(&seen.changed, &seen.lock);
	reached = *what;
	pthread_mutex_unlock(&seen.lock);
	assert_int_equal(reached, n);
}

static int
now(const int *what)
{
	int n;

	pthread_mutex_lock(&seen.lock);
	n = *what;
	pthread_mutex_unlock(&seen.lock);
	return n;
}

static void
open_gate(void)
{
	pthread_mutex_lock(&seen.lock);
	seen.gate = true;
	pthread_cond_broadcast(&seen.changed);
	pthread_mutex_unlock(&seen.lock);
}

static void
a_call_is_run_answered_and_dropped(void **state)
{
	(void)state;
	begin(4, 4);
	add(AT_ONCE, 17);
	wait_for(&seen.dropped, 1);
	assert_int_equal(seen.ran, 1);
	assert_int_equal(seen.replied, 1);
	assert_int_equal(seen.last_reply, 17);
	assert_int_equal(seen.saw_cancel, 0);
	end();
}

/* Each waits for all the others, so this ends only if all run at once. */
static void
calls_run_side_by_side(void **state)
{
	int i;

	(void)state;
	begin(16, 0);
	seen.together = 16;
	for (i = 0; i < 16; i++)
		add(TOGETHER, i);
	wait_for(&seen.dropped, 16);
	assert_int_equal(seen.replied, 16);
	end();
}

static void
threads_are_used_again(void **state)
{
	int round, i;

	(void)state;
	begin(8, 0);
	for (round = 1; round <= 50; round++) {
		/* All were idle, or these would not all be taken. */
		assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
		pthread_mutex_lock(&seen.lock);
		seen.together = round * 8;
		pthread_mutex_unlock(&seen.lock);
		for (i = 0; i < 8; i++)
			add(TOGETHER, i);
		wait_for(&seen.dropped, round * 8);
	}
	end();
	assert_int_equal(seen.replied, 400);
}

static void
no_more_run_at_once_than_allowed(void **state)
{
	int i;

	(void)state;
	begin(3, 20);
	for (i = 0; i < 20; i++)
		add(AT_THE_GATE, i);
	wait_for(&seen.inside, 3);
	assert_int_equal(calls_wait(seen.calls, 20), -1);
	assert_int_equal(now(&seen.inside), 3);
	open_gate();
	end();
	assert_int_equal(seen.replied, 20);
}

static void
a_full_queue_takes_no_more(void **state)
{
	int i;

	(void)state;
	begin(2, 3);
	/* Whether or not the threads have begun: two run, three wait. */
	for (i = 0; i < 5; i++)
		add(AT_THE_GATE, i);
	for (i = 5; i < 10; i++)
		assert_int_equal(try_add(AT_ONCE, i), -1);
	wait_for(&seen.inside, 2);
	assert_int_equal(try_add(AT_ONCE, 10), -1);
	open_gate();
	wait_for(&seen.dropped, 5);
	assert_int_equal(seen.replied, 5);
	add(AT_ONCE, 11);
	wait_for(&seen.dropped, 6);
	end();
}

static void
the_queue_is_served_in_order(void **state)
{
	int i;

	(void)state;
	begin(1, 50);
	for (i = 0; i < 50; i++)
		add(i == 0 ? AT_THE_GATE : AT_ONCE, i);
	open_gate();
	end();
	assert_int_equal(seen.ran, 50);
	for (i = 0; i < 50; i++)
		assert_int_equal(seen.order[i], i);
}

static void
a_cancelled_call_is_told_and_not_answered(void **state)
{
	(void)state;
	begin(2, 2);
	add(UNTIL_CANCELLED, 1);
	wait_for(&seen.ran, 1);
	cancel(1);
	wait_for(&seen.dropped, 1);
	assert_int_equal(seen.saw_cancel, 1);
	assert_int_equal(seen.replied, 0);
	end();
}

static void
cancelling_twice_is_cancelling_once(void **state)
{
	int i;

	(void)state;
	begin(1, 2);
	add(AT_THE_GATE, 1);
	wait_for(&seen.inside, 1);
	for (i = 0; i < 10; i++)
		cancel(1);
	open_gate();
	wait_for(&seen.dropped, 1);
	assert_int_equal(seen.replied, 0);
	assert_int_equal(seen.saw_cancel, 1);
	/* The next one in that thread does not feel it. */
	add(AT_ONCE, 2);
	wait_for(&seen.dropped, 2);
	assert_int_equal(seen.saw_cancel, 1);
	assert_int_equal(seen.replied, 1);
	end();
}

static void
a_call_that_does_not_listen_is_not_answered_either(void **state)
{
	(void)state;
	begin(1, 0);
	add(AT_THE_GATE, 1);
	wait_for(&seen.inside, 1);
	cancel(1);
	open_gate();
	end();
	assert_int_equal(seen.replied, 0);
	assert_int_equal(seen.dropped, 1);
}

static void
a_cancelled_call_in_the_queue_never_runs(void **state)
{
	static const int left[] = { 0, 1, 3, 9 };
	size_t i;

	(void)state;
	begin(1, 4);
	add(AT_THE_GATE, 0);
	wait_for(&seen.inside, 1);
	for (i = 1; i <= 4; i++)
		add(AT_ONCE, (int)i);
	assert_int_equal(try_add(AT_ONCE, 5), -1);
	cancel(2); /* in the middle */
	assert_int_equal(seen.dropped, 1);
	cancel(4); /* at the end */
	assert_int_equal(seen.dropped, 2);
	assert_false(have(2));
	assert_false(have(4));
	/* There is room again, and the queue is whole. */
	add(AT_ONCE, 9);
	add(AT_ONCE, 10);
	assert_int_equal(try_add(AT_ONCE, 11), -1);
	cancel(10);
	open_gate();
	end();
	assert_int_equal(seen.replied, 4);
	assert_int_equal(seen.dropped, 7);
	for (i = 0; i < 4; i++)
		assert_int_equal(seen.order[i], left[i]);
}

static void
the_first_of_the_queue_may_be_cancelled(void **state)
{
	(void)state;
	begin(1, 4);
	add(AT_THE_GATE, 0);
	wait_for(&seen.inside, 1);
	add(AT_ONCE, 1);
	cancel(1);
	add(AT_ONCE, 2);
	add(AT_ONCE, 3);
	cancel(2);
	open_gate();
	end();
	assert_int_equal(seen.replied, 2);
	assert_int_equal(seen.last_reply, 3);
}

static void
cancelling_what_is_not_there_does_nothing(void **state)
{
	json_t *other[] = { json_null(), json_string("1"), json_real(1),
		json_object(), json_true() };
	size_t i;

	(void)state;
	begin(1, 1);
	cancel(1);
	add(AT_THE_GATE, 1);
	add(AT_ONCE, 2);
	wait_for(&seen.inside, 1);
	cancel(3);
	for (i = 0; i < sizeof(other) / sizeof(other[0]); i++) {
		calls_cancel(seen.calls, other[i]);
		assert_false(calls_have(seen.calls, other[i]));
		json_decref(other[i]);
	}
	open_gate();
	wait_for(&seen.dropped, 2);
	assert_int_equal(seen.replied, 2);
	cancel(1);
	cancel(2);
	end();
}

static void
an_id_is_known_while_its_call_is_under_way(void **state)
{
	(void)state;
	begin(1, 1);
	assert_false(have(1));
	add(AT_THE_GATE, 1);
	assert_true(have(1));
	wait_for(&seen.inside, 1);
	assert_true(have(1));
	add(AT_ONCE, 2);
	assert_true(have(2));
	assert_false(have(3));
	open_gate();
	wait_for(&seen.replied, 2);
	assert_false(have(1));
	assert_false(have(2));
	end();
}

/* Whoever wins: dropped once, answered at most once, nothing left behind. */
static void
cancelling_may_race_with_the_end(void **state)
{
	int i, told;

	(void)state;
	begin(2, 4);
	for (i = 1; i <= RACES; i++) {
		while (try_add(AT_ONCE, i) == -1)
			assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
		if (i % 3 == 0)
			wait_for(&seen.newest, i); /* it runs, or has run */
		cancel(i);
		if (i % 7 == 0)
			cancel(i - 1);
	}
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	assert_int_equal(seen.dropped, RACES);
	assert_true(seen.replied <= RACES);
	assert_true(seen.ran >= seen.replied);
	told = seen.saw_cancel;
	seen.together = seen.inside + 2;
	add(TOGETHER, RACES + 1);
	add(TOGETHER, RACES + 2);
	end();
	assert_int_equal(seen.saw_cancel, told);
}

static void *
cancel_often(void *arg)
{
	atomic_int *latest = arg;
	int n;

	while ((n = atomic_load(latest)) >= 0)
		cancel(n);
	return NULL;
}

static void
cancelling_may_come_from_another_thread(void **state)
{
	atomic_int latest = 0;
	pthread_t thread;
	int i;

	(void)state;
	begin(3, 3);
	assert_int_equal(pthread_create(&thread, NULL, cancel_often, &latest),
	    0);
	for (i = 1; i <= RACES; i++) {
		while (try_add(AT_ONCE, i) == -1)
			assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
		atomic_store(&latest, i);
	}
	atomic_store(&latest, -1);
	pthread_join(thread, NULL);
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	assert_int_equal(seen.dropped, RACES);
	end();
}

static void
all_may_be_cancelled_at_once(void **state)
{
	int i;

	(void)state;
	begin(3, 5);
	for (i = 0; i < 8; i++)
		add(UNTIL_CANCELLED, i);
	wait_for(&seen.ran, 3);
	calls_cancel_all(seen.calls);
	end();
	assert_int_equal(seen.dropped, 8);
	assert_int_equal(seen.replied, 0);
	assert_int_equal(seen.ran, 3);
	assert_int_equal(seen.saw_cancel, 3);
}

static void
cancelling_all_when_there_is_nothing_is_fine(void **state)
{
	(void)state;
	begin(2, 2);
	calls_cancel_all(seen.calls);
	add(AT_ONCE, 1);
	wait_for(&seen.dropped, 1);
	calls_cancel_all(seen.calls);
	end();
}

static void
waiting_ends_when_nothing_is_under_way(void **state)
{
	(void)state;
	begin(2, 2);
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	add(AT_THE_GATE, 1);
	add(AT_THE_GATE, 2);
	add(AT_ONCE, 3);
	assert_int_equal(calls_wait(seen.calls, 20), -1);
	assert_int_equal(calls_wait(seen.calls, 0), -1);
	open_gate();
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	assert_int_equal(seen.dropped, 3);
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	calls_free(seen.calls);
}

static void
waiting_may_be_done_again(void **state)
{
	int i;

	(void)state;
	begin(2, 2);
	for (i = 1; i <= 200; i++) {
		add(AT_ONCE, i);
		assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
		assert_int_equal(seen.dropped, i);
	}
	end();
}

/* A call that ended before anybody waited is not what is waited for. */
static void
waiting_is_for_what_runs_now(void **state)
{
	(void)state;
	begin(1, 2);
	assert_int_equal(calls_wait(seen.calls, SOON_MS), 0);
	add(AT_ONCE, 1);
	wait_for(&seen.dropped, 1);
	add(AT_THE_GATE, 2);
	wait_for(&seen.inside, 1);
	assert_int_equal(calls_wait(seen.calls, 20), -1);
	open_gate();
	end();
}

static void *
wait_for_none(void *arg)
{
	int *rc = arg;

	*rc = calls_wait(seen.calls, SOON_MS);
	return NULL;
}

static void
waiting_ends_when_the_last_one_is_cancelled(void **state)
{
	pthread_t thread;
	int i, rc;

	(void)state;
	for (i = 0; i < 200; i++) {
		begin(1, 2);
		add(UNTIL_CANCELLED, 1);
		rc = -1;
		assert_int_equal(pthread_create(&thread, NULL, wait_for_none,
		                     &rc),
		    0);
		cancel(1);
		pthread_join(thread, NULL);
		assert_int_equal(rc, 0);
		assert_int_equal(seen.dropped, 1);
		end();
	}
}

/* No descriptor can be opened until the next call with "true". */
static void
allow_files(bool allow)
{
	static rlim_t usual;
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	if (!allow)
		usual = limit.rlim_cur;
	limit.rlim_cur = allow ? usual : 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
without_a_thread_nothing_is_taken(void **state)
{
	struct err err;
	int rc;

	(void)state;
	allow_files(false);
	seen.calls = calls_new(1, 1, &ops, &err);
	allow_files(true);
	assert_null(seen.calls);
	begin(2, 2);
	allow_files(false);
	rc = try_add(AT_ONCE, 1);
	allow_files(true);
	assert_int_equal(rc, -1);
	add(AT_ONCE, 2);
	end();
	assert_int_equal(seen.replied, 1);
}

static void
the_threads_there_are_do_the_work_if_there_can_be_no_more(void **state)
{
	int rc;

	(void)state;
	begin(2, 2);
	add(AT_THE_GATE, 1);
	wait_for(&seen.inside, 1);
	allow_files(false);
	rc = try_add(AT_ONCE, 2);
	allow_files(true);
	assert_int_equal(rc, 0);
	assert_int_equal(now(&seen.ran), 1);
	open_gate();
	end();
	assert_int_equal(seen.replied, 2);
}

static void
a_pool_that_was_never_used_is_freed(void **state)
{
	(void)state;
	begin(64, 1024);
	calls_free(seen.calls);
	begin(1, 0);
	end();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_is_run_answered_and_dropped),
		cmocka_unit_test(calls_run_side_by_side),
		cmocka_unit_test(threads_are_used_again),
		cmocka_unit_test(no_more_run_at_once_than_allowed),
		cmocka_unit_test(a_full_queue_takes_no_more),
		cmocka_unit_test(the_queue_is_served_in_order),
		cmocka_unit_test(a_cancelled_call_is_told_and_not_answered),
		cmocka_unit_test(cancelling_twice_is_cancelling_once),
		cmocka_unit_test(
		    a_call_that_does_not_listen_is_not_answered_either),
		cmocka_unit_test(a_cancelled_call_in_the_queue_never_runs),
		cmocka_unit_test(the_first_of_the_queue_may_be_cancelled),
		cmocka_unit_test(cancelling_what_is_not_there_does_nothing),
		cmocka_unit_test(an_id_is_known_while_its_call_is_under_way),
		cmocka_unit_test(cancelling_may_race_with_the_end),
		cmocka_unit_test(cancelling_may_come_from_another_thread),
		cmocka_unit_test(all_may_be_cancelled_at_once),
		cmocka_unit_test(cancelling_all_when_there_is_nothing_is_fine),
		cmocka_unit_test(waiting_ends_when_nothing_is_under_way),
		cmocka_unit_test(waiting_may_be_done_again),
		cmocka_unit_test(waiting_is_for_what_runs_now),
		cmocka_unit_test(waiting_ends_when_the_last_one_is_cancelled),
		cmocka_unit_test(without_a_thread_nothing_is_taken),
		cmocka_unit_test(
		    the_threads_there_are_do_the_work_if_there_can_be_no_more),
		cmocka_unit_test(a_pool_that_was_never_used_is_freed),
	};

	log_init("error");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
