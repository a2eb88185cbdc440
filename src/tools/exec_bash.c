/*
 * exec_bash: run a short command on a sandbox and return what it printed.
 *
 * Meant for work that ends well before the client gives up on the call;
 * anything longer belongs to a background job.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "ssh/exec.h"
#include "tools/cluster_args.h"
#include "tools/exec_compute.h"
#include "tools/exec_job.h"
#include "tools/remote.h"
#include "tools/tool.h"

#define GRACE_MS 2000
#define OUTPUT_MAX 1000000

struct exec_bash_args {
	const char *command;
	const char *cwd;
	int64_t timeout_s;
	int64_t max_output_chars;
	int on_timeout;
	const char *sandbox_name;
	int on;
	struct submit slurm;
};

enum { ON_TIMEOUT_KILL, ON_TIMEOUT_BACKGROUND };
static const char *const on_timeout[] = { "kill", "background", NULL };

enum { ON_LOGIN, ON_COMPUTE };
static const char *const places[] = { "login", "compute", NULL };

#define ARG(field) \
	.name = #field, .offset = offsetof(struct exec_bash_args, field)

static const struct arg args[] = {
	{ ARG(command), .type = ARG_STRING, .required = true,
	    .help = "Bash command line or script to run." },
	{ ARG(cwd), .type = ARG_STRING,
	    .help = "Directory to run it in, relative to the sandbox's workdir "
	            "or the login directory; that one if absent." },
	{ ARG(timeout_s), .type = ARG_INT, .min = 1, .max = 86400, .dflt = 120,
	    .help = "Seconds after which it is ended with all its processes, "
	            "or goes on as a job: see on_timeout." },
	{ ARG(max_output_chars), .type = ARG_INT, .min = 1, .max = OUTPUT_MAX,
	    .dflt = 20000,
	    .help = "Characters of each stream to return; head and tail are "
	            "kept." },
	{ ARG(on_timeout), .type = ARG_ENUM, .dflt_str = "kill",
	    .choices = on_timeout,
	    .help = "background: run it as a job, which goes on and is named "
	            "in the result; stdout then has both streams." },
	{ ARG(sandbox_name), .type = ARG_STRING, .dflt_str = "",
	    .help = "Sandbox to run it on; the active one if empty." },
	{ ARG(on), .type = ARG_ENUM, .dflt_str = "login", .choices = places,
	    .cluster = true,
	    .help = "On a cluster: the login node, or an allocation of "
	            "compute nodes." },
	{ ARG(slurm), CLUSTER_ARG_SLURM },
	{ 0 },
};

static const struct out outputs[] = {
	{ "exit_code", OUT_INT, "Exit status; 128+n if killed by signal n.",
	    .always = true, .nullable = true },
	{ "stdout", OUT_STRING, NULL, .always = true },
	{ "stderr", OUT_STRING, NULL, .always = true },
	{ "sandbox", OUT_STRING, "Where it ran.", .always = true },
	{ "duration_ms", OUT_INT, NULL, .always = true },
	{ "timed_out", OUT_BOOL, "It was ended at timeout_s." },
	{ "connection_error", OUT_BOOL, "The link was lost while it ran." },
	{ "command_state", OUT_STRING,
	    "finished, killed, may_be_running or in_background, if not plainly "
	    "finished." },
	{ "signal", OUT_INT, "Signal that ended it." },
	{ "kill_verified", OUT_BOOL_OR_STRING,
	    "After a timeout: no process of it is left (by_marker: none that "
	    "can be recognised)." },
	{ "survivors", OUT_STRINGS, "Processes that could not be ended." },
	{ "background_pids", OUT_INTS, "Children it left running." },
	{ "truncated", OUT_OBJECT,
	    "Characters left out of a stream; bytes that its file lacks." },
	{ "output_file", OUT_STRING,
	    "Local file with the bytes of stdout, if cut or no plain text." },
	{ "stderr_file", OUT_STRING, "The same of stderr." },
	{ "shell", OUT_STRING, "sh, if the host has no bash." },
	{ "tmux_session", OUT_STRING, "The job, with on_timeout background." },
	{ "log_file", OUT_STRING, "Its log on the sandbox." },
	{ "state", OUT_STRING, "How it is doing." },
	{ "next_offset", OUT_INT, "Where stdout ends in its log." },
	{ "problem", OUT_STRING, "Why it could not be asked." },
	{ "host_key_added", OUT_STRING, "A new host key was remembered." },
	{ 0 },
};

static const char *
state_name(enum exec_state s)
{
	switch (s) {
	case EXEC_FINISHED:
		return "finished";
	case EXEC_KILLED:
		return "killed";
	case EXEC_MAY_BE_RUNNING:
		break;
	}
	return "may_be_running";
}

static void
set_text(json_t *o, const char *field, const struct buf *b)
{
	json_object_set_new(o, field, utf8_json(b->data, b->len));
}

/* The words that clients of older servers look for in stderr. */
static void
add_markers(struct exec_result *res, int64_t timeout_s)
{
	struct buf *b = &res->err;

	if (b->len > 0 && b->data[b->len - 1] != '\n' &&
	    (res->timed_out || res->connection_error))
		buf_addc(b, '\n');
	if (res->timed_out)
		buf_addf(b, "[TIMEOUT] ended after %" PRId64 " s%s\n",
		    timeout_s,
		    res->verified == VERIFIED_NO
		        ? "; some of its processes may still run"
		        : "");
	if (res->connection_error)
		buf_addf(b, "[CONNECTION ERROR] %s\n", res->problem);
}

