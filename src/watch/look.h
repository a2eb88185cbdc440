/*
 * A look at the job of a watch: its state, the end of its log, and its
 * checkpoint, in one round trip.
 */
#ifndef WATCH_LOOK_H
#define WATCH_LOOK_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "job/job.h"
#include "ssh/link.h"
#include "store/watches.h"
#include "watch/step.h"

#define LOOK_LOG_MAX 20000
#define LOOK_CHECKPOINT_MAX ((size_t)64 << 10)

struct look {
	struct observation seen; /* points into what follows */
	bool reached;            /* then "job" is filled */
	struct job_status job;
	char name[JOB_NAME_MAX + 1]; /* of the job that was looked at */
	struct buf log;              /* clean */
	struct buf checkpoint;       /* clean */
	char boot_id[104];           /* and the name of the host */
	char checkpoint_error[256];
	struct err err; /* if it was not reached */
};

struct look_query {
	int64_t log_lines;
	size_t log_max;
	size_t checkpoint_max; /* 0: it is not read */
	bool slurm;            /* set by watch_look(): the host is a cluster */
};

/* Never fails: a host that is not reached is an observation.  look_free() it
 * in every case. */
void watch_look(struct look *l, struct link *link, const struct watch *w,
    const struct look_query *q, const struct until *until);
void look_free(struct look *l);

/* The name of the job that a resume would start: the plan's, or the watch's. */
void look_resume_name(const struct watch *w, char out[JOB_NAME_MAX + 1]);

/* Name and id of the run that the watch is for; no id: not known yet. */
void look_job(const struct watch *w, char name[JOB_NAME_MAX + 1],
    char id[JOB_ID_MAX + 1]);
/* Both in one, as in the record. */
void look_job_run(char out[JOB_RUN_MAX + 1], const char *name, const char *id);

/* The text that is run there, and the reader of what it prints; "mark" is a
 * word that the host cannot guess.  Pure. */
void look_script(struct buf *out, const struct watch *w,
    const struct look_query *q, const char *mark);
int look_parse(struct look *l, const struct watch *w,
    const struct look_query *q, const char *mark, const char *data, size_t len,
    struct err *err);

#endif
