/*
 * get_background_watch: one watch, as it is stored.
 */
#include "tools/fit.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct get_background_watch_args {
	int64_t watch_id;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct get_background_watch_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), WATCHING_ARG_ID },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct get_background_watch_args *a = given;
	struct watch w;
	int rc = watching_get(call, a->watch_id, &w, err);

	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "watch", watch_json(&w));
		watching_fit(*result, "watch", FIT_MAX);
	}
	watch_free(&w);
	return rc;
}

const struct tool tool_get_background_watch = {
	.name = "get_background_watch",
	.title = "Show a watch",
	.description =
	    "One watch with everything that is known of it; asks no host.",
	.args = args,
	.args_size = sizeof(struct get_background_watch_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
