/*
 * The worker's life: it takes its locks, says so to who started it, syncs, and
 * writes down how it ended.
 *
 * The store is never in the way.  Progress is left in a struct by the threads
 * that sync; a thread of its own writes it down, twice a second at most, and
 * tries again if that fails.  The same thread sees to it that a worker that
 * was asked to end does so within a second.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/lockfile.h"
#include "base/mem.h"
#include "base/rate.h"
#include "base/utf8.h"
#include "tools/app.h"
#include "tools/target_lock.h"
#include "tools/transfer.h"
#include "tools/transfer_files.h"

#define SANDBOX_MAX ((size_t)1 << 20)
#define SANDBOX_ROOM 65536
#define SANDBOX_MS 10000
#define LOCK_MS 1000    /* others look at a lock for a moment */
#define WRITE_MS 500    /* between two writes of progress */
#define PATIENCE_MS 400 /* for a store that is locked */
#define GRACE_MS 700    /* after the signal; then it ends the hard way */
#define END_MS 60000    /* to write down how it ended */
#define SAY_MS 1000     /* between two lines about phases */

struct worker {
	const struct transfer_work *work;
	struct transfer row;
	struct sandbox own; /* what came from who started us */
	const struct sandbox *sb;
	struct sync_request req;
	json_t *keep;
	char *lock_path;
	int lock_fd;
	struct target_lock target;

	pthread_mutex_t lock; /* guards what follows */
	struct sync_progress now;
	char path[4096];
	struct rate rate;
	bool changed;
	const char *said; /* the phase that the last line was about */
	int64_t said_at;  /* clock_ms() of it */
	int done[2];      /* a pipe: closed when the sync is over */
};

