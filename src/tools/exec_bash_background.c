/*
 * exec_bash_background: start a job on a sandbox that outlives everything but
 * the machine it runs on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "job/job.h"
#include "tools/cluster_args.h"
#include "tools/jobs.h"
#include "tools/remote.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct background_args {
	const char *command;
	const char *session_name;
	const char *log_file;
	const char *cwd;
	const char *sandbox_name;
	json_t *env;
	const char *idempotency_key;
	bool watched;
	const char *watch_name;
	struct watching_args watch;
	bool codex_wakeup;
	const char *codex_command;
	struct submit slurm;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct background_args, field)
#define TEXT(field, words)                                      \
	{                                                       \
		ARG(field), .type = ARG_STRING, .dflt_str = "", \
		            .help = (words)                     \
	}
#define MORE(field, words)                                      \
	{                                                       \
		ARG(field), .type = ARG_STRING, .dflt_str = "", \
		            .help = (words), .advanced = true   \
	}

static const struct arg args[] = {
	/* exec_bash_background_watch goes without the first. */
	{ .name = "watch",
	    .offset = offsetof(struct background_args, watched),
	    .type = ARG_BOOL,
	    .dflt = 1,
	    .help = "Let the watchdog look after it." },
	{ ARG(command), .type = ARG_STRING, .required = true,
	    .help = "Bash command line or script of any length." },
	TEXT(session_name, "Name of the job; made up if empty."),
	TEXT(log_file,
	    "Where its output goes, relative to cwd; "
	    ".codex_logs/NAME.log if empty."),
	TEXT(cwd,
	    "Directory to run it in, relative to the sandbox's workdir; "
	    "that if empty."),
	TEXT(sandbox_name, "Sandbox; the active one if empty."),
	{ ARG(env), .type = ARG_MAP, .help = "Further variables." },
	TEXT(idempotency_key,
	    "A call with the same key finds the first job and starts none."),
	MORE(watch_name, "Name of the watch."),
	WATCHING_ARGS(struct background_args),
	{ ARG(codex_wakeup), .advanced = true, .type = ARG_BOOL,
	    .help = "Wake an agent for each event." },
	MORE(codex_command, "Which agent."),
	{ ARG(slurm), CLUSTER_ARG_SLURM },
	{ 0 },
};

static const struct out outputs[] = {
	{ "status", OUT_STRING,
	    "started, or already_started for a known idempotency_key.",
	    .always = true },
	{ "tmux_session", OUT_STRING, "Name of the job.", .always = true },
	{ "log_file", OUT_STRING, "On the sandbox.", .always = true },
	{ "sandbox", OUT_STRING, NULL, .always = true },
	{ "run", OUT_INT, "How many runs had this name." },
	{ "slurm_job_id", OUT_STRING, "Its number in Slurm.", .cluster = true },
	{ "attach_command", OUT_STRING, "For a person who wants to look." },
	{ "launch_recovered", OUT_BOOL,
	    "The connection broke, but the job was started." },
	{ "watch_id", OUT_INT, "Number of its watch." },
	{ "watch_note", OUT_STRING, "What to know about it." },
	{ "host_key_added", OUT_STRING, "A new host key was remembered." },
	{ 0 },
};

static struct watch_wish
wish_of(const struct background_args *a, const char *name)
{
	return (struct watch_wish){
		.tmux_session = name,
		.log_file = a->log_file,
		.cwd = a->cwd,
		.launch_command = a->command,
		.name = a->watch_name,
		.codex_wakeup = a->codex_wakeup,
		.codex_command = a->codex_command,
		.args = &a->watch,
	};
}

static int
check(const struct background_args *a, struct err *err)
{
	const char *name;
	json_t *value;

	if (str_blank(a->command))
		return err_set(err, ERR_INVALID,
		    "argument 'command' must not be empty");
	if (a->watch.auto_resume && !a->watched)
		return err_set(err, ERR_INVALID,
		    "auto_resume needs watch; nothing was started");
	json_object_foreach (a->env, name, value) {
		if (!jobs_variable_name(name))
			return err_set(err, ERR_INVALID,
			    "env: '%.100s' is no name for a variable", name);
	}
	return 0;
}

