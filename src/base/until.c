#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/until.h"

#define FEW 8 /* descriptors that need no memory of their own */

/* On Linux the monotonic clock stands still while the machine sleeps, and a
 * link that died meanwhile would seem fresh. */
#ifdef CLOCK_BOOTTIME
#define CLOCK_FORWARD CLOCK_BOOTTIME
#else
#define CLOCK_FORWARD CLOCK_MONOTONIC
#endif

int64_t
clock_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_FORWARD, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct until
until_never(void)
{
	return (struct until){ .deadline = INT64_MAX, .cancel_fd = -1 };
}

struct until
until_in(int64_t ms)
{
	struct until never = until_never();

	return until_within(&never, ms);
}

struct until
until_within(const struct until *outer, int64_t ms)
{
	struct until u = *outer;
	int64_t now = clock_ms();

	if (ms < 0)
		ms = 0;
	if (ms < INT64_MAX - now && now + ms < u.deadline)
		u.deadline = now + ms;
	return u;
}

int
until_left(const struct until *u)
{
	int64_t now;

	if (u->deadline == INT64_MAX)
		return -1;
	now = clock_ms();
	if (u->deadline <= now)
		return 0;
	return u->deadline - now < INT_MAX ? (int)(u->deadline - now) : INT_MAX;
}

static int
timed_out(struct err *err)
{
	return err_set(err, ERR_TIMEOUT, "timed out");
}

static int
cancelled(struct err *err)
{
	return err_set(err, ERR_CANCELLED, "cancelled");
}

int
until_check(const struct until *u, struct err *err)
{
	struct pollfd cancel = { .fd = u->cancel_fd, .events = POLLIN };

	if (poll(&cancel, 1, 0) == 1)
		return cancelled(err);
	if (until_left(u) == 0)
		return timed_out(err);
	return 0;
}

/* The same with the descriptor for cancelling as the last of "all". */
static int
poll_all(const struct until *u, struct pollfd *all, nfds_t n, struct err *err)
{
	int ready;

	do {
		ready = poll(all, n, until_left(u));
		if (ready == -1 && errno != EINTR && errno != EAGAIN)
			return err_sys(err, "cannot wait for %d files", (int)n);
		if (ready > 0 && all[n - 1].revents != 0)
			return cancelled(err);
		if (ready <= 0 && until_left(u) == 0)
			return timed_out(err);
	} while (ready <= 0);
	return ready;
}

int
until_poll(const struct until *u, struct pollfd *fds, nfds_t n, struct err *err)
{
	struct pollfd few[FEW];
	struct pollfd *all = few;
	int ready;

	if (until_left(u) == 0)
		return until_check(u, err);
	if (n >= FEW)
		all = xcalloc(n + 1, sizeof(*all));
	if (n > 0)
		memcpy(all, fds, n * sizeof(*all));
	all[n] = (struct pollfd){ .fd = u->cancel_fd, .events = POLLIN };
	ready = poll_all(u, all, n + 1, err);
	if (ready > 0)
		memcpy(fds, all, n * sizeof(*all));
	if (all != few)
		free(all);
	return ready;
}
