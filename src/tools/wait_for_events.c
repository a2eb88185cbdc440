/*
 * wait_for_events: events from a place on, as soon as there are some.
 */
#include "base/until.h"
#include "tools/fit.h"
#include "tools/tool.h"
#include "tools/watching.h"

#define STEP_MS 500 /* between two looks into the store */

struct wait_for_events_args {
	int64_t cursor;
	int64_t watch_id;
	int64_t timeout_s;
	int64_t limit;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct wait_for_events_args, field)

static const struct arg args[] = {
	{ ARG(cursor), .type = ARG_INT, .min = -1, .max = INT64_MAX, .dflt = -1,
	    .help = "next_cursor of the last call; 0 for all." },
	{ ARG(watch_id), .type = ARG_INT, .min = 0, .max = INT64_MAX,
	    .help = "Only those of this watch; 0 for all." },
	{ ARG(timeout_s), .type = ARG_INT, .min = 0, .max = 50, .dflt = 30,
	    .help = "Seconds to wait at most." },
	{ ARG(limit), .type = ARG_INT, .min = 1, .max = 100, .dflt = 20,
	    .help = "How many at most." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "events", OUT_OBJECTS, NULL, .always = true },
	{ "next_cursor", OUT_INT, "For the next call.", .always = true },
	{ "timed_out", OUT_BOOL, "Nothing happened." },
	{ WATCHING_OUT_CUT },
	{ 0 },
};

static json_t *
result_json(const struct event *list, size_t count, int64_t cursor)
{
	json_t *o = json_object(), *all = json_array();
	size_t i;

	for (i = 0; i < count; i++)
		json_array_append_new(all, event_json(&list[i]));
	json_object_set_new(o, "events", all);
	watching_fit(o, "events", FIT_MAX);
	json_object_set_new(o, "next_cursor",
	    json_integer(count > 0 ? list[count - 1].id : cursor));
	if (count == 0)
		json_object_set_new(o, "timed_out", json_true());
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct wait_for_events_args *a = given;
	struct events_query q = { .after = a->cursor,
		.watch_id = a->watch_id,
		.max = (size_t)a->limit };
	struct until end = until_within(&call->until, a->timeout_s * 1000);
	struct until step;
	struct event *list;
	struct err why;
	size_t count;

	if (q.after == -1 && events_last(&q.after, &call->until, err) == -1)
		return -1;
	for (;;) {
		if (events_list(&q, &list, &count, &call->until, err) == -1)
			return -1;
		if (count > 0 || until_check(&end, &why) == -1)
			break;
		step = until_within(&end, STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
	*result = result_json(list, count, q.after);
	events_free(list, count);
	return 0;
}

const struct tool tool_wait_for_events = {
	.name = "wait_for_events",
	.title = "Wait for events",
	.description =
	    "Wait for something to happen to watched jobs: events after cursor, "
	    "the oldest first, as soon as there are any. Pass next_cursor of "
	    "the last call; an event may come twice if a call is repeated, "
	    "and none is left out. Without a cursor only new ones count.",
	.args = args,
	.args_size = sizeof(struct wait_for_events_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
