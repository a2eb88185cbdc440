/*
 * The server's inside, shared by the files of this folder.
 */
#ifndef MCP_SERVER_H
#define MCP_SERVER_H

#include "mcp/calls.h"
#include "mcp/frame.h"
#include "mcp/mcp.h"

struct server {
	const struct mcp_def *def;
	struct frame_in in;
	struct frame_out *out;
	struct calls *calls;
	int in_fd;
	int signal_fd;
	bool lines_wait;   /* lines are left because the client is slow */
	int wake[2];       /* pipe; the writer has news */
	json_t *tool_list; /* made once, only read afterwards */
	json_t *info;      /* serverInfo */
	json_t *capabilities;

	/* Legacy session; the main thread alone touches these. */
	enum version session; /* V_NONE before "initialize" */
	json_t *session_caps; /* what that client said it can do */
};

/* The engine's own methods; ends with a NULL name. */
extern const struct method server_methods[];

/* The row for this method in this version, or NULL. */
const struct method *method_find(const struct server *s, const char *name,
    enum version v);

/* What one line from the client asks for; replies or starts a call. */
void server_take_line(struct server *s, const char *line, size_t len);

/* A protocol error, with or without an id, from the main thread. */
void server_fault(struct server *s, const json_t *id, struct rpc_fault *fault);

/* How calls are run, for calls_new(). */
extern const struct calls_ops server_calls_ops;

/* Handlers that live in files of their own. */
json_t *tools_list(struct request *rq, struct rpc_fault *fault);
json_t *tools_call(struct request *rq, struct rpc_fault *fault);
json_t *tools_list_json(const struct mcp_def *def);
json_t *prompts_list(struct request *rq, struct rpc_fault *fault);
json_t *prompts_get(struct request *rq, struct rpc_fault *fault);
json_t *completion_complete(struct request *rq, struct rpc_fault *fault);
json_t *resources_list(struct request *rq, struct rpc_fault *fault);
json_t *resources_templates(struct request *rq, struct rpc_fault *fault);
json_t *resources_read(struct request *rq, struct rpc_fault *fault);

/* The result of a request for a list that has one page: "list", taken over,
 * under this key.  NULL and the fault if another page was asked for. */
json_t *one_page(struct request *rq, const char *key, json_t *list,
    struct rpc_fault *fault);

/* Progress for a request that has a token, NULL else. */
void request_progress(struct call *call, double done, double total,
    const char *text);

#endif
