/*
 * cancel_background_watch: nobody looks after the job any more; it runs on.
 */
#include "tools/tool.h"
#include "tools/watching.h"

struct cancel_background_watch_args {
	int64_t watch_id;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct cancel_background_watch_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), WATCHING_ARG_ID },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ "status", OUT_OBJECT, "The watchdog itself.", .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct cancel_background_watch_args *a = given;
	json_t *status;
	struct watch w;
	int rc;

	if (watches_cancel(a->watch_id, &call->until, err) == -1)
		return -1;
	status = watching_status(&call->until, err);
	if (status == NULL)
		return -1;
	rc = watching_get(call, a->watch_id, &w, err);
	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "watch", watch_json(&w));
		watching_fit(*result, "watch", WATCHING_BRIEF);
		json_object_set(*result, "status", status);
	}
	json_decref(status);
	watch_free(&w);
	return rc;
}

const struct tool tool_cancel_background_watch = {
	.name = "cancel_background_watch",
	.title = "Cancel a watch",
	.description =
	    "Stop looking after a job. The job itself is left alone: "
	    "stop_background_task ends it.",
	.args = args,
	.args_size = sizeof(struct cancel_background_watch_args),
	.outputs = outputs,
	.hints = { .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
