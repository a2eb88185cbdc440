/*
 * From a line to a reply: which version, which method, which thread.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "mcp/server.h"

/* Nobody needs to know more often; clients have been seen to choke. */
#define PROGRESS_MS 40

/* How long clients may keep lists that never change while we run. */
#define CACHE_MS 300000

static void
request_free(struct request *rq)
{
	json_decref(rq->client_caps);
	rpc_msg_free(&rq->msg);
	free(rq);
}

struct request *
request_of(struct call *call)
{
	return (struct request *)call;
}

const struct mcp_def *
request_def(const struct request *rq)
{
	return rq->server->def;
}

void
request_send(struct request *rq, json_t *message)
{
	if (frame_out_send(rq->server->out, message, true) == -1)
		log_warn("a message to the client was too large to send");
	json_decref(message);
}

void
request_progress(struct call *call, double done, double total, const char *text)
{
	struct request *rq = request_of(call);
	int64_t now = clock_ms();
	struct err err;
	json_t *params;

	if (!isfinite(done) || !isfinite(total))
		return;
	if (rq->progress_at != 0 &&
	    (done <= rq->progress || now < rq->progress_at + PROGRESS_MS))
		return;
	/* A client that does not read must not hold up who keeps time. */
	if (frame_out_full(rq->server->out))
		return;
	if (until_check(&call->until, &err) == -1)
		return;
	rq->progress = done;
	rq->progress_at = now;
	params = json_object();
	json_object_set(params, "progressToken",
	    (json_t *)(uintptr_t)rq->token);
	json_object_set_new(params, "progress", json_real(done));
	if (total > 0)
		json_object_set_new(params, "total", json_real(total));
	if (text != NULL)
		json_object_set_new(params, "message",
		    utf8_json(text, strlen(text)));
	request_send(rq, rpc_notification("notifications/progress", params));
}

/* What every modern result carries. */
static void
dress_modern(struct request *rq, const struct method *m, json_t *result)
{
	json_t *meta = json_object_get(result, "_meta");
	bool complete = json_object_get(result, "resultType") == NULL;

	if (complete)
		json_object_set_new(result, "resultType",
		    json_string("complete"));
	if (meta == NULL) {
		meta = json_object();
		json_object_set_new(result, "_meta", meta);
	}
	/* A copy: jansson's counts are not fit for values that several
	 * threads take references to. */
	json_object_set_new(meta, META_SERVER_INFO,
	    json_deep_copy(rq->server->info));
	if (m->flags & METHOD_CACHED && complete &&
	    json_object_get(result, "ttlMs") == NULL) {
		json_object_set_new(result, "ttlMs", json_integer(CACHE_MS));
		json_object_set_new(result, "cacheScope",
		    json_string("public"));
	}
}

/* Run the method and make the message that answers it. */
static json_t *
answer(struct request *rq)
{
	const struct method *m =
	    method_find(rq->server, rq->msg.method, rq->version);
	struct rpc_fault fault = { 0 };
	json_t *result = m->run(rq, &fault);

	if (result == NULL)
		return rpc_error(rq->msg.id, &fault);
	if (version_modern(rq->version))
		dress_modern(rq, m, result);
	return rpc_result(rq->msg.id, result);
}

static void
send_reply(struct request *rq, json_t *message, bool wait)
{
	struct rpc_fault fault;
	json_t *shorter;

	if (frame_out_send(rq->server->out, message, wait) == 0)
		return;
	rpc_fail(&fault, RPC_INTERNAL_ERROR,
	    "the result is larger than the %zu bytes a message may have; ask "
	    "for less",
	    FRAME_MAX);
	shorter = rpc_error(rq->msg.id, &fault);
	frame_out_send(rq->server->out, shorter, wait);
	json_decref(shorter);
}

static void
reply_from_call(struct request *rq, json_t *message)
{
	send_reply(rq, message, true);
}

const struct calls_ops server_calls_ops = {
	.run = answer,
	.reply = reply_from_call,
	.drop = request_free,
};

void
server_fault(struct server *s, const json_t *id, struct rpc_fault *fault)
{
	json_t *message = rpc_error(id, fault);

	frame_out_send(s->out, message, false);
	json_decref(message);
}

