/*
 * read_background_watch_checkpoint: the checkpoint of a watched job, now.
 */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct read_background_watch_checkpoint_args {
	int64_t watch_id;
	int64_t max_bytes;
};

#define ARG(field)      \
	.name = #field, \
	.offset =       \
	    offsetof(struct read_background_watch_checkpoint_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), WATCHING_ARG_ID },
	{ ARG(max_bytes), .type = ARG_INT, .min = 1, .max = 1000000,
	    .dflt = 20000, .help = "Bytes of it at most." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ "checkpoint", OUT_OBJECT, "raw, format, and parsed if it is JSON.",
	    .always = true, .nullable = true },
	{ "command_result", OUT_OBJECT, "How checkpoint_command went." },
	{ "file_result", OUT_OBJECT, "How reading checkpoint_path went." },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

/* How it was read; an "error" only if it was not. */
static json_t *
how_json(const struct look *l, const struct watch *w)
{
	json_t *o = json_object();
	bool file = str_blank(w->checkpoint_command);
	const char *text = l->seen.checkpoint;

	json_object_set_new(o, file ? "content" : "stdout",
	    text != NULL ? utf8_json(text, strlen(text)) : json_string(""));
	if (l->checkpoint_error[0] != '\0')
		json_object_set_new(o, text != NULL ? "problem" : "error",
		    utf8_json(l->checkpoint_error,
		        strlen(l->checkpoint_error)));
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct read_background_watch_checkpoint_args *a = given;
	struct watch w;
	struct look l;
	int rc = watching_get(call, a->watch_id, &w, err);

	if (rc == 0 && str_blank(w.checkpoint_command) &&
	    str_blank(w.checkpoint_path))
		rc = err_set(err, ERR_INVALID,
		    "watch %lld has neither a checkpoint_path nor a "
		    "checkpoint_command",
		    (long long)a->watch_id);
	if (rc == 0)
		rc = watching_look(call, &w, 1, (size_t)a->max_bytes, &l, err);
	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "watch", watch_json(&w));
		watching_fit(*result, "watch", WATCHING_BRIEF);
		json_object_set_new(*result, "checkpoint",
		    watching_checkpoint(&w, l.seen.checkpoint));
		json_object_set_new(*result,
		    str_blank(w.checkpoint_command) ? "file_result"
		                                    : "command_result",
		    how_json(&l, &w));
		look_free(&l);
	}
	watch_free(&w);
	return rc;
}

const struct tool tool_read_background_watch_checkpoint = {
	.name = "read_background_watch_checkpoint",
	.title = "Read a checkpoint",
	.description =
	    "Read the checkpoint of a watched job on its host: the output of its "
	    "checkpoint_command, or its file.",
	.args = args,
	.args_size = sizeof(struct read_background_watch_checkpoint_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
