/*
 * read_background_watch_log: the end of a watched job's log, from its host.
 */
#include "tools/tool.h"
#include "tools/watching.h"

struct read_background_watch_log_args {
	int64_t watch_id;
	int64_t last_n_lines;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct read_background_watch_log_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), WATCHING_ARG_ID },
	{ ARG(last_n_lines), .type = ARG_INT, .min = 1, .max = 10000,
	    .dflt = 200, .help = "Lines of its end." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ "log", OUT_OBJECT, "As check_background_task gives it.",
	    .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct read_background_watch_log_args *a = given;
	struct watch w;
	struct look l;
	int rc = watching_get(call, a->watch_id, &w, err);

	if (rc == 0)
		rc = watching_look(call, &w, a->last_n_lines, 0, &l, err);
	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "watch", watch_json(&w));
		watching_fit(*result, "watch", WATCHING_BRIEF);
		json_object_set_new(*result, "log", watching_task(&l, &w));
		look_free(&l);
	}
	watch_free(&w);
	return rc;
}

const struct tool tool_read_background_watch_log = {
	.name = "read_background_watch_log",
	.title = "Read the log of a watched job",
	.description =
	    "How a watched job is doing, and the end of its log, asked of its host.",
	.args = args,
	.args_size = sizeof(struct read_background_watch_log_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
