/*
 * The table of watches: jobs that the daemon looks after.
 *
 * active -> completed | failed; from the first to cancelled.  The columns are
 * those of the earlier Python server, and a few of our own at the end.
 */
#ifndef STORE_WATCHES_H
#define STORE_WATCHES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "store/events.h"

#define WATCH_ACTIVE "active"
#define WATCH_COMPLETED "completed"
#define WATCH_FAILED "failed"
#define WATCH_CANCELLED "cancelled"

/* How long the watchdog leaves a job alone that is being started. */
#define WATCH_START_S 60

#define WATCH_NO_CODE INT64_MIN /* last_exit_code that is not known */

/* A row.  Texts may hold any bytes but NUL; none is NULL after it was read, or
 * after watch_init(). */
struct watch {
	int64_t id;
	char *run_id, *name;
	char *sandbox_name, *tmux_session, *log_file;
	char *cwd, *launch_command, *resume_command;
	char *resume_plan_json;
	char *checkpoint_path, *checkpoint_format, *checkpoint_command;
	int64_t interval_s;
	int64_t max_log_lines;
	char *status;     /* WATCH_* */
	char *last_state; /* see watch/step.h */
	char *last_summary, *last_error;
	int64_t last_exit_code; /* WATCH_NO_CODE: not known */
	char *last_log_digest, *last_log_tail;
	char *last_checkpoint_text, *last_checkpoint_digest;
	int64_t checkpoint_updated_ts;
	char *webhook_url, *event_command;
	bool auto_resume;
	int64_t resume_attempts, max_resume_attempts;
	int64_t alert_after_failures;
	int64_t consecutive_ssh_failures;
	bool ssh_alert_sent;
	bool notify_local;
	int64_t resume_delay_s;
	int64_t interrupted_ts; /* 0: it is not */
	int64_t resume_due_ts;
	char *metadata_json;
	int64_t created_ts, updated_ts;
	int64_t last_checked_ts, next_check_ts; /* 0: due */
	int64_t last_event_ts;
	/* From here on ours. */
	char *token;            /* random: names its resumes on the host */
	int64_t resume_pending; /* attempt that was counted and whose outcome
	                         * is not known yet; 0: none */
	char *boot_id; /* and name of the host, when it was last seen */
	char *checkpoint_error; /* why it could not be read; "" */
	char *sandbox_key;      /* of config/keep.h; "": by name */
	char *job_run;          /* "NAME/ID" of the run it looks after; "": the
	                         * first that is seen */
	int64_t revision;       /* counts what the daemon wrote */
};

/* One with the defaults of the table, and a new token. */
void watch_init(struct watch *w);
void watch_free(struct watch *w);
void watch_copy(struct watch *to, const struct watch *from);
void watches_free(struct watch *list, size_t count);

/* Set a text of a row. */
void watch_set(char **field, const char *text);

/* As tools show it: all columns in their order, but the plan and the metadata
 * decoded, at the end; of ours only those that tell something. */
json_t *watch_json(const struct watch *w);

/* Add a row; sets its id, created_ts and updated_ts.  A next_check_ts of 0
 * means at once. */
int watches_add(struct watch *w, const struct until *until, struct err *err);

/* ERR_NOT_FOUND if there is none.  watch_free() it in every case. */
int watches_get(int64_t id, struct watch *w, const struct until *until,
    struct err *err);

/* Those of this status ("": all), the newest first; *list is allocated. */
int watches_list(const char *status, struct watch **list, size_t *count,
    const struct until *until, struct err *err);

/* The newest one of this run of a job, or an active one that may have been
 * before it resumed the job; ERR_NOT_FOUND if there is none. */
int watches_find(const char *sandbox_name, const char *tmux_session,
    const char *job_run, struct watch *w, const struct until *until,
    struct err *err);

/* One that is due, and where its job is. */
struct watch_due {
	int64_t id;
	char *sandbox_name, *sandbox_key;
};

/*
 * Active ones that are due at "now", those first that waited longest; *list is
 * allocated.  A time further ahead than a watch can ask for is due as well:
 * the clock was set back.
 */
int watches_due(int64_t now, size_t max, struct watch_due **list, size_t *count,
    const struct until *until, struct err *err);
void watches_due_free(struct watch_due *list, size_t count);

/* Is this one due at "now"? */
bool watch_due_at(const struct watch *w, int64_t now);

/* Seconds until one is due, 0 if one is, "longest" at most. */
int watches_wait(int64_t now, int64_t longest, int64_t *seconds,
    const struct until *until, struct err *err);

/*
 * Write down what the daemon found out, and the events of it with their
 * deliveries, in one transaction.  1: nothing was written, because the watch
 * was cancelled or changed meanwhile.  Sets the new revision and the ids of
 * the events.
 */
int watches_save(struct watch *w, struct event *events, size_t count,
    const struct until *until, struct err *err);

/* What the start of its job found out; makes it due at once. */
int watches_started(int64_t id, const char *tmux_session, const char *job_run,
    const char *log_file, const struct until *until, struct err *err);

/* Cancel it, whatever its status. */
int watches_cancel(int64_t id, const struct until *until, struct err *err);

/* The same, since its job is gone: that is its last state, and what is known of
 * it. */
int watches_leave(int64_t id, const char *state, const char *summary,
    const struct until *until, struct err *err);

/* Remove one whose job was never started. */
int watches_remove(int64_t id, const struct until *until, struct err *err);

/* The jobs that were watched last, as {sandbox_name, tmux_session, status,
 * id}; NULL on failure. */
json_t *watches_jobs(size_t max, const struct until *until, struct err *err);

/* {active, completed, failed, cancelled}, or NULL. */
json_t *watches_counts(const struct until *until, struct err *err);

#endif
