/*
 * A command of exec_bash that is a job from its start: if it takes longer than
 * the call may, it goes on.
 */
#ifndef TOOLS_EXEC_JOB_H
#define TOOLS_EXEC_JOB_H

#include <jansson.h>
#include <stdint.h>

#include "job/submit.h"
#include "ssh/link.h"
#include "tools/call.h"

struct exec_job {
	const char *command;
	const char *cwd; /* or NULL */
	int64_t timeout_s;
	size_t max_chars;
	const struct submit *slurm; /* on compute nodes; NULL: on the host */
};

/* *result gets the fields of exec_bash; if it runs on, its handle. */
int exec_job_run(struct call *call, struct link *link, const struct exec_job *e,
    json_t **result, struct err *err);

#endif
