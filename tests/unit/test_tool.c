#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "mcp/server.h"
#include "test.h"
#include "tools/tool.h"
#include "tools/toolset.h"

#define DESCRIPTION_MAX 1000
#define LIST_MAX 24000

struct divide_args {
	int64_t a;
	int64_t b;
};

#define ARG(field) .name = #field, .offset = offsetof(struct divide_args, field)

static const struct arg divide_args[] = {
	{ ARG(a), .type = ARG_INT, .required = true, .help = "Top." },
	{ ARG(b), .type = ARG_INT, .dflt = 1, .help = "Bottom." },
	{ 0 },
};

/* Fails with further fields if b is 0, and without if a is negative. */
static int
divide(struct call *call, const void *args, json_t **result, struct err *err)
{
	const struct divide_args *d = args;

	assert_non_null(call);
	if (d->b == 0) {
		*result = json_object();
		json_object_set_new(*result, "top", json_integer(d->a));
		return err_set(err, ERR_INVALID, "cannot divide by zero");
	}
	if (d->a < 0)
		return err_set(err, ERR_LIMIT, "too small");
	*result = json_object();
	json_object_set_new(*result, "quotient", json_integer(d->a / d->b));
	return 0;
}

static const struct tool tool_divide = {
	.name = "divide",
	.args = divide_args,
	.args_size = sizeof(struct divide_args),
	.run = divide,
};

static const struct tool tool_multiply = { .name = "multiply" };
static const struct tool tool_multiple = { .name = "multiple" };

static const struct tool *const table[] = {
	&tool_divide,
	&tool_multiply,
	&tool_multiple,
	NULL,
};
static const struct tool *const no_tools[] = { NULL };

static int
run(const char *json, json_t **result, struct err *err)
{
	struct call call = { .until = until_never() };
	json_t *args = json_loads(json, 0, NULL);
	int rc;

	assert_non_null(args);
	*err = (struct err)ERR_INIT;
	rc = tool_run(&tool_divide, &call, args, result, err);
	json_decref(args);
	return rc;
}

static void
finds_a_tool_by_its_whole_name(void **state)
{
	(void)state;
	assert_ptr_equal(tool_find(table, "divide"), &tool_divide);
	assert_ptr_equal(tool_find(table, "multiple"), &tool_multiple);
	assert_null(tool_find(table, "div"));
	assert_null(tool_find(table, "divides"));
	assert_null(tool_find(table, "Divide"));
	assert_null(tool_find(table, ""));
	assert_null(tool_find(no_tools, "divide"));
}

static void
knows_the_name_that_was_meant(void **state)
{
	char huge[100000];

	(void)state;
	assert_string_equal(tool_nearest(table, "devide"), "divide");
	assert_string_equal(tool_nearest(table, "divides"), "divide");
	assert_string_equal(tool_nearest(table, "multiplx"), "multiply");
	assert_string_equal(tool_nearest(table, "multipleo"), "multiple");
	assert_null(tool_nearest(table, "list_sandboxes"));
	assert_null(tool_nearest(table, ""));
	assert_null(tool_nearest(no_tools, "divide"));
	memset(huge, 'd', sizeof(huge));
	huge[sizeof(huge) - 1] = '\0';
	assert_null(tool_nearest(table, huge));
}

static void
binds_and_runs(void **state)
{
	struct err err;
	json_t *result;

	(void)state;
	assert_int_equal(run("{\"a\":\"6\",\"b\":2}", &result, &err), 0);
	assert_int_equal(json_integer_value(
	                     json_object_get(result, "quotient")),
	    3);
	json_decref(result);
	assert_int_equal(run("{\"a\":6}", &result, &err), 0);
	assert_int_equal(json_integer_value(
	                     json_object_get(result, "quotient")),
	    6);
	json_decref(result);
}

static void
does_not_run_with_wrong_arguments(void **state)
{
	struct err err;
	json_t *result;

	(void)state;
	assert_int_equal(run("{}", &result, &err), -1);
	assert_null(result);
	assert_int_equal(err.code, ERR_INVALID);
	assert_non_null(strstr(err.msg, "'a'"));
	assert_int_equal(run("{\"a\":\"x\"}", &result, &err), -1);
	assert_null(result);
}