static void
set_kill(json_t *o, const struct exec_result *res)
{
	json_t *list;
	const char *at = res->survivors.data;
	size_t n;

	json_object_set_new(o, "kill_verified",
	    res->verified == VERIFIED_BY_MARKER
	        ? json_string("by_marker")
	        : json_boolean(res->verified == VERIFIED_YES));
	if (res->survivors.len == 0)
		return;
	list = json_array();
	while (*at != '\0') {
		n = strcspn(at, " ");
		if (n > 0)
			json_array_append_new(list, utf8_json(at, n));
		at += n + (at[n] == ' ');
	}
	json_object_set_new(o, "survivors", list);
}

static void
set_pids(json_t *o, const struct exec_result *res)
{
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < res->background_count; i++)
		json_array_append_new(list, json_integer(res->background[i]));
	json_object_set_new(o, "background_pids", list);
}

static void
set_count(json_t *o, const char *field, uint64_t n)
{
	if (n > 0)
		json_object_set_new(o, field, json_integer((json_int_t)n));
}

static void
set_truncated(json_t *o, const struct exec_result *res)
{
	json_t *t = json_object();

	set_count(t, "stdout", res->out_left);
	set_count(t, "stderr", res->err_left);
	set_count(t, "output_file", res->out_missing);
	set_count(t, "stderr_file", res->err_missing);
	if (json_object_size(t) > 0)
		json_object_set_new(o, "truncated", t);
	else
		json_decref(t);
}

/* Of streams that are longer than the reply, or no text. */
static void
set_files(json_t *o, const struct exec_result *res)
{
	if (res->out_file != NULL)
		json_object_set_new(o, "output_file",
		    json_string(res->out_file));
	if (res->err_file != NULL)
		json_object_set_new(o, "stderr_file",
		    json_string(res->err_file));
}

static json_t *
result_json(const struct exec_result *res, struct link *link)
{
	json_t *o = json_object();

	json_object_set_new(o, "exit_code",
	    res->exit_code == -1 ? json_null() : json_integer(res->exit_code));
	set_text(o, "stdout", &res->out);
	set_text(o, "stderr", &res->err);
	json_object_set_new(o, "sandbox",
	    json_string(link_sandbox(link)->name));
	json_object_set_new(o, "duration_ms", json_integer(res->duration_ms));
	if (res->timed_out)
		json_object_set_new(o, "timed_out", json_true());
	if (res->connection_error)
		json_object_set_new(o, "connection_error", json_true());
	if (res->state != EXEC_FINISHED)
		json_object_set_new(o, "command_state",
		    json_string(state_name(res->state)));
	if (res->signal != 0)
		json_object_set_new(o, "signal", json_integer(res->signal));
	if (res->timed_out || res->cancelled)
		set_kill(o, res);
	if (res->background_count > 0)
		set_pids(o, res);
	set_truncated(o, res);
	set_files(o, res);
	if (res->no_bash)
		json_object_set_new(o, "shell", json_string("sh"));
	remote_set_news(o, link);
	return o;
}

/* Where it is to run is a place that there is. */
static int
check_place(const struct exec_bash_args *a, const struct sandbox *sb,
    struct err *err)
{
	if (a->on == ON_COMPUTE && !sb->slurm)
		return err_set(err, ERR_INVALID,
		    "argument 'on': %s is no cluster; if it is, set "
		    "\"scheduler\": \"slurm\" in its entry",
		    sb->name);
	if (a->on == ON_LOGIN && submit_given(&a->slurm))
		return err_set(err, ERR_INVALID,
		    "argument 'slurm' needs 'on' to be \"compute\"");
	return 0;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct exec_bash_args *a = given;
	struct exec_request req = {
		.command = a->command,
		.timeout_ms = a->timeout_s * 1000,
		.grace_ms = GRACE_MS,
		.max_chars = (size_t)a->max_output_chars,
		.keep_file = true,
		.progress =
		    call->progress != NULL ? remote_exec_progress : NULL,
		.data = call,
	};
	struct exec_result res;
	struct link *link;
	char *cwd;
	int rc;

	if (str_blank(a->command))
		return err_set(err, ERR_INVALID,
		    "argument 'command' must not be empty");
	link = remote_link(call, a->sandbox_name, err);
	if (link == NULL || check_place(a, link_sandbox(link), err) == -1)
		return -1;
	if (a->on_timeout == ON_TIMEOUT_BACKGROUND)
		return exec_job_run(call, link,
		    &(struct exec_job){ a->command, a->cwd, a->timeout_s,
		        req.max_chars, a->on == ON_COMPUTE ? &a->slurm : NULL },
		    result, err);
	cwd = sandbox_dir(link_sandbox(link), a->cwd);
	req.cwd = cwd;
	rc = a->on == ON_COMPUTE
	    ? exec_compute(link, &req, &a->slurm, &res, &call->until, err)
	    : exec_run(link, &req, &res, &call->until, err);
	free(cwd);
	if (rc == -1)
		return -1;
	add_markers(&res, a->timeout_s);
	*result = result_json(&res, link);
	exec_result_free(&res);
	return 0;
}

const struct tool tool_exec_bash = {
	.name = "exec_bash",
	.title = "Run a command",
	.description =
	    "Run a bash command on a sandbox and return its output and exit "
	    "code. For work of up to about two minutes; a command that "
	    "reaches timeout_s is ended with all its processes. stdin is "
	    "empty, and nothing carries over to the next call: use cwd, or "
	    "one script.",
	.args = args,
	.args_size = sizeof(struct exec_bash_args),
	.outputs = outputs,
	.hints = { .destructive = true, .open_world = true },
	.run = run,
};
