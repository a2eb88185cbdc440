/*
 * Local programs, started without a shell, in a process group of their own,
 * waited for with an until.
 */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"

struct proc_request {
	const char *const *argv; /* argv[0] is looked up in PATH */
	const char *const *env;  /* NULL: ours */
	const char *input;       /* given on stdin; NULL: empty */
	size_t input_len;
	bool session;      /* in a session of its own: what it leaves running
	                    * outlives us */
	size_t max_output; /* of each stream; the rest is read and dropped */
	bool partial;      /* the result holds what it said until then even if
	                    * it did not come to its end: free it in every
	                    * case */
};

struct proc_result {
	int exit_code; /* 0-255, or -1 if a signal ended it */
	int signal;    /* that signal, or 0 */
	struct buf out;
	struct buf err;
};

/*
 * Run the program to its end.  Returns 0 if it ran (whatever its exit code);
 * proc_result_free() the result then.  Returns -1 if it could not be started
 * (ERR_NOT_FOUND if there is no such program) or the until ended: its whole
 * process group has then been killed, and it was waited for.  If that was not
 * allowed, because it runs as another user by now, the sentence says so.
 *
 * A program that exited is over, even if a child it left behind still holds
 * the pipes: what was written by then is the output.
 */
int proc_run(const struct proc_request *req, struct proc_result *res,
    const struct until *until, struct err *err);
void proc_result_free(struct proc_result *res);

#endif
