/* Waiting for another thread, with an until. */
#include "base/gate.h"

#include <stddef.h>
#include <unistd.h>

#include "base/fs.h"

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

int
gate_wait(struct gate *g, pthread_mutex_t *lock, const struct until *until,
    struct err *err)
{
	struct gate_waiter me = { .pipe = { -1, -1 } };
	struct pollfd p = { .events = POLLIN };
	int rc;

	if (fs_pipe(me.pipe, err) == -1)
		return -1;
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
