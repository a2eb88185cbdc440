/*
 * Finding, describing and running tools.
 */
#include "tools/tool.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/nearest.h"
#include "base/str.h"

const struct tool *
tool_find(const struct tool *const *table, const char *name)
{
	const struct tool *const *t;

	for (t = table; *t != NULL; t++) {
		if (strcmp((*t)->name, name) == 0)
			return *t;
	}
	return NULL;
}

const char *
tool_nearest(const struct tool *const *table, const char *name)
{
	const struct tool *const *t;
	struct nearest n;

	nearest_init(&n, name, NEAREST_GUESS);
	for (t = table; *t != NULL; t++)
		nearest_try(&n, (*t)->name);
	return n.best;
}

bool
tool_takes(const struct tool *tool, const char *name)
{
	return args_find(tool->args, name) != NULL ||
	    (tool->settled != NULL && strcmp(name, tool->settled) == 0);
}

/* What was given, without what the tool has settled; a new reference. */
static json_t *
without_settled(const struct tool *tool, const json_t *arguments)
{
	json_t *rest = (json_t *)(uintptr_t)arguments;

	if (tool->settled == NULL ||
	    json_object_get(rest, tool->settled) == NULL)
		return json_incref(rest);
	rest = json_copy(rest);
	json_object_del(rest, tool->settled);
	return rest;
}

int
tool_run(const struct tool *tool, struct call *call, const json_t *arguments,
    json_t **result, struct err *err)
{
	json_t *given = without_settled(tool, arguments);
	struct bound bound;
	int rc;

	*result = NULL;
	rc = args_bind(tool->args, tool->args_size, given, &bound, err);
	if (rc == 0)
		rc = tool->run(call, bound.values, result, err);
	assert(rc == -1 || *result != NULL);
	bound_free(&bound);
	json_decref(given);
	return rc;
}

static json_t *
hints_json(const struct hints *h)
{
	json_t *o = json_object();

	json_object_set_new(o, "readOnlyHint", json_boolean(h->read_only));
	json_object_set_new(o, "destructiveHint", json_boolean(h->destructive));
	json_object_set_new(o, "idempotentHint", json_boolean(h->idempotent));
	json_object_set_new(o, "openWorldHint", json_boolean(h->open_world));
	return o;
}

json_t *
tool_json(const struct tool *tool, unsigned listing)
{
	json_t *o = json_object();

	json_object_set_new(o, "name", json_string(tool->name));
	json_object_set_new(o, "title", json_string(tool->title));
	json_object_set_new(o, "description", json_string(tool->description));
	json_object_set_new(o, "inputSchema",
	    tool->schema != NULL ? json_loads(tool->schema, 0, NULL)
	                         : args_schema(tool->args, listing));
	if (tool->outputs != NULL)
		json_object_set_new(o, "outputSchema",
		    outs_schema(tool->outputs, listing));
	json_object_set_new(o, "annotations", hints_json(&tool->hints));
	return o;
}

bool
tool_advanced_listed(void)
{
	const char *v = getenv("REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS");
	bool on;

	return v != NULL && str_to_bool(v, &on) == 0 && on;
}
