/*
 * How long to wait: a deadline and a way to be cancelled.  The only way lower
 * layers learn about time and cancelling.
 */
#ifndef BASE_UNTIL_H
#define BASE_UNTIL_H

#include <poll.h>
#include <stdint.h>

#include "base/err.h"

struct until {
	int64_t
	    deadline;  /* clock_ms() at which patience ends; INT64_MAX: never */
	int cancel_fd; /* readable once cancelled; -1: cannot be */
};

/* Milliseconds of a clock that only goes forward, also during sleep. */
int64_t clock_ms(void);

struct until until_never(void);
struct until until_in(int64_t ms);
/* As "outer", but "ms" from now at the latest. */
struct until until_within(const struct until *outer, int64_t ms);

/* Milliseconds left, 0 if none, INT_MAX at most: fit for poll(2) (-1: never).
 */
int until_left(const struct until *u);

/* 0 while there is time and nobody cancelled, else -1 (TIMEOUT, CANCELLED). */
int until_check(const struct until *u, struct err *err);

/*
 * poll(2) that ends with the until.  Returns how many of the "n" descriptors
 * are ready (at least 1), or -1: ERR_TIMEOUT, ERR_CANCELLED or ERR_IO.
 * Cancelling wins over readiness, and so does a deadline that had passed before
 * the call: a loop around it ends even if there is always something to read.
 * With n = 0 it waits for the end alone.
 */
int until_poll(const struct until *u, struct pollfd *fds, nfds_t n,
    struct err *err);

#endif
