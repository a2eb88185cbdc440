/*
 * Jobs: commands that outlive us, the link and whoever started them.
 *
 * The truth about a job is in files on its host, below
 * ${XDG_STATE_HOME:-~/.local/state}/remote-sandbox-mcp/jobs/NAME/rN, one
 * directory a run; docs/jobs.md tells what is in them.  Everything here is
 * rebuilt from these files, so any client on any machine sees the same.
 */
#ifndef JOB_JOB_H
#define JOB_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

#define JOB_NAME_MAX 100
#define JOB_ID_MAX 39
#define JOB_RUN_MAX (JOB_NAME_MAX + 1 + JOB_ID_MAX) /* "NAME/ID" */

/* A name that tmux takes as it is: letters, digits, "_" and "-"; others become
 * "_".  An empty one gets a new name. */
void job_name(char out[JOB_NAME_MAX + 1], const char *given);

/* Answers about a job are lines, and its paths are in them: -1 if one holds a
 * control character.  "arg" is where it came from. */
int job_check_path(const char *arg, const char *path, struct err *err);

/* A word that names a run, and none before it. */
void job_new_id(char out[JOB_ID_MAX + 1]);

/* --- Starting ------------------------------------------------------------- */

struct job_start {
	const char *name;  /* as job_name() made it */
	const char *id;    /* as job_new_id() made it, or NULL */
	const char *after; /* id of the run that has to be the last one of that
	                    * name so far, or NULL: any may be */
	const char *command;
	const char *cwd;        /* or "": see sandbox_dir() */
	const char *log_file;   /* or "": the default */
	const char *key;        /* idempotency key, or "" */
	const json_t *env;      /* object of strings, or NULL */
	const char *heir_of;    /* job whose last run gives it its variables and
	                         * wishes, besides its own; or NULL */
	int64_t limit_s;        /* seconds that it may run; 0: any.  Not for
	                         * Slurm, which has limits of its own */
	const json_t *metadata; /* kept with the run, or NULL */
	const char *slurm;      /* options for sbatch, as words for a shell; or
	                         * NULL: it runs on the host itself */
};

enum job_started {
	JOB_STARTED,
	JOB_AGAIN,  /* by an earlier call with the same key */
	JOB_EXISTS, /* one of that name runs, or is there that is not "after":
	             * nothing was started */
};

struct job_handle {
	enum job_started how;
	bool recovered; /* the reply was lost, and the job found again */
	char name[JOB_NAME_MAX + 1];
	char id[JOB_ID_MAX + 1];
	int64_t run;
	int64_t slurm_job; /* 0: none */
	bool tmux;         /* there is a session to attach to */
	int64_t begin;     /* where in the log it begins; if it was started */
	int64_t orphans;   /* of one that exists: its runner was killed, and so
	                    * many of its processes run on */
	char *log_file;    /* absolute */
	bool refused; /* after a failure: the host was reached and said that
	               * it cannot be, or that is known without it; nothing
	               * was started */
	bool maybe;   /* after a failure: it may have been started */
};

/* ERR_NOT_FOUND: cwd does not exist.  ERR_IO after the request was sent: the
 * sentence says that it may have started. */
int job_start(struct link *link, const struct job_start *j,
    struct job_handle *h, const struct until *until, struct err *err);
void job_handle_free(struct job_handle *h);

/* The reader of what the host says to a start, which had a key or not.  Pure;
 * for tests and fuzzing. */
int job_answer_parse(struct job_handle *h, const char *text, bool keyed,
    const char *box, struct err *err);

/* --- Looking -------------------------------------------------------------- */

enum job_state {
	JOB_NONE, /* there is no such job */
	JOB_STARTING,
	JOB_RUNNING,
	JOB_EXITED,
	JOB_KILLED,  /* by a signal */
	JOB_LOST,    /* the host was rebooted, or its runner killed */
	JOB_PENDING, /* in the queue of a scheduler */
	JOB_UNKNOWN, /* the scheduler could not be asked, or it is on another
	              * machine of the same home */
};

const char *job_state_name(enum job_state s);

/* Of a log that never ends, only so many bytes are searched at once. */
#define JOB_SEARCH_MAX ((int64_t)64 << 20)

/* The reason of a job that is lost, in words. */
const char *job_lost_words(const char *reason);

