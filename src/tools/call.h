/*
 * One call of a tool, as the tool sees it: how long it may take and how to
 * tell about progress.  Who asked (a client, a person) is not its business.
 */
#ifndef TOOLS_CALL_H
#define TOOLS_CALL_H

#include "base/until.h"

struct app;

struct call {
	struct until until; /* ends when the caller gives up */
	struct app *app;    /* what tools share; NULL in tests */
	/* Where progress goes; NULL: nobody listens. */
	void (*progress)(struct call *call, double done, double total,
	    const char *text);
};

/*
 * Tell how far the work is.  "done" must rise; what does not, or comes too
 * often, is dropped, so nothing may be said here alone.  A "total" of 0 means
 * unknown, a NULL "text" none.
 */
void call_progress(struct call *call, double done, double total,
    const char *text);

#endif
