/*
 * leave-local: what is kept of a private sandbox goes when that is gone.
 * Started by what keeps its sshd, however the server came to its end.
 */
#include <getopt.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/until.h"
#include "cli/command.h"
#include "ssh/localhost.h"
#include "tools/watching.h"

#define LEAVE_MS 15000

extern const struct command command_leave_local;

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct until until = until_in(LEAVE_MS);
	struct err err;
	char *key_file;
	int rc, status = EXIT_OK;

	if (command_option(&command_leave_local, argc, argv, options,
	        &status) == COMMAND_DONE)
		return status;
	if (argc != optind + 1)
		return command_usage(&command_leave_local);
	key_file = localhost_key(argv[optind]);
	rc = watching_leave(key_file, &until, &err);
	free(key_file);
	if (rc == 0)
		return EXIT_OK;
	log_error("a watch of a private sandbox goes on: %s", err.msg);
	return EXIT_FAILED;
}

const struct command command_leave_local = {
	.name = "leave-local",
	.usage = "DIRECTORY",
	.summary = "Forget a private sandbox; started by what keeps its sshd",
	.help = "Cancels the watches of the sandbox that serve --local had in "
	        "DIRECTORY, and\nremoves what was kept for its login.\n",
	.hidden = true,
	.run = run,
};
