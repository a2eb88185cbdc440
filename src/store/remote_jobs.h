/*
 * The jobs of remote_bash: what "remote-7" is.
 *
 * Numbers are never given twice, whichever process asks.  The token makes the
 * job's name on its host one that no other user of that host has.
 */
#ifndef STORE_REMOTE_JOBS_H
#define STORE_REMOTE_JOBS_H

#include <stdint.h>

#include "base/err.h"
#include "base/random.h"
#include "base/until.h"

#define REMOTE_JOB_TOKEN 4 /* bytes, in hex */

struct remote_job {
	int64_t id;
	char token[RANDOM_HEX(REMOTE_JOB_TOKEN)];
	char *sandbox_name;
};

/* A new number, for a job on this sandbox. */
int remote_jobs_add(struct remote_job *j, const char *sandbox_name,
    const struct until *until, struct err *err);

/* ERR_NOT_FOUND: there was never such a number. */
int remote_jobs_get(int64_t id, struct remote_job *j, const struct until *until,
    struct err *err);

void remote_job_free(struct remote_job *j);

#endif
