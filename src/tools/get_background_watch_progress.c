/*
 * get_background_watch_progress: what is stored of a watch, and what its host
 * says now.
 */
#include <string.h>

#include "base/utf8.h"
#include "tools/fit.h"
#include "tools/tool.h"
#include "tools/watching.h"

/* By default. */
#define LINES 80
#define BYTES 20000

struct get_background_watch_progress_args {
	int64_t watch_id;
	bool refresh_live;
	int64_t log_lines;
	int64_t checkpoint_max_bytes;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct get_background_watch_progress_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), WATCHING_ARG_ID },
	{ ARG(refresh_live), .type = ARG_BOOL, .dflt = 1,
	    .help = "Ask the host." },
	{ ARG(log_lines), .type = ARG_INT, .min = 1, .max = 10000,
	    .dflt = LINES, .help = "Lines of the log's end." },
	{ ARG(checkpoint_max_bytes), .type = ARG_INT, .min = 1, .max = 1000000,
	    .dflt = BYTES, .help = "Bytes of the checkpoint at most." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ "stored", OUT_OBJECT, "The watchdog's last look.", .always = true },
	{ "live", OUT_OBJECT, "task, checkpoint, errors.", .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static void
set_text(json_t *o, const char *name, const char *text)
{
	json_object_set_new(o, name, utf8_json(text, strlen(text)));
}

static json_t *
stored_json(const struct watch *w)
{
	json_t *o = json_object();

	set_text(o, "last_state", w->last_state);
	set_text(o, "last_summary", w->last_summary);
	set_text(o, "last_error", w->last_error);
	set_text(o, "last_log_tail", w->last_log_tail);
	json_object_set_new(o, "checkpoint",
	    watching_checkpoint(w, w->last_checkpoint_text));
	return o;
}

static void
add_error(json_t *errors, const char *kind, const char *text)
{
	json_t *o = json_object();

	set_text(o, "kind", kind);
	set_text(o, "error", text);
	json_array_append_new(errors, o);
}

static json_t *
live_json(struct call *call, const struct watch *w,
    const struct get_background_watch_progress_args *a)
{
	json_t *o = json_object(), *errors = json_array();
	struct look l = { 0 };
	struct err err;
	bool good = false;

	if (a->refresh_live) {
		good = watching_look(call, w, a->log_lines,
		           (size_t)a->checkpoint_max_bytes, &l, &err) == 0;
		if (!good)
			add_error(errors, "task", err.msg);
		else if (l.checkpoint_error[0] != '\0')
			add_error(errors, "checkpoint", l.checkpoint_error);
	}
	json_object_set_new(o, "task",
	    good ? watching_task(&l, w) : json_null());
	json_object_set_new(o, "checkpoint",
	    good ? watching_checkpoint(w, l.seen.checkpoint) : json_null());
	json_object_set_new(o, "errors", errors);
	if (good)
		look_free(&l);
	return o;
}

/* The stored texts are in it twice, and what was asked for stays whole. */
static void
fit(json_t *result, const struct get_background_watch_progress_args *a)
{
	watching_fit(result, "watch", WATCHING_BRIEF);
	watching_fit(result, "stored", FIT_MAX / 4);
	if (a->log_lines <= LINES && a->checkpoint_max_bytes <= BYTES)
		watching_fit(result, "live", FIT_MAX / 2);
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct get_background_watch_progress_args *a = given;
	struct watch w;
	int rc = watching_get(call, a->watch_id, &w, err);

	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "watch", watch_json(&w));
		json_object_set_new(*result, "stored", stored_json(&w));
		json_object_set_new(*result, "live", live_json(call, &w, a));
		fit(*result, a);
	}
	watch_free(&w);
	return rc;
}

const struct tool tool_get_background_watch_progress = {
	.name = "get_background_watch_progress",
	.title = "Progress of a watched job",
	.description =
	    "What is stored of a watched job and, with refresh_live, how it is "
	    "doing now: state, log, checkpoint.",
	.args = args,
	.args_size = sizeof(struct get_background_watch_progress_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
