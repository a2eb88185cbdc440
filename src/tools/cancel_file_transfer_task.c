/*
 * cancel_file_transfer_task: end a transfer, from whatever process.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "base/utf8.h"
#include "store/transfers.h"
#include "tools/tool.h"
#include "tools/transfer_files.h"

#define STEP_MS 10
#define KILL_WAIT_MS 2000 /* for a process to go after SIGKILL */

struct cancel_args {
	int64_t task_id;
	double force_kill_after_s;
};

#define ARG(field) .name = #field, .offset = offsetof(struct cancel_args, field)

static const struct arg args[] = {
	{ ARG(task_id), .type = ARG_INT, .required = true, .min = 1,
	    .max = INT64_MAX, .help = "Number that the sync returned." },
	{ ARG(force_kill_after_s), .type = ARG_NUMBER, .min = 0, .max = 3600,
	    .dflt_num = 5.0,
	    .help = "Seconds it gets to end in good order; then it is "
	            "killed." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "task_id", OUT_INT, NULL, .always = true },
	{ "status", OUT_STRING, NULL, .always = true },
	{ "already_finished", OUT_BOOL, "It had ended by itself." },
	{ "terminated", OUT_BOOL, "A worker was ended." },
	{ "force_killed", OUT_BOOL, "It had to be killed." },
	{ "error", OUT_STRING, "Why it still runs." },
	{ 0 },
};

struct cancelling {
	struct transfer row;
	struct ident who; /* the worker, as soon as it is known */
	bool signalled;
	bool killed;
	bool alive; /* still */
};

/* A worker lets go of its lock when all is written down, and ends after it. */
static bool
lives(struct cancelling *c)
{
	struct ident who;
	bool working = transfer_worker(&c->row, &who);

	if (working && who.pid != 0)
		c->who = who;
	return working || (c->who.pid != 0 && ident_alive(&c->who));
}

/*
 * Send the signal and wait until the worker is gone, "ms" at most.  A worker
 * that has only just begun may not have said who it is: then look again.
 */
static int
end_worker(struct cancelling *c, int sig, int64_t ms, const struct until *until,
    struct err *err)
{
	struct until patience = until_within(until, ms);
	bool sent = false;
	struct until step;
	struct err why;

	for (;;) {
		c->alive = lives(c);
		if (!c->alive)
			return 0;
		if (!sent && c->who.pid != 0) {
			if (ident_signal(&c->who, sig) == 0)
				c->signalled = true;
			sent = true;
		}
		if (until_check(&patience, &why) == -1)
			return until_check(until, err);
		step = until_within(&patience, STEP_MS);
		until_poll(&step, NULL, 0, &why);
	}
}

/* Read the row again. */
static int
look_again(struct cancelling *c, const struct until *until, struct err *err)
{
	int64_t id = c->row.id;

	transfer_free(&c->row);
	return transfers_get(id, &c->row, until, err);
}

/* The worker is gone; what does the row say, or what shall it say? */
static int
settle(struct cancelling *c, bool *finished, const struct until *until,
    struct err *err)
{
	struct transfer_end end = { .status = TRANSFER_CANCELLED,
		.last_error = "",
		.progress_json = "{\"phase\": \"cancelled\"}" };

	if (look_again(c, until, err) == -1)
		return -1;
	if (!transfer_ended(c->row.status)) {
		if (transfers_end(c->row.id, &end, until, err) == -1 ||
		    look_again(c, until, err) == -1)
			return -1;
	}
	*finished = strcmp(c->row.status, TRANSFER_CANCELLED) != 0;
	return 0;
}

static json_t *
result_json(const struct cancelling *c, bool finished)
{
	json_t *o = json_object();

	json_object_set_new(o, "task_id", json_integer(c->row.id));
	json_object_set_new(o, "status",
	    utf8_json(c->row.status, strlen(c->row.status)));
	if (finished)
		json_object_set_new(o, "already_finished", json_true());
	if (!finished || c->signalled)
		json_object_set_new(o, "terminated",
		    json_boolean(c->signalled && !c->alive));
	if (c->killed)
		json_object_set_new(o, "force_killed", json_true());
	if (c->alive)
		json_object_set_new(o, "error",
		    json_string("the worker is still running, even after "
		                "SIGKILL; its disk or network file system may "
		                "hang"));
	return o;
}

static int
cancel(struct cancelling *c, const struct cancel_args *a,
    const struct until *until, bool *finished, struct err *err)
{
	if (end_worker(c, SIGTERM, (int64_t)(a->force_kill_after_s * 1000),
	        until, err) == -1)
		return -1;
	if (c->alive) {
		c->killed = true;
		if (end_worker(c, SIGKILL, KILL_WAIT_MS, until, err) == -1)
			return -1;
	}
	if (c->alive)
		return 0;
	return settle(c, finished, until, err);
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct cancel_args *a = given;
	struct cancelling c = { 0 };
	bool finished = false;
	int rc;

	rc = transfers_get(a->task_id, &c.row, &call->until, err);
	if (rc == 0 && transfer_ended(c.row.status)) {
		finished = true;
	} else if (rc == 0) {
		rc = cancel(&c, a, &call->until, &finished, err);
	}
	if (rc == 0)
		*result = result_json(&c, finished);
	transfer_free(&c.row);
	return rc;
}

const struct tool tool_cancel_file_transfer_task = {
	.name = "cancel_file_transfer_task",
	.title = "Cancel a transfer",
	.description =
	    "End a background sync. What was moved so far stays, files are "
	    "whole or not there, and the next sync goes on from it.",
	.args = args,
	.args_size = sizeof(struct cancel_args),
	.outputs = outputs,
	.hints = { .destructive = true, .idempotent = true },
	.run = run,
};