static void
an_error_may_carry_further_fields(void **state)
{
	struct err err;
	json_t *result;

	(void)state;
	assert_int_equal(run("{\"a\":6,\"b\":0}", &result, &err), -1);
	assert_string_equal(err.msg, "cannot divide by zero");
	assert_int_equal(json_integer_value(json_object_get(result, "top")), 6);
	json_decref(result);
	assert_int_equal(run("{\"a\":-1}", &result, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_null(result);
}

static void
progress_that_nobody_wants_is_dropped(void **state)
{
	struct call call = { .until = until_never() };

	(void)state;
	call_progress(&call, 1, 2, "half");
}

static double told;

static void
tell(struct call *call, double done, double total, const char *text)
{
	assert_non_null(call);
	assert_string_equal(text, "half");
	told = done / total;
}

static void
progress_reaches_who_listens(void **state)
{
	struct call call = { .until = until_never(), .progress = tell };

	(void)state;
	call_progress(&call, 1, 2, "half");
	assert_true(told == 0.5);
}

static void
advanced_tools_are_listed_if_asked_for(void **state)
{
	static const char name[] = "REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS";

	(void)state;
	unsetenv(name);
	assert_false(tool_advanced_listed());
	setenv(name, "1", 1);
	assert_true(tool_advanced_listed());
	setenv(name, "True", 1);
	assert_true(tool_advanced_listed());
	setenv(name, "0", 1);
	assert_false(tool_advanced_listed());
	setenv(name, "", 1);
	assert_false(tool_advanced_listed());
	setenv(name, "nonsense", 1);
	assert_false(tool_advanced_listed());
	unsetenv(name);
}

/* What follows looks at the real table, so that a new tool is checked by
 * being there. */

static void
check_name(const char *name)
{
	assert_non_null(name);
	if (strlen(name) == 0 || strlen(name) > 40 ||
	    strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") !=
	        strlen(name))
		fail_msg("\"%s\" does not match [a-z0-9_]{1,40}", name);
}

static void
check_text(const char *where, const char *text)
{
	if (text == NULL || text[0] == '\0' || !str_ends(text, "."))
		fail_msg("%s: not a sentence: %s", where,
		    text != NULL ? text : "(none)");
	if (!utf8_valid(text, strlen(text)) || strstr(text, "  ") != NULL ||
	    strpbrk(text, "\n\t") != NULL)
		fail_msg("%s: odd characters or spaces: %s", where, text);
}

/* A full stop, a space and a capital letter: a second sentence begins. */
static void
check_sentence(const char *where, const char *text)
{
	const char *at = text;

	check_text(where, text);
	while ((at = strstr(at, ". ")) != NULL) {
		at += strlen(". ");
		if (isupper((unsigned char)*at))
			fail_msg("%s: more than a sentence: %s", where, text);
	}
}

static bool
has_choice(const struct arg *a, const char *name)
{
	size_t i;

	for (i = 0; a->choices[i] != NULL; i++) {
		if (strcmp(a->choices[i], name) == 0)
			return true;
	}
	return false;
}

static void
check_default(const char *where, const struct arg *a)
{
	bool ranged = a->min != 0 || a->max != 0;
	double dflt;

	if (ranged && a->min > a->max)
		fail_msg("%s: the range is empty", where);
	if (a->required || a->unsaid)
		return;
	dflt = a->type == ARG_INT ? (double)a->dflt : a->dflt_num;
	if ((a->type == ARG_INT || a->type == ARG_NUMBER) && ranged &&
	    (dflt < (double)a->min || dflt > (double)a->max))
		fail_msg("%s: the default is not in the range", where);
	if (a->type == ARG_ENUM && a->dflt_str != NULL &&
	    !has_choice(a, a->dflt_str))
		fail_msg("%s: the default is no choice", where);
}

static void
check_args(const char *owner, const struct arg *args, size_t size)
{
	const struct arg *a, *other;
	char where[200];

	for (a = args; a != NULL && a->type != ARG_END; a++) {
		snprintf(where, sizeof(where), "%s.%s", owner, a->name);
		check_name(a->name);
		check_sentence(where, a->help);
		if (a->offset >= size)
			fail_msg("%s: lies outside the struct", where);
		for (other = args; other != a; other++) {
			if (strcmp(other->name, a->name) == 0 ||
			    other->offset == a->offset)
				fail_msg("%s: is there twice", where);
		}
		if (str_ends(a->name, "_json") && a->type != ARG_JSON)
			fail_msg("%s: must be ARG_JSON by its name", where);
		if (a->type == ARG_ENUM && a->choices == NULL)
			fail_msg("%s: has no choices", where);
		if (a->type == ARG_OBJECT && a->fields == NULL)
			fail_msg("%s: has no fields", where);
		check_default(where, a);
		if (a->type == ARG_OBJECT)
			check_args(where, a->fields, size - a->offset);
	}
}

static void
check_outs(const char *owner, const struct out *outs)
{
	const struct out *f, *other;
	char where[200];

	for (f = outs; f != NULL && f->type != OUT_END; f++) {
		snprintf(where, sizeof(where), "%s.%s", owner, f->name);
		check_name(f->name);
		if (f->help != NULL)
			check_sentence(where, f->help);
		for (other = outs; other != f; other++) {
			if (strcmp(other->name, f->name) == 0)
				fail_msg("%s: is there twice", where);
		}
		check_outs(where, f->fields);
	}
}

static void
every_tool_has_a_good_name(void **state)
{
	const struct tool *const *t, *const *other;

	(void)state;
	assert_non_null(tool_table[0]);
	for (t = tool_table; *t != NULL; t++) {
		check_name((*t)->name);
		for (other = tool_table; other != t; other++)
			assert_string_not_equal((*other)->name, (*t)->name);
		assert_ptr_equal(tool_find(tool_table, (*t)->name), *t);
	}
}

static void
every_tool_tells_what_it_does(void **state)
{
	const struct tool *const *t;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		assert_non_null((*t)->title);
		assert_true(strlen((*t)->title) > 0);
		check_text((*t)->name, (*t)->description);
		if (strlen((*t)->description) > DESCRIPTION_MAX)
			fail_msg("%s: the description is too long", (*t)->name);
		assert_non_null((*t)->run);
	}
}

static void
every_argument_has_a_name_a_sentence_and_a_possible_default(void **state)
{
	const struct tool *const *t;

	(void)state;
	for (t = tool_table; *t != NULL; t++)
		check_args((*t)->name, (*t)->args, (*t)->args_size);
}

/* How the tool takes an argument of this name, whatever the others are. */
static const char *
told_of(const struct tool *tool, const char *name)
{
	static struct err err;
	struct bound bound;
	json_t *given = json_object();

	err = (struct err)ERR_INIT;
	json_object_set_new(given, name, json_true());
	if (tool->settled != NULL)
		json_object_del(given, tool->settled);
	args_bind(tool->args, tool->args_size, given, &bound, &err);
	bound_free(&bound);
	json_decref(given);
	return err.msg;
}

static bool
refused_as_unknown(const char *words)
{
	return str_starts(words, "unknown argument '");
}

static void
is_not_refused(const struct tool *tool, const char *name)
{
	const char *words = told_of(tool, name);

	if (refused_as_unknown(words))
		fail_msg("%s: %s", tool->name, words);
}

/* What the tools of the earlier servers take, and what their guides give. */
static const char *const taken[][30] = {
	{ "list_sandboxes", "check_resources" },
	{ "select_sandbox", "sandbox_name" },
	{ "get_active_sandbox" },
	{ "exec_bash", "command", "cwd", "timeout_s", "max_output_chars",
	    "sandbox_name" },
	{ "exec_bash_background", "command", "session_name", "log_file", "cwd",
	    "sandbox_name", "watch", "ensure_watchdog", "run_id", "watch_name",
	    "resume_command", "resume_plan_json", "checkpoint_path",
	    "checkpoint_format", "checkpoint_command", "interval_s",
	    "max_log_lines", "webhook_url", "event_command", "auto_resume",
	    "max_resume_attempts", "metadata_json", "notify_local",
	    "alert_after_failures", "resume_delay_s", "codex_wakeup",
	    "codex_command" },
	{ "exec_bash_background_watch", "command", "session_name", "log_file",
	    "cwd", "sandbox_name", "watch", "ensure_watchdog", "run_id",
	    "watch_name", "resume_command", "resume_plan_json",
	    "checkpoint_path", "checkpoint_format", "checkpoint_command",
	    "interval_s", "max_log_lines", "webhook_url", "event_command",
	    "auto_resume", "max_resume_attempts", "metadata_json",
	    "notify_local", "alert_after_failures", "resume_delay_s",
	    "codex_wakeup", "codex_command" },
	{ "check_background_task", "tmux_session", "log_file", "watch_id",
	    "last_n_lines", "sandbox_name" },
	{ "list_remote_files", "remote_path", "recursive", "max_entries",
	    "sandbox_name" },
	{ "read_remote_file", "remote_path", "max_bytes", "sandbox_name" },
	{ "sync_local_to_remote", "local_path", "remote_path", "delete_extras",
	    "excludes", "exclude_file", "sandbox_name" },
	{ "sync_local_to_remote_background", "local_path", "remote_path",
	    "delete_extras", "excludes", "exclude_file", "sandbox_name" },
	{ "check_file_transfer_task", "task_id", "last_n_lines" },
	{ "cancel_file_transfer_task", "task_id", "force_kill_after_s" },
	{ "sync_remote_to_local", "remote_path", "local_path", "excludes",
	    "exclude_file", "sandbox_name" },
	{ "install_macos_watchdog", "start_now", "persist_current_sandboxes" },
	{ "uninstall_macos_watchdog" },
	{ "get_watchdog_status" },
	{ "watch_background_task", "tmux_session", "log_file", "sandbox_name",
	    "run_id", "name", "cwd", "launch_command", "resume_command",
	    "resume_plan_json", "checkpoint_path", "checkpoint_format",
	    "checkpoint_command", "interval_s", "max_log_lines", "webhook_url",
	    "event_command", "auto_resume", "max_resume_attempts",
	    "metadata_json", "ensure_watchdog", "notify_local",
	    "alert_after_failures", "resume_delay_s" },
	{ "list_background_watches", "status" },
	{ "get_background_watch", "watch_id" },
	{ "get_background_watch_progress", "watch_id", "refresh_live",
	    "log_lines", "checkpoint_max_bytes" },
	{ "read_background_watch_log", "watch_id", "last_n_lines" },
	{ "read_background_watch_checkpoint", "watch_id", "max_bytes" },
	{ "cancel_background_watch", "watch_id" },
	{ "list_background_watch_events", "watch_id", "limit" },
	{ "remote_bash", "command", "description", "run_in_background",
	    "timeout" },
	{ "remote_bash_output", "bash_id", "filter" },
	{ "remote_file_read", "file_path", "offset", "limit" },
};

static void
is_known(const struct tool *tool, const char *name)
{
	is_not_refused(tool, name);
	if (args_find(tool->args, name) == NULL &&
	    (tool->settled == NULL || strcmp(tool->settled, name) != 0))
		fail_msg("%s has no '%s'", tool->name, name);
}

static void
what_the_earlier_servers_take_is_known(void **state)
{
	const struct tool *tool;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		tool = tool_find(tool_table, taken[i][0]);
		assert_non_null(tool);
		for (j = 1; tool != NULL && taken[i][j] != NULL; j++)
			is_known(tool, taken[i][j]);
	}
}

