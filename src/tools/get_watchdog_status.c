/* get_watchdog_status: is the watchdog there, and how is it? */
#include "tools/tool.h"
#include "tools/watchdog.h"
#include "watch/service.h"

const struct out watchdog_status_outputs[] = {
	{ "paths", OUT_OBJECT, "Files of the watchdog.", .always = true },
	{ "launchd", OUT_OBJECT, "Its agent on macOS.", .always = true },
	{ "service", OUT_OBJECT,
	    "How it runs here: kind, running, pid, log_file, and a hint if "
	    "there is something to do.",
	    .always = true },
	{ "heartbeat", OUT_OBJECT, "Its last sign of life.", .always = true,
	    .nullable = true },
	{ "heartbeat_stale", OUT_BOOL, "That is too long ago.",
	    .always = true },
	{ "watch_counts", OUT_OBJECT, "Watches by status.", .always = true },
	{ 0 },
};

static int
run(struct call *call, const void *args, json_t **result, struct err *err)
{
	(void)args;
	*result = service_status(&call->until, err);
	return *result != NULL ? 0 : -1;
}

const struct tool tool_get_watchdog_status = {
	.name = "get_watchdog_status",
	.title = "Watchdog status",
	.description =
	    "Whether the watchdog runs that looks after background tasks, by "
	    "what kind of service, its last heartbeat and how many watches "
	    "there are. Needs no sandbox.",
	.outputs = watchdog_status_outputs,
	.hints = { .read_only = true, .idempotent = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
