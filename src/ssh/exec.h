/*
 * Running a command on a sandbox: one write, and the truth about how it
 * ended.
 */
#ifndef SSH_EXEC_H
#define SSH_EXEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

#define EXEC_FILE_MAX ((uint64_t)64 << 20)

struct exec_request {
	const char *command;
	const char *cwd; /* or NULL */
	int64_t timeout_ms;
	int grace_ms;     /* between TERM and KILL */
	size_t max_chars; /* of each stream */
	bool keep_file;   /* longer output, and what is no text, goes to
	                   * a local file, whole */
	bool tame;        /* a text of ours that is as ssh/tame.h says */
	/* Called about twice a second with the last line; or NULL. */
	void (*progress)(void *data, int64_t elapsed_ms, const char *line);
	void *data;
	/* Takes stdout in place of the result, as it is and as it comes; or
	 * NULL.  If it returns false, it wants no more, and the command is
	 * ended. */
	bool (*sink)(void *data, const char *bytes, size_t len);
	void *sink_data;
	/* It is ended as at its timeout if it wrote nothing to stdout for so
	 * long; 0: it need not. */
	int64_t silence_ms;
};

enum exec_state {
	EXEC_FINISHED,       /* it ended; the status is known */
	EXEC_KILLED,         /* we ended it: timeout, cancel or refusal */
	EXEC_MAY_BE_RUNNING, /* the link was lost, or the kill was not seen
	                      * to work */
};

enum exec_verified { VERIFIED_NO, VERIFIED_BY_MARKER, VERIFIED_YES };

struct exec_result {
	enum exec_state state;
	bool timed_out;
	bool silent; /* and that because it said nothing */
	bool cancelled;
	bool refused; /* its output was not wanted any more */
	bool connection_error;
	char problem[512]; /* in words, if there was one */
	int exit_code;     /* -1: not known */
	int signal;        /* 0: none, or not to be told */
	int64_t duration_ms;
	struct buf out, err;
	uint64_t out_total, err_total; /* bytes */
	uint64_t out_left, err_left;   /* characters left out */
	char *out_file, *err_file;     /* or NULL */
	uint64_t out_missing,
	    err_missing;             /* bytes that the files lack, also
	                              * if there is none for want of room */
	enum exec_verified verified; /* if we ended it */
	struct buf survivors;        /* "pid:command ..." */
	int64_t background[64];      /* children it left running */
	size_t background_count;
	bool no_bash; /* it ran in sh */
};

/*
 * Run it.  -1 means that nothing was sent: no link, or a working directory
 * that does not exist (ERR_NOT_FOUND).  Everything else is a result;
 * exec_result_free() it.
 */
int exec_run(struct link *link, const struct exec_request *req,
    struct exec_result *res, const struct until *until, struct err *err);
void exec_result_free(struct exec_result *res);

#endif
