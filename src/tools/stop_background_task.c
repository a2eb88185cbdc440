/*
 * stop_background_task: end a job with all its processes.
 */
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tools/jobs.h"
#include "tools/remote.h"
#include "tools/tool.h"

struct stop_args {
	const char *tmux_session;
	double grace_s;
	const char *sandbox_name;
};

#define ARG(field) .name = #field, .offset = offsetof(struct stop_args, field)

static const struct arg args[] = {
	{ ARG(tmux_session), .type = ARG_STRING, .required = true,
	    .help = "Name of the job." },
	{ ARG(grace_s), .type = ARG_NUMBER, .min = 0, .max = 600, .dflt_num = 5,
	    .help = "Seconds between TERM and KILL." },
	{ ARG(sandbox_name), REMOTE_ARG_SANDBOX },
	{ 0 },
};

static const struct out outputs[] = {
	{ "tmux_session", OUT_STRING, NULL, .always = true },
	{ "state", OUT_STRING, "What became of it.", .always = true },
	{ "was_running", OUT_BOOL, "It, or processes that it left.",
	    .always = true },
	{ "kill_verified", OUT_BOOL, "No process of it is left." },
	{ "survivors", OUT_STRINGS, "Processes that could not be ended." },
	{ REMOTE_OUT_SANDBOX },
	{ REMOTE_OUT_NEWS },
	{ 0 },
};

static json_t *
end_json(const struct job_end *e, const char *name)
{
	json_t *o = json_object(), *list = json_array();
	const char *at = e->survivors.data;

	json_object_set_new(o, "tmux_session", json_string(name));
	json_object_set_new(o, "state", json_string(job_state_name(e->state)));
	json_object_set_new(o, "was_running", json_boolean(e->was_running));
	if (e->was_running)
		json_object_set_new(o, "kill_verified",
		    json_boolean(e->verified));
	while (*at != '\0') {
		size_t n = strcspn(at, " ");

		if (n > 0)
			json_array_append_new(list, utf8_json(at, n));
		at += n + (at[n] == ' ');
	}
	if (json_array_size(list) > 0)
		json_object_set(o, "survivors", list);
	json_decref(list);
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct stop_args *a = given;
	struct link *link = remote_link(call, a->sandbox_name, err);
	char name[JOB_NAME_MAX + 1];
	int64_t task;
	struct job_end e;
	int rc;

	if (link == NULL)
		return -1;
	if (str_blank(a->tmux_session))
		return err_set(err, ERR_INVALID,
		    "argument 'tmux_session' must name the job");
	task = jobs_name(name, a->tmux_session);
	rc = job_stop(link, name, task, (int)(a->grace_s * 1000), &e,
	    &call->until, err);
	if (rc == 0 && e.state == JOB_NONE)
		rc = jobs_none(link_sandbox(link),
		    task > 0 ? a->tmux_session : name, err);
	if (rc == 0) {
		*result = end_json(&e, task > 0 ? a->tmux_session : name);
		remote_set_sandbox(*result, link, a->sandbox_name);
	}
	buf_free(&e.survivors);
	return rc;
}

const struct tool tool_stop_background_task = {
	.name = "stop_background_task",
	.title = "Stop a job",
	.description =
	    "End a job of exec_bash_background with all its processes: TERM, "
	    "after grace_s KILL, and a look whether any is left.",
	.args = args,
	.args_size = sizeof(struct stop_args),
	.outputs = outputs,
	.hints = { .destructive = true,
	    .idempotent = true,
	    .open_world = true },
	.run = run,
};
