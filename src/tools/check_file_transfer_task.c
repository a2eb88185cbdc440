/*
 * check_file_transfer_task: how far a transfer is, or how it ended.
 */
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/utf8.h"
#include "store/db.h"
#include "store/transfers.h"
#include "tools/tool.h"
#include "tools/transfer_files.h"

#define TAIL_CHARS 20000
#define BEGIN_S 60 /* a worker that is not there by then will not come */

struct check_args {
	int64_t task_id;
	int64_t last_n_lines;
};

#define ARG(field) .name = #field, .offset = offsetof(struct check_args, field)

static const struct arg args[] = {
	{ ARG(task_id), .type = ARG_INT, .required = true, .min = 1,
	    .max = INT64_MAX, .help = "Number that the sync returned." },
	{ ARG(last_n_lines), .type = ARG_INT, .min = 1, .max = 100000,
	    .dflt = 50, .help = "Lines of its log to return." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "task_id", OUT_INT, NULL, .always = true },
	{ "status", OUT_STRING,
	    "queued, running, completed, failed or cancelled.",
	    .always = true },
	{ "running", OUT_BOOL, "Its worker is at it." },
	{ "pending", OUT_BOOL, "Its worker has not begun." },
	{ "stale", OUT_BOOL,
	    "Its worker is gone without an end: sync again, it resumes." },
	{ "progress", OUT_OBJECT,
	    "phase, current_path, files_done, files_total, bytes_done, "
	    "bytes_total, rate_bytes_s, eta_s, problem_count." },
	{ "result", OUT_OBJECT, "What was done, and problems." },
	{ "error", OUT_STRING, "Why it failed." },
	{ "log_tail", OUT_STRING, "The end of its log." },
	{ "notes", OUT_STRINGS, "What else should be known." },
	{ 0 },
};

/* Is there anything to see?  What has not moved yet is. */
static bool
tells(const char *key, const json_t *v)
{
	if (strcmp(key, "files_done") == 0 || strcmp(key, "bytes_done") == 0 ||
	    strcmp(key, "eta_s") == 0)
		return !json_is_null(v);
	switch (json_typeof(v)) {
	case JSON_INTEGER:
		return json_integer_value(v) != 0;
	case JSON_REAL:
		return json_real_value(v) != 0;
	case JSON_STRING:
		return json_string_length(v) > 0;
	case JSON_ARRAY:
		return json_array_size(v) > 0;
	case JSON_OBJECT:
		return json_object_size(v) > 0;
	case JSON_TRUE:
		return true;
	case JSON_FALSE:
	case JSON_NULL:
		break;
	}
	return false;
}

/* An object of the row without what says nothing. */
static void
set_summary(json_t *o, const char *name, const char *text)
{
	struct err err;
	json_t *all = decode_json(text, strlen(text), &err);
	json_t *some = json_object();
	const char *key;
	json_t *v;

	if (json_is_object(all))
		json_object_foreach (all, key, v) {
			if (tells(key, v))
				json_object_set(some, key, v);
		}
	if (json_object_size(some) > 0)
		json_object_set(o, name, some);
	json_decref(some);
	json_decref(all);
}

static void
set_text(json_t *o, const char *name, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(o, name, utf8_json(text, strlen(text)));
}

/* Is somebody at it? */
static void
set_life(json_t *o, const struct transfer *t)
{
	bool queued = strcmp(t->status, TRANSFER_QUEUED) == 0;
	/* Below zero if the clock was set back. */
	int64_t age = (int64_t)time(NULL) - t->created_ts;
	struct ident who;

	if (transfer_ended(t->status))
		return;
	if (transfer_worker(t, &who))
		json_object_set_new(o, queued ? "pending" : "running",
		    json_true());
	else if (queued && age < BEGIN_S && age > -BEGIN_S)
		json_object_set_new(o, "pending", json_true());
	else
		json_object_set_new(o, "stale", json_true());
}

static json_t *
result_json(const struct transfer *t, int64_t lines)
{
	json_t *o = json_object();
	json_t *notes = db_notes();
	struct buf tail;

	json_object_set_new(o, "task_id", json_integer(t->id));
	json_object_set_new(o, "status",
	    utf8_json(t->status, strlen(t->status)));
	set_life(o, t);
	set_summary(o, "progress", t->progress_json);
	set_summary(o, "result", t->result_json);
	if (strcmp(t->status, TRANSFER_FAILED) == 0)
		set_text(o, "error", t->last_error);
	buf_init(&tail, (size_t)4 * TAIL_CHARS);
	transfer_log_tail(t->log_file, lines, TAIL_CHARS, &tail);
	set_text(o, "log_tail", tail.data);
	buf_free(&tail);
	if (json_array_size(notes) > 0)
		json_object_set(o, "notes", notes);
	json_decref(notes);
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct check_args *a = given;
	struct transfer t;
	struct ident who;

	if (transfers_get(a->task_id, &t, &call->until, err) == -1)
		return -1;
	/* It may have ended between two looks: what the row says then holds. */
	if (!transfer_ended(t.status) && !transfer_worker(&t, &who)) {
		transfer_free(&t);
		if (transfers_get(a->task_id, &t, &call->until, err) == -1)
			return -1;
	}
	*result = result_json(&t, a->last_n_lines);
	transfer_free(&t);
	return 0;
}

const struct tool tool_check_file_transfer_task = {
	.name = "check_file_transfer_task",
	.title = "Check a transfer",
	.description =
	    "How far a background sync is (files, bytes, rate, time left), or "
	    "how it ended, with the end of its log.",
	.args = args,
	.args_size = sizeof(struct check_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.run = run,
};