/* Arguments that clients and agents have been seen to add to any tool. */
static void
what_clients_add_is_ignored(void **state)
{
	static const char *const added[] = { "_meta", "meta", "description",
		"explanation", "reason", "reasoning", "rationale", "thought",
		"thoughts", "thinking", "justification", "intent", "purpose",
		"goal", "summary", "title", "note", "user_intent",
		"task_progress", "security_risk", "requires_approval",
		"wait_for_previous", "waitForPreviousTools", "workspace",
		"conversation_id", "request_id", "call_id", "random_string",
		"random", "dummy", "_", "", "foo", "kwargs", "parameters",
		"toolSummary", "toolAction", "isBackground", "sessionId",
		"action", "chatInput", "toolCallId", "tool" };
	const struct tool *const *t;
	size_t i;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		for (i = 0; i < sizeof(added) / sizeof(added[0]); i++)
			is_not_refused(*t, added[i]);
	}
}

static void
no_argument_is_taken_for_a_slip(void **state)
{
	const struct tool *const *t;
	const struct arg *a;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		for (a = (*t)->args; a != NULL && a->type != ARG_END; a++)
			is_not_refused(*t, a->name);
	}
}

/* "slip" stands for "meant", unless the tool has both. */
static void
check_slip(const struct tool *tool, const char *slip, const char *meant)
{
	const char *words = told_of(tool, slip);
	char expected[200];

	if (args_find(tool->args, slip) != NULL) {
		if (refused_as_unknown(words))
			fail_msg("%s: %s", tool->name, words);
		return;
	}
	snprintf(expected, sizeof(expected),
	    "unknown argument '%s'; did you mean '%s'? Nothing was done", slip,
	    meant);
	if (strcmp(words, expected) != 0)
		fail_msg("%s: '%s' for '%s': %s", tool->name, slip, meant,
		    words);
}

