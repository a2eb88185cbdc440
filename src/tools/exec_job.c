/*
 * A command that becomes a job.
 *
 * It is one from its start, so nothing has to be handed over when the time is
 * up, and it survives whatever happens to us meanwhile.  What it prints is in
 * its log, where both streams are one.
 */
#include "tools/exec_job.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/str.h"
#include "base/utf8.h"
#include "job/job.h"
#include "ssh/capture.h"
#include "tools/cluster_args.h"
#include "tools/jobs.h"
#include "tools/remote.h"

#define SLICE_S 10                  /* between signs of progress */
#define PIECE_MAX ((size_t)1 << 20) /* of the log, at once */
#define HEAD_MAX ((int64_t)2 << 20)
#define TAIL_MAX ((int64_t)2 << 20)
#define RETRY_MS 1000

/* A log of both takes four, and one for half a character; a host that goes on
 * by a byte each time would take millions. */
#define LOOKS_MAX 8

static int
start_once(struct link *link, const struct exec_job *e, struct job_handle *h,
    const struct until *until, struct err *err)
{
	char name[JOB_NAME_MAX + 1], log[JOB_NAME_MAX + 32];
	struct buf options;
	int rc = 0;

	job_name(name, "");
	snprintf(log, sizeof(log), "~/.codex_logs/%s.log", name);
	buf_init(&options, SIZE_MAX);
	if (e->slurm != NULL)
		rc = cluster_options(&options, link_sandbox(link), e->slurm,
		    false, err);
	if (rc == 0)
		rc = job_start(link,
		    &(struct job_start){
		        .name = name,
		        .command = e->command,
		        .cwd = e->cwd != NULL ? e->cwd : "",
		        .log_file = log,
		        .key = "",
		        .slurm = e->slurm != NULL ? options.data : NULL,
		    },
		    h, until, err);
	buf_free(&options);
	return rc;
}

/* A name is made of the time and little chance; another client may have made
 * the same. */
static int
start(struct link *link, const struct exec_job *e, struct job_handle *h,
    const struct until *until, struct err *err)
{
	int tries = 0;

	do {
		if (start_once(link, e, h, until, err) != 0)
			return -1;
		if (h->how != JOB_EXISTS)
			return 0;
		job_handle_free(h);
	} while (++tries < 5);
	return err_set(err, ERR_IO,
	    "no free name for the job was found on %s; nothing was started, "
	    "call again",
	    link_sandbox(link)->name);
}

static void
tell_progress(struct call *call, const struct job_status *s, int64_t began)
{
	struct buf line;

	buf_init(&line, 4096);
	jobs_log_text(&line, s->log.data, s->log.len);
	call_progress(call, (double)(clock_ms() - began) / 1000, 0, line.data);
	buf_free(&line);
}

/* Until it ends or the time is up.  -1 if nobody could tell at last. */
static int
wait_end(struct call *call, struct link *link, const char *name,
    int64_t timeout_s, struct job_status *s, struct err *err)
{
	int64_t began = clock_ms(), left;
	struct until nap;
	int rc;

	for (;;) {
		struct job_look q = { .name = name,
			.log_file = "",
			.last_lines = 1,
			.since = -1,
			.max_bytes = 2000,
			.grep = "",
			.wait_end = true };

		left = timeout_s - (clock_ms() - began) / 1000;
		q.wait_s = (int)(left < SLICE_S ? left : SLICE_S);
		if (q.wait_s < 0)
			q.wait_s = 0;
		rc = job_look(link, &q, s, &call->until, err);
		if (rc == 0 && (jobs_ended(s) || left <= SLICE_S))
			return 0;
		if (rc == -1 && (left <= 1 || err->code == ERR_CANCELLED))
			return -1;
		if (rc == 0) {
			tell_progress(call, s, began);
			job_status_free(s);
			continue;
		}
		nap = until_within(&call->until, RETRY_MS);
		until_poll(&nap, NULL, 0, err);
	}
}

/* The log from *at to "end"; *at is then where it goes on. */
static int
read_log(struct link *link, const char *name, struct buf *out, int64_t *at,
    int64_t end, const struct until *until, struct err *err)
{
	struct job_status s;
	int looks;

	for (looks = 0; *at < end && looks < LOOKS_MAX; looks++) {
		int64_t want = end - *at;
		struct job_look q = { .name = name,
			.log_file = "",
			.since = *at,
			.max_bytes = want < (int64_t)PIECE_MAX ? (size_t)want
			                                       : PIECE_MAX,
			.grep = "" };
		int64_t from = *at;

		if (job_look(link, &q, &s, until, err) == -1)
			return -1;
		if (!s.log_replaced && s.log_offset > from) {
			buf_add(out, s.log.data, s.log.len);
			*at = s.log_offset;
		}
		job_status_free(&s);
		if (*at == from)
			break; /* half a character, or no log any more */
	}
	return 0;
}

