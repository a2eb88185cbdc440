/*
 * The table of transfers: syncs that run in a worker of their own.
 *
 * queued -> running -> completed | failed; from both of the first to
 * cancelled.  What has ended stays as it ended.
 */
#ifndef STORE_TRANSFERS_H
#define STORE_TRANSFERS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"

#define TRANSFER_QUEUED "queued"
#define TRANSFER_RUNNING "running"
#define TRANSFER_COMPLETED "completed"
#define TRANSFER_FAILED "failed"
#define TRANSFER_CANCELLED "cancelled"

#define TRANSFER_UP "local_to_remote"
#define TRANSFER_DOWN "remote_to_local"

/* A row.  Texts may hold any bytes but NUL; none is NULL after it was read. */
struct transfer {
	int64_t id;
	char *direction;
	char *sandbox_name;
	char *local_path, *remote_path;
	bool delete_extras;
	char *excludes_json;
	char *exclude_file;
	char *options_json; /* what else was asked for */
	char *status;
	int64_t pid;          /* of the worker; 0: none yet */
	int64_t worker_start; /* see base/ident.h */
	char *log_file;
	int64_t created_ts, started_ts, finished_ts, updated_ts;
	char *last_error;
	char *result_json, *progress_json;
};

void transfer_free(struct transfer *t);

/* Has a transfer with this status ended? */
bool transfer_ended(const char *status);

/*
 * Add a row; sets its id, status, created_ts and updated_ts.  Texts that are
 * NULL get the table's default.
 */
int transfers_create(struct transfer *t, const struct until *until,
    struct err *err);

/* ERR_NOT_FOUND if there is none.  transfer_free() it in every case. */
int transfers_get(int64_t id, struct transfer *t, const struct until *until,
    struct err *err);

int transfers_set_log(int64_t id, const char *log_file,
    const char *progress_json, const struct until *until, struct err *err);

/* Its worker has begun: queued becomes running.  1 if it may not, because the
 * transfer has ended (was cancelled) or has a worker already. */
int transfers_begin(int64_t id, int64_t pid, int64_t worker_start,
    const struct until *until, struct err *err);

int transfers_progress(int64_t id, const char *progress_json,
    const struct until *until, struct err *err);

/* How a transfer ended; texts that are NULL stay as they are. */
struct transfer_end {
	const char *status;
	const char *last_error;
	const char *result_json;
	const char *progress_json;
};

/* 1 if it had ended before, and stays as it was. */
int transfers_end(int64_t id, const struct transfer_end *end,
    const struct until *until, struct err *err);

/*
 * Put a row back that a worker still works on, under its own number, if the
 * database was begun anew meanwhile.
 */
int transfers_restore(const struct transfer *t, const struct until *until,
    struct err *err);

/* Those that are queued or running, oldest first, "max" at most; *ids is
 * allocated. */
int transfers_unfinished(size_t max, int64_t **ids, size_t *count,
    const struct until *until, struct err *err);

/* The newest ones, as {id, sandbox_name, direction, status}; NULL on
 * failure. */
json_t *transfers_newest(size_t max, const struct until *until,
    struct err *err);

#endif
