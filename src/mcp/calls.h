/*
 * The calls under way: a bounded set of threads and a bounded queue.
 *
 * Threads are started when they are needed and then stay.  Each has a pipe
 * that becomes readable when its call is cancelled; that is the cancel_fd of
 * the call's until.
 */
#ifndef MCP_CALLS_H
#define MCP_CALLS_H

#include <stdbool.h>

#include "mcp/mcp.h"

struct calls;

/*
 * "run" does the work of one request and "reply" is called with the result
 * unless the request was cancelled meanwhile, both in the call's thread.
 * "drop" frees a request, in any thread; it must not call back into here.
 */
struct calls_ops {
	json_t *(*run)(struct request *rq);
	void (*reply)(struct request *rq, json_t *message);
	void (*drop)(struct request *rq);
};

struct calls *calls_new(unsigned max_running, unsigned max_queued,
    const struct calls_ops *ops, struct err *err);

/* Start or queue it; -1 if the queue is full (the request stays yours). */
int calls_add(struct calls *c, struct request *rq);

/* Is a request with this id under way? */
bool calls_have(struct calls *c, const json_t *id);

/* End the request with this id, if there is one; it is not replied to. */
void calls_cancel(struct calls *c, const json_t *id);
void calls_cancel_all(struct calls *c);

/* Wait at most "ms" until none is left; 0, or -1 if some are. */
int calls_wait(struct calls *c, int ms);

/* Ends the threads.  Only after calls_wait() returned 0. */
void calls_free(struct calls *c);

#endif
