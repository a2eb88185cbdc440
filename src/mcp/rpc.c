/* JSON-RPC messages. */
#include "mcp/rpc.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

int
rpc_fail(struct rpc_fault *fault, int code, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	vsnprintf(fault->msg, sizeof(fault->msg), fmt, ap);
	va_end(ap);
	len = strlen(fault->msg);
	if (len == sizeof(fault->msg) - 1)
		fault->msg[utf8_cut(fault->msg, len, len)] = '\0';
	fault->code = code;
	fault->data = NULL;
	return -1;
}

/*
 * Is the line small enough to be parsed?  Ten megabytes of "[]," would cost
 * hundreds of megabytes as values, so values and depth are counted first.
 */
static int
guard(const char *line, size_t len, struct rpc_fault *fault)
{
	size_t values = 0, depth = 0, i;
	bool in_string = false;

	for (i = 0; i < len; i++) {
		char c = line[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{') {
			depth++;
			values++;
		} else if (c == ']' || c == '}')
			depth -= depth > 0;
		else if (c == ',')
			values++;
		if (depth > RPC_DEPTH_MAX)
			return rpc_fail(fault, RPC_PARSE_ERROR,
			    "message is nested deeper than %d levels",
			    RPC_DEPTH_MAX);
		if (values > RPC_VALUES_MAX)
			return rpc_fail(fault, RPC_PARSE_ERROR,
			    "message holds more than %d values",
			    RPC_VALUES_MAX);
	}
	return 0;
}

/* A string (of bounded length) or an integer, as MCP wants ids to be. */
static bool
usable_id(const json_t *id)
{
	if (json_is_string(id))
		return json_string_length(id) <= RPC_ID_MAX;
	return json_is_integer(id);
}

static int
check_id(struct rpc_msg *msg, struct rpc_fault *fault)
{
	const json_t *id = json_object_get(msg->root, "id");

	if (id == NULL)
		return 0;
	if (!usable_id(id))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "id must be an integer or a string of at most %d bytes",
		    RPC_ID_MAX);
	msg->id = id;
	return 0;
}

const char *
rpc_text(const json_t *v)
{
	const char *s = json_string_value(v);

	if (s == NULL || strlen(s) != json_string_length(v))
		return NULL;
	return s;
}

/* Without a method it can only be the answer to something we asked. */
static int
check_response(struct rpc_msg *msg, struct rpc_fault *fault)
{
	if (msg->id == NULL ||
	    (json_object_get(msg->root, "result") == NULL &&
	        json_object_get(msg->root, "error") == NULL))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "message has no method");
	msg->kind = RPC_RESPONSE;
	return 0;
}

static int
check_request(struct rpc_msg *msg, struct rpc_fault *fault)
{
	const json_t *method = json_object_get(msg->root, "method");
	const json_t *params = json_object_get(msg->root, "params");

	if (method == NULL)
		return check_response(msg, fault);
	msg->kind = msg->id != NULL ? RPC_REQUEST : RPC_NOTIFICATION;
	msg->method = rpc_text(method);
	if (msg->method == NULL)
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "method must be a string");
	if (params != NULL && !json_is_object(params))
		return rpc_fail(fault, RPC_INVALID_PARAMS,
		    "params must be an object");
	msg->params = params;
	return 0;
}

int
rpc_parse(const char *line, size_t len, struct rpc_msg *msg,
    struct rpc_fault *fault)
{
	const char *jsonrpc;
	json_error_t je;

	memset(msg, 0, sizeof(*msg));
	if (guard(line, len, fault) == -1)
		return -1;
	/* NUL inside strings is let through so that whoever uses the string
	 * can say which one it was. */
	msg->root =
	    json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &je);
	if (msg->root == NULL)
		return rpc_fail(fault, RPC_PARSE_ERROR,
		    "not valid JSON: %s (byte %d)", je.text, je.position);
	if (json_is_array(msg->root))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "batches are not supported; send one message a line");
	if (!json_is_object(msg->root))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "message must be an object");
	if (check_id(msg, fault) == -1)
		return -1;
	jsonrpc = rpc_text(json_object_get(msg->root, "jsonrpc"));
	if (jsonrpc == NULL || strcmp(jsonrpc, "2.0") != 0)
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "jsonrpc must be \"2.0\"");
	return check_request(msg, fault);
}

void
rpc_msg_free(struct rpc_msg *msg)
{
	json_decref(msg->root);
	memset(msg, 0, sizeof(*msg));
}

static json_t *
message(void)
{
	json_t *o = json_object();

	json_object_set_new(o, "jsonrpc", json_string("2.0"));
	return o;
}

/* The reply repeats the id; reference counts need a pointer not const. */
static void
set_id(json_t *o, const json_t *id)
{
	if (id != NULL)
		json_object_set(o, "id", (json_t *)(uintptr_t)id);
}

json_t *
rpc_result(const json_t *id, json_t *result)
{
	json_t *o = message();

	set_id(o, id);
	json_object_set_new(o, "result", result);
	return o;
}

json_t *
rpc_error(const json_t *id, struct rpc_fault *fault)
{
	json_t *o = message();
	json_t *e = json_object();

	set_id(o, id);
	json_object_set_new(e, "code", json_integer(fault->code));
	json_object_set_new(e, "message",
	    utf8_json(fault->msg, strlen(fault->msg)));
	if (fault->data != NULL)
		json_object_set_new(e, "data", fault->data);
	fault->data = NULL;
	json_object_set_new(o, "error", e);
	return o;
}

json_t *
rpc_notification(const char *method, json_t *params)
{
	json_t *o = message();

	json_object_set_new(o, "method", json_string(method));
	json_object_set_new(o, "params", params);
	return o;
}
