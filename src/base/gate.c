/* Waiting for another thread, with an until. */
#include "base/gate.h"

#include <stddef.h>
#include <unistd.h>

#include "base/fs.h"

#define NAP_MS 100

struct gate_waiter {
	int pipe[2];
	struct gate_waiter *next;
};

static void
leave(struct gate *g, struct gate_waiter *me)
{
	struct gate_waiter **at;

	for (at = &g->waiters; *at != NULL; at = &(*at)->next) {
		if (*at == me) {
			*at = me->next;
			return;
		}
	}
}

/* There is no descriptor left to be woken by.  A caller looks again whatever
 * comes back, so it must not do that at once, with the lock held all along. */
static int
nap(pthread_mutex_t *lock, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, NAP_MS);
	int rc;

	pthread_mutex_unlock(lock);
	rc = until_poll(&soon, NULL, 0, err);
	if (rc == -1 && err->code == ERR_TIMEOUT)
		rc = until_check(until, err);
	pthread_mutex_lock(lock);
	return rc;
}

int
gate_wait(struct gate *g, pthread_mutex_t *lock, const struct until *until,
    struct err *err)
{
	struct gate_waiter me = { .pipe = { -1, -1 } };
	struct pollfd p = { .events = POLLIN };
	int rc;

	if (fs_pipe(me.pipe, err) == -1)
		return nap(lock, until, err);
	p.fd = me.pipe[0];
	me.next = g->waiters;
	/* It leaves the list before it leaves the stack. */
	/* cppcheck-suppress autoVariables */
	g->waiters = &me;
	pthread_mutex_unlock(lock);
	rc = until_poll(until, &p, 1, err) == -1 ? -1 : 0;
	pthread_mutex_lock(lock);
	leave(g, &me);
	close(me.pipe[0]);
	close(me.pipe[1]);
	return rc;
}

void
gate_open(struct gate *g)
{
	struct gate_waiter *w;

	for (w = g->waiters; w != NULL; w = w->next)
		(void)!write(w->pipe[1], "g", 1);
	g->waiters = NULL;
}