static json_t *
handle_json(const struct job_handle *h, const struct sandbox *sb)
{
	json_t *o = json_object();

	json_object_set_new(o, "status",
	    json_string(h->how == JOB_AGAIN ? "already_started" : "started"));
	json_object_set_new(o, "tmux_session", json_string(h->name));
	json_object_set_new(o, "log_file",
	    utf8_json(h->log_file, strlen(h->log_file)));
	json_object_set_new(o, "sandbox", json_string(sb->name));
	json_object_set_new(o, "run", json_integer(h->run));
	if (h->slurm_job > 0)
		json_object_set_new(o, "slurm_job_id",
		    json_sprintf("%lld", (long long)h->slurm_job));
	if (h->tmux)
		jobs_set_attach(o, sb, h->name);
	if (h->recovered)
		json_object_set_new(o, "launch_recovered", json_true());
	return o;
}

static void
exists(const struct job_handle *h, const struct sandbox *sb, struct err *err)
{
	if (h->orphans > 0) {
		err_set(err, ERR_INVALID,
		    "the runner of the job '%s' on %s (run %lld) was killed, "
		    "but %lld of its processes still %s; nothing was started. "
		    "End what is left with stop_background_task, or choose "
		    "another session_name",
		    h->name, sb->name, (long long)h->run, (long long)h->orphans,
		    str_plural(h->orphans, "runs", "run"));
		return;
	}
	err_set(err, ERR_INVALID,
	    "a job named '%s' is running on %s (run %lld, log %.300s); nothing "
	    "was started. Look at it with check_background_task, end it with "
	    "stop_background_task, or choose another session_name",
	    h->name, sb->name, (long long)h->run, h->log_file);
}

/* The job, and what is known of its watch while it is started. */
struct guard {
	char name[JOB_NAME_MAX + 1];
	char id[JOB_ID_MAX + 1]; /* of the run that is to be */
	struct watch watch;
	bool stored;
	json_t *notes;
};

static void
guard_free(struct guard *g)
{
	watch_free(&g->watch);
	json_decref(g->notes);
}

/*
 * The watch is stored before the job starts, so that none is left unwatched
 * whatever happens meanwhile.  Where that fails, a job that shall be resumed
 * is not started; any other is, and the reply says that nothing watches it.
 */
static int
guard_begin(struct guard *g, struct call *call, const struct background_args *a,
    const struct sandbox *sb, struct err *err)
{
	struct watch_wish wish = wish_of(a, g->name);
	char run[JOB_RUN_MAX + 1], *text;

	g->notes = json_array();
	if (!a->watched)
		return 0;
	if (watching_check_webhook(a->watch.webhook_url, err) == -1 ||
	    watching_make(&g->watch, &wish, sb, err) == -1)
		return -1;
	look_job_run(run, g->name, g->id);
	watch_set(&g->watch.job_run, run);
	if (watching_store(&g->watch, sb, WATCH_START_S, g->notes, NULL,
	        &call->until, err) == 0) {
		g->stored = true;
		return 0;
	}
	if (a->watch.auto_resume)
		return err_wrap(err,
		    "nothing was started, since it could not "
		    "be watched");
	text = xasprintf("Nothing watches it: %s", err->msg);
	json_array_append_new(g->notes, utf8_json(text, strlen(text)));
	free(text);
	return 0;
}

/* What is told of the watch of a job that runs, or may run. */
static void
guard_tell(struct guard *g, const struct background_args *a, struct call *call,
    json_t *result)
{
	if (g->stored)
		json_object_set_new(result, "watch_id",
		    json_integer(g->watch.id));
	if (g->stored && a->watch.ensure_watchdog)
		watching_ensure(g->notes, &call->until);
	watching_set_note(result, g->notes);
}

/* The job was not started; or nobody knows, then it stays watched. */
static void
guard_drop(struct guard *g, const struct background_args *a, bool maybe,
    struct call *call, json_t **result)
{
	struct err err;

	if (maybe) {
		*result = json_object();
		guard_tell(g, a, call, *result);
	} else if (g->stored) {
		(void)watches_remove(g->watch.id, &call->until, &err);
	}
}

/* One that ran before may have its watch already; that takes the place of the
 * new one. */
static bool
guard_again(struct guard *g, const char *name, const char *job_run,
    struct call *call)
{
	struct watch old;
	struct err err;

