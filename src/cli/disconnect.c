/*
 * disconnect: use the logins that are kept for nothing new.  What a login
 * brought along -- groups, limits, what sshd allows -- stays as long as that.
 */
#include <getopt.h>
#include <stdio.h>

#include "cli/command.h"
#include "ssh/master.h"
#include "tools/app.h"

extern const struct command command_disconnect;

static void
leave(const struct sandbox *sb, const struct until *until)
{
	int n = master_leave(sb, until);

	if (n == 0)
		printf("%s: no login was kept\n", sb->name);
	else
		printf("%s: %d login%s let go; the next use logs in anew\n",
		    sb->name, n, n == 1 ? "" : "s");
}

static int
disconnect(const char *config_file, const char *name)
{
	struct app *app = app_new(config_file, NULL, true);
	struct until until = until_never();
	const struct sandbox *only = NULL;
	struct err err = ERR_INIT;
	size_t i;
	int rc = 0;

	until.cancel_fd = cli_signal_fd();
	if (name != NULL || app->config.count == 0) {
		only = app_sandbox(app, name, &err);
		rc = only != NULL ? 0 : -1;
	}
	for (i = 0; rc == 0 && i < app->config.count; i++) {
		if (only == NULL || only == &app->config.sandboxes[i])
			leave(&app->config.sandboxes[i], &until);
	}
	if (rc == -1)
		fprintf(stderr, "remote-sandbox-mcp: %s\n", err.msg);
	app_free(app);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *config_file = NULL;
	int o, status = EXIT_USAGE;

	while ((o = command_option(&command_disconnect, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		config_file = optarg;
	}
	if (argc - optind > 1)
		return command_usage(&command_disconnect);
	return disconnect(config_file, argv[optind]);
}

const struct command command_disconnect = {
	.name = "disconnect",
	.usage = "[SANDBOX] [--config FILE]",
	.summary = "Let go of logins that are kept, so that the next is new",
	.help =
	    "Logins are kept for ten minutes after their last use "
	    "(control_persist_s). What they\n"
	    "brought along stays as long: groups, limits, settings of sshd. "
	    "This lets go of\n"
	    "those of SANDBOX, or of all. What runs on them goes on; a server "
	    "that uses one\n"
	    "moves to a new login within a minute. A connection that your own "
	    "ssh keeps is\n"
	    "left alone.\n\n"
	    "  --config FILE  read sandboxes from FILE\n",
	.run = run,
};
