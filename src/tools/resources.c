/*
 * Jobs, their logs and transfers as resources.  Each is what a tool would
 * say of it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "store/db.h"
#include "store/transfers.h"
#include "store/watches.h"
#include "tools/app.h"
#include "tools/resource.h"
#include "tools/resource_uri.h"
#include "tools/tool.h"

#define LISTED_SANDBOXES 20
#define LISTED_NEWEST 10 /* jobs, and transfers */
#define CANDIDATES 100
#define JSON_TYPE "application/json"
#define TEXT_TYPE "text/plain"

/* How much of a log is read: more than a tool gives by default. */
#define LOG_LINES 10000
#define JOB_LINES 20

extern const struct tool tool_check_background_task;
extern const struct tool tool_check_file_transfer_task;
extern const struct tool tool_list_background_tasks;

/* --- What there is --------------------------------------------------------
 */

/* "name" and "description" are taken over. */
static void
add(json_t *list, const struct resource_uri *u, json_t *name, json_t *what)
{
	char *uri = resource_uri_text(u);
	json_t *o = json_object();

	json_object_set_new(o, "uri", json_string(uri));
	json_object_set_new(o, "name", name);
	json_object_set_new(o, "description", what);
	json_object_set_new(o, "mimeType",
	    json_string(u->kind == RESOURCE_LOG ? TEXT_TYPE : JSON_TYPE));
	json_array_append_new(list, o);
	free(uri);
}

static const char *
text_of(const json_t *row, const char *key)
{
	return json_string_value(json_object_get(row, key));
}

/* Rows of the store; none if it cannot be read, which is no reason to show
 * nothing at all. */
static json_t *
rows(json_t *(*newest)(size_t max, const struct until *until, struct err *err),
    size_t max, struct call *call)
{
	struct err err;
	json_t *list = NULL;

	if (db_exists())
		list = newest(max, &call->until, &err);
	return list != NULL ? list : json_array();
}

static void
add_jobs(json_t *list, struct call *call)
{
	json_t *jobs = rows(watches_jobs, LISTED_NEWEST, call), *row;
	size_t i;

	json_array_foreach (jobs, i, row) {
		const char *sandbox = text_of(row, "sandbox_name");
		const char *job = text_of(row, "tmux_session");
		struct resource_uri u = { .kind = RESOURCE_JOB,
			.sandbox = (char *)(uintptr_t)sandbox,
			.job = (char *)(uintptr_t)job };

		if (config_find(&call->app->config, sandbox) == NULL)
			continue;
		add(list, &u, json_sprintf("job %s on %s", job, sandbox),
		    json_sprintf("Its watch is %s.", text_of(row, "status")));
		u.kind = RESOURCE_LOG;
		add(list, &u, json_sprintf("log of %s on %s", job, sandbox),
		    json_string("The end of the job's log."));
	}
	json_decref(jobs);
}

static void
add_transfers(json_t *list, struct call *call)
{
	json_t *transfers = rows(transfers_newest, LISTED_NEWEST, call), *row;
	size_t i;

	json_array_foreach (transfers, i, row) {
		const char *sandbox = text_of(row, "sandbox_name");
		struct resource_uri u = { .kind = RESOURCE_TRANSFER,
			.sandbox = (char *)(uintptr_t)sandbox,
			.id = json_integer_value(json_object_get(row, "id")) };

		add(list, &u,
		    json_sprintf("transfer %lld, %s", (long long)u.id, sandbox),
		    json_sprintf("%s, %s.", text_of(row, "direction"),
		        text_of(row, "status")));
	}
	json_decref(transfers);
}

static json_t *
list_all(struct call *call)
{
	const struct config *c = &call->app->config;
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < c->count && i < LISTED_SANDBOXES; i++) {
		struct resource_uri u = { .kind = RESOURCE_JOBS,
			.sandbox = c->sandboxes[i].name };

		add(list, &u, json_sprintf("jobs on %s", u.sandbox),
		    json_string("All jobs, as the host knows them."));
	}
	add_jobs(list, call);
	add_transfers(list, call);
	return list;
}

static json_t *
templates(void)
{
	static const struct {
		const char *uri, *name, *what, *type;
	} table[] = {
		{ "sandbox://{sandbox}/jobs", "jobs of a sandbox",
		    "All jobs, as the host knows them.", JSON_TYPE },
		{ "sandbox://{sandbox}/jobs/{job}", "job",
		    "State, exit code, last lines of its log.", JSON_TYPE },
		{ "sandbox://{sandbox}/jobs/{job}/log", "log of a job",
		    "The end of the job's log.", TEXT_TYPE },
		{ "sandbox://{sandbox}/transfers/{task_id}", "transfer",
		    "How far a background sync is, or how it ended.",
		    JSON_TYPE },
	};
	json_t *list = json_array();
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		json_t *o = json_object();

		json_object_set_new(o, "uriTemplate",
		    json_string(table[i].uri));
		json_object_set_new(o, "name", json_string(table[i].name));
		json_object_set_new(o, "description",
		    json_string(table[i].what));
		json_object_set_new(o, "mimeType", json_string(table[i].type));
		json_array_append_new(list, o);
	}
	return list;
}

