/*
 * serve: the MCP server on stdin and stdout.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/self.h"
#include "base/str.h"
#include "cli/command.h"
#include "mcp/mcp.h"
#include "ssh/localhost.h"
#include "tools/app.h"
#include "tools/prompt.h"
#include "tools/resource.h"
#include "tools/toolset.h"

extern const struct command command_serve;

static const char sandbox_words[] =
    "Remote machines reached by SSH, as sandboxes. list_sandboxes shows "
    "them (with check_resources: which is idle); select_sandbox sets the "
    "default, or pass sandbox_name to any tool. exec_bash runs commands of "
    "up to about two minutes, exec_bash_background longer ones, for "
    "check_background_task; sync_local_to_remote and sync_remote_to_local "
    "copy trees; list_remote_files and read_remote_file look at files. "
    "A failed connection says what to do; "
    "get_server_info tells about the local side.";

static const char remote_ssh_words[] =
    "One remote machine, reached by SSH. remote_bash runs commands there, long "
    "ones with run_in_background, which gives an ID for remote_bash_output; "
    "remote_file_read reads files, with limit alone the end of a log.";

static const char on_terminal[] =
    "remote-sandbox-mcp is an MCP server: a client starts it and talks JSON "
    "with it on stdin and stdout.\n"
    "'remote-sandbox-mcp setup' adds a machine and registers the server with "
    "Claude Code, Codex, Gemini CLI, VS Code and Cursor.\n"
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

/* Prompts and resources are about sandboxes: without one there is nothing to
 * show. */
static void
offer_more(struct mcp_def *def)
{
	if (def->app->config.count == 0)
		return;
	def->prompts = prompt_table;
	def->resources = &resource_set;
	def->candidates = resource_candidates;
}

/* What a person should know of SSH_HOST: its tools have no way to say it. */
static void
tell_ssh_host(const json_t *said)
{
	const json_t *text;
	size_t i;

	json_array_foreach (said, i, text) {
		if (str_starts(json_string_value(text), "SSH_HOST"))
			log_warn("%s", json_string_value(text));
	}
}

/* The tools that this client gets, and how the server calls itself then; the
 * caller frees the table. */
static const struct tool **
choose_tools(struct mcp_def *def, char **instructions)
{
	const char *word = getenv(TOOLSET_VARIABLE);
	const struct config *c = &def->app->config;
	const struct tool **table;
	enum toolset set;
	bool unknown;

	set = toolset_choose(word, c, &unknown);
	if (unknown)
		log_warn("%s must be " TOOLSET_WORDS ", not '%.100s'",
		    TOOLSET_VARIABLE, word);
	if (set != TOOLSET_SANDBOX) {
		tell_ssh_host(c->problems);
		tell_ssh_host(c->notes);
	}
	if (set == TOOLSET_REMOTE_SSH) {
		def->name = "remote-ssh";
		def->title = "Remote SSH";
	} else {
		offer_more(def);
	}
	*instructions =
	    xasprintf("%s%s%s", set != TOOLSET_REMOTE_SSH ? sandbox_words : "",
	        set == TOOLSET_ALL ? " " : "",
	        set != TOOLSET_SANDBOX ? remote_ssh_words : "");
	def->instructions = *instructions;
	table = toolset_table(set);
	def->tools = table;
	return table;
}

static int
serve_app(struct mcp_def *def, int out, int signals, struct err *err)
{
	char *instructions;
	const struct tool **table = choose_tools(def, &instructions);
	int rc = mcp_serve(def, STDIN_FILENO, out, signals, err);

	free(table);
	free(instructions);
	return rc;
}

/* With the client's descriptors in place. */
static int
serve(struct mcp_def *def, int out, int signals, bool local,
    const char *config_file)
{
	struct localhost *host = NULL;
	char *program = self_path();
	struct until until = until_never();
	struct err err;
	int rc = 0;

	until.cancel_fd = signals;
	if (local) {
		host = localhost_start(program, &until, &err);
		rc = host == NULL ? -1 : 0;
	}
	if (rc == 0) {
		def->app = app_new(config_file,
		    host != NULL ? localhost_entry(host) : NULL, false);
		if (app_has_cluster(def->app))
			def->listing |= LIST_CLUSTER;
		rc = serve_app(def, out, signals, &err);
		app_free(def->app);
	}
	localhost_stop(host);
	free(program);
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