/* Progress is told only to those who gave a token. */
static int
take_token(struct request *rq, struct rpc_fault *fault)
{
	const json_t *token =
	    json_object_get(json_object_get(rq->msg.params, "_meta"),
	        "progressToken");

	if (token == NULL)
		return 0;
	if (!json_is_string(token) && !json_is_integer(token))
		return rpc_fail(fault, RPC_INVALID_PARAMS,
		    "progressToken must be a string or an integer");
	rq->token = token;
	rq->call.progress = request_progress;
	return 0;
}

/* What the client can do: said in this request, or once for the session.
 * A copy, for the same reason as above. */
static json_t *
caps_of(struct request *rq)
{
	json_t *caps = rq->server->session_caps;

	if (version_modern(rq->version))
		caps = json_object_get(json_object_get(rq->msg.params, "_meta"),
		    META_CLIENT_CAPS);
	return caps != NULL ? json_deep_copy(caps) : json_object();
}

static int
check_request(struct request *rq, struct rpc_fault *fault)
{
	struct server *s = rq->server;

	rq->version = era_of(rq->msg.method, rq->msg.params, s->session, fault);
	if (rq->version == V_NONE)
		return -1;
	if (method_find(s, rq->msg.method, rq->version) == NULL)
		return rpc_fail(fault, RPC_METHOD_NOT_FOUND,
		    "unknown method: %.100s", rq->msg.method);
	rq->client_caps = caps_of(rq);
	return take_token(rq, fault);
}

static void
run_request(struct server *s, struct request *rq)
{
	const struct method *m = method_find(s, rq->msg.method, rq->version);
	struct rpc_fault fault;
	json_t *message;

	if (!(m->flags & METHOD_THREAD)) {
		message = answer(rq);
		send_reply(rq, message, false);
		json_decref(message);
		request_free(rq);
		return;
	}
	if (calls_add(s->calls, rq) == 0)
		return;
	rpc_fail(&fault, RPC_INTERNAL_ERROR,
	    "too many calls at once; wait for some to end and try again");
	server_fault(s, rq->msg.id, &fault);
	request_free(rq);
}

/* Takes over the message. */
static void
take_request(struct server *s, struct rpc_msg *msg)
{
	struct request *rq = xcalloc(1, sizeof(*rq));
	struct rpc_fault fault;

	rq->server = s;
	rq->msg = *msg;
	rq->call.until = until_never();
	rq->call.app = s->def->app;
	if (calls_have(s->calls, rq->msg.id)) {
		/* With the id, the client would take it for the reply to the
		 * first request. */
		rpc_fail(&fault, RPC_INVALID_REQUEST,
		    "the id of this request is that of one still running");
		server_fault(s, NULL, &fault);
		request_free(rq);
		return;
	}
	if (check_request(rq, &fault) == -1) {
		server_fault(s, rq->msg.id, &fault);
		request_free(rq);
		return;
	}
	run_request(s, rq);
}

static void
take_notification(struct server *s, const struct rpc_msg *msg)
{
	const json_t *id;

	if (strcmp(msg->method, "notifications/cancelled") != 0)
		return;
	id = json_object_get(msg->params, "requestId");
	if (id != NULL)
		calls_cancel(s->calls, id);
}

void
server_take_line(struct server *s, const char *line, size_t len)
{
	struct rpc_msg msg;
	struct rpc_fault fault;

	if (rpc_parse(line, len, &msg, &fault) == -1) {
		/* Notifications get no answer, whatever is in them. */
		if (msg.method == NULL || msg.id != NULL)
			server_fault(s, msg.id, &fault);
		rpc_msg_free(&msg);
		return;
	}
	switch (msg.kind) {
	case RPC_REQUEST:
		take_request(s, &msg);
		return;
	case RPC_NOTIFICATION:
		take_notification(s, &msg);
		break;
	case RPC_RESPONSE:
		if (s->def->on_response != NULL)
			s->def->on_response(s->def->data, &msg);
		break;
	}
	rpc_msg_free(&msg);
}
