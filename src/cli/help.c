/* help and version. */
#include <getopt.h>
#include <stdio.h>

#include "cli/command.h"

extern const struct command command_help_;
extern const struct command command_version;

static const struct option no_options[] = {
	{ "help", no_argument, NULL, 'h' },
	{ 0 },
};

static void
overview(void)
{
	const struct command *const *c;

	printf("usage: remote-sandbox-mcp [COMMAND ...]\n\n"
	       "An MCP server that turns SSH servers into sandboxes for AI "
	       "agents.\nWithout a command it serves an MCP client on stdin "
	       "and stdout.\n\ncommands:\n");
	for (c = command_table; *c != NULL; c++) {
		if (!(*c)->hidden)
			printf("  %-10s %s\n", (*c)->name, (*c)->summary);
	}
	printf("\n'remote-sandbox-mcp COMMAND -h' tells more of one; the "
	       "manual is remote-sandbox-mcp(1).\n");
}

static int
run_help(int argc, char **argv)
{
	const struct command *c;
	int status = EXIT_OK;

	if (command_option(&command_help_, argc, argv, no_options, &status) ==
	    COMMAND_DONE)
		return status;
	if (argc - optind > 1)
		return command_usage(&command_help_);
	if (argc - optind == 0) {
		overview();
		return EXIT_OK;
	}
	c = command_find(argv[optind]);
	if (c == NULL) {
		fprintf(stderr, "remote-sandbox-mcp: no command '%s'\n",
		    argv[optind]);
		return command_usage(&command_help_);
	}
	return command_help(c);
}

static int
run_version(int argc, char **argv)
{
	int status = EXIT_OK;

	if (command_option(&command_version, argc, argv, no_options, &status) ==
	    COMMAND_DONE)
		return status;
	if (argc != optind)
		return command_usage(&command_version);
	printf("remote-sandbox-mcp %s\n", RSMCP_VERSION);
	return EXIT_OK;
}

const struct command command_help_ = {
	.name = "help",
	.usage = "[COMMAND]",
	.summary = "Say what there is, or what a command does",
	.run = run_help,
};

const struct command command_version = {
	.name = "version",
	.usage = "",
	.summary = "Print the version",
	.run = run_version,
};
