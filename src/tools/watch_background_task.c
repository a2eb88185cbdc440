/*
 * watch_background_task: look after a job that runs already.
 */
#include "base/str.h"
#include "tools/app.h"
#include "tools/tool.h"
#include "tools/watching.h"

struct watch_background_task_args {
	const char *tmux_session;
	const char *log_file;
	const char *sandbox_name;
	const char *name;
	const char *cwd;
	const char *launch_command;
	struct watching_args watch;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct watch_background_task_args, field)

#define TEXT(field, words)                                      \
	{                                                       \
		ARG(field), .type = ARG_STRING, .dflt_str = "", \
		            .help = (words)                     \
	}

static const struct arg args[] = {
	{ ARG(tmux_session), .type = ARG_STRING, .required = true,
	    .help = "Name of the job." },
	{ ARG(log_file), .type = ARG_STRING, .required = true,
	    .help = "Its log." },
	TEXT(sandbox_name, "Sandbox; the active one if empty."),
	TEXT(name, "Name of the watch."),
	TEXT(cwd, "Directory of the job."),
	TEXT(launch_command, "What started it."),
	WATCHING_ARGS(struct watch_background_task_args),
	{ 0 },
};

static const struct out outputs[] = {
	{ "watch", OUT_OBJECT, NULL, .always = true },
	{ "watch_id", OUT_INT, NULL, .always = true },
	{ "watch_query_id", OUT_INT, "The same number.", .always = true },
	{ "persisted_sandboxes", OUT_OBJECT,
	    "What was kept so that the watchdog can log in.", .always = true },
	{ "watchdog_setup", OUT_OBJECT, NULL, .always = true,
	    .nullable = true },
	{ "watch_note", OUT_STRING, "What to know about it." },
	{ "status", OUT_OBJECT, "The watchdog itself.", .always = true },
	{ 0 },
};

static struct watch_wish
wish_of(const struct watch_background_task_args *a, const char *name)
{
	return (struct watch_wish){
		.tmux_session = name,
		.log_file = a->log_file,
		.cwd = a->cwd,
		.launch_command = a->launch_command,
		.name = a->name,
		.args = &a->watch,
	};
}

static int
check(const struct watch_background_task_args *a, struct err *err)
{
	if (str_blank(a->tmux_session))
		return err_set(err, ERR_INVALID,
		    "argument 'tmux_session' must name the job");
	if (str_blank(a->log_file))
		return err_set(err, ERR_INVALID,
		    "argument 'log_file' must name its log");
	return 0;
}

/* Takes "kept". */
static int
tell(const struct watch *w, json_t *kept, const json_t *notes,
    const struct until *until, json_t **result, struct err *err)
{
	json_t *o, *setup, *status = watching_status(until, err);

	if (status == NULL) {
		json_decref(kept);
		return -1;
	}
	o = json_object();
	json_object_set_new(o, "watch", watch_json(w));
	json_object_set_new(o, "watch_id", json_integer(w->id));
	json_object_set_new(o, "watch_query_id", json_integer(w->id));
	json_object_set_new(o, "persisted_sandboxes", kept);
	watching_set_note(o, notes);
	setup = json_null();
	if (json_object_get(o, "watch_note") != NULL) {
		setup = json_object();
		json_object_set(setup, "warning",
		    json_object_get(o, "watch_note"));
	}
	json_object_set_new(o, "watchdog_setup", setup);
	json_object_set_new(o, "status", status);
	*result = o;
	return 0;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct watch_background_task_args *a = given;
	const struct sandbox *sb = app_sandbox(call->app, a->sandbox_name, err);
	json_t *notes, *kept = NULL;
	char name[JOB_NAME_MAX + 1];
	struct watch_wish wish;
	struct watch w;
	int rc;

	if (sb == NULL || check(a, err) == -1)
		return -1;
	job_name(name, a->tmux_session);
	wish = wish_of(a, name);
	notes = json_array();
	rc = watching_make(&w, &wish, sb, err);
	if (rc == 0)
		rc = watching_store(&w, sb, 0, notes, &kept, &call->until, err);
	if (rc == 0 && a->watch.ensure_watchdog)
		watching_ensure(notes, &call->until);
	if (rc == 0)
		rc = tell(&w, kept, notes, &call->until, result, err);
	else
		json_decref(kept);
	json_decref(notes);
	watch_free(&w);
	return rc;
}

const struct tool tool_watch_background_task = {
	.name = "watch_background_task",
	.title = "Watch a job",
	.description =
	    "Let the watchdog look after a job that was started before, by this "
	    "or another server: report its end, its loss, and outages of its "
	    "host, and resume it if auto_resume is set.",
	.args = args,
	.args_size = sizeof(struct watch_background_task_args),
	.outputs = outputs,
	.hints = { .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run,
};
