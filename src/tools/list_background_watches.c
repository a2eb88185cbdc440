/*
 * list_background_watches: all watches, or those of a status.
 */
#include "tools/fit.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct list_background_watches_args {
	const char *status;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct list_background_watches_args, field)

static const struct arg args[] = {
	{ ARG(status), .type = ARG_STRING, .dflt_str = "",
	    .help = "Only those that are active, completed, failed or "
	            "cancelled." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "watches", OUT_OBJECTS, NULL, .always = true },
	{ "status", OUT_OBJECT, "The watchdog itself.", .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct list_background_watches_args *a = given;
	json_t *status, *all;
	struct watch *list;
	size_t i, count;

	if (watches_list(a->status, &list, &count, &call->until, err) == -1)
		return -1;
	status = watching_status(&call->until, err);
	if (status == NULL) {
		watches_free(list, count);
		return -1;
	}
	all = json_array();
	for (i = 0; i < count; i++)
		json_array_append_new(all, watch_json(&list[i]));
	watches_free(list, count);
	*result = json_object();
	json_object_set_new(*result, "watches", all);
	watching_fit(*result, "watches", FIT_MAX);
	json_object_set_new(*result, "status", status);
	return 0;
}

const struct tool tool_list_background_watches = {
	.name = "list_background_watches",
	.title = "List watches",
	.description =
	    "All watches, the newest first, with everything that is known of them.",
	.args = args,
	.args_size = sizeof(struct list_background_watches_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