/* It has not ended, as far as is known. */
bool job_state_live(enum job_state s);

struct job_look {
	const char *name;
	int64_t task;   /* of an array, plus 1; 0: the job itself */
	const char *id; /* of the run; NULL: the newest; "-": one of an older
	                 * server */
	const char
	    *log_file;      /* where it is, if the host does not know; or "" */
	int64_t last_lines; /* of the log; 0: none */
	int64_t since;      /* or from this byte on; -1: not asked for */
	size_t max_bytes;   /* of the log */
	const char *grep;   /* extended regular expression, or "" */
	const char *grep_arg; /* where it came from, for errors about it */
	int wait_s;           /* for the end, or for new output */
	bool wait_end;        /* for the end alone */
	bool slurm;           /* for job_look_script(): the host is a cluster */
};

#define JOB_LEFT_MAX 64 /* of more, no numbers are kept */

/* The tasks of an array. */
struct job_array {
	bool is;
	int64_t pending, running, completed, failed, cancelled, lost;
	char bad[200]; /* which did not complete: "3,7"; perhaps not all */
};

struct job_status {
	enum job_state state;
	int64_t run;            /* 0: not one of ours, but of an older server */
	int64_t newest;         /* run of that name; 0: there is none */
	int exit_code;          /* -1: none */
	int signal;             /* 0: none */
	char reason[64];        /* of LOST: reboot, runner, start, record, gone,
	                         * or a state of Slurm's; of PENDING: why */
	int64_t started, ended; /* seconds since 1970; 0: not known */
	int64_t pid;            /* of the command */
	bool stopped;           /* somebody asked for its end */
	int64_t orphans; /* of one that ended: its processes that run on */
	int64_t left[JOB_LEFT_MAX]; /* numbers of the first of them */
	size_t left_count;
	bool tmux;
	char *log_file;     /* absolute; NULL: not known */
	int64_t log_begin;  /* where in the file this run begins */
	int64_t log_size;   /* of the file; -1: there is none */
	int64_t log_offset; /* where "log" ends: the next "since" */
	bool log_replaced;  /* "since" was past the end */
	bool log_more;      /* there is more behind it */
	bool log_cut;       /* lines that match did not fit, the first ones */
	struct buf log;     /* as it is in the file, whole characters */
	char bad_grep[256]; /* what grep says about the expression; or "" */
	char id[JOB_ID_MAX + 1]; /* of the run; "-": it has none */

	/* Of a scheduler's job: */
	char slurm_id[48];    /* "5", "5_3"; or "" */
	char slurm_state[24]; /* in its own words; "": not asked */
	char nodes[128];
	char problem[256]; /* of UNKNOWN */
	struct job_array array;
};

/* ERR_INVALID: the host's grep does not take the expression, or is not done
 * with it in time. */
int job_look(struct link *link, const struct job_look *q, struct job_status *s,
    const struct until *until, struct err *err);
void job_status_free(struct job_status *s);

/* The text that job_look() runs, for who has more to ask in the same round
 * trip; job_status_parse() reads what it prints.  It may end its shell. */
void job_look_script(struct buf *script, const struct job_look *q);

/* The reader of what the host says.  Pure; for tests and fuzzing. */
int job_status_parse(struct job_status *s, const char *data, size_t len,
    size_t max_bytes, struct err *err);

/* --- Ending and listing --------------------------------------------------- */

struct job_end {
	enum job_state state; /* after it */
	bool was_running;
	bool verified;        /* none of its processes is left */
	struct buf survivors; /* "pid:command ..." */
};

/* "task" as in struct job_look. */
int job_stop(struct link *link, const char *name, int64_t task, int grace_ms,
    struct job_end *e, const struct until *until, struct err *err);

/* Called for each job of the host, the newest run of it. */
typedef void job_each(void *data, const char *name, struct job_status *s);

/* "cleanup_days": also remove the files of jobs that ended so long ago; 0:
 * none.  Returns how many were removed, or -1. */
int64_t job_list(struct link *link, int cleanup_days, job_each *each,
    void *data, const struct until *until, struct err *err);

/* The reader of it.  Pure; for tests and fuzzing. */
int64_t job_list_parse(const char *text, size_t len, job_each *each, void *data,
    struct err *err);

#endif
