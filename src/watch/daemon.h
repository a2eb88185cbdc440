/*
 * The daemon that looks after watches: one per state directory, for as long
 * as it holds the lock.
 *
 * One thread finds what is due; a few others look at it side by side, at most
 * two of them at one host, so that a dead one delays nobody else.  All that it
 * knows is in the store: it may be killed at any moment.
 */
#ifndef WATCH_DAEMON_H
#define WATCH_DAEMON_H

#include <stdint.h>

#include "base/err.h"
#include "base/until.h"

#define DAEMON_LOCK "watchdog.lock"

struct daemon_options {
	int64_t
	    loop_sleep_s; /* between two looks for what is due; 1 at least */
	int cancel_fd;    /* readable: end */
	const char *config_path; /* for its heartbeat, or "" */
};

/* Work until cancelled.  ERR_DENIED: another one has the lock. */
int daemon_run(const struct daemon_options *opt, struct err *err);

#endif
