/*
 * call: run a tool from the command line, the way an agent's call runs it.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/show.h"
#include "tools/tool.h"

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
	json_error_t je;
	json_t *o = json_loads(text, JSON_REJECT_DUPLICATES, &je);

	if (json_is_object(o))
		return o;
	if (o != NULL)
		fprintf(stderr,
		    "remote-sandbox-mcp: --args must be a JSON object\n");
	else
		fprintf(stderr,
		    "remote-sandbox-mcp: --args is not valid JSON: %s (line "
		    "%d, column %d)\n",
		    je.text, je.line, je.column);
	json_decref(o);
	return NULL;
}

static const struct tool *
find_tool(const char *name)
{
	const struct tool *tool = tool_find(tool_table, name);
	const char *near;

	if (tool != NULL)
		return tool;
	near = tool_nearest(tool_table, name);
	fprintf(stderr, "remote-sandbox-mcp: no tool '%s'", name);
	if (near != NULL)
		fprintf(stderr, "; did you mean '%s'?\n", near);
	else
		fprintf(stderr, "; 'remote-sandbox-mcp tools' lists them\n");
	return NULL;
}

/* Progress goes where it does not mix with the result. */
static void
show_progress(struct call *call, double done, double total, const char *text)
{
	(void)call;
	if (total > 0)
		fprintf(stderr, "%g of %g", done, total);
	else
		fprintf(stderr, "%g", done);
	fprintf(stderr, "%s%s\n", text != NULL ? ": " : "",
	    text != NULL ? text : "");
}

static int
run_tool(const struct tool *tool, const json_t *args, bool as_json)
{
	struct call call = { .until = until_never(),
		.progress = show_progress };
	struct err err = ERR_INIT;
	json_t *result = NULL;
	int rc;

	call.until.cancel_fd = cli_signal_fd();
	rc = tool_run(tool, &call, args, &result, &err);
	if (as_json)
		show_json(rc, result, &err);
	else
		show_text(rc, result, &err);
	json_decref(result);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "args", required_argument, NULL, 'a' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const struct tool *tool = NULL;
	const char *args_text = NULL;
	json_t *args = NULL;
	json_t *pairs = json_object();
	bool as_json = false;
	int o, status = EXIT_USAGE;

	/* Options may stand before and after the name and the pairs. */
	while (status == EXIT_USAGE) {
		o = command_option(&command_call, argc, argv, options, &status);
		if (o == COMMAND_DONE)
			goto out;
		if (o == 'a')
			args_text = optarg;
		else if (o == 'j')
			as_json = true;
		else if (optind >= argc)
			break;
		else if (tool == NULL) {
			tool = find_tool(argv[optind++]);
			if (tool == NULL)
				goto out;
		} else if (add_pair(pairs, argv[optind++]) == -1)
			goto out;
	}
	if (tool == NULL) {
		command_usage(&command_call);
		goto out;
	}
	args = args_text != NULL ? parse_args(args_text) : json_object();
	if (args == NULL)
		goto out;
	json_object_update(args, pairs);
	status = run_tool(tool, args, as_json);
out:
	json_decref(pairs);
	json_decref(args);
	return status;
}

const struct command command_call = {
	.name = "call",
	.usage = "NAME [key=value ...] [--args JSON] [--json]",
	.summary = "Run a tool as an agent would",
	.help =
	    "  key=value    an argument; repeat a key to make a list\n"
	    "  --args JSON  arguments as one JSON object; pairs win over it\n"
	    "  --json       print the result as JSON, for scripts\n\n"
	    "Exit status: 0 the tool succeeded, 1 it failed, 2 wrong usage.\n"
	    "'remote-sandbox-mcp tools NAME' shows what a tool takes.\n",
	.run = run,
};
