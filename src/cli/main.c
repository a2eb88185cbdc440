/*
 * remote-sandbox-mcp: the entry.  Without arguments it is an MCP server on
 * stdio; with them, a person's way to the same tools.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/names.h"
#include "base/str.h"
#include "cli/command.h"
#include "ssh/askpass.h"
#include "ssh/knownhost.h"

extern const struct command command_serve;
extern const struct command command_tools;
extern const struct command command_call;
extern const struct command command_setup;
extern const struct command command_sync;
extern const struct command command_completion;
extern const struct command command_daemon;
extern const struct command command_demo;
extern const struct command command_disconnect;
extern const struct command command_doctor;
extern const struct command command_events;
extern const struct command command_leave_local;
extern const struct command command_transfer_worker;
extern const struct command command_watchdog;
extern const struct command command_version;
extern const struct command command_watch;
extern const struct command command_watches;
extern const struct command command_help_;

const struct command *const command_table[] = {
	&command_serve,
	&command_setup,
	&command_doctor,
	&command_disconnect,
	&command_tools,
	&command_call,
	&command_sync,
	&command_watches,
	&command_watch,
	&command_events,
	&command_daemon,
	&command_demo,
	&command_watchdog,
	&command_transfer_worker,
	&command_leave_local,
	&command_completion,
	&command_version,
	&command_help_,
	NULL,
};

const struct command *
command_find(const char *name)
{
	const struct command *const *c;

	if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
		name = "help";
	if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
		name = "version";
	for (c = command_table; *c != NULL; c++) {
		if (strcmp((*c)->name, name) == 0)
			return *c;
	}
	return NULL;
}

static void
usage_line(FILE *f, const struct command *c)
{
	fprintf(f, "usage: remote-sandbox-mcp %s%s%s\n", c->name,
	    c->usage[0] != '\0' ? " " : "", c->usage);
}

int
command_usage(const struct command *c)
{
	usage_line(stderr, c);
	return EXIT_USAGE;
}

int
command_help(const struct command *c)
{
	usage_line(stdout, c);
	printf("\n%s.\n", c->summary);
	if (c->help != NULL)
		printf("\n%s", c->help);
	return EXIT_OK;
}

int
command_option(const struct command *c, int argc, char **argv,
    const struct option *options, int *status)
{
	int o = getopt_long(argc, argv, "h", options, NULL);

	if (o == 'h') {
		*status = command_help(c);
		return COMMAND_DONE;
	}
	if (o == '?') {
		*status = command_usage(c);
		return COMMAND_DONE;
	}
	return o;
}

/* A result that could not be printed is a failure. */
static int
finish(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	/* As in "tools | head", which has what it wanted. */
	if (errno != EPIPE)
		log_error("cannot write to standard output");
	return status == EXIT_OK ? EXIT_FAILED : status;
}

int
main(int argc, char **argv)
{
	const struct command *c;

	fs_std_fds();
	if (getenv(ASKPASS_SOCKET_ENV) != NULL && argc == 2)
		return askpass_helper(getenv(ASKPASS_SOCKET_ENV), argv[1],
		    STDOUT_FILENO);
	if (argc == 5 && strcmp(argv[1], KNOWNHOST_COMMAND) == 0)
		return knownhost_helper(argv[2], argv[3], argv[4],
		    STDOUT_FILENO);
	signal(SIGPIPE, SIG_IGN);
	/* Who starts us may ignore it; then nobody could wait for a child. */
	signal(SIGCHLD, SIG_DFL);
	/* Sixty calls at once on twenty sandboxes need more than 1024. */
	fs_many_fds();
	names_init();
	log_init(getenv("REMOTE_SANDBOX_LOG_LEVEL"));
	if (argc < 2)
		return cli_serve(NULL, false);
	c = command_find(argv[1]);
	/* Who comes from the server "remote-ssh" has "node .../index.js" in the
	 * client's settings, and may have changed the program alone. */
	if (c == NULL && argc == 2 && str_ends(argv[1], "/index.js"))
		return cli_serve(NULL, false);
	if (c == NULL) {
		fprintf(stderr,
		    "remote-sandbox-mcp: unknown command '%s'\n"
		    "usage: remote-sandbox-mcp [COMMAND ...]; see "
		    "'remote-sandbox-mcp help'\n",
		    argv[1]);
		return EXIT_USAGE;
	}
	argv[1] = argv[0]; /* what getopt puts before its messages */
	return finish(c->run(argc - 1, argv + 1));
}
