/* JSON-RPC messages. */
#include "mcp/rpc.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/err.h"
#include "base/mem.h"
#include "base/utf8.h"

int
rpc_fail(struct rpc_fault *fault, int code, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(fault->msg, sizeof(fault->msg), fmt, ap);
	va_end(ap);
	/* What was cut may end inside a character; four bytes less do not,
	 * where the cut is looked for. */
	if (len >= (int)sizeof(fault->msg))
		fault->msg[utf8_cut(fault->msg, sizeof(fault->msg) - 1,
		    sizeof(fault->msg) - 5)] = '\0';
	fault->code = code;
	fault->data = NULL;
	return -1;
}

/* A string (of bounded length) or an integer, as MCP wants ids to be. */
static bool
usable_id(const json_t *id)
{
	if (json_is_string(id))
		return json_string_length(id) <= RPC_ID_MAX;
	return json_is_integer(id);
}

/*
 * Without a method it can only be the answer to something we asked.  Answers
 * are never answered, whatever their id: two peers that did so would go on
 * for ever.
 */
static int
check_response(struct rpc_msg *msg, struct rpc_fault *fault)
{
	const json_t *id = json_object_get(msg->root, "id");

	if (usable_id(id))
		msg->id = id;
	if (json_object_get(msg->root, "result") == NULL &&
	    json_object_get(msg->root, "error") == NULL)
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "message has no method");
	msg->kind = RPC_RESPONSE;
	return 0;
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

static int
check_request(struct rpc_msg *msg, struct rpc_fault *fault)
{
	const json_t *method = json_object_get(msg->root, "method");
	const json_t *params = json_object_get(msg->root, "params");
	const char *jsonrpc;

	if (check_id(msg, fault) == -1)
		return -1;
	msg->kind = msg->id != NULL ? RPC_REQUEST : RPC_NOTIFICATION;
	msg->method = decode_text(method);
	if (msg->method == NULL)
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "method must be a string");
	jsonrpc = decode_text(json_object_get(msg->root, "jsonrpc"));
	if (jsonrpc == NULL || strcmp(jsonrpc, "2.0") != 0)
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "jsonrpc must be \"2.0\"");
	if (params != NULL && !json_is_object(params))
		return rpc_fail(fault, RPC_INVALID_PARAMS,
		    "params must be an object");
	msg->params = params;
	return 0;
}

/* The code of "uXXXX", or -1. */
static long
escaped(const char *at, const char *end)
{
	char hex[5] = "";

	if (end - at < 5 || *at != 'u')
		return -1;
	memcpy(hex, at + 1, 4);
	return strspn(hex, "0123456789abcdefABCDEF") == 4
	    ? strtol(hex, NULL, 16)
	    : -1;
}

/* Behind a backslash: make what jansson refuses another character.  Where the
 * escape ends. */
static char *
mend_escape(char *at, const char *end)
{
	static const char other[] = { 'u', 'f', 'f', 'f', 'd' };
	long code = escaped(at, end), next;

	if (code == -1)
		return at + 1;
	next = at + 6 < end && at[5] == '\\' ? escaped(at + 6, end) : -1;
	if (code >= 0xd800 && code < 0xdc00 && next >= 0xdc00 && next < 0xe000)
		return at + 11;
	if (code == 0 || (code >= 0xd800 && code < 0xe000))
		memcpy(at, other, sizeof(other));
	return at + 5;
}

/* Is this number one that has no place in 64 bits? */
static bool
too_large(const char *text, size_t len)
{
	char *number = xstrndup(text, len);
	double d;
	bool large;

	errno = 0;
	if (strpbrk(number, ".eE") == NULL) {
		(void)strtoll(number, NULL, 10);
		large = errno == ERANGE;
	} else {
		d = strtod(number, NULL);
		large = d == HUGE_VAL || d == -HUGE_VAL;
	}
	free(number);
	return large;
}

/* Make a number that is too large a small one that is no id. */
static char *
mend_number(char *at, const char *end)
{
	static const char small[] = { '0', '.', '5' };
	char *begin = at;

	while (at < end && *at != '\0' && strchr("0123456789+-.eE", *at))
		at++;
	if (at - begin >= 3 && too_large(begin, (size_t)(at - begin))) {
		memset(begin, ' ', (size_t)(at - begin));
		memcpy(begin, small, sizeof(small));
	}
	return at;
}

/*
 * jansson refuses some of what is JSON: a key with a NUL in it, half of a pair
 * of surrogates (as programs write them that cut a text anywhere), a number
 * beyond 64 bits.  Whoever sent that should have an answer with its id, so the
 * line is read once more for that, mended.
 */
static char *
mended(const char *line, size_t len)
{
	char *copy = xmalloc(len + 1), *at = copy, *end = copy + len;
	bool text = false;

	memcpy(copy, line, len);
	copy[len] = '\0';
	while (at < end) {
		if (text && *at == '\\' && at + 1 < end) {
			at = mend_escape(at + 1, end);
		} else if (!text &&
		    (*at == '-' || (*at >= '0' && *at <= '9'))) {
			at = mend_number(at, end);
		} else {
			text ^= *at == '"';
			at++;
		}
	}
	return copy;
}

static void
find_id(const char *line, size_t len, struct rpc_msg *msg,
    struct rpc_fault *fault)
{
	char *copy = mended(line, len);
	struct rpc_fault other;
	struct err err;

	msg->root = decode_json(copy, len, &err);
	free(copy);
	if (json_object_get(msg->root, "method") == NULL)
		return;
	/* One whose id is too large a number has none that could be told. */
	if (check_id(msg, &other) == -1)
		return;
	(void)check_request(msg, &other);
	/* An id that was mended itself is not what it was. */
	if (json_is_string(msg->id) &&
	    strstr(json_string_value(msg->id), "\xef\xbf\xbd") != NULL) {
		msg->id = NULL;
		msg->method = NULL; /* else it would be a notification */
	}
	if (msg->id != NULL)
		fault->code = RPC_INVALID_REQUEST;
	if (strstr(fault->msg, "NUL byte in object key") != NULL)
		rpc_fail(fault, RPC_INVALID_REQUEST,
		    "the name of a field must not hold \\u0000");
}

int
rpc_parse(const char *line, size_t len, struct rpc_msg *msg,
    struct rpc_fault *fault)
{
	struct err err;

	memset(msg, 0, sizeof(*msg));
	msg->root = decode_json(line, len, &err);
	if (msg->root == NULL) {
		rpc_fail(fault, RPC_PARSE_ERROR, "%s", err.msg);
		find_id(line, len, msg, fault);
		return -1;
	}
	if (json_is_array(msg->root))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "batches are not supported; send one message a line");
	if (!json_is_object(msg->root))
		return rpc_fail(fault, RPC_INVALID_REQUEST,
		    "message must be an object");
	if (json_object_get(msg->root, "method") == NULL)
		return check_response(msg, fault);
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
