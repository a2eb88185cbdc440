/*
 * check_background_task: how a job is doing, and what it has to say.
 */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tools/app.h"
#include "tools/expression.h"
#include "tools/jobs.h"
#include "tools/remote.h"
#include "tools/tool.h"
#include "tools/watching.h"

#define LOG_BYTES 40000
#define WAIT_MAX 50

struct check_args {
	const char *tmux_session;
	const char *log_file;
	int64_t watch_id;
	int64_t last_n_lines;
	int64_t since_offset;
	const char *grep;
	int64_t wait_s;
	const char *sandbox_name;
	/* Of the watch: */
	char name[JOB_NAME_MAX + 1], id[JOB_ID_MAX + 1];
};

#define ARG(field) .name = #field, .offset = offsetof(struct check_args, field)

static const struct arg args[] = {
	{ ARG(tmux_session), .type = ARG_STRING, .dflt_str = "",
	    .help = "Name of the job; NAME[3] for a task of an array." },
	{ ARG(log_file), .type = ARG_STRING, .dflt_str = "",
	    .help = "Its log, if another server started it; else not used." },
	{ ARG(watch_id), .type = ARG_INT, .min = 0, .max = INT64_MAX,
	    .help = "Or the watch that looks after it." },
	{ ARG(last_n_lines), .type = ARG_INT, .min = 1, .max = 10000,
	    .dflt = 50, .help = "Lines of the log's end to return." },
	{ ARG(since_offset), .type = ARG_INT, .min = -1, .max = INT64_MAX,
	    .dflt = -1,
	    .help = "Return what is new since this byte instead: pass "
	            "next_offset of the last call." },
	{ ARG(grep), .type = ARG_STRING, .dflt_str = "",
	    .help = "Only lines that match this extended regular "
	            "expression." },
	{ ARG(wait_s), .type = ARG_INT, .min = 0, .max = WAIT_MAX,
	    .help = "Wait so long for its end or for new output (that "
	            "matches)." },
	{ ARG(sandbox_name), REMOTE_ARG_SANDBOX },
	{ 0 },
};

static const struct out outputs[] = {
	{ "tmux_session", OUT_STRING, "Name of the job.", .always = true },
	JOBS_STATUS_OUTPUTS,
	{ "log_tail", OUT_STRING, NULL, .always = true },
	{ "next_offset", OUT_INT, "Where log_tail ends." },
	{ "log_replaced", OUT_BOOL,
	    "since_offset was past the end; log_tail begins anew." },
	{ "truncated", OUT_BOOL, "There is more: go on at next_offset." },
	{ "log_cut", OUT_BOOL,
	    "Earlier lines that were asked for did not fit." },
	{ "attach_command", OUT_STRING, "For a person who wants to look." },
	{ "connection_error", OUT_BOOL, "The host was not reached." },
	{ "problem", OUT_STRING, "Why." },
	{ "watch_id", OUT_INT },
	{ REMOTE_OUT_SANDBOX },
	{ REMOTE_OUT_NEWS },
	{ 0 },
};

static json_t *
status_json(const struct job_status *s, const char *name,
    const struct sandbox *sb)
{
	json_t *o = json_object();
	struct buf text;

	json_object_set_new(o, "tmux_session", json_string(name));
	jobs_set_status(o, s);
	buf_init(&text, SIZE_MAX);
	jobs_log_text(&text, s->log.data, s->log.len);
	if (s->log_size < 0 && !job_state_live(s->state))
		buf_adds(&text, "[log file not found]");
	json_object_set_new(o, "log_tail", utf8_json(text.data, text.len));
	buf_free(&text);
	json_object_set_new(o, "next_offset", json_integer(s->log_offset));
	if (s->log_replaced)
		json_object_set_new(o, "log_replaced", json_true());
	if (s->log_more)
		json_object_set_new(o, "truncated", json_true());
	if (s->log_cut)
		json_object_set_new(o, "log_cut", json_true());
	if (s->tmux && job_state_live(s->state))
		jobs_set_attach(o, sb, name);
	return o;
}

