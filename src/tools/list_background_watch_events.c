/*
 * list_background_watch_events: what happened to watched jobs.
 */
#include "tools/fit.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct list_background_watch_events_args {
	int64_t watch_id;
	int64_t limit;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct list_background_watch_events_args, field)

static const struct arg args[] = {
	{ ARG(watch_id), .type = ARG_INT, .min = 0, .max = INT64_MAX,
	    .help = "Only those of this watch; 0 for all." },
	{ ARG(limit), .type = ARG_INT, .min = 1, .max = 1000, .dflt = 20,
	    .help = "How many at most." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "events", OUT_OBJECTS, NULL, .always = true },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct list_background_watch_events_args *a = given;
	struct events_query q = { .watch_id = a->watch_id,
		.newest = true,
		.max = (size_t)a->limit };
	struct event *list;
	size_t i, count;
	json_t *all;

	if (events_list(&q, &list, &count, &call->until, err) == -1)
		return -1;
	all = json_array();
	for (i = 0; i < count; i++)
		json_array_append_new(all, event_json(&list[i]));
	events_free(list, count);
	*result = json_object();
	json_object_set_new(*result, "events", all);
	watching_fit(*result, "events", FIT_MAX);
	return 0;
}

const struct tool tool_list_background_watch_events = {
	.name = "list_background_watch_events",
	.title = "List events",
	.description = "Events of watches, the newest first.",
	.args = args,
	.args_size = sizeof(struct list_background_watch_events_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
