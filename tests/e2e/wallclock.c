/*
 * A wall clock that a test can set, for LD_PRELOAD: the real one and as many
 * seconds as a file says, which may change at any time.  What only goes forward
 * (CLOCK_MONOTONIC, timeouts of the kernel) stays as it is, as on a machine
 * whose clock somebody sets.  The clock that goes on while a machine sleeps
 * (CLOCK_BOOTTIME) has a file of its own.  wallclock.py has the other end.
 *
 * Times of files stay real, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const int64_t *ahead, *slept;

static const int64_t *
find_file(const char *variable)
{
	const char *path = getenv(variable);
	int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *at;

	if (fd == -1)
		return NULL;
	at = mmap(NULL, sizeof(*ahead), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	return at != MAP_FAILED ? at : NULL;
}

static void __attribute__((constructor)) find_clocks(void)
{
	ahead = find_file("RSMCP_WALL_CLOCK");
	slept = find_file("RSMCP_SLEEP_CLOCK");
}

int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, id, ts);

	if (rc == 0 && ahead != NULL &&
	    (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += *(const volatile int64_t *)ahead;
	if (rc == 0 && slept != NULL && id == CLOCK_BOOTTIME)
		ts->tv_sec += *(const volatile int64_t *)slept;
	return rc;
}

int
timespec_get(struct timespec *ts, int base)
{
	if (base != TIME_UTC || clock_gettime(CLOCK_REALTIME, ts) == -1)
		return 0;
	return base;
}

int
gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &ts) == -1)
		return -1;
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t
time(time_t *at)
{
	struct timespec ts;

	if (clock_gettime(CLOCK_REALTIME, &ts) == -1)
		return -1;
	if (at != NULL)
		*at = ts.tv_sec;
	return ts.tv_sec;
}
