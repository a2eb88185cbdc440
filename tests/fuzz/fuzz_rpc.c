/*
 * Whatever a line says, it is understood or refused, and the reply to it is
 * a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "mcp/era.h"
#include "mcp/rpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_id(const json_t *id)
{
	if (json_is_string(id))
		must(json_string_length(id) <= RPC_ID_MAX);
	else
		must(json_is_integer(id));
}

static void
check_msg(const struct rpc_msg *msg)
{
	must(json_is_object(msg->root));
	if (msg->id != NULL)
		check_id(msg->id);
	must(msg->params == NULL || json_is_object(msg->params));
	switch (msg->kind) {
	case RPC_REQUEST:
		must(msg->id != NULL && msg->method != NULL);
		break;
	case RPC_NOTIFICATION:
		must(msg->id == NULL && msg->method != NULL);
		break;
	case RPC_RESPONSE:
		must(msg->method == NULL);
		break;
	}
}

/* A message is one line of valid text, and can be read again. */
static void
check_message(json_t *message)
{
	char *text = json_dumps(message, JSON_COMPACT);
	json_t *again;

	must(text != NULL);
	must(utf8_valid(text, strlen(text)));
	must(strchr(text, '\n') == NULL);
	again = json_loads(text, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	must(json_equal(again, message));
	json_decref(again);
	free(text);
	json_decref(message);
}

static void
check_error(const struct rpc_msg *msg, struct rpc_fault *fault)
{
	json_t *message;

	must(fault->code != 0);
	must(fault->msg[0] != '\0');
	must(utf8_valid(fault->msg, strlen(fault->msg)));
	message = rpc_error(msg->id, fault);
	must(fault->data == NULL);
	must((json_object_get(message, "id") != NULL) == (msg->id != NULL));
	check_message(message);
}

static void
check_era(const struct rpc_msg *msg, enum version session)
{
	struct rpc_fault fault = { 0 };
	enum version v = era_of(msg->method, msg->params, session, &fault);

	if (v == V_NONE)
		check_error(msg, &fault);
	else
		check_message(rpc_result(msg->id, json_object()));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *line = size > 0 ? (const char *)data : "";
	struct rpc_fault fault = { 0 };
	struct rpc_msg msg;

	if (rpc_parse(line, size, &msg, &fault) == -1) {
		if (msg.id != NULL)
			check_id(msg.id);
		check_error(&msg, &fault);
	} else {
		check_msg(&msg);
		if (msg.kind == RPC_REQUEST) {
			check_era(&msg, V_NONE);
			check_era(&msg, V_2025_06_18);
		}
	}
	rpc_msg_free(&msg);
	return 0;
}