/* Left out without a word, it would be another call. */
static void
what_others_call_it_is_refused(void **state)
{
	static const char *const rows[][3] = {
		{ "exec_bash", "workdir", "cwd" },
		{ "exec_bash", "WorkingDirectory", "cwd" },
		{ "exec_bash", "host", "sandbox_name" },
		{ "exec_bash", "timeout_seconds", "timeout_s" },
		{ "exec_bash", "run_in_background", "on_timeout" },
		{ "exec_bash_background", "name", "session_name" },
		{ "check_background_task", "session_name", "tmux_session" },
		{ "stop_background_task", "job-name", "tmux_session" },
		{ "remote_bash", "timeoutMs", "timeout" },
		{ "sync_local_to_remote", "server", "sandbox_name" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_slip(tool_find(tool_table, rows[i][0]), rows[i][1],
		    rows[i][2]);
	/* A tool that has nothing of the kind. */
	is_not_refused(tool_find(tool_table, "get_server_info"), "host");
}

/* "name" with each '_' replaced, or gone if "by" is NUL. */
static void
joined_by(char *out, const char *name, char by)
{
	for (; *name != '\0'; name++) {
		if (*name != '_')
			*out++ = *name;
		else if (by != '\0')
			*out++ = by;
	}
	*out = '\0';
}

static void
check_slips(const struct tool *tool, const char *name)
{
	size_t len = strlen(name);
	char slip[100];

	joined_by(slip, name, '-');
	check_slip(tool, slip, name);
	joined_by(slip, name, '\0');
	check_slip(tool, slip, name);
	if (len < 4)
		return;
	snprintf(slip, sizeof(slip), "%.*s", (int)len - 1, name);
	check_slip(tool, slip, name);
	snprintf(slip, sizeof(slip), "%s%c", name, name[len - 1]);
	check_slip(tool, slip, name);
}

static void
a_slip_in_any_argument_is_refused(void **state)
{
	const struct tool *const *t;
	const struct arg *a;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		for (a = (*t)->args; a != NULL && a->type != ARG_END; a++)
			check_slips(*t, a->name);
	}
}

static void
what_cost_a_user_files_is_refused(void **state)
{
	const struct tool *up = tool_find(tool_table, "sync_local_to_remote");
	const struct tool *bash = tool_find(tool_table, "exec_bash");

	(void)state;
	assert_true(up != NULL && bash != NULL);
	check_slip(up, "dryrun", "dry_run");
	check_slip(up, "dry-run", "dry_run");
	check_slip(up, "exclude", "excludes");
	check_slip(bash, "timeout", "timeout_s");
	check_slip(bash, "max_output", "max_output_chars");
	assert_non_null(
	    strstr(told_of(bash, "cmd"), "argument 'command' is missing;"));
	assert_non_null(
	    strstr(told_of(bash, "cmd"), "'cmd' is not known to this tool"));
}

static void
what_a_tool_has_settled_is_ignored(void **state)
{
	static const struct tool settled = { .name = "divide",
		.args = divide_args,
		.args_size = sizeof(struct divide_args),
		.settled = "A",
		.run = divide };
	struct call call = { .until = until_never() };
	struct err err = ERR_INIT;
	json_t *args = json_pack("{s:i, s:[b]}", "a", 6, "A", 1);
	json_t *result;

	(void)state;
	assert_int_equal(tool_run(&settled, &call, args, &result, &err), 0);
	json_decref(result);
	/* What was given stays as it was. */
	assert_int_equal(json_object_size(args), 2);
	json_decref(args);
}

static void
every_tool_has_exactly_one_kind_of_result(void **state)
{
	const struct tool *const *t;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		unsigned flags = (*t)->flags;
		int kinds = ((*t)->outputs != NULL) +
		    ((flags & TOOL_TEXT) != 0) + ((flags & TOOL_RAW) != 0);

		if (kinds != 1)
			fail_msg("%s: has %d kinds of result", (*t)->name,
			    kinds);
		if ((*t)->schema != NULL && !(flags & TOOL_RAW))
			fail_msg("%s: a schema of its own, but no raw tool",
			    (*t)->name);
		check_outs((*t)->name, (*t)->outputs);
	}
}

