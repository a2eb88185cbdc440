/* Versions and eras. */
#include "mcp/era.h"

#include <string.h>

#include "base/decode.h"
#include "base/utf8.h"

/* How much of an unknown version is repeated. */
#define REQUESTED_MAX 64

static const char *const names[] = {
	[V_NONE] = "",
	[V_2024_11_05] = "2024-11-05",
	[V_2025_03_26] = "2025-03-26",
	[V_2025_06_18] = "2025-06-18",
	[V_2025_11_25] = "2025-11-25",
	[V_2026_07_28] = "2026-07-28",
};

const char *
version_name(enum version v)
{
	return names[v];
}

bool
version_modern(enum version v)
{
	return v >= V_MODERN_FIRST;
}

static enum version
find(const char *name, enum version first, enum version last)
{
	enum version v;

	for (v = first; name != NULL && v <= last; v++) {
		if (strcmp(names[v], name) == 0)
			return v;
	}
	return V_NONE;
}

enum version
version_for_initialize(const char *name)
{
	enum version v = find(name, V_LEGACY_FIRST, V_LEGACY_LAST);

	return v != V_NONE ? v : V_LEGACY_LAST;
}

json_t *
versions_modern(void)
{
	json_t *list = json_array();
	enum version v;

	for (v = V_LAST; v >= V_MODERN_FIRST; v--)
		json_array_append_new(list, json_string(names[v]));
	return list;
}

static enum version
unsupported(const char *requested, struct rpc_fault *fault)
{
	json_t *data = json_object();

	rpc_fail(fault, RPC_UNSUPPORTED_VERSION,
	    "protocol version is not supported");
	json_object_set_new(data, "supported", versions_modern());
	json_object_set_new(data, "requested",
	    json_stringn(requested,
	        utf8_cut(requested, strlen(requested), REQUESTED_MAX)));
	fault->data = data;
	return V_NONE;
}

static enum version
modern(const json_t *version, const json_t *caps, struct rpc_fault *fault)
{
	const char *name = decode_text(version);
	enum version v;

	if (name == NULL) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "_meta must hold the string \"" META_VERSION "\"");
		return V_NONE;
	}
	v = find(name, V_MODERN_FIRST, V_LAST);
	if (v == V_NONE)
		return unsupported(name, fault);
	if (!json_is_object(caps)) {
		rpc_fail(fault, RPC_INVALID_PARAMS,
		    "_meta must hold the object \"" META_CLIENT_CAPS "\"");
		return V_NONE;
	}
	return v;
}

enum version
era_of(const char *method, const json_t *params, enum version session,
    struct rpc_fault *fault)
{
	const json_t *meta = json_object_get(params, "_meta");
	const json_t *version = json_object_get(meta, META_VERSION);
	const json_t *caps = json_object_get(meta, META_CLIENT_CAPS);

	if (version != NULL || caps != NULL)
		return modern(version, caps, fault);
	if (strcmp(method, "initialize") == 0)
		return V_LEGACY_LAST; /* the handshake picks the real one */
	if (session != V_NONE)
		return session;
	if (strcmp(method, "ping") == 0)
		return V_LEGACY_LAST;
	rpc_fail(fault, RPC_INVALID_PARAMS,
	    "send \"initialize\" first, or put \"" META_VERSION
	    "\" and \"" META_CLIENT_CAPS "\" into _meta");
	return V_NONE;
}
