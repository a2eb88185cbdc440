/*
 * tools/list and tools/call.
 *
 * A result is one JSON object, given twice: as structuredContent and as the
 * same JSON in a text block, because some clients show the model only the
 * one and some only the other.  An error is text alone: it need not fit the
 * output schema.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/utf8.h"
#include "mcp/server.h"

json_t *
tools_list_json(const struct mcp_def *def)
{
	json_t *list = json_array();
	const struct tool *const *t;

	for (t = def->tools; *t != NULL; t++) {
		if ((*t)->flags & TOOL_ADVANCED && !(def->listing & LIST_ALL))
			continue;
		json_array_append_new(list, tool_json(*t, def->listing));
	}
	return list;
}

json_t *
tools_list(struct request *rq, struct rpc_fault *fault)
{
	return one_page(rq, "tools", json_incref(rq->server->tool_list), fault);
}

static json_t *
content_of(json_t *text)
{
	json_t *block = json_object();
	json_t *list = json_array();

	json_object_set_new(block, "type", json_string("text"));
	json_object_set_new(block, "text", text);
	json_array_append_new(list, block);
	return list;
}

static json_t *
pretty(const json_t *v)
{
	char *text = json_dumps(v, JSON_INDENT(2) | JSON_SHORT_REALS);
	json_t *s = json_string(text != NULL ? text : "{}");

	free(text);
	return s;
}

/* "Error: ", the sentence, and what there is besides. */
static json_t *
error_text(const struct err *err, const json_t *further)
{
	struct buf text;
	json_t *s;

	buf_init(&text, SIZE_MAX);
	buf_addf(&text, "Error: %s", err->msg);
	if (json_is_string(further)) {
		buf_adds(&text, "\n\n");
		buf_adds(&text, json_string_value(further));
	}
	s = utf8_json(text.data, text.len);
	buf_free(&text);
	return s;
}

static json_t *
error_object(const struct err *err, json_t *further)
{
	json_t *body = json_object();
	json_t *s;

	json_object_set_new(body, "error",
	    utf8_json(err->msg, strlen(err->msg)));
	if (further != NULL)
		json_object_update_missing(body, further);
	s = pretty(body);
	json_decref(body);
	return s;
}

/* "further" is what the tool left beside the sentence, or NULL; taken over. */
static json_t *
failure(const struct tool *tool, const struct err *err, json_t *further)
{
	json_t *o = json_object();

	json_object_set_new(o, "content",
	    content_of(tool->flags & TOOL_TEXT ? error_text(err, further)
	                                       : error_object(err, further)));
	json_object_set_new(o, "isError", json_true());
	json_decref(further);
	return o;
}

static json_t *
success(const struct tool *tool, json_t *result)
{
	json_t *o;

	if (tool->flags & TOOL_RAW)
		return result;
	o = json_object();
	if (tool->flags & TOOL_TEXT) {
		json_object_set_new(o, "content", content_of(result));
	} else {
		json_object_set_new(o, "content", content_of(pretty(result)));
		json_object_set_new(o, "structuredContent", result);
	}
	json_object_set_new(o, "isError", json_false());
	return o;
}

static const struct tool *
called_tool(struct request *rq, struct rpc_fault *fault)
{
	const char *name = decode_text(json_object_get(rq->msg.params, "name"));
	const struct tool *const *table = rq->server->def->tools;
	const struct tool *tool;
	const char *near;

	if (name == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS, "name must be a string");
		return NULL;
	}
	tool = tool_find(table, name);
	if (tool != NULL)
		return tool;
	near = tool_nearest(table, name);
	if (near != NULL)
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "unknown tool: %.100s; did you mean %s?", name, near);
	else
		rpc_fail(fault, RPC_INVALID_PARAMS, "unknown tool: %.100s",
		    name);
	return NULL;
}

json_t *
tools_call(struct request *rq, struct rpc_fault *fault)
{
	const json_t *args = json_object_get(rq->msg.params, "arguments");
	const struct tool *tool = called_tool(rq, fault);
	json_t *result = NULL;
	struct err err = ERR_INIT;

	if (tool == NULL)
		return NULL;
	if (args != NULL && !json_is_object(args) && !json_is_null(args)) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "arguments must be an object");
		return NULL;
	}
	rq->fault = fault;
	if (tool_run(tool, &rq->call, args, &result, &err) == 0)
		return success(tool, result);
	if (fault->code == 0)
		return failure(tool, &err, result);
	json_decref(result);
	return NULL;
}
