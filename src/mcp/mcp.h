/*
 * The MCP engine: serves a table of tools (and whatever further methods its
 * owner adds) to one client on two descriptors.
 *
 *   stdin ─ frame_in ─ rpc_parse ─ era_of ─ method table ─┐   main thread
 *                                                         ▼
 *   call thread: bind arguments, tool->run(), build the reply
 *                                                         ▼
 *   stdout ◂─ frame_out: queue and writer thread
 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

#include <jansson.h>

#include "base/err.h"
#include "mcp/era.h"
#include "mcp/rpc.h"
#include "tools/tool.h"

struct prompt;
struct resources;
struct server;

/* One request from arrival to reply. */
struct request {
	struct call call; /* what a tool sees of it; first, see request_of() */
	struct server *server;
	struct rpc_msg msg; /* id, method, params */
	enum version version;
	json_t *client_caps;     /* what the client can do; an object */
	const json_t *token;     /* for progress, or NULL */
	double progress;         /* last one told */
	int64_t progress_at;     /* when; 0: not yet */
	struct rpc_fault *fault; /* a raw tool may fill it and return -1 */

	/* Under the lock of the calls: */
	bool cancelled;
	struct request *next; /* in the queue */
};

enum method_flags {
	METHOD_THREAD = 1 << 0, /* may take long: runs in a call thread */
	METHOD_CACHED = 1 << 1, /* modern results carry cache hints */
	/* Unknown unless the definition has: */
	METHOD_PROMPTS = 1 << 2,
	METHOD_RESOURCES = 1 << 3,
	METHOD_COMPLETION = 1 << 4,
};

struct method {
	const char *name;
	enum version first, last; /* versions that have it */
	unsigned flags;
	/* The result object (new reference), or NULL and the fault. */
	json_t *(*run)(struct request *rq, struct rpc_fault *fault);
};

/* What is served.  Everything in it outlives the server. */
struct mcp_def {
	const char *name;
	const char *title;
	const char *version;
	const char *instructions;
	const struct tool *const *tools;
	struct app *app;  /* what the tools share, or NULL */
	unsigned listing; /* of enum arg_listing: what tools/list shows */
	const struct prompt *prompts; /* see tools/prompt.h; NULL: none */
	const struct resources
	    *resources; /* see tools/resource.h; NULL: none */
	/* As resource_candidates(); NULL: nothing is completed. */
	json_t *(*candidates)(struct call *call, const char *name,
	    const json_t *others);
	const struct method *methods; /* beside the engine's own; ends with a
	                               * NULL name; NULL: none */
	const char *capabilities; /* JSON object, added to ours; NULL: none */
	void *data;               /* the owner's, for its methods and tools */
	/* A client answers a request of ours; NULL: we never ask. */
	void (*on_response)(void *data, const struct rpc_msg *msg);
	unsigned max_calls;  /* running at once; 0: 64 */
	unsigned max_queued; /* waiting beyond that; 0: 1024 */
};

/*
 * Serve until the client closes "in" or "out" or a signal asks to end, within
 * a second.  "signal_fd" becomes readable when a signal came (-1: never).
 * Returns 0, or -1 if serving could not begin.
 */
int mcp_serve(const struct mcp_def *def, int in, int out, int signal_fd,
    struct err *err);

/* The request that a tool's call belongs to (tools of the engine only). */
struct request *request_of(struct call *call);

const struct mcp_def *request_def(const struct request *rq);

/* Send a message that is no reply: a notification, or a request of ours.
 * Takes over "message".  From call threads only: waits if the client is slow.
 */
void request_send(struct request *rq, json_t *message);

#endif