static void __attribute__((format(printf, 2, 3)))
say(const struct worker *w, const char *fmt, ...)
{
	char line[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	w->work->say(line);
}

int
transfer_detach(struct err *err)
{
	pid_t pid = fork();

	if (pid == -1)
		return err_sys(err, "cannot fork");
	if (pid > 0)
		_exit(0);
	if (setsid() == -1 || chdir("/") == -1)
		return err_sys(err, "cannot start a session");
	return 0;
}

/* --- beginning -------------------------------------------------------------
 */

static int
read_sandbox(struct worker *w, struct err *err)
{
	struct until until = until_in(SANDBOX_MS);
	struct pollfd p = { .fd = w->work->fd, .events = POLLIN };
	struct buf b;
	size_t room;
	ssize_t n = 1;
	char *at;
	int rc = 0;

	buf_init(&b, SANDBOX_MAX);
	while (rc == 0 && n > 0 && !b.full) {
		rc = until_poll(&until, &p, 1, err) == -1 ? -1 : 0;
		at = buf_space(&b, SANDBOX_ROOM, &room);
		n = rc == 0 && room > 0 ? read(p.fd, at, room) : 0;
		if (n > 0)
			buf_grew(&b, (size_t)n);
	}
	if (rc == 0)
		rc = transfer_unpack_sandbox(&w->own, b.data, b.len, err);
	secret_wipe(b.data, b.cap);
	buf_free(&b);
	if (rc == 0)
		w->sb = &w->own;
	return rc;
}

static int
get_sandbox(struct worker *w, struct err *err)
{
	if (w->work->fd != -1)
		return read_sandbox(w, err);
	w->sb = app_sandbox(w->work->app, w->row.sandbox_name, err);
	return w->sb != NULL ? 0 : -1;
}

/* Say to who started us whether it could begin; nobody may be there. */
static void
answer(const struct worker *w, const char *why)
{
	char line[ERR_MSG_SIZE + 16];

	if (w->work->fd == -1)
		return;
	if (why == NULL)
		snprintf(line, sizeof(line), "ok %ld\n", (long)getpid());
	else
		snprintf(line, sizeof(line), "no %s\n", why);
	(void)!send(w->work->fd, line, strlen(line), MSG_NOSIGNAL);
	shutdown(w->work->fd, SHUT_RDWR);
}

static int
take_locks(struct worker *w, struct err *err)
{
	struct until until = until_in(LOCK_MS);
	struct ident self = ident_self();
	char text[LOCKFILE_TEXT], holder[LOCKFILE_TEXT];

	w->row.pid = self.pid;
	w->row.worker_start = self.start;
	w->lock_path = transfer_file_of(w->row.id, "lock", err);
	if (w->lock_path == NULL)
		return -1;
	transfer_lock_text(&self, text, sizeof(text));
	w->lock_fd = lockfile_take(w->lock_path, text, holder, &until, err);
	if (w->lock_fd == -1)
		return err_wrap(err, "transfer task %" PRId64 " has a worker",
		    w->row.id);
	snprintf(text, sizeof(text), "transfer task %" PRId64, w->row.id);
	return target_take(&w->target, w->sb, &w->req, text, &until, err);
}

/* 1 if there is nothing to do. */
static int
begin(struct worker *w, struct err *err)
{
	struct until until = until_in(END_MS);
	int rc;

	if (transfers_get(w->work->id, &w->row, &until, err) == -1)
		return -1;
	if (transfer_ended(w->row.status)) {
		say(w, "the transfer is %s already", w->row.status);
		return 1;
	}
	transfer_request(&w->row, &w->req, &w->keep);
	if (get_sandbox(w, err) == -1 || take_locks(w, err) == -1)
		return -1;
	rc = transfers_begin(w->row.id, w->row.pid, w->row.worker_start, &until,
	    err);
	if (rc == 1)
		say(w, "the transfer was cancelled, or had a worker before");
	return rc;
}

/* --- progress --------------------------------------------------------------
 */

static void
take_progress(void *data, const struct sync_progress *p)
{
	struct worker *w = data;

	pthread_mutex_lock(&w->lock);
	if (strcmp(w->said, p->phase) != 0 &&
	    clock_ms() - w->said_at >= SAY_MS) {
		w->said = p->phase;
		w->said_at = clock_ms();
		say(w, "%s: %" PRId64 " files, %" PRId64 " bytes to move",
		    p->phase, p->files_total, p->bytes_total);
	}
	w->now = *p;
	snprintf(w->path, sizeof(w->path), "%s", p->path);
	rate_look(&w->rate, clock_ms(), p->bytes_done);
	w->changed = true;
	pthread_mutex_unlock(&w->lock);
}

static void
set_int(json_t *o, const char *name, int64_t n)
{
	json_object_set_new(o, name, json_integer(n));
}

/* With the lock held: how far it is, as a row has it. */
static char *
progress_text(const struct worker *w, const char *phase)
{
	const struct sync_progress *p = &w->now;
	bool up = w->req.direction == SYNC_UP;
	bool ended = phase != NULL;
	int64_t left = rate_left_s(&w->rate, p->bytes_total);
	json_t *o = json_object();
	char *text;

	json_object_set_new(o, "phase", json_string(ended ? phase : p->phase));
	json_object_set_new(o, "current_path",
	    utf8_json(w->path, ended ? 0 : strlen(w->path)));
	set_int(o, up ? "uploaded_files" : "downloaded_files", p->files_done);
	set_int(o, "files_done", p->files_done);
	set_int(o, "files_total", p->files_total);
	set_int(o, "bytes_done", p->bytes_done);
	set_int(o, "bytes_total", p->bytes_total);
	set_int(o, "problem_count", p->problems);
	if (!ended && rate_per_second(&w->rate) > 0)
		set_int(o, "rate_bytes_s", rate_per_second(&w->rate));
	if (!ended && left >= 0 && p->bytes_total > 0)
		set_int(o, "eta_s", left);
	text = json_dumps(o, 0);
	json_decref(o);
	if (text == NULL)
		out_of_memory();
	return text;
}

/* Write down how it stands.  What fails is tried again the next time. */
static void
write_progress(struct worker *w)
{
	struct until until = until_in(PATIENCE_MS);
	struct err err;
	char *text;

	pthread_mutex_lock(&w->lock);
	text = w->changed ? progress_text(w, NULL) : NULL;
	w->changed = false;
	pthread_mutex_unlock(&w->lock);
	if (text == NULL)
		return;
	if (transfers_progress(w->row.id, text, &until, &err) == -1) {
		if (err.code == ERR_NOT_FOUND)
			(void)transfers_restore(&w->row, &until, &err);
		pthread_mutex_lock(&w->lock);
		w->changed = true;
		pthread_mutex_unlock(&w->lock);
	}
	free(text);
}

static int
write_end(const struct worker *w, const struct transfer_end *end,
    const struct until *until, struct err *err)
{
	struct transfer row;
	int rc = transfers_end(w->row.id, end, until, err);

	if (rc != 1)
		return rc;
	/* It had ended; or its row is gone, with the database. */
	rc = transfers_get(w->row.id, &row, until, err);
	transfer_free(&row);
	if (rc == -1 && err->code == ERR_NOT_FOUND) {
		rc = transfers_restore(&w->row, until, err);
		if (rc == 0)
			rc = transfers_end(w->row.id, end, until, err);
	}
	return rc == -1 ? -1 : 0;
}

/* The sync did not come back in time: it may be telling a host to clean up that
 * does not listen.  When we are gone, the lease there ends everything. */
static void
end_hard(struct worker *w)
{
	struct until until = until_in(PATIENCE_MS / 2);
	struct transfer_end end = { .status = TRANSFER_CANCELLED,
		.last_error = "" };
	struct err err;
	char *progress;

	pthread_mutex_lock(&w->lock);
	progress = progress_text(w, "cancelled");
	pthread_mutex_unlock(&w->lock);
	end.progress_json = progress;
	say(w, "cancelled; ending at once");
	(void)write_end(w, &end, &until, &err);
	unlink(w->target.path);
	unlink(w->lock_path);
	free(progress);
	_exit(1);
}

static void *
keep_books(void *data)
{
	struct worker *w = data;
	struct until until = { .cancel_fd = w->work->cancel_fd };
	struct pollfd done = { .fd = w->done[0], .events = POLLIN };
	struct err err;

	for (;;) {
		until.deadline = clock_ms() + WRITE_MS;
		if (until_poll(&until, &done, 1, &err) != -1)
			return NULL;
		if (err.code != ERR_TIMEOUT)
			break;
		write_progress(w);
	}
	until = until_in(GRACE_MS);
	if (until_poll(&until, &done, 1, &err) == -1)
		end_hard(w);
	return NULL;
}

/* --- the end ---------------------------------------------------------------
 */

static bool
was_cancelled(const struct worker *w, const struct err *err)
{
	struct until now = { .deadline = INT64_MAX,
		.cancel_fd = w->work->cancel_fd };
	struct err why;

	return err->code == ERR_CANCELLED || until_check(&now, &why) == -1;
}

static char *
result_text(const struct worker *w, const struct sync_report *report)
{
	json_t *o = NULL;
	char *text;

	if (report->local_path != NULL)
		o = sync_report_json(report, &w->req);
	if (o == NULL)
		return xstrdup("{}");
	json_object_del(o, "mode");
	text = json_dumps(o, JSON_REAL_PRECISION(15));
	json_decref(o);
	return text != NULL ? text : xstrdup("{}");
}

static void
store_end(struct worker *w, const struct transfer_end *end)
{
	bool cancelled = strcmp(end->status, TRANSFER_CANCELLED) == 0;
	int64_t deadline = clock_ms() + (cancelled ? GRACE_MS / 2 : END_MS);
	struct until until, step;
	struct err err, ignored;

	do {
		until = until_in(cancelled ? PATIENCE_MS / 2 : END_MS);
		if (write_end(w, end, &until, &err) == 0)
			return;
		step = until_in(PATIENCE_MS / 4);
		until_poll(&step, NULL, 0, &ignored);
	} while (clock_ms() < deadline);
	say(w, "could not write down that it is %s: %s", end->status, err.msg);
}

static void
finish(struct worker *w, int rc, const struct sync_report *report,
    struct err *err)
{
	bool cancelled = rc == -1 && was_cancelled(w, err);
	struct transfer_end end = {
		.status = rc == 0 ? TRANSFER_COMPLETED
		    : cancelled   ? TRANSFER_CANCELLED
		                  : TRANSFER_FAILED,
		.last_error = rc == 0 || cancelled ? "" : err->msg,
	};
	char *result = result_text(w, report);
	char *progress;

	pthread_mutex_lock(&w->lock);
	progress = progress_text(w,
	    rc == 0         ? "complete"
	        : cancelled ? "cancelled"
	                    : "failed");
	pthread_mutex_unlock(&w->lock);
	end.result_json = result;
	end.progress_json = progress;
	store_end(w, &end);
	if (rc == -1 && !cancelled)
		say(w, "failed: %s", err->msg);
	else
		say(w, "%s: %s", end.status, result);
	free(result);
	free(progress);
}

static int
do_sync(struct worker *w, struct err *err)
{
	struct links *links = links_new(true);
	struct until until = { .deadline = INT64_MAX,
		.cancel_fd = w->work->cancel_fd };
	struct sync_report report;
	pthread_t books;
	bool kept;
	int rc;

	if (fs_pipe(w->done, err) == -1) {
		links_free(links);
		return -1;
	}
	kept = pthread_create(&books, NULL, keep_books, w) == 0;
	memset(&report, 0, sizeof(report));
	rc = w->work->sync(links_get(links, w->sb), &w->req, take_progress, w,
	    &report, &until, err);
	close(w->done[1]);
	if (kept)
		pthread_join(books, NULL);
	close(w->done[0]);
	finish(w, rc, &report, err);
	sync_report_free(&report);
	/* It is written down: from here on nobody need wait for us. */
	target_give(&w->target);
	lockfile_give(w->lock_path, w->lock_fd);
	w->lock_fd = -1;
	links_free(links);
	return rc;
}

/* It could not even begin. */
static void
refuse(struct worker *w, const struct err *err)
{
	struct until until = until_in(PATIENCE_MS);
	struct transfer_end end = { .status = TRANSFER_FAILED,
		.last_error = err->msg,
		.progress_json = "{\"phase\": \"failed\"}" };
	struct err ignored;

	say(w, "failed: %s", err->msg);
	/* Another worker's row is none of our business. */
	if (w->lock_path == NULL || w->lock_fd != -1)
		(void)transfers_end(w->work->id, &end, &until, &ignored);
	answer(w, err->msg);
}

int
transfer_work(const struct transfer_work *work, struct err *err)
{
	struct worker w = { .work = work,
		.lock_fd = -1,
		.said = "",
		.now = { .phase = "starting", .path = "" } };
	int rc;

	pthread_mutex_init(&w.lock, NULL);
	if (work->fd != -1)
		fcntl(work->fd, F_SETFD, FD_CLOEXEC);
	rc = begin(&w, err);
	if (rc == -1)
		refuse(&w, err);
	else if (rc == 1)
		answer(&w, "the transfer has ended already");
	if (rc == 0) {
		say(&w, "worker %ld begins", (long)getpid());
		answer(&w, NULL);
		rc = do_sync(&w, err);
	}
	target_give(&w.target);
	if (w.lock_fd != -1)
		lockfile_give(w.lock_path, w.lock_fd);
	free(w.lock_path);
	json_decref(w.keep);
	sandbox_free(&w.own);
	transfer_free(&w.row);
	pthread_mutex_destroy(&w.lock);
	return rc == -1 ? -1 : 0;
}
