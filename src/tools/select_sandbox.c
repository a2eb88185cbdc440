/*
 * select_sandbox: the default machine for later calls of this process.
 */
#include <string.h>

#include "base/str.h"
#include "tools/look.h"
#include "tools/tool.h"

struct select_sandbox_args {
	const char *sandbox_name;
};

static const struct arg args[] = {
	{ .name = "sandbox_name",
	    .offset = offsetof(struct select_sandbox_args, sandbox_name),
	    .type = ARG_STRING,
	    .required = true,
	    .help = "Name of a sandbox, or auto for the most idle one that "
	            "answers." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "active_sandbox", OUT_STRING, NULL, .always = true },
	{ "status", OUT_STRING, NULL, .always = true },
	{ "idle_score", OUT_NUMBER, "Of the one that auto chose." },
	{ 0 },
};

/* The reachable sandbox with the best score; a measured one beats others. */
static const struct sandbox *
most_idle(struct call *call, double *best, struct err *err)
{
	json_t *list = look_all(call, true, err);
	const struct sandbox *chosen = NULL;
	const json_t *o;
	size_t i;

	if (list == NULL)
		return NULL;
	*best = -1;
	json_array_foreach (list, i, o) {
		const json_t *score =
		    json_object_get(json_object_get(o, "resources"),
		        "idle_score");
		double s = json_is_number(score) ? json_number_value(score) : 0;

		if (!json_is_true(json_object_get(o, "connection_alive")) ||
		    s <= *best)
			continue;
		*best = s;
		chosen = &call->app->config.sandboxes[i];
	}
	json_decref(list);
	if (chosen == NULL)
		err_set(err, ERR_IO,
		    "no sandbox can be reached; list_sandboxes says why");
	return chosen;
}

static json_t *
available(const struct config *c)
{
	json_t *o = json_object(), *names = json_array();
	size_t i;

	for (i = 0; i < c->count; i++)
		json_array_append_new(names, json_string(c->sandboxes[i].name));
	json_object_set_new(o, "available", names);
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct select_sandbox_args *a = given;
	const struct config *c = &call->app->config;
	const struct sandbox *sb;
	double score = -1;

	if (str_blank(a->sandbox_name))
		return err_set(err, ERR_INVALID,
		    "argument 'sandbox_name' must not be empty");
	if (strcmp(a->sandbox_name, "auto") == 0 && c->count > 0 &&
	    config_find(c, "auto") == NULL)
		sb = most_idle(call, &score, err);
	else
		sb = app_sandbox(call->app, a->sandbox_name, err);
	if (sb == NULL) {
		*result = available(c);
		return -1;
	}
	app_select(call->app, sb);
	*result = json_object();
	json_object_set_new(*result, "active_sandbox", json_string(sb->name));
	json_object_set_new(*result, "status", json_string("selected"));
	if (score >= 0)
		json_object_set_new(*result, "idle_score", json_real(score));
	return 0;
}

const struct tool tool_select_sandbox = {
	.name = "select_sandbox",
	.title = "Select a sandbox",
	.description = "Make a sandbox the default of this server process. A "
	               "convenience: every tool also takes sandbox_name.",
	.args = args,
	.args_size = sizeof(struct select_sandbox_args),
	.outputs = outputs,
	.hints = { .idempotent = true, .open_world = true },
	.run = run,
};
