#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/gate.h"
#include "test.h"

#define MANY 8
#define SOON_MS 20
#define LONG_MS 20000

/* What the threads of a test share. */
struct room {
	pthread_mutex_t lock;
	struct gate gate;
	struct gate waiting; /* opened when somebody begins to wait */
	int value;
	int inside;
	int passed;
	struct until until;
};

static void
room_init(struct room *r)
{
	memset(r, 0, sizeof(*r));
	pthread_mutex_init(&r->lock, NULL);
	r->until = until_in(LONG_MS);
}

static int
open_fds(void)
{
	DIR *d = opendir("/dev/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static void
it_ends_at_the_deadline(void **state)
{
	struct room r;
	struct until soon = until_in(SOON_MS);
	int64_t began = clock_ms();
	struct err err = ERR_INIT;

	(void)state;
	room_init(&r);
	pthread_mutex_lock(&r.lock);
	assert_int_equal(gate_wait(&r.gate, &r.lock, &soon, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(clock_ms() - began >= SOON_MS);
	assert_null(r.gate.waiters);
	assert_int_not_equal(pthread_mutex_trylock(&r.lock), 0);
	pthread_mutex_unlock(&r.lock);
}

static void
it_ends_at_once_if_there_is_no_time_left(void **state)
{
	struct room r;
	struct until past = until_in(0);
	struct err err = ERR_INIT;

	(void)state;
	room_init(&r);
	pthread_mutex_lock(&r.lock);
	assert_int_equal(gate_wait(&r.gate, &r.lock, &past, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_null(r.gate.waiters);
	pthread_mutex_unlock(&r.lock);
}

static void
it_ends_when_somebody_cancels(void **state)
{
	struct room r;
	struct err err = ERR_INIT;
	int fds[2];

	(void)state;
	room_init(&r);
	assert_int_equal(fs_pipe(fds, &err), 0);
	assert_int_equal(write(fds[1], "c", 1), 1);
	r.until.cancel_fd = fds[0];
	pthread_mutex_lock(&r.lock);
	assert_int_equal(gate_wait(&r.gate, &r.lock, &r.until, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	assert_null(r.gate.waiters);
	pthread_mutex_unlock(&r.lock);
	close(fds[0]);
	close(fds[1]);
}

static void
opening_it_for_nobody_is_not_remembered(void **state)
{
	struct room r;
	struct until soon = until_in(SOON_MS);
	struct err err = ERR_INIT;

	(void)state;
	room_init(&r);
	pthread_mutex_lock(&r.lock);
	gate_open(&r.gate);
	assert_int_equal(gate_wait(&r.gate, &r.lock, &soon, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	pthread_mutex_unlock(&r.lock);
}

/* As a caller does: wait until the value is there. */
static void *
wait_for_value(void *arg)
{
	struct room *r = arg;
	struct err err = ERR_INIT;
	void *failed = NULL;

	pthread_mutex_lock(&r->lock);
	r->inside++;
	gate_open(&r->waiting);
	while (r->value == 0) {
		if (gate_wait(&r->gate, &r->lock, &r->until, &err) == -1) {
			failed = r;
			break;
		}
	}
	r->passed++;
	pthread_mutex_unlock(&r->lock);
	return failed;
}

static void
start(pthread_t *t, void *(*run)(void *), void *arg)
{
	assert_int_equal(pthread_create(t, NULL, run, arg), 0);
}

/* With the lock held: until "n" threads wait at the gate. */
static void
until_inside(struct room *r, int n)
{
	struct err err;

	while (r->inside < n)
		assert_int_equal(gate_wait(&r->waiting, &r->lock, &r->until,
		                     &err),
		    0);
}

static void
all_who_wait_are_let_go(void **state)
{
	pthread_t threads[MANY];
	struct room r;
	void *failed;
	int i;

	(void)state;
	room_init(&r);
	for (i = 0; i < MANY; i++)
		start(&threads[i], wait_for_value, &r);
	pthread_mutex_lock(&r.lock);
	until_inside(&r, MANY);
	/* Those who look again see nothing and wait on. */
	gate_open(&r.gate);
	assert_int_equal(r.passed, 0);
	pthread_mutex_unlock(&r.lock);

	pthread_mutex_lock(&r.lock);
	r.value = 1;
	gate_open(&r.gate);
	pthread_mutex_unlock(&r.lock);
	for (i = 0; i < MANY; i++) {
		assert_int_equal(pthread_join(threads[i], &failed), 0);
		assert_null(failed);
	}
	assert_int_equal(r.passed, MANY);
	assert_null(r.gate.waiters);
}

static void
one_who_leaves_does_not_disturb_the_others(void **state)
{
	struct until soon = until_in(SOON_MS);
	struct err err = ERR_INIT;
	pthread_t before, after;
	struct room r;
	void *failed;

	(void)state;
	room_init(&r);
	start(&before, wait_for_value, &r);
	pthread_mutex_lock(&r.lock);
	until_inside(&r, 1);
	start(&after, wait_for_value, &r);
	assert_int_equal(gate_wait(&r.gate, &r.lock, &soon, &err), -1);
	until_inside(&r, 2);
	r.value = 1;
	gate_open(&r.gate);
	pthread_mutex_unlock(&r.lock);
	pthread_join(before, &failed);
	assert_null(failed);
	pthread_join(after, &failed);
	assert_null(failed);
	assert_int_equal(r.passed, 2);
}

/* One thread puts numbers in, another takes them out. */
#define NUMBERS 2000

static void *
take_numbers(void *arg)
{
	struct room *r = arg;
	struct err err;

	pthread_mutex_lock(&r->lock);
	while (r->passed < NUMBERS) {
		while (r->value == 0) {
			if (gate_wait(&r->gate, &r->lock, &r->until, &err) ==
			    -1) {
				pthread_mutex_unlock(&r->lock);
				return r;
			}
		}
		r->value = 0;
		r->passed++;
		gate_open(&r->gate);
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void
no_opening_is_lost(void **state)
{
	int before = open_fds(), i;
	struct room r;
	struct err err;
	pthread_t taker;
	void *failed;

	(void)state;
	room_init(&r);
	start(&taker, take_numbers, &r);
	pthread_mutex_lock(&r.lock);
	for (i = 0; i < NUMBERS; i++) {
		while (r.value != 0)
			assert_int_equal(gate_wait(&r.gate, &r.lock, &r.until,
			                     &err),
			    0);
		r.value = 1;
		gate_open(&r.gate);
	}
	pthread_mutex_unlock(&r.lock);
	pthread_join(taker, &failed);
	assert_null(failed);
	assert_int_equal(r.passed, NUMBERS);
	assert_int_equal(open_fds(), before);
}

/* Some wait with too little time while others open: nobody may be left in
 * the list when all are gone. */
static void *
wait_shortly(void *arg)
{
	struct room *r = arg;
	struct err err;
	int i;

	for (i = 0; i < 50; i++) {
		struct until soon = until_in(i % 3);

		pthread_mutex_lock(&r->lock);
		gate_wait(&r->gate, &r->lock, &soon, &err);
		r->passed++;
		gate_open(&r->gate);
		pthread_mutex_unlock(&r->lock);
	}
	return NULL;
}

static void
deadlines_and_openings_may_meet(void **state)
{
	pthread_t threads[MANY];
	int before = open_fds(), i;
	struct room r;

	(void)state;
	room_init(&r);
	for (i = 0; i < MANY; i++)
		start(&threads[i], wait_shortly, &r);
	for (i = 0; i < MANY; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(r.passed, MANY * 50);
	assert_null(r.gate.waiters);
	assert_int_equal(open_fds(), before);
}

static void *
set_value(void *arg)
{
	struct room *r = arg;

	pthread_mutex_lock(&r->lock);
	r->value = 1;
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void
without_descriptors_it_lets_others_in_and_looks_again(void **state)
{
	struct rlimit limit, none;
	struct err err = ERR_INIT;
	struct until soon;
	pthread_t thread;
	struct room r;
	int rc, looks = 0;

	(void)state;
	room_init(&r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = limit;
	none.rlim_cur = 3; /* poll() takes no more than that, either */
	pthread_mutex_lock(&r.lock);
	start(&thread, set_value, &r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	while (r.value == 0 && gate_wait(&r.gate, &r.lock, &r.until, &err) == 0)
		looks++;
	/* The end of the until counts as ever. */
	soon = until_in(SOON_MS);
	rc = gate_wait(&r.gate, &r.lock, &soon, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_int_equal(r.value, 1);
	assert_in_range(looks, 1, 50);
	assert_int_equal(rc, -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_null(r.gate.waiters);
	assert_int_not_equal(pthread_mutex_trylock(&r.lock), 0);
	pthread_mutex_unlock(&r.lock);
	pthread_join(thread, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_ends_at_the_deadline),
		cmocka_unit_test(it_ends_at_once_if_there_is_no_time_left),
		cmocka_unit_test(it_ends_when_somebody_cancels),
		cmocka_unit_test(opening_it_for_nobody_is_not_remembered),
		cmocka_unit_test(all_who_wait_are_let_go),
		cmocka_unit_test(one_who_leaves_does_not_disturb_the_others),
		cmocka_unit_test(no_opening_is_lost),
		cmocka_unit_test(deadlines_and_openings_may_meet),
		cmocka_unit_test(
		    without_descriptors_it_lets_others_in_and_looks_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
