/*
 * get_active_sandbox: the default machine, and whether it answers now.
 */
#include "tools/look.h"
#include "tools/tool.h"

static const struct out outputs[] = {
	{ "active_sandbox", OUT_STRING, NULL, .always = true },
	{ "host", OUT_STRING, NULL, .always = true },
	{ "port", OUT_INT, NULL, .always = true, .nullable = true },
	{ "user", OUT_STRING, NULL, .always = true, .nullable = true },
	{ "connection_alive", OUT_BOOL, NULL, .always = true },
	{ "connection_error", OUT_STRING, "Why it is not." },
	{ "limitation", OUT_STRING, "What cannot be done there (SFTP only)." },
	{ "host_key_added", OUT_STRING, "A new host key was remembered." },
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct sandbox *sb = app_sandbox(call->app, "", err);
	json_t *o, *seen;

	(void)given;
	if (sb == NULL) {
		*result = json_object();
		json_object_set_new(*result, "active_sandbox", json_null());
		return -1;
	}
	seen = look_one(call, sb, false);
	if (until_check(&call->until, err) == -1) {
		json_decref(seen);
		return -1;
	}
	o = json_object();
	json_object_set(o, "active_sandbox", json_object_get(seen, "name"));
	json_object_del(seen, "name");
	json_object_del(seen, "is_active");
	json_object_update(o, seen);
	json_decref(seen);
	*result = o;
	return 0;
}

const struct tool tool_get_active_sandbox = {
	.name = "get_active_sandbox",
	.title = "Active sandbox",
	.description =
	    "Which sandbox is the default now, and whether it answers "
	    "(connects if need be). Call it before long work.",
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.run = run,
};
