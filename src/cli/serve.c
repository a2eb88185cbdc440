/*
 * serve: the MCP server on stdin and stdout.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/command.h"
#include "mcp/mcp.h"
#include "tools/app.h"

extern const struct command command_serve;

static const char instructions[] =
    "Remote machines reached by SSH, as sandboxes. The tools to choose a "
    "sandbox, run commands, copy files and run long jobs are being added "
    "version by version; tools/list shows what this one has. "
    "get_server_info tells the version and whether a local ssh client was "
    "found.";

static const char on_terminal[] =
    "remote-sandbox-mcp is an MCP server: a client starts it and talks JSON "
    "with it on stdin and stdout.\n"
    "To register it with a client, for example:\n"
    "  claude mcp add remote-sandbox -- remote-sandbox-mcp\n"
    "  codex mcp add remote-sandbox -- remote-sandbox-mcp\n"
    "  gemini mcp add remote-sandbox remote-sandbox-mcp\n"
    "For use by hand see 'remote-sandbox-mcp help'. Serving now; end with "
    "Ctrl-D.\n";

/*
 * Keep the real stdout for frames alone: descriptor 1 becomes stderr, so
 * that nothing a library or a child prints can break the stream.
 */
static int
claim_stdout(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	if (fd != -1 && dup2(STDERR_FILENO, STDOUT_FILENO) == -1)
		return -1;
	return fd;
}

int
cli_serve(void)
{
	struct mcp_def def = {
		.name = "remote-sandbox",
		.title = "Remote Sandbox",
		.version = RSMCP_VERSION,
		.instructions = instructions,
		.tools = tool_table,
		.list_advanced = tool_advanced_listed(),
	};
	struct err err;
	int out;

	if (isatty(STDIN_FILENO))
		fputs(on_terminal, stderr);
	out = claim_stdout();
	if (out == -1) {
		log_error("cannot set up stdout");
		return EXIT_FAILED;
	}
	def.app = app_new(NULL);
	if (mcp_serve(&def, STDIN_FILENO, out, cli_signal_fd(), &err) == -1) {
		log_error("%s", err.msg);
		return EXIT_FAILED;
	}
	app_free(def.app);
	close(out);
	return EXIT_OK;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int status = EXIT_OK;

	if (command_option(&command_serve, argc, argv, options, &status) ==
	    COMMAND_DONE)
		return status;
	if (argc != optind)
		return command_usage(&command_serve);
	return cli_serve();
}

const struct command command_serve = {
	.name = "serve",
	.usage = "",
	.summary = "Serve an MCP client on stdin and stdout (the default)",
	.help = "Ends when stdin ends, and on SIGTERM, SIGINT or SIGHUP.\n",
	.run = run,
};