static void
the_hints_of_every_tool_fit_together(void **state)
{
	const struct tool *const *t;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		if ((*t)->hints.read_only && (*t)->hints.destructive)
			fail_msg("%s: read-only and destructive", (*t)->name);
	}
}

/* A schema has an object at its root and no "anyOf" beside it: some clients
 * drop a tool otherwise. */
static void
every_schema_is_a_plain_object(void **state)
{
	const struct tool *const *t;

	(void)state;
	for (t = tool_table; *t != NULL; t++) {
		json_t *o = tool_json(*t, true);
		json_t *schema = json_object_get(o, "inputSchema");

		assert_string_equal(json_string_value(
		                        json_object_get(schema, "type")),
		    "object");
		assert_null(json_object_get(schema, "anyOf"));
		assert_null(json_object_get(schema, "oneOf"));
		assert_null(json_object_get(schema, "allOf"));
		json_decref(o);
	}
}

static void
the_default_list_is_small(void **state)
{
	const struct tool **sandbox_tools = toolset_table(TOOLSET_SANDBOX);
	struct mcp_def def = { .tools = sandbox_tools };
	json_t *list = tools_list_json(&def);
	char *text = json_dumps(list, JSON_COMPACT);

	(void)state;
	free(sandbox_tools);
	assert_non_null(text);
	assert_true(json_array_size(list) > 0);
	if (strlen(text) > LIST_MAX)
		fail_msg("the list of tools has %zu bytes", strlen(text));
	free(text);
	json_decref(list);
}

