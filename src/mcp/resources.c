/*
 * resources/list, resources/templates/list and resources/read.
 *
 * What they say changes from moment to moment and may be the user's own, so
 * modern clients are told to keep none of it.
 */
#include <string.h>

#include "base/decode.h"
#include "base/utf8.h"
#include "mcp/server.h"
#include "tools/resource.h"

#define URI_SHOWN 256 /* bytes of an URI that an error repeats */

/* Templates stay as they are; these do not. */
static json_t *
fresh(struct request *rq, json_t *result)
{
	if (result != NULL && version_modern(rq->version)) {
		json_object_set_new(result, "ttlMs", json_integer(0));
		json_object_set_new(result, "cacheScope",
		    json_string("private"));
	}
	return result;
}

json_t *
resources_list(struct request *rq, struct rpc_fault *fault)
{
	json_t *list = rq->server->def->resources->list(&rq->call);

	return fresh(rq, one_page(rq, "resources", list, fault));
}

json_t *
resources_templates(struct request *rq, struct rpc_fault *fault)
{
	json_t *list = rq->server->def->resources->templates();

	return one_page(rq, "resourceTemplates", list, fault);
}

static int
code_of(const struct request *rq, const struct err *err)
{
	if (err->code == ERR_INVALID)
		return RPC_INVALID_PARAMS;
	if (err->code != ERR_NOT_FOUND)
		return RPC_INTERNAL_ERROR;
	return version_modern(rq->version) ? RPC_INVALID_PARAMS
	                                   : RPC_RESOURCE_NOT_FOUND;
}

json_t *
resources_read(struct request *rq, struct rpc_fault *fault)
{
	const char *uri = decode_text(json_object_get(rq->msg.params, "uri"));
	struct err err = ERR_INIT;
	json_t *content;

	if (uri == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS, "uri must be a string");
		return NULL;
	}
	content = rq->server->def->resources->read(&rq->call, uri, &err);
	if (content == NULL) {
		rpc_fail(fault, code_of(rq, &err), "%s", err.msg);
		fault->data = json_object();
		json_object_set_new(fault->data, "uri",
		    utf8_json(uri, utf8_cut(uri, strlen(uri), URI_SHOWN)));
		return NULL;
	}
	json_object_set_new(content, "uri", json_string(uri));
	return fresh(rq, json_pack("{s:[o]}", "contents", content));
}
