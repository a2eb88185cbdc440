/*
 * A condition variable that is waited for with an until, so that waiting
 * ends at a deadline or when somebody cancels.
 */
#ifndef BASE_GATE_H
#define BASE_GATE_H

#include <pthread.h>

#include "base/err.h"
#include "base/until.h"

struct gate_waiter;

/* Zeroed is ready for use; guarded by the caller's lock. */
struct gate {
	struct gate_waiter *waiters;
};

/*
 * Wait until gate_open() or the end of the until.  The lock is held before
 * and after, not during.  As with conditions, look again afterwards: where
 * descriptors run out, it ends by itself after a moment.
 */
int gate_wait(struct gate *g, pthread_mutex_t *lock, const struct until *until,
    struct err *err);

/* Let all go who wait now.  With the lock held. */
void gate_open(struct gate *g);

#endif