/* The one tool whose table is a part of another's. */
static void
what_is_fixed_is_no_argument(void **state)
{
	const struct tool *job = tool_find(tool_table, "exec_bash_background");
	const struct tool *watched =
	    tool_find(tool_table, "exec_bash_background_watch");
	json_t *all = args_schema(job->args, true);
	json_t *some = args_schema(watched->args, true);
	json_t *left = json_object_get(all, "properties");

	(void)state;
	assert_int_equal(json_object_del(left, "watch"), 0);
	assert_true(json_equal(left, json_object_get(some, "properties")));
	json_decref(all);
	json_decref(some);
}

static void
advanced_tools_are_in_the_long_list_only(void **state)
{
	static const struct tool plain = { .name = "plain",
		.title = "P",
		.description = "P." };
	static const struct tool advanced = { .name = "advanced",
		.title = "A",
		.description = "A.",
		.flags = TOOL_ADVANCED };
	static const struct tool *const both[] = { &advanced, &plain, NULL };
	struct mcp_def def = { .tools = both };
	json_t *list;

	(void)state;
	list = tools_list_json(&def);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(
	                        json_object_get(json_array_get(list, 0),
	                            "name")),
	    "plain");
	json_decref(list);
	def.listing = LIST_ALL;
	list = tools_list_json(&def);
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(json_string_value(
	                        json_object_get(json_array_get(list, 0),
	                            "name")),
	    "advanced");
	json_decref(list);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_a_tool_by_its_whole_name),
		cmocka_unit_test(knows_the_name_that_was_meant),
		cmocka_unit_test(binds_and_runs),
		cmocka_unit_test(does_not_run_with_wrong_arguments),
		cmocka_unit_test(an_error_may_carry_further_fields),
		cmocka_unit_test(progress_that_nobody_wants_is_dropped),
		cmocka_unit_test(progress_reaches_who_listens),
		cmocka_unit_test(advanced_tools_are_listed_if_asked_for),
		cmocka_unit_test(every_tool_has_a_good_name),
		cmocka_unit_test(every_tool_tells_what_it_does),
		cmocka_unit_test(
		    every_argument_has_a_name_a_sentence_and_a_possible_default),
		cmocka_unit_test(what_the_earlier_servers_take_is_known),
		cmocka_unit_test(what_clients_add_is_ignored),
		cmocka_unit_test(no_argument_is_taken_for_a_slip),
		cmocka_unit_test(what_others_call_it_is_refused),
		cmocka_unit_test(a_slip_in_any_argument_is_refused),
		cmocka_unit_test(what_cost_a_user_files_is_refused),
		cmocka_unit_test(what_a_tool_has_settled_is_ignored),
		cmocka_unit_test(every_tool_has_exactly_one_kind_of_result),
		cmocka_unit_test(the_hints_of_every_tool_fit_together),
		cmocka_unit_test(every_schema_is_a_plain_object),
		cmocka_unit_test(the_default_list_is_small),
		cmocka_unit_test(what_is_fixed_is_no_argument),
		cmocka_unit_test(advanced_tools_are_in_the_long_list_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
