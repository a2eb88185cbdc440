/*
 * Transfers: syncs that are done by a worker, a process of its own that
 * outlives who started it.
 */
#ifndef TOOLS_TRANSFER_H
#define TOOLS_TRANSFER_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "config/sandbox.h"
#include "store/transfers.h"
#include "sync/sync.h"

struct app;

/*
 * Start a worker for this request.  The result has mode, task_id, status, pid
 * and log_file.  ERR_DENIED if another one is at the same target.
 */
int transfer_start(struct app *app, const struct sandbox *sb,
    const struct sync_request *req, json_t **result, struct err *err);

/* As sync_run(). */
typedef int transfer_sync(struct link *link, const struct sync_request *req,
    void (*progress)(void *data, const struct sync_progress *p), void *data,
    struct sync_report *report, const struct until *until, struct err *err);

/* What a worker needs to know. */
struct transfer_work {
	int64_t id;
	int fd; /* to who started it; -1: nobody */
	/* Where the sandbox is if it does not come through "fd". */
	struct app *app;
	int cancel_fd; /* readable once it shall end */
	transfer_sync *sync;
	void (*say)(const char *line); /* a line for the log */
};

/*
 * Be the worker: do it, and keep the row up to date.  0 if the transfer is
 * complete, or had ended before.
 */
int transfer_work(const struct transfer_work *work, struct err *err);

/* Leave the process that started us: a session of our own, and a parent that
 * is gone.  Before there are threads. */
int transfer_detach(struct err *err);

/* The request of a row.  Its texts are borrowed from the row; *keep holds the
 * rest, json_decref() it. */
void transfer_request(const struct transfer *t, struct sync_request *req,
    json_t **keep);

/*
 * The sandbox, as it goes from the one to the other: entry and secrets, each
 * with a NUL at its end.
 */
struct buf;
void transfer_pack_sandbox(struct buf *out, const struct sandbox *sb);
int transfer_unpack_sandbox(struct sandbox *sb, const char *data, size_t len,
    struct err *err);

#endif