/* --- Reading --------------------------------------------------------------
 */

/* What the tool says; takes over "arguments". */
static json_t *
ask(const struct tool *tool, struct call *call, json_t *arguments,
    struct err *err)
{
	json_t *result = NULL;
	int rc = tool_run(tool, call, arguments, &result, err);

	json_decref(arguments);
	if (rc == 0)
		return result;
	json_decref(result);
	return NULL;
}

static json_t *
ask_job(struct call *call, const struct resource_uri *u, int lines,
    struct err *err)
{
	return ask(&tool_check_background_task, call,
	    json_pack("{s:s,s:s,s:i}", "tmux_session", u->job, "sandbox_name",
	        u->sandbox, "last_n_lines", lines),
	    err);
}

static json_t *
ask_transfer(struct call *call, const struct resource_uri *u, struct err *err)
{
	struct transfer t;
	bool here = false;

	if (transfers_get(u->id, &t, &call->until, err) == 0) {
		here = strcmp(t.sandbox_name, u->sandbox) == 0;
		if (!here)
			err_set(err, ERR_NOT_FOUND,
			    "transfer %lld is one of sandbox %s",
			    (long long)u->id, t.sandbox_name);
	}
	transfer_free(&t);
	if (!here)
		return NULL;
	return ask(&tool_check_file_transfer_task, call,
	    json_pack("{s:I}", "task_id", (json_int_t)u->id), err);
}

static json_t *
content(const char *type, json_t *text)
{
	json_t *o = json_object();

	json_object_set_new(o, "mimeType", json_string(type));
	json_object_set_new(o, "text", text);
	return o;
}

static json_t *
read_log(struct call *call, const struct resource_uri *u, struct err *err)
{
	json_t *job = ask_job(call, u, LOG_LINES, err), *text;
	const char *problem =
	    json_string_value(json_object_get(job, "problem"));
	const char *log = json_string_value(json_object_get(job, "log_tail"));

	if (job == NULL)
		return NULL;
	if (problem != NULL) {
		err_set(err, ERR_IO, "%s", problem);
		json_decref(job);
		return NULL;
	}
	text = json_sprintf("%s%s",
	    json_is_true(json_object_get(job, "log_cut"))
	        ? "[earlier lines left out; check_background_task reads them]\n"
	        : "",
	    log != NULL ? log : "");
	json_decref(job);
	return content(TEXT_TYPE, text);
}

static json_t *
read_parsed(struct call *call, const struct resource_uri *u, struct err *err)
{
	json_t *said, *text;
	char *dump;

	if (config_pick(&call->app->config, u->sandbox, "", err) == NULL)
		return NULL;
	if (u->kind == RESOURCE_LOG)
		return read_log(call, u, err);
	if (u->kind == RESOURCE_JOB)
		said = ask_job(call, u, JOB_LINES, err);
	else if (u->kind == RESOURCE_TRANSFER)
		said = ask_transfer(call, u, err);
	else
		said = ask(&tool_list_background_tasks, call,
		    json_pack("{s:s}", "sandbox_name", u->sandbox), err);
	if (said == NULL)
		return NULL;
	dump = json_dumps(said, JSON_INDENT(2) | JSON_SHORT_REALS);
	json_decref(said);
	text = json_string(dump != NULL ? dump : "{}");
	free(dump);
	return content(JSON_TYPE, text);
}

static json_t *
read_one(struct call *call, const char *uri, struct err *err)
{
	struct resource_uri u;
	json_t *o = NULL;

	if (resource_uri_parse(uri, &u, err) == 0)
		o = read_parsed(call, &u, err);
	resource_uri_free(&u);
	return o;
}

const struct resources resource_set = {
	.list = list_all,
	.templates = templates,
	.read = read_one,
};

/* --- Completion -----------------------------------------------------------
 */

/* Those of the rows that belong to the sandbox, if one is known. */
static json_t *
column(json_t *list, const char *key, const json_t *others)
{
	const char *sandbox = decode_text(json_object_get(others, "sandbox"));
	json_t *words = json_array(), *row, *v;
	size_t i;

	json_array_foreach (list, i, row) {
		if (sandbox != NULL &&
		    strcmp(sandbox, text_of(row, "sandbox_name")) != 0)
			continue;
		v = json_object_get(row, key);
		if (json_is_integer(v))
			json_array_append_new(words,
			    json_sprintf("%lld",
			        (long long)json_integer_value(v)));
		else
			json_array_append(words, v);
	}
	json_decref(list);
	return words;
}

json_t *
resource_candidates(struct call *call, const char *name, const json_t *others)
{
	const struct config *c = &call->app->config;
	json_t *words;
	size_t i;

	if (strcmp(name, "job") == 0)
		return column(rows(watches_jobs, CANDIDATES, call),
		    "tmux_session", others);
	if (strcmp(name, "task_id") == 0)
		return column(rows(transfers_newest, CANDIDATES, call), "id",
		    others);
	words = json_array();
	for (i = 0; strcmp(name, "sandbox") == 0 && i < c->count; i++)
		json_array_append_new(words, json_string(c->sandboxes[i].name));
	return words;
}
