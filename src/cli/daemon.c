/*
 * daemon: the watchdog in the foreground.  The service starts it; by hand it
 * is fine in a terminal.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "config/config.h"
#include "config/keep.h"
#include "store/db.h"
#include "watch/daemon.h"

extern const struct command command_daemon;

#define SLEEP_MAX_S 60

/* The state directory is the one that holds the database.  0, or -1 after
 * saying what is wrong. */
static int
use_db(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir;

	if (strcmp(slash != NULL ? slash + 1 : path, DB_FILE) != 0) {
		fprintf(stderr,
		    "remote-sandbox-mcp: --db: the file must be called %s\n",
		    DB_FILE);
		return -1;
	}
	dir = slash != NULL ? xstrndup(path, (size_t)(slash - path))
	                    : xstrdup(".");
	setenv("REMOTE_SANDBOX_MCP_HOME", dir[0] != '\0' ? dir : "/", 1);
	free(dir);
	return 0;
}

static int
work(const char *config_path, int64_t sleep_s)
{
	struct daemon_options opt = { .loop_sleep_s = sleep_s,
		.config_path = config_path,
		.cancel_fd = cli_signal_fd() };
	struct err err;

	log_dated();
	config_forget_env();
	if (config_path[0] != '\0')
		keep_use_file(config_path);
	if (daemon_run(&opt, &err) == 0)
		return EXIT_OK;
	log_error("%s", err.msg);
	return EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "db", required_argument, NULL, 'd' },
		{ "loop-sleep", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *config_path = "";
	int o, status = EXIT_USAGE;
	int64_t sleep_s = 2;

	while ((o = command_option(&command_daemon, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		if (o == 'c')
			config_path = optarg;
		if (o == 'd' && use_db(optarg) == -1)
			return EXIT_USAGE;
		if (o == 's' &&
		    str_to_int(optarg, 0, INT64_MAX, &sleep_s) == -1)
			return command_usage(&command_daemon);
	}
	if (argc != optind)
		return command_usage(&command_daemon);
	if (sleep_s < 1)
		sleep_s = 1;
	return work(config_path, sleep_s < SLEEP_MAX_S ? sleep_s : SLEEP_MAX_S);
}

const struct command command_daemon = {
	.name = "daemon",
	.usage = "[--config FILE] [--db FILE] [--loop-sleep N]",
	.summary = "Look after watched jobs until ended; the service runs this",
	.help = "  --config FILE   sandboxes of watches that no server kept\n"
	        "  --db FILE       the database; its directory is the state "
	        "directory\n"
	        "  --loop-sleep N  seconds between looks for what is due "
	        "(2)\n\n"
	        "One runs for each state directory; a second one says so and "
	        "ends.\n",
	.run = run,
};
