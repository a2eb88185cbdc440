/*
 * list_background_tasks: all jobs, as the hosts themselves know them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tools/every.h"
#include "tools/jobs.h"
#include "tools/remote.h"
#include "tools/tool.h"

#define TASKS_MAX 100

struct list_args {
	const char *sandbox_name;
	bool running_only;
	int64_t cleanup_days;
};

#define ARG(field) .name = #field, .offset = offsetof(struct list_args, field)

static const struct arg args[] = {
	{ ARG(sandbox_name), .type = ARG_STRING, .dflt_str = "",
	    .help = "Sandbox to ask; all of them if empty." },
	{ ARG(running_only), .type = ARG_BOOL,
	    .help = "Leave out what has ended." },
	{ ARG(cleanup_days), .type = ARG_INT, .min = 0, .max = 36500,
	    .help = "Also remove the records (not the logs) of jobs that "
	            "ended so many days ago; 0: none." },
	{ 0 },
};

static const struct out job_outputs[] = {
	{ "tmux_session", OUT_STRING, "Name of the job.", .always = true },
	{ "sandbox", OUT_STRING, NULL, .always = true },
	JOBS_STATUS_OUTPUTS,
	{ "problem", OUT_STRING, "Why nothing is known.", .cluster = true },
	{ 0 },
};

static const struct out problem_outputs[] = {
	{ "sandbox", OUT_STRING, NULL, .always = true },
	{ "problem", OUT_STRING, NULL, .always = true },
	{ 0 },
};

static const struct out outputs[] = {
	{ "tasks", OUT_OBJECTS, NULL, .always = true, .fields = job_outputs },
	{ "left_out", OUT_INT, "How many more have ended, longer ago." },
	{ "unreachable", OUT_OBJECTS,
	    "Sandboxes that could not be asked; their jobs may run.",
	    .fields = problem_outputs },
	{ "removed", OUT_INT, "Records that cleanup_days removed." },
	{ 0 },
};

/* What one sandbox has to say, while it is collected. */
struct listing {
	json_t *tasks;
	const struct sandbox *sb;
	bool running_only;
};

static void
each(void *data, const char *name, struct job_status *s)
{
	struct listing *l = data;
	json_t *o;

	if (l->running_only && !job_state_live(s->state) &&
	    s->state != JOB_UNKNOWN)
		return;
	o = json_object();
	json_object_set_new(o, "tmux_session", utf8_json(name, strlen(name)));
	json_object_set_new(o, "sandbox", json_string(l->sb->name));
	jobs_set_status(o, s);
	/* Only of what runs it is asked for; null would say that there is no
	 * log. */
	if (s->log_size < 0)
		json_object_del(o, "log_size");
	json_array_append_new(l->tasks, o);
}

/* {"sandbox", "tasks", "removed"}, or {"sandbox", "problem"}. */
static json_t *
ask(struct call *call, const struct sandbox *sb, const void *data)
{
	const struct list_args *a = data;
	struct listing l = { json_array(), sb, a->running_only };
	struct err err;
	json_t *o = json_object();
	int64_t removed;

	json_object_set_new(o, "sandbox", json_string(sb->name));
	removed = job_list(links_get(call->app->links, sb),
	    (int)a->cleanup_days, each, &l, &call->until, &err);
	if (removed >= 0) {
		json_object_set(o, "tasks", l.tasks);
		json_object_set_new(o, "removed", json_integer(removed));
	} else {
		json_object_set_new(o, "problem",
		    utf8_json(err.msg, strlen(err.msg)));
	}
	json_decref(l.tasks);
	return o;
}

/* What runs comes first, then the newest. */
static int
compare(const void *a, const void *b)
{
	const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
	bool p = json_is_true(json_object_get(x, "running"));
	bool q = json_is_true(json_object_get(y, "running"));
	const char *s = json_string_value(json_object_get(x, "started_at"));
	const char *t = json_string_value(json_object_get(y, "started_at"));

	if (p != q)
		return p ? -1 : 1;
	return strcmp(t != NULL ? t : "", s != NULL ? s : "");
}

/* The first TASKS_MAX of all tasks; returns how many there are beyond. */
static size_t
pick(json_t *all, json_t *tasks)
{
	size_t count = json_array_size(all), i;
	json_t **rows = xcalloc(count + 1, sizeof(json_t *));

	for (i = 0; i < count; i++)
		rows[i] = json_array_get(all, i);
	qsort(rows, count, sizeof(json_t *), compare);
	for (i = 0; i < count && i < TASKS_MAX; i++)
		json_array_append(tasks, rows[i]);
	free(rows);
	return count - i;
}

static json_t *
result_json(json_t *answers, const struct list_args *a)
{
	json_t *o = json_object(), *all = json_array(), *tasks = json_array();
	json_t *unreachable = json_array(), *answer;
	json_int_t removed = 0;
	size_t i, more;

	json_array_foreach (answers, i, answer) {
		json_array_extend(all, json_object_get(answer, "tasks"));
		removed +=
		    json_integer_value(json_object_get(answer, "removed"));
		if (json_object_get(answer, "problem") != NULL)
			json_array_append(unreachable, answer);
	}
	more = pick(all, tasks);
	json_decref(all);
	json_object_set_new(o, "tasks", tasks);
	if (more > 0)
		json_object_set_new(o, "left_out",
		    json_integer((json_int_t)more));
	if (json_array_size(unreachable) > 0)
		json_object_set(o, "unreachable", unreachable);
	json_decref(unreachable);
	if (a->cleanup_days > 0)
		json_object_set_new(o, "removed", json_integer(removed));
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct list_args *a = given;
	const struct sandbox *one;
	json_t *answers;

	if (!str_blank(a->sandbox_name) || call->app->config.count == 0) {
		one = app_sandbox(call->app, a->sandbox_name, err);
		if (one == NULL)
			return -1;
		answers = json_array();
		json_array_append_new(answers, ask(call, one, a));
	} else {
		answers = every_sandbox(call, ask, a, err);
	}
	if (answers == NULL)
		return -1;
	*result = result_json(answers, a);
	json_decref(answers);
	return until_check(&call->until, err);
}

const struct tool tool_list_background_tasks = {
	.name = "list_background_tasks",
	.title = "List jobs",
	.description =
	    "All jobs of exec_bash_background on one sandbox or on all, as "
	    "the hosts themselves know them, whoever started them.",
	.args = args,
	.args_size = sizeof(struct list_args),
	.outputs = outputs,
	.hints = { .idempotent = true, .open_world = true },
	.run = run,
};
