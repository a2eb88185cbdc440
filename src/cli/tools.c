/*
 * tools: what there is to call, for people, for scripts and for the manual.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/command.h"
#include "cli/manual.h"
#include "tools/tool.h"

extern const struct command command_tools;

const struct tool *
cli_tool(const char *name)
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

static void
list(void)
{
	const struct tool *const *t;

	for (t = tool_table; *t != NULL; t++)
		printf("%-34s %s%s\n", (*t)->name, (*t)->title,
		    (*t)->flags & TOOL_ADVANCED         ? " (advanced)"
		        : (*t)->flags & TOOL_REMOTE_SSH ? " (remote-ssh)"
		                                        : "");
}

static void
show_arg(const struct arg *a, int indent)
{
	json_t *dflt = arg_default(a);
	char *text = dflt != NULL ? json_dumps(dflt, JSON_ENCODE_ANY) : NULL;
	char allowed[256];
	const struct arg *f;

	arg_allowed(a, allowed, sizeof(allowed));
	printf("%*s%s: %s", indent, "", a->name, allowed);
	if (a->required)
		printf(", required");
	else if (text != NULL)
		printf(", default %s", text);
	printf("\n%*s%s\n", indent + 4, "", a->help);
	for (f = a->fields; f != NULL && f->type != ARG_END; f++)
		show_arg(f, indent + 4);
	free(text);
	json_decref(dflt);
}

static void
show_outs(const struct out *outs, int indent)
{
	const struct out *f;

	for (f = outs; f != NULL && f->type != OUT_END; f++) {
		printf("%*s%s: %s%s%s\n", indent, "", f->name,
		    f->help != NULL ? f->help : "",
		    f->nullable ? " Null if not known." : "",
		    f->always ? "" : " Only when it applies.");
		show_outs(f->fields, indent + 4);
	}
}

static void
describe(const struct tool *tool)
{
	const struct arg *a;

	printf("%s: %s\n\n%s\n", tool->name, tool->title, tool->description);
	printf("\narguments:\n");
	if (tool->args == NULL)
		printf("  none\n");
	for (a = tool->args; a != NULL && a->type != ARG_END; a++)
		show_arg(a, 2);
	printf("\nresult:\n");
	if (tool->outputs == NULL)
		printf("  text\n");
	show_outs(tool->outputs, 2);
}

static void
print_json(const struct tool *only)
{
	json_t *tools = json_array();
	const struct tool *const *t;

	for (t = tool_table; *t != NULL; t++) {
		if (only == NULL || only == *t)
			json_array_append_new(tools, tool_json(*t, LIST_ALL));
	}
	json_dumpf(only != NULL ? json_array_get(tools, 0) : tools, stdout,
	    JSON_INDENT(2));
	putchar('\n');
	json_decref(tools);
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "mdoc", no_argument, NULL, 'm' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const struct tool *tool = NULL;
	int o, status = EXIT_OK, form = 0;

	while ((o = command_option(&command_tools, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		form = o;
	}
	if (argc - optind > 1)
		return command_usage(&command_tools);
	if (argc - optind == 1) {
		tool = cli_tool(argv[optind]);
		if (tool == NULL)
			return EXIT_USAGE;
	}
	if (form == 'j')
		print_json(tool);
	else if (form == 'm')
		manual_tools(tool_table);
	else if (tool != NULL)
		describe(tool);
	else
		list();
	return EXIT_OK;
}

const struct command command_tools = {
	.name = "tools",
	.usage = "[TOOL] [--json | --mdoc]",
	.summary = "List the tools, or show one with its arguments",
	.help = "  --json  as clients see them in tools/list\n"
	        "  --mdoc  as the source of remote-sandbox-mcp-tools(7)\n",
	.run = run,
};