/* Head and tail of what it printed, as exec_bash gives them. */
static void
set_output(json_t *o, struct link *link, const struct job_handle *h,
    const struct job_status *s, size_t max, const struct until *until)
{
	int64_t at = h->begin, end = s->log_size, gap = 0;
	struct capture c;
	struct buf log, text;
	char nonce[NONCE_LEN + 1];
	struct err err;
	uint64_t left;

	buf_init(&log, SIZE_MAX);
	if (end - at > HEAD_MAX + TAIL_MAX) {
		read_log(link, h->name, &log, &at, at + HEAD_MAX, until, &err);
		if (at < end - TAIL_MAX)
			gap = end - TAIL_MAX - at;
		at += gap;
	}
	if (read_log(link, h->name, &log, &at, end, until, &err) == -1)
		json_object_set_new(o, "problem",
		    utf8_json(err.msg, strlen(err.msg)));
	jobs_drop_frame(&log, s);
	random_hex(nonce, NONCE_LEN / 2);
	capture_init(&c, nonce, max * 4 + 4096, NULL, 0);
	capture_add(&c, log.data, log.len);
	capture_add(&c, nonce, NONCE_LEN);
	capture_add(&c, " 0 -\n", 5);
	buf_init(&text, SIZE_MAX);
	left = capture_text(&c, &text, max) + (uint64_t)gap;
	json_object_set_new(o, "stdout", utf8_json(text.data, text.len));
	if (left > 0)
		json_object_set_new(o, "truncated",
		    json_pack("{s:I}", "stdout", (json_int_t)left));
	json_object_set_new(o, "next_offset", json_integer(at));
	buf_free(&text);
	buf_free(&log);
	capture_free(&c);
}

/* As exec_bash tells it of any command. */
static void
set_left(json_t *o, const struct job_status *s)
{
	json_t *list;
	size_t i;

	if (s->left_count == 0)
		return;
	list = json_array();
	for (i = 0; i < s->left_count; i++)
		json_array_append_new(list, json_integer(s->left[i]));
	json_object_set_new(o, "background_pids", list);
}

/* It may have been lost before it was looked at. */
static json_t *
result_json(const struct job_handle *h, const struct job_status *s,
    const struct link *link, int64_t began)
{
	json_t *o = json_object();
	bool over = s != NULL && jobs_ended(s);

	json_object_set_new(o, "exit_code",
	    over && s->exit_code != -1 ? json_integer(s->exit_code)
	                               : json_null());
	json_object_set_new(o, "stdout", json_string(""));
	json_object_set_new(o, "stderr", json_string(""));
	json_object_set_new(o, "sandbox",
	    json_string(link_sandbox(link)->name));
	json_object_set_new(o, "duration_ms", json_integer(clock_ms() - began));
	if (over && s->signal != 0)
		json_object_set_new(o, "signal", json_integer(s->signal));
	if (over)
		set_left(o, s);
	if (!over)
		json_object_set_new(o, "command_state",
		    json_string(
		        s != NULL ? "in_background" : "may_be_running"));
	json_object_set_new(o, "state",
	    json_string(s != NULL ? job_state_name(s->state) : "unknown"));
	json_object_set_new(o, "tmux_session", json_string(h->name));
	json_object_set_new(o, "log_file",
	    utf8_json(h->log_file, strlen(h->log_file)));
	return o;
}

int
exec_job_run(struct call *call, struct link *link, const struct exec_job *e,
    json_t **result, struct err *err)
{
	int64_t began = clock_ms();
	struct job_handle h;
	struct job_status s;

	if (start(link, e, &h, &call->until, err) == -1)
		return -1;
	if (wait_end(call, link, h.name, e->timeout_s, &s, err) == 0) {
		*result = result_json(&h, &s, link, began);
		set_output(*result, link, &h, &s, e->max_chars, &call->until);
		job_status_free(&s);
	} else {
		*result = result_json(&h, NULL, link, began);
		json_object_set_new(*result, "connection_error", json_true());
		json_object_set_new(*result, "problem",
		    utf8_json(err->msg, strlen(err->msg)));
	}
	remote_set_news(*result, link);
	job_handle_free(&h);
	return 0;
}