	if (watches_find(g->watch.sandbox_name, name, job_run, &old,
	        &call->until, &err) == -1 ||
	    watches_remove(g->watch.id, &call->until, &err) == -1) {
		watch_free(&old);
		return false;
	}
	watch_free(&g->watch);
	g->watch = old;
	return true;
}

static void
guard_end(struct guard *g, const struct background_args *a,
    const struct job_handle *h, struct call *call, json_t *result)
{
	char run[JOB_RUN_MAX + 1];
	struct err err;

	look_job_run(run, h->name, h->id);
	if (g->stored &&
	    !(h->how == JOB_AGAIN && guard_again(g, h->name, run, call)) &&
	    watches_started(g->watch.id, h->name, run, h->log_file,
	        &call->until, &err) == -1)
		json_array_append_new(g->notes,
		    utf8_json(err.msg, strlen(err.msg)));
	guard_tell(g, a, call, result);
}

/* What the watchdog brings back, Slurm does not run again from its start. */
static int
options(struct buf *out, const struct background_args *a,
    const struct sandbox *sb, struct err *err)
{
	struct submit wish = a->slurm;

	if (sb->slurm && a->watch.auto_resume && wish.requeue == -1)
		wish.requeue = 0;
	return cluster_options(out, sb, &wish, true, err);
}

static int
start(struct call *call, const struct background_args *a,
    const struct sandbox *sb, const struct guard *g, const char *slurm,
    struct job_handle *h, struct err *err)
{
	int rc = job_start(links_get(call->app->links, sb),
	    &(struct job_start){
	        .name = g->name,
	        .id = g->id,
	        .command = a->command,
	        .cwd = a->cwd,
	        .log_file = a->log_file,
	        .key = a->idempotency_key,
	        .env = a->env,
	        .metadata = a->watch.metadata_json,
	        .slurm = sb->slurm ? slurm : NULL,
	    },
	    h, &call->until, err);

	if (rc == 0 && h->how == JOB_EXISTS) {
		exists(h, sb, err);
		job_handle_free(h);
		return -1;
	}
	return rc;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct background_args *a = given;
	const struct sandbox *sb = app_sandbox(call->app, a->sandbox_name, err);
	struct guard guard = { 0 };
	struct job_handle h;
	struct buf slurm;
	int rc;

	if (sb == NULL || check(a, err) == -1)
		return -1;
	job_name(guard.name, a->session_name);
	job_new_id(guard.id);
	buf_init(&slurm, SIZE_MAX);
	rc = options(&slurm, a, sb, err);
	if (rc == 0)
		rc = guard_begin(&guard, call, a, sb, err);
	if (rc == 0) {
		rc = start(call, a, sb, &guard, slurm.data, &h, err);
		if (rc == -1)
			guard_drop(&guard, a, h.maybe, call, result);
	}
	if (rc == 0) {
		*result = handle_json(&h, sb);
		guard_end(&guard, a, &h, call, *result);
		remote_set_news(*result, links_get(call->app->links, sb));
		job_handle_free(&h);
	}
	buf_free(&slurm);
	guard_free(&guard);
	return rc;
}

/* The same under the name that an older server gave it. */
static int
run_watched(struct call *call, const void *given, json_t **result,
    struct err *err)
{
	struct background_args a = *(const struct background_args *)given;

	a.watched = true;
	return run(call, &a, result, err);
}

const struct tool tool_exec_bash_background = {
	.name = "exec_bash_background",
	.title = "Start a job",
	.description =
	    "Start a long command on a sandbox and return at once. It goes "
	    "on when this server, the connection or tmux ends; its output "
	    "goes to log_file. Poll it with check_background_task.",
	.args = args,
	.args_size = sizeof(struct background_args),
	.outputs = outputs,
	.hints = { .destructive = true, .open_world = true },
	.run = run,
};

const struct tool tool_exec_bash_background_watch = {
	.name = "exec_bash_background_watch",
	.title = "Start a watched job",
	.description = "The same as exec_bash_background with watch set.",
	.args = args + 1,
	.args_size = sizeof(struct background_args),
	.settled = "watch",
	.outputs = outputs,
	.hints = { .destructive = true, .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run_watched,
};
