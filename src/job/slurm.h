/*
 * What Slurm says about a job, and what that means.
 *
 * Among the words about a job the far side prints (far/slurm.sh):
 *
 *	slurm NUMBER [TASK]	of the job, and the task that was asked for
 *	queue TIME ok		or "TIME down WORDS": the copy of the queue
 *	q ROW			of squeue: it is there now
 *	done ROW		of squeue: it has ended
 *	acct ROW		of sacct
 *	gone -			nobody knows how it ended
 *	task N RECORD		what our own runner wrote about a task
 *	array TASKS		that were asked for, if it is one
 *
 * The rows of squeue are "id|STATE|reason|start|nodes|limit|comment|name",
 * those of sacct "id|STATE|exit:signal|start|nodes".  An id is "5", "5_3" for a
 * task of an array, or "5_[2-9%1]" for those that wait.
 */
#ifndef JOB_SLURM_H
#define JOB_SLURM_H

#include "job/job.h"

enum slurm_kind { SLURM_QUEUE, SLURM_DONE, SLURM_ACCT, SLURM_OWN };

struct slurm_row {
	enum slurm_kind kind;
	int64_t job;
	int64_t task;    /* -1: no single one */
	char tasks[256]; /* "2-9%1", or "" */
	char state[24];
	char reason[64];
	int64_t start;    /* 0: not known */
	char nodes[128];  /* as Slurm writes them, or "" */
	int code, signal; /* of ACCT and OWN; -1: not known */
	char mark[48];    /* the word of the run, if it is one of ours */
	char name[JOB_NAME_MAX + 1];
};

/* All that was said about a job. */
struct slurm_said {
	bool seen; /* there was something */
	int64_t job;
	int64_t task;      /* that was asked for; -1: all of it */
	bool ok;           /* the queue could be read */
	char trouble[200]; /* else: why not */
	char wanted[512];  /* tasks of an array, as they were asked for */
	struct slurm_row *rows;
	size_t count, cap;
	size_t lists; /* rows with a list of tasks; not all are kept */
};

/* Take a line, if it is one of these. */
bool slurm_take(struct slurm_said *said, const char *word, const char *value);
void slurm_said_init(struct slurm_said *said);
void slurm_said_free(struct slurm_said *said);

/* From what the far side concluded and what Slurm says to the truth. */
void slurm_judge(const struct slurm_said *said, struct job_status *s);

/* The status of a job of which there is nothing but a row in the queue. */
void slurm_status(const struct slurm_row *row, struct job_status *s);

/* The parts.  Pure; for tests and fuzzing. */
int slurm_row_parse(struct slurm_row *row, enum slurm_kind kind,
    const char *text);
/* Of "0-10:2,15%4": how many they are, and whether one is among them. */
int64_t slurm_tasks_count(const char *tasks);
bool slurm_tasks_have(const char *tasks, int64_t task);

#endif
