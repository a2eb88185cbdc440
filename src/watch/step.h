/*
 * The next step of a watch: what one look means.  Pure: a record, what was
 * seen, and the time give a new record, events, and whether to resume.
 *
 * States (last_state): "" (never looked at), running, ssh_unreachable,
 * config_missing, interrupted (ended without a status), resuming (a resume was
 * counted and its outcome is not known); and the ends: completed, failed,
 * resume_exhausted.
 *
 * A resume happens like this.  A look finds the job dead for sure and the
 * delay over; the step counts the attempt and asks for a resume; the record
 * is stored; the job is started under a key made from the watch and the
 * attempt; a second step tells how that went.  Whoever is killed in between
 * finds "resume_pending" and starts again under the same key, which the host
 * knows.  So an attempt starts one run at most.
 *
 * A watch is for one run, and then for those that it started itself.  If
 * somebody else brings a lost job back, the watch is over.
 */
#ifndef WATCH_STEP_H
#define WATCH_STEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/job.h"
#include "store/events.h"
#include "store/watches.h"

#define STATE_RUNNING "running"
#define STATE_UNREACHABLE "ssh_unreachable"
#define STATE_CONFIG_MISSING "config_missing"
#define STATE_INTERRUPTED "interrupted"
#define STATE_RESUMING "resuming"
#define STATE_COMPLETED "completed"
#define STATE_FAILED "failed"
#define STATE_EXHAUSTED "resume_exhausted"

enum seen {
	SEEN_NO_CONFIG,   /* no sandbox of that name is configured */
	SEEN_UNREACHABLE, /* no answer: nothing is known about the job */
	SEEN_JOB,         /* the host told */
	/* What came of the attempt "resume_pending": */
	SEEN_RESUMED,        /* it was started, now or before */
	SEEN_RESUME_REFUSED, /* the host said no; nothing was started */
	SEEN_RESUME_TAKEN,   /* somebody else has started it */
	SEEN_RESUME_UNKNOWN, /* no answer: it may have been started */
	SEENS,
};

struct observation {
	enum seen seen;
	const char *error;             /* why not, or "" */
	char job_run[JOB_RUN_MAX + 1]; /* the run that is meant; "" */

	/* Of SEEN_JOB: */
	enum job_state state;
	int exit_code;
	int signal;
	const char *reason;      /* of LOST: see job/job.h */
	const char *slurm_state; /* or "" */
	bool stopped;            /* somebody asked for its end */
	int64_t orphans;         /* it ended, and these of it still run */
	bool superseded;         /* there is a later run of that name */
	const char *boot_id;    /* a blank and the name of the host behind it */
	const char *log_tail;   /* clean; NULL: was not read */
	const char *checkpoint; /* clean; NULL: was not read */
	const char *checkpoint_error; /* why not, or "" */
};

#define STEP_EVENTS 4

struct step {
	struct watch watch; /* the new record */
	struct event events[STEP_EVENTS];
	size_t count;
	bool resume; /* start attempt watch.resume_pending, once stored */
};

void watch_step(const struct watch *w, const struct observation *o, int64_t now,
    struct step *out);
void step_free(struct step *s);

/* What a resume would run: that of the plan, or the watch's own; "" if there
 * is none.  Caller frees. */
char *watch_resume_command(const struct watch *w);

#endif
