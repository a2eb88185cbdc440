/*
 * The method table and the small methods.
 */
#include <string.h>

#include "base/decode.h"
#include "mcp/server.h"

static json_t *
initialize(struct request *rq, struct rpc_fault *fault)
{
	struct server *s = rq->server;
	const char *asked =
	    decode_text(json_object_get(rq->msg.params, "protocolVersion"));
	json_t *caps = json_object_get(rq->msg.params, "capabilities");
	json_t *o;

	if (asked == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "protocolVersion must be a string such as \"%s\"",
		    version_name(V_LEGACY_LAST));
		return NULL;
	}
	s->session = version_for_initialize(asked);
	json_decref(s->session_caps);
	s->session_caps =
	    json_is_object(caps) ? json_incref(caps) : json_object();
	rq->version = s->session;

	o = json_object();
	json_object_set_new(o, "protocolVersion",
	    json_string(version_name(s->session)));
	json_object_set(o, "capabilities", s->capabilities);
	json_object_set(o, "serverInfo", s->info);
	json_object_set_new(o, "instructions",
	    json_string(s->def->instructions));
	return o;
}

static json_t *
discover(struct request *rq, struct rpc_fault *fault)
{
	struct server *s = rq->server;
	json_t *o = json_object();

	(void)fault;
	json_object_set_new(o, "supportedVersions", versions_modern());
	json_object_set(o, "capabilities", s->capabilities);
	json_object_set_new(o, "instructions",
	    json_string(s->def->instructions));
	return o;
}

static json_t *
ping(struct request *rq, struct rpc_fault *fault)
{
	(void)rq;
	(void)fault;
	return json_object();
}

/* A cursor can only be a mistake then; but an empty one is sent by some for
 * "from the start". */
json_t *
one_page(struct request *rq, const char *key, json_t *list,
    struct rpc_fault *fault)
{
	const json_t *cursor = json_object_get(rq->msg.params, "cursor");
	json_t *o;

	if (cursor != NULL && !json_is_null(cursor) &&
	    !(json_is_string(cursor) && json_string_length(cursor) == 0)) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "cursor is unknown: the list has one page");
		json_decref(list);
		return NULL;
	}
	o = json_object();
	json_object_set_new(o, key, list);
	return o;
}

const struct method server_methods[] = {
	{ "initialize", V_LEGACY_FIRST, V_LEGACY_LAST, 0, initialize },
	{ "ping", V_LEGACY_FIRST, V_LEGACY_LAST, 0, ping },
	{ "server/discover", V_MODERN_FIRST, V_LAST, METHOD_CACHED, discover },
	{ "tools/list", V_LEGACY_FIRST, V_LAST, METHOD_CACHED, tools_list },
	{ "tools/call", V_LEGACY_FIRST, V_LAST, METHOD_THREAD, tools_call },
	{ "prompts/list", V_LEGACY_FIRST, V_LAST,
	    METHOD_CACHED | METHOD_PROMPTS, prompts_list },
	{ "prompts/get", V_LEGACY_FIRST, V_LAST, METHOD_PROMPTS, prompts_get },
	{ "completion/complete", V_LEGACY_FIRST, V_LAST,
	    METHOD_THREAD | METHOD_COMPLETION, completion_complete },
	{ "resources/list", V_LEGACY_FIRST, V_LAST,
	    METHOD_THREAD | METHOD_CACHED | METHOD_RESOURCES, resources_list },
	{ "resources/templates/list", V_LEGACY_FIRST, V_LAST,
	    METHOD_CACHED | METHOD_RESOURCES, resources_templates },
	{ "resources/read", V_LEGACY_FIRST, V_LAST,
	    METHOD_THREAD | METHOD_CACHED | METHOD_RESOURCES, resources_read },
	{ NULL },
};

/* Is there something that the method is about? */
static bool
has_use(const struct mcp_def *def, const struct method *m)
{
	return !(m->flags & METHOD_PROMPTS && def->prompts == NULL) &&
	    !(m->flags & METHOD_RESOURCES && def->resources == NULL) &&
	    !(m->flags & METHOD_COMPLETION && def->candidates == NULL);
}

static const struct method *
find_in(const struct method *table, const struct mcp_def *def, const char *name,
    enum version v)
{
	const struct method *m;

	for (m = table; m != NULL && m->name != NULL; m++) {
		if (v >= m->first && v <= m->last &&
		    strcmp(m->name, name) == 0 && has_use(def, m))
			return m;
	}
	return NULL;
}

const struct method *
method_find(const struct server *s, const char *name, enum version v)
{
	const struct method *m = find_in(server_methods, s->def, name, v);

	return m != NULL ? m : find_in(s->def->methods, s->def, name, v);
}
