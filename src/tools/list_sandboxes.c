/*
 * list_sandboxes: which machines there are, whether they answer, and how busy
 * they are.
 */
#include "tools/look.h"
#include "tools/tool.h"

struct list_sandboxes_args {
	bool check_resources;
};

static const struct arg args[] = {
	{ .name = "check_resources",
	    .offset = offsetof(struct list_sandboxes_args, check_resources),
	    .type = ARG_BOOL,
	    .help = "Also measure CPU, memory, disk and GPUs, with an "
	            "idle_score from 0 (busy) to 1." },
	{ 0 },
};

static const struct out sandbox_outputs[] = {
	{ "name", OUT_STRING, NULL, .always = true },
	{ "host", OUT_STRING, NULL, .always = true },
	{ "port", OUT_INT, NULL, .always = true, .nullable = true },
	{ "user", OUT_STRING, NULL, .always = true, .nullable = true },
	{ "is_active", OUT_BOOL, NULL, .always = true },
	{ "connection_alive", OUT_BOOL, NULL, .always = true },
	{ "connection_error", OUT_STRING, "Why it is not." },
	{ "limitation", OUT_STRING, "What cannot be done there (SFTP only)." },
	{ "host_key_added", OUT_STRING, "A new host key was remembered." },
	{ "resources", OUT_OBJECT,
	    "cpu, memory, disk, gpu, gpu_free_mb, idle_score; of a cluster "
	    "partitions, gpus, jobs, idle_score; null is not measured." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "active_sandbox", OUT_STRING, NULL, .always = true,
	    .nullable = true },
	{ "sandboxes", OUT_OBJECTS, NULL, .always = true,
	    .fields = sandbox_outputs },
	{ "problems", OUT_STRINGS, "Entries that were left out, and why." },
	{ "notes", OUT_STRINGS, "What may surprise in the configuration." },
	{ "diagnostics", OUT_OBJECT,
	    "Where the configuration came from, if there is a problem or note." },
	{ 0 },
};

/* What the older server said here, and what may surprise. */
static json_t *
diagnostics(const struct config *c)
{
	json_t *o = json_object();

	json_object_set_new(o, "REMOTE_SANDBOX_LIST_set",
	    json_boolean(c->list_set));
	json_object_set_new(o, "REMOTE_SANDBOX_LIST_length",
	    json_integer((json_int_t)c->list_length));
	json_object_set_new(o, "REMOTE_HOST_set", json_boolean(c->host_set));
	json_object_set_new(o, "init_error",
	    json_array_size(c->problems) > 0
	        ? json_deep_copy(json_array_get(c->problems, 0))
	        : json_null());
	if (json_array_size(c->notes) > 0)
		json_object_set_new(o, "notes", json_deep_copy(c->notes));
	return o;
}

/* Nothing usable: say why, with what the configuration looked like. */
static int
none(const struct config *c, json_t **result, struct err *err)
{
	json_t *o = json_object(), *d = diagnostics(c);

	config_pick(c, "", "", err);
	if (json_array_size(c->problems) > 1)
		json_object_set_new(d, "problems", json_deep_copy(c->problems));
	json_object_set_new(o, "hint",
	    json_string("Fix the configuration and restart this server; it "
	                "is read at start."));
	json_object_set_new(o, "diagnostics", d);
	json_object_set_new(o, "sandboxes", json_array());
	*result = o;
	return -1;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct list_sandboxes_args *a = given;
	const struct config *c = &call->app->config;
	const struct sandbox *active = app_active(call->app);
	json_t *list, *o;

	if (c->count == 0)
		return none(c, result, err);
	list = look_all(call, a->check_resources, err);
	if (list == NULL)
		return -1;
	o = json_object();
	json_object_set_new(o, "active_sandbox",
	    active != NULL ? json_string(active->name) : json_null());
	json_object_set_new(o, "sandboxes", list);
	if (json_array_size(c->problems) > 0)
		json_object_set_new(o, "problems", json_deep_copy(c->problems));
	if (json_array_size(c->notes) > 0)
		json_object_set_new(o, "notes", json_deep_copy(c->notes));
	if (json_array_size(c->problems) > 0 || json_array_size(c->notes) > 0)
		json_object_set_new(o, "diagnostics", diagnostics(c));
	*result = o;
	return 0;
}

const struct tool tool_list_sandboxes = {
	.name = "list_sandboxes",
	.title = "List sandboxes",
	.description =
	    "List the configured remote machines and whether each answers "
	    "now; with check_resources also how busy they are. Start here, "
	    "then select_sandbox or pass sandbox_name to the other tools.",
	.args = args,
	.args_size = sizeof(struct list_sandboxes_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.run = run,
};
