/*
 * call: run a tool from the command line, the way an agent's call runs it.
 */
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/until.h"
#include "cli/command.h"
#include "cli/show.h"
#include "tools/app.h"
#include "tools/tool.h"

#define PROGRESS_MS 1000 /* between two lines about what is done */

extern const struct command command_call;

/*
 * One "key=value" into the object.  Everything is text; binding turns it into
 * what the tool wants.  A key given again makes a list.
 */
static int
add_pair(json_t *args, const char *pair)
{
	const char *eq = strchr(pair, '=');
	json_t *value, *old, *list;
	char *key;

	if (eq == NULL || eq == pair) {
		fprintf(stderr,
		    "remote-sandbox-mcp: '%s' is not of the form key=value\n",
		    pair);
		return -1;
	}
	value = json_string(eq + 1);
	if (value == NULL) {
		fprintf(stderr,
		    "remote-sandbox-mcp: the value in '%s' is not UTF-8\n",
		    pair);
		return -1;
	}
	key = xstrndup(pair, (size_t)(eq - pair));
	old = json_object_get(args, key);
	if (json_is_array(old)) {
		json_array_append_new(old, value);
	} else if (old != NULL) {
		list = json_array();
		json_array_append(list, old);
		json_array_append_new(list, value);
		json_object_set_new(args, key, list);
	} else if (json_object_set_new(args, key, value) == -1) {
		fprintf(stderr,
		    "remote-sandbox-mcp: the key in '%s' is not UTF-8\n", pair);
		free(key);
		return -1;
	}
	free(key);
	return 0;
}

static json_t *
parse_args(const char *text)
{
	struct err err = ERR_INIT;
	json_t *o = decode_json(text, strlen(text), &err);

	if (json_is_object(o))
		return o;
	fprintf(stderr, "remote-sandbox-mcp: --args: %s\n",
	    o == NULL ? err.msg : "must be a JSON object");
	json_decref(o);
	return NULL;
}

/* All arguments as one object, or NULL after saying what is wrong. */
static json_t *
read_args(const char *text, char **pairs)
{
	json_t *args = text != NULL ? parse_args(text) : json_object();
	json_t *given = json_object();
	char **p;

	for (p = pairs; args != NULL && *p != NULL; p++) {
		if (add_pair(given, *p) == -1) {
			json_decref(args);
			args = NULL;
		}
	}
	if (args != NULL)
		json_object_update(args, given);
	json_decref(given);
	return args;
}

static void
not_known(const struct tool *tool, const char *name)
{
	const char *near = args_nearest(tool->args, name);
	const struct arg *a = tool->args;

	fprintf(stderr, "remote-sandbox-mcp: %s has no argument '%s'; ",
	    tool->name, name);
	if (near != NULL) {
		fprintf(stderr, "did you mean '%s'?\n", near);
		return;
	}
	fprintf(stderr, "it takes %s", a != NULL ? a->name : "none");
	while (a != NULL && (++a)->type != ARG_END)
		fprintf(stderr, ", %s", a->name);
	fputc('\n', stderr);
}

/* Does the tool have all of them?  A client may add some that are none; what
 * a person types is meant. */
static bool
known(const struct tool *tool, const json_t *args)
{
	const char *name;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)args, name, v) {
		if (!tool_takes(tool, name)) {
			not_known(tool, name);
			return false;
		}
	}
	return true;
}

/* Progress goes where it does not mix with the result.  That time has passed is
 * no news.  If it is known how much there is to do, the words tell how far it
 * is; that is printed now and then, and at the end. */
static void
show_progress(struct call *call, double done, double total, const char *text)
{
	static char last[256];
	static int64_t next_ms;
	char *said = show_said(stderr, text != NULL ? text : "");
	bool news =
	    said[0] != '\0' && strncmp(said, last, sizeof(last) - 1) != 0;

	(void)call;
	if (news && total <= 0)
		fprintf(stderr, "%.0f: %s\n", done, said);
	if (news && total > 0 && (clock_ms() >= next_ms || done >= total)) {
		fprintf(stderr, "%s\n", said);
		next_ms = clock_ms() + PROGRESS_MS;
	}
	snprintf(last, sizeof(last), "%s", said);
	free(said);
}

static int
run_tool(const struct tool *tool, const json_t *args, const char *config_file,
    bool as_json)
{
	struct call call = { .until = until_never(),
		.progress = show_progress };
	struct err err = ERR_INIT;
	json_t *result = NULL;
	int rc;

	call.until.cancel_fd = cli_signal_fd();
	call.app = app_new(config_file, NULL, true);
	rc = tool_run(tool, &call, args, &result, &err);
	if (as_json)
		show_json(rc, result, &err);
	else
		show_text(rc, result, &err);
	/* What was ended half-way has a result, and is no success. */
	if (rc == 0)
		rc = until_check(&call.until, &err);
	if (json_object_get(result, "exit_code") != NULL &&
	    (json_is_true(json_object_get(result, "connection_error")) ||
	        json_is_true(json_object_get(result, "timed_out"))))
		rc = -1;
	json_decref(result);
	app_free(call.app);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "args", required_argument, NULL, 'a' },
		{ "config", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const struct tool *tool;
	const char *args_text = NULL, *config_file = NULL;
	json_t *args = NULL;
	bool as_json = false;
	int o, status = EXIT_USAGE;

	while ((o = command_option(&command_call, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		if (o == 'a')
			args_text = optarg;
		else if (o == 'c')
			config_file = optarg;
		else
			as_json = true;
	}
	if (optind == argc)
		return command_usage(&command_call);
	tool = cli_tool(argv[optind++]);
	if (tool == NULL)
		return EXIT_USAGE;
	args = read_args(args_text, argv + optind);
	if (args == NULL)
		return command_usage(&command_call);
	status = known(tool, args) ? run_tool(tool, args, config_file, as_json)
	                           : EXIT_USAGE;
	json_decref(args);
	return status;
}

const struct command command_call = {
	.name = "call",
	.usage = "TOOL [key=value ...] [--args JSON] [--config FILE] [--json]",
	.summary = "Run a tool as an agent would",
	.help =
	    "  key=value      an argument; repeat a key to make a list\n"
	    "  --args JSON    arguments as one JSON object; pairs win over it\n"
	    "  --config FILE  read sandboxes from FILE\n"
	    "  --json         print the result as JSON, for scripts\n\n"
	    "Exit status: 0 the tool succeeded, 1 it failed, 2 wrong usage; "
	    "so with an\nargument that the tool does not have, and nothing is "
	    "done then.\n"
	    "'remote-sandbox-mcp tools TOOL' shows what a tool takes.\n",
	.run = run,
};
