/*
 * JSON-RPC 2.0 as MCP uses it: what a line says, and how replies look.
 * Pure: values in, values out.
 */
#ifndef MCP_RPC_H
#define MCP_RPC_H

#include <jansson.h>
#include <stddef.h>

enum rpc_code {
	RPC_PARSE_ERROR = -32700,
	RPC_INVALID_REQUEST = -32600,
	RPC_METHOD_NOT_FOUND = -32601,
	RPC_INVALID_PARAMS = -32602,
	RPC_INTERNAL_ERROR = -32603,
	RPC_RESOURCE_NOT_FOUND = -32002, /* legacy only */
	RPC_MISSING_CAPABILITY = -32021,
	RPC_UNSUPPORTED_VERSION = -32022,
};

#define RPC_ID_MAX 1024 /* bytes of a string id */

/* A protocol error: what goes into the "error" of a reply. */
struct rpc_fault {
	int code;
	char msg[512];
	json_t *data; /* or NULL; freed by rpc_error() */
};

/* Record a fault.  Always returns -1. */
int rpc_fail(struct rpc_fault *fault, int code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

enum rpc_kind { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESPONSE };

struct rpc_msg {
	enum rpc_kind kind;
	json_t *root;       /* the whole message; the fields below are in it */
	const json_t *id;   /* string or integer; NULL if there is none */
	const char *method; /* NULL if a response */
	const json_t *params; /* an object, or NULL */
};

/*
 * What a line says.  On failure -1 and the fault; msg->id then holds the id
 * if one could be read.  rpc_msg_free() in both cases.
 */
int rpc_parse(const char *line, size_t len, struct rpc_msg *msg,
    struct rpc_fault *fault);
void rpc_msg_free(struct rpc_msg *msg);

/* Messages to send; the caller owns them.  "result" and "params" are taken
 * over, "id" is only referred to (NULL: none could be read). */
json_t *rpc_result(const json_t *id, json_t *result);
json_t *rpc_error(const json_t *id, struct rpc_fault *fault);
json_t *rpc_notification(const char *method, json_t *params);

#endif
