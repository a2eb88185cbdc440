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
#include "ssh/localhost.h"
#include "tools/app.h"

extern const struct command command_serve;

static const char instructions[] =
    "Remote machines reached by SSH, as sandboxes. list_sandboxes shows "
    "them (with check_resources: which is idle); select_sandbox sets the "
    "default, or pass sandbox_name to any tool. exec_bash runs commands of "
    "up to about two minutes; list_remote_files and read_remote_file look at "
    "files. A failed connection says what to do; "
    "get_server_info tells about the local side.";

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

/* With the client's descriptors in place. */
static int
serve(struct mcp_def *def, int out, int signals, bool local,
    const char *config_file)
{
	struct localhost *host = NULL;
	struct until until = until_never();
	struct err err;
	int rc = 0;

	until.cancel_fd = signals;
	if (local) {
		host = localhost_start(&until, &err);
		rc = host == NULL ? -1 : 0;
	}
	if (rc == 0) {
		def->app = app_new(config_file,
		    host != NULL ? localhost_entry(host) : NULL, false);
		if (app_has_cluster(def->app))
			def->listing |= LIST_CLUSTER;
		rc = mcp_serve(def, STDIN_FILENO, out, signals, &err);
		app_free(def->app);
	}
	localhost_stop(host);
	if (rc == -1)
		log_error("%s", err.msg);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

int
cli_serve(const char *config_file, bool local)
{
	struct mcp_def def = {
		.name = "remote-sandbox",
		.title = "Remote Sandbox",
		.version = RSMCP_VERSION,
		.instructions = instructions,
		.tools = tool_table,
		.listing = tool_advanced_listed() ? LIST_ALL : 0,
	};
	int out, status;

	if (isatty(STDIN_FILENO))
		fputs(on_terminal, stderr);
	out = claim_stdout();
	if (out == -1) {
		log_error("cannot set up stdout");
		return EXIT_FAILED;
	}
	status = serve(&def, out, cli_signal_fd(), local, config_file);
	close(out);
	return status;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "local", no_argument, NULL, 'l' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *config_file = NULL;
	bool local = false;
	int o, status = EXIT_OK;

	while ((o = command_option(&command_serve, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		if (o == 'c')
			config_file = optarg;
		else
			local = true;
	}
	if (argc != optind)
		return command_usage(&command_serve);
	return cli_serve(config_file, local);
}

const struct command command_serve = {
	.name = "serve",
	.usage = "[--config FILE] [--local]",
	.summary = "Serve an MCP client on stdin and stdout (the default)",
	.help = "  --config FILE  read sandboxes from FILE\n"
	        "  --local        add a sandbox \"local\": a private sshd on "
	        "this machine,\n"
	        "                 for trying things out, gone at the end\n\n"
	        "Ends when stdin ends, and on SIGTERM, SIGINT or SIGHUP.\n",
	.run = run,
};
