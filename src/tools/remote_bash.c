/*
 * remote_bash: run a command on the machine of SSH_HOST, to its end or as a
 * job.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "ssh/exec.h"
#include "tools/remote.h"
#include "tools/remote_ssh.h"
#include "tools/tool.h"

#define TIMEOUT_MS 120000
#define GRACE_MS 2000
#define STREAM_CHARS 20000
#define DAY_MS 86400000

struct remote_bash_args {
	const char *command;
	const char *description;
	bool run_in_background;
	int64_t timeout;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct remote_bash_args, field)

static const struct arg args[] = {
	{ ARG(command), .type = ARG_STRING, .required = true,
	    .help = "Bash command line or script to run." },
	{ ARG(description), .type = ARG_STRING,
	    .help = "What it does, in a few words, for people." },
	{ ARG(run_in_background), .type = ARG_BOOL,
	    .help = "Return at once with an ID for remote_bash_output; it "
	            "goes on whatever happens to this server." },
	{ ARG(timeout), .type = ARG_INT, .unsaid = true, .min = 0,
	    .max = DAY_MS,
	    .help = "Milliseconds after which it is ended with all its "
	            "processes; 120000 if absent, and in background none." },
	{ 0 },
};

/* What the text lacks; no file may be there for want of room. */
static void
add_file(struct buf *text, const char *stream, const char *file,
    uint64_t missing)
{
	if (file == NULL && missing == 0)
		return;
	remote_ssh_new_line(text);
	if (file == NULL)
		buf_addf(text,
		    "[%s is not whole here, and no local file could be "
		    "written]\n",
		    stream);
	else if (missing > 0)
		buf_addf(text,
		    "[%s is in the local file %s, without its last %" PRIu64
		    " bytes]\n",
		    stream, file, missing);
	else
		buf_addf(text, "[all of %s is in the local file %s]\n", stream,
		    file);
}

static void
add_output(struct buf *text, const struct exec_result *res)
{
	buf_add(text, res->out.data, res->out.len);
	if (res->err.len > 0) {
		remote_ssh_new_line(text);
		buf_adds(text, "[stderr]\n");
		buf_add(text, res->err.data, res->err.len);
	}
	add_file(text, "stdout", res->out_file, res->out_missing);
	add_file(text, "stderr", res->err_file, res->err_missing);
}

/* It has not come to its own end; what it printed is told as well. */
static int
failed(const struct exec_result *res, int64_t ms, struct err *err)
{
	if (res->cancelled)
		return err_set(err, ERR_CANCELLED, "cancelled");
	if (res->connection_error)
		return err_set(err, ERR_IO, "%s", res->problem);
	if (res->verified == VERIFIED_NO)
		return err_set(err, ERR_TIMEOUT,
		    "Command timed out after %" PRId64
		    " ms; some of its processes may still run: %.300s",
		    ms, res->survivors.data);
	return err_set(err, ERR_TIMEOUT,
	    "Command timed out after %" PRId64
	    " ms and was ended with all its processes; for longer work set "
	    "timeout or run_in_background",
	    ms);
}

static int
run_to_end(struct call *call, const struct remote_bash_args *a,
    struct link *link, json_t **result, struct err *err)
{
	struct exec_request req = {
		.command = a->command,
		.cwd = link_sandbox(link)->workdir,
		.timeout_ms = a->timeout > 0 ? a->timeout : TIMEOUT_MS,
		.grace_ms = GRACE_MS,
		.max_chars = STREAM_CHARS,
		.keep_file = true,
		.progress =
		    call->progress != NULL ? remote_exec_progress : NULL,
		.data = call,
	};
	struct exec_result res;
	struct buf text;
	int rc = 0;

	if (exec_run(link, &req, &res, &call->until, err) == -1)
		return -1;
	buf_init(&text, SIZE_MAX);
	add_output(&text, &res);
	if (res.state != EXEC_FINISHED || res.timed_out || res.cancelled) {
		rc = failed(&res, req.timeout_ms, err);
	} else if (res.exit_code != 0) {
		remote_ssh_new_line(&text);
		buf_addf(&text, "Exit code: %d", res.exit_code);
	}
	exec_result_free(&res);
	if (rc == 0 || text.len > 0)
		*result = remote_ssh_result(&text, link);
	buf_free(&text);
	return rc;
}

static int
start(struct call *call, const struct remote_bash_args *a, struct link *link,
    const struct remote_job *j, struct err *err)
{
	const struct sandbox *sb = link_sandbox(link);
	char name[JOB_NAME_MAX + 1], log[JOB_NAME_MAX + 32];
	struct job_handle h;
	bool exists;
	int rc;

	remote_ssh_job_name(name, j);
	snprintf(log, sizeof(log), "~/.codex_logs/%s.log", name);
	rc = job_start(link,
	    &(struct job_start){
	        .name = name,
	        .command = a->command,
	        .cwd = "",
	        .log_file = log,
	        .key = "",
	        .limit_s = (a->timeout + 999) / 1000,
	    },
	    &h, &call->until, err);
	if (rc == -1 && h.maybe)
		return err_wrap(err,
		    "ask remote_bash_output for remote-%" PRId64, j->id);
	if (rc == -1)
		return -1;
	exists = h.how == JOB_EXISTS;
	job_handle_free(&h);
	if (exists)
		return err_set(err, ERR_IO,
		    "%s has a job named %s already; nothing was started, call "
		    "again",
		    sb->name, name);
	return 0;
}

static int
run_as_job(struct call *call, const struct remote_bash_args *a,
    struct link *link, json_t **result, struct err *err)
{
	struct remote_job j;
	struct buf text;
	int rc;

	if (remote_jobs_add(&j, link_sandbox(link)->name, &call->until, err) ==
	    -1)
		return err_wrap(err, "nothing was started");
	rc = start(call, a, link, &j, err);
	if (rc == 0) {
		buf_init(&text, SIZE_MAX);
		buf_addf(&text,
		    "Command running in background with ID: remote-%" PRId64
		    "\n",
		    j.id);
		if (a->timeout > 0)
			buf_addf(&text,
			    "It is ended if it takes longer than %" PRId64
			    " s.\n",
			    (a->timeout + 999) / 1000);
		*result = remote_ssh_result(&text, link);
	}
	remote_job_free(&j);
	return rc;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct remote_bash_args *a = given;
	struct link *link;

	if (str_blank(a->command))
		return err_set(err, ERR_INVALID,
		    "argument 'command' must not be empty");
	link = remote_ssh_link(call, err);
	if (link == NULL)
		return -1;
	if (a->run_in_background)
		return run_as_job(call, a, link, result, err);
	return run_to_end(call, a, link, result, err);
}

const struct tool tool_remote_bash = {
	.name = "remote_bash",
	.title = "Run a command on the remote host",
	.description =
	    "Run a bash command on the remote host. Prints its stdout, then "
	    "its stderr under [stderr], then its exit code if that is not 0. "
	    "stdin is empty, and nothing carries over to the next call: use "
	    "full paths, or cd first. Long work: run_in_background.",
	.args = args,
	.args_size = sizeof(struct remote_bash_args),
	.hints = { .destructive = true, .open_world = true },
	.flags = TOOL_TEXT | TOOL_REMOTE_SSH,
	.run = run,
};
