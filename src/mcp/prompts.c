/*
 * prompts/list, prompts/get and completion/complete.
 */
#include <string.h>

#include "base/decode.h"
#include "base/str.h"
#include "mcp/server.h"
#include "tools/prompt.h"
#include "tools/resource.h"

#define VALUES_MAX 100 /* of a completion, by the protocol */

json_t *
prompts_list(struct request *rq, struct rpc_fault *fault)
{
	const struct prompt *p = rq->server->def->prompts;
	json_t *list = json_array();

	for (; p->name != NULL; p++)
		json_array_append_new(list, prompt_json(p));
	return one_page(rq, "prompts", list, fault);
}

static const struct prompt *
named_prompt(struct request *rq, const json_t *from, struct rpc_fault *fault)
{
	const char *name = decode_text(json_object_get(from, "name"));
	const struct prompt *p = NULL;

	if (rq->server->def->prompts != NULL && name != NULL)
		p = prompt_find(rq->server->def->prompts, name);
	if (p == NULL && name == NULL)
		rpc_fail(fault, RPC_INVALID_PARAMS, "name must be a string");
	else if (p == NULL)
		rpc_fail(fault, RPC_INVALID_PARAMS, "unknown prompt: %.100s",
		    name);
	return p;
}

json_t *
prompts_get(struct request *rq, struct rpc_fault *fault)
{
	const json_t *given = json_object_get(rq->msg.params, "arguments");
	const struct prompt *p = named_prompt(rq, rq->msg.params, fault);
	struct err err = ERR_INIT;
	json_t *text, *o;

	if (p == NULL)
		return NULL;
	if (given != NULL && !json_is_object(given) && !json_is_null(given)) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "arguments must be an object of strings");
		return NULL;
	}
	text = prompt_fill(p, given, &err);
	if (text == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS, "%s", err.msg);
		return NULL;
	}
	o = json_pack("{s:s,s:[{s:s,s:{s:s,s:o}}]}", "description",
	    p->description, "messages", "role", "user", "content", "type",
	    "text", "text", text);
	return o;
}

/* Is "{name}" in the template of this URI? */
static bool
in_template(struct request *rq, const char *uri, const char *name)
{
	const struct resources *r = rq->server->def->resources;
	json_t *list = r != NULL ? r->templates() : NULL, *t;
	size_t i, len = strlen(name);
	bool found = false;

	json_array_foreach (list, i, t) {
		const char *text =
		    json_string_value(json_object_get(t, "uriTemplate"));
		const char *at = text;

		if (strcmp(text, uri) != 0)
			continue;
		while ((at = strchr(at, '{')) != NULL && !found) {
			at++;
			found = strncmp(at, name, len) == 0 && at[len] == '}';
		}
	}
	json_decref(list);
	return found;
}

/* The name of what is to be completed, if there is such a thing. */
static const char *
completed_name(struct request *rq, struct rpc_fault *fault)
{
	const json_t *ref = json_object_get(rq->msg.params, "ref");
	const char *type = decode_text(json_object_get(ref, "type"));
	const char *uri = decode_text(json_object_get(ref, "uri"));
	const char *name = decode_text(
	    json_object_get(json_object_get(rq->msg.params, "argument"),
	        "name"));
	const struct prompt *p;

	if (type == NULL || name == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "ref must have a type, and argument a name");
		return NULL;
	}
	if (strcmp(type, "ref/resource") == 0) {
		if (uri != NULL && in_template(rq, uri, name))
			return name;
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "uri must be a template of resources/templates/list that "
		    "has this argument");
		return NULL;
	}
	if (strcmp(type, "ref/prompt") != 0) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "type must be ref/prompt or ref/resource");
		return NULL;
	}
	p = named_prompt(rq, ref, fault);
	if (p == NULL)
		return NULL;
	if (prompt_arg_find(p, name) != NULL)
		return name;
	rpc_fail(fault, RPC_INVALID_PARAMS, "prompt %s has no argument %.100s",
	    p->name, name);
	return NULL;
}

json_t *
completion_complete(struct request *rq, struct rpc_fault *fault)
{
	const json_t *params = rq->msg.params;
	const char *start = decode_text(
	    json_object_get(json_object_get(params, "argument"), "value"));
	const json_t *others =
	    json_object_get(json_object_get(params, "context"), "arguments");
	const char *name = completed_name(rq, fault);
	json_t *all, *word, *values;
	json_int_t total = 0;
	size_t i;

	if (name == NULL)
		return NULL;
	if (start == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "argument must have a value, a string");
		return NULL;
	}
	all = rq->server->def->candidates(&rq->call, name, others);
	values = json_array();
	json_array_foreach (all, i, word) {
		if (!str_starts(json_string_value(word), start))
			continue;
		if (total++ < VALUES_MAX)
			json_array_append(values, word);
	}
	json_decref(all);
	return json_pack("{s:{s:o,s:I,s:b}}", "completion", "values", values,
	    "total", total, "hasMore", total > VALUES_MAX);
}