/* Not reached is no word about the job. */
static json_t *
unknown_json(const char *name, const struct err *why)
{
	json_t *o = json_object();

	json_object_set_new(o, "tmux_session", json_string(name));
	json_object_set_new(o, "state", json_string("unknown"));
	json_object_set_new(o, "running", json_null());
	json_object_set_new(o, "log_tail", json_string(""));
	json_object_set_new(o, "connection_error", json_true());
	json_object_set_new(o, "problem",
	    utf8_json(why->msg, strlen(why->msg)));
	return o;
}

/* What the watch knows and the caller did not say. */
static int
from_watch(struct call *call, struct check_args *a, struct watch *w,
    struct err *err)
{
	if (watching_get(call, a->watch_id, w, err) == -1)
		return -1;
	if (str_blank(a->tmux_session)) {
		look_job(w, a->name, a->id);
		a->tmux_session = a->name;
	}
	if (str_blank(a->log_file))
		a->log_file = w->log_file;
	if (!str_blank(a->sandbox_name))
		return 0;
	a->sandbox_name = w->sandbox_name;
	return watching_sandbox(call, w, err) != NULL ? 0 : -1;
}

static int
look(struct call *call, const struct check_args *a, struct link *link,
    const char *grep, json_t **result, struct err *err)
{
	char name[JOB_NAME_MAX + 1];
	int64_t task = jobs_name(name, a->tmux_session);
	const char *label = task > 0 ? a->tmux_session : name;
	struct job_look q = {
		.task = task,
		.name = name,
		.id = a->id,
		.log_file = a->log_file,
		.last_lines = a->last_n_lines,
		.since = a->since_offset,
		.max_bytes = LOG_BYTES,
		.grep = grep,
		.grep_arg = "grep",
		.wait_s = (int)a->wait_s,
	};
	struct job_status s;

	if (job_look(link, &q, &s, &call->until, err) == -1) {
		if (err->code == ERR_CANCELLED || err->code == ERR_INVALID)
			return -1;
		*result = unknown_json(label, err);
		return 0;
	}
	if (s.state == JOB_NONE) {
		job_status_free(&s);
		return jobs_none(link_sandbox(link), label, err);
	}
	*result = status_json(&s, label, link_sandbox(link));
	job_status_free(&s);
	return 0;
}

static int
check(struct call *call, const struct check_args *a, json_t **result,
    struct err *err)
{
	struct link *link = remote_link(call, a->sandbox_name, err);
	char *grep;
	int rc;

	if (link == NULL)
		return -1;
	if (str_blank(a->tmux_session))
		return err_set(err, ERR_INVALID,
		    "argument 'tmux_session' must name the job; "
		    "list_background_tasks tells which there are");
	grep = expression_new(a->grep, err);
	if (grep == NULL)
		return err_wrap(err, "grep");
	rc = look(call, a, link, grep, result, err);
	free(grep);
	if (rc == 0)
		remote_set_sandbox(*result, link, a->sandbox_name);
	return rc;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	struct check_args a = *(const struct check_args *)given;
	struct watch w = { 0 };
	int rc = 0;

	if (a.watch_id > 0)
		rc = from_watch(call, &a, &w, err);
	if (rc == 0)
		rc = check(call, &a, result, err);
	if (rc == 0 && a.watch_id > 0)
		json_object_set_new(*result, "watch_id",
		    json_integer(a.watch_id));
	watch_free(&w);
	return rc;
}

const struct tool tool_check_background_task = {
	.name = "check_background_task",
	.title = "Look at a job",
	.description =
	    "How a job of exec_bash_background is doing: state, exit code, "
	    "and the end of its log. To follow one for few tokens pass "
	    "since_offset (next_offset of the last call), grep and wait_s.",
	.args = args,
	.args_size = sizeof(struct check_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.run = run,
};
