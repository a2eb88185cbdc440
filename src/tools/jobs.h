/*
 * What the tools for jobs have in common.
 */
#ifndef TOOLS_JOBS_H
#define TOOLS_JOBS_H

#include <jansson.h>

#include "job/job.h"
#include "tools/app.h"
#include "tools/arg.h"

/* The name of a job as a tool was given it; "NAME[3]" is a task of an array,
 * and the result its number plus 1, else 0. */
int64_t jobs_name(char out[JOB_NAME_MAX + 1], const char *given);

/* May a shell variable be called so? */
bool jobs_variable_name(const char *name);

/* "attach_command": how a person gets to see it. */
void jobs_set_attach(json_t *o, const struct sandbox *sb, const char *name);

/* The log as text: clean, and of a line that was drawn over itself again and
 * again (a progress bar) the last state. */
void jobs_log_text(struct buf *out, const char *data, size_t len);

/* It runs no more, and will not. */
bool jobs_ended(const struct job_status *s);

/* Take our own lines out of what was read of a log: each of the three at its
 * head that is there, and the one at its end. */
void jobs_drop_frame(struct buf *log, const struct job_status *s);

/* state, running, exit_code ...: all but the log. */
void jobs_set_status(json_t *o, const struct job_status *s);

/* There is no such job; returns -1. */
int jobs_none(const struct sandbox *sb, const char *name, struct err *err);

/* The rows for these, in output tables. */
#define JOBS_STATUS_OUTPUTS                                                        \
	{ "state", OUT_STRING,                                                     \
		"starting, pending (in Slurm's queue), running, exited, killed, "  \
		"lost (host rebooted, runner killed, or ended by Slurm for a "     \
		"reason of its own) or unknown (host or Slurm not reached).",      \
		.always = true },                                                  \
	    { "running", OUT_BOOL, NULL, .always = true, .nullable = true },       \
	    { "exit_code", OUT_INT, "128+n if killed by signal n.",                \
		    .nullable = true },                                            \
	    { "signal", OUT_INT },                                                 \
	    { "reason", OUT_STRING, "Why it is lost, or waits." },                 \
	    { "slurm_job_id", OUT_STRING, "Its number in Slurm.",                  \
		    .cluster = true },                                             \
	    { "slurm_state", OUT_STRING, "In Slurm's words.",                      \
		    .cluster = true },                                             \
	    { "nodes", OUT_STRING, "Where it runs.", .cluster = true },            \
	    { "array", OUT_OBJECT,                                                 \
		    "Tasks by what became of them; bad: numbers of some that did " \
		    "not complete.",                                               \
		    .cluster = true },                                             \
	    { "orphans", OUT_INT,                                                  \
		    "Processes that the ended job left running." },                \
	    { "stopped", OUT_BOOL, "stop_background_task ended it." },             \
	    { "started_at", OUT_STRING }, { "ended_at", OUT_STRING },              \
	    { "duration_s", OUT_INT }, { "pid", OUT_INT }, { "run", OUT_INT },     \
	    { "log_file", OUT_STRING },                                            \
	{                                                                          \
		"log_size", OUT_INT, "Bytes.", .nullable = true                    \
	}

#endif
