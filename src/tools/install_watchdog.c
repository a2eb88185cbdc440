/*
 * install_watchdog, uninstall_watchdog: the watchdog as a service, by hand.
 * Starting a watched task does it by itself.  The names of the earlier server
 * work on every platform, too.
 */
#include <stdlib.h>

#include "base/utf8.h"
#include "config/allow.h"
#include "config/dirs.h"
#include "config/keep.h"
#include "ssh/agent.h"
#include "tools/app.h"
#include "tools/tool.h"
#include "tools/watchdog.h"
#include "watch/service.h"

#include <string.h>

struct install_watchdog_args {
	bool start_now;
	bool persist_current_sandboxes;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct install_watchdog_args, field)

static const struct arg args[] = {
	{ ARG(start_now), .type = ARG_BOOL, .dflt = true,
	    .help = "Start it now, anew if it runs." },
	{ ARG(persist_current_sandboxes), .type = ARG_BOOL, .dflt = true,
	    .help = "Keep what it needs to log in to all sandboxes of this "
	            "server." },
	{ 0 },
};

static const struct out install_outputs[] = {
	{ "install", OUT_OBJECT, "What was installed, and whether it started.",
	    .always = true },
	{ "persisted_sandboxes", OUT_OBJECT, "What was kept, and where.",
	    .always = true, .nullable = true },
	{ "status", OUT_OBJECT, "The state of the watchdog.", .always = true,
	    .fields = watchdog_status_outputs },
	{ 0 },
};

static const struct out uninstall_outputs[] = {
	{ "removal", OUT_OBJECT, "What was removed.", .always = true },
	{ "status", OUT_OBJECT, "The state of the watchdog.", .always = true,
	    .fields = watchdog_status_outputs },
	{ "hint", OUT_STRING, "What to do about watches that are left." },
	{ 0 },
};

/* {config_path, sandbox_count, warnings} */
static json_t *
persist(struct call *call, struct err *err)
{
	const struct config *c = &call->app->config;
	char *dir = dirs_state_sub("kept", err);
	json_t *o, *warnings;
	size_t i;

	if (dir == NULL)
		return NULL;
	if (agent_remember(err) == -1) {
		free(dir);
		return NULL;
	}
	o = json_object();
	warnings = json_array();
	json_object_set_new(o, "config_path", utf8_json(dir, strlen(dir)));
	json_object_set_new(o, "sandbox_count",
	    json_integer((json_int_t)c->count));
	free(dir);
	for (i = 0; i < c->count; i++) {
		struct kept k;
		int rc = keep_put(&c->sandboxes[i], &k, &call->until, err);

		if (rc == 0 && k.warning != NULL)
			json_array_append_new(warnings,
			    utf8_json(k.warning, strlen(k.warning)));
		kept_free(&k);
		if (rc == -1) {
			json_decref(warnings);
			json_decref(o);
			return NULL;
		}
	}
	if (json_array_size(warnings) > 0)
		json_object_set(o, "warnings", warnings);
	json_decref(warnings);
	return o;
}

static int
add_status(struct call *call, json_t *o, json_t **result, struct err *err)
{
	json_t *status = service_status(&call->until, err);

	if (status == NULL) {
		json_decref(o);
		return -1;
	}
	json_object_set_new(o, "status", status);
	*result = o;
	return 0;
}

static int
install(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct install_watchdog_args *a = given;
	json_t *kept = json_null(), *done, *o;

	/* By hand it is as the environment says now. */
	allow_forget();
	if (allow_remember(err) == -1)
		return -1;
	if (a->persist_current_sandboxes && call->app != NULL) {
		kept = persist(call, err);
		if (kept == NULL)
			return -1;
	}
	if (service_install(a->start_now, &done, &call->until, err) == -1) {
		json_decref(kept);
		return -1;
	}
	o = json_object();
	json_object_set_new(o, "install", done);
	json_object_set_new(o, "persisted_sandboxes", kept);
	return add_status(call, o, result, err);
}

/* The watches that are active nevertheless, if there are any. */
static void
add_hint(json_t *o)
{
	const json_t *counts =
	    json_object_get(json_object_get(o, "status"), "watch_counts");
	json_int_t n = json_integer_value(json_object_get(counts, "active"));

	if (n == 0)
		return;
	json_object_set_new(o, "hint",
	    json_sprintf("nobody looks at %" JSON_INTEGER_FORMAT
	                 " active watch%s any more; the jobs run on. "
	                 "'remote-sandbox-mcp watchdog install' takes up "
	                 "again what 'remote-sandbox-mcp watches' lists, as "
	                 "does the next watched task; 'remote-sandbox-mcp "
	                 "call cancel_background_watch watch_id=ID' ends one",
	        n, n == 1 ? "" : "es"));
}

static int
uninstall(struct call *call, const void *given, json_t **result,
    struct err *err)
{
	json_t *done, *o;

	(void)given;
	if (service_uninstall(&done, &call->until, err) == -1)
		return -1;
	o = json_object();
	json_object_set_new(o, "removal", done);
	if (add_status(call, o, result, err) == -1)
		return -1;
	add_hint(*result);
	return 0;
}

#define INSTALL                                                          \
	.args = args, .args_size = sizeof(struct install_watchdog_args), \
	.outputs = install_outputs, .hints = { .idempotent = true },     \
	.flags = TOOL_ADVANCED, .run = install

#define UNINSTALL                                             \
	.outputs = uninstall_outputs,                         \
	.hints = { .destructive = true, .idempotent = true }, \
	.flags = TOOL_ADVANCED, .run = uninstall

const struct tool tool_install_watchdog = {
	.name = "install_watchdog",
	.title = "Install the watchdog",
	.description =
	    "Install the watchdog for background tasks as a service of this "
	    "user (systemd, launchd, or a process of its own) and start it. "
	    "Seldom needed: starting a watched task does it.",
	INSTALL,
};

const struct tool tool_uninstall_watchdog = {
	.name = "uninstall_watchdog",
	.title = "Uninstall the watchdog",
	.description =
	    "Stop the watchdog and remove its service. Watches, events and "
	    "what it needs to log in stay; nobody looks at them until it is "
	    "started again.",
	UNINSTALL,
};

const struct tool tool_install_macos_watchdog = {
	.name = "install_macos_watchdog",
	.title = "Install the watchdog (old name)",
	.description = "The same as install_watchdog, on every platform.",
	INSTALL,
};

const struct tool tool_uninstall_macos_watchdog = {
	.name = "uninstall_macos_watchdog",
	.title = "Uninstall the watchdog (old name)",
	.description = "The same as uninstall_watchdog, on every platform.",
	UNINSTALL,
};
