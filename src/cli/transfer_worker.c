/*
 * transfer-worker: the process of a transfer.  Started by the program itself;
 * by hand it works on a transfer that is queued, in the foreground.
 */
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "tools/app.h"
#include "tools/transfer.h"

extern const struct command command_transfer_worker;

/* What it prints is the log of the transfer. */
static void
say(const char *line)
{
	time_t now = time(NULL);
	char date[32];
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &tm);
	printf("%s ", date);
	for (; *line != '\0'; line++)
		putchar((unsigned char)*line < ' ' ? '?' : *line);
	putchar('\n');
	fflush(stdout);
}

static int
work(struct transfer_work *w, const char *config_file)
{
	struct err err;
	int rc;

	if (w->fd != -1 && transfer_detach(&err) == -1) {
		log_error("%s", err.msg);
		return EXIT_FAILED;
	}
	w->cancel_fd = cli_signal_fd();
	if (w->fd == -1)
		w->app = app_new(config_file, NULL, true);
	rc = transfer_work(w, &err);
	app_free(w->app);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "task-id", required_argument, NULL, 't' },
		{ "fd", required_argument, NULL, 'f' },
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct transfer_work w = { .fd = -1, .sync = sync_run, .say = say };
	const char *config_file = NULL;
	int o, status = EXIT_USAGE;
	int64_t fd = -1;

	while ((o = command_option(&command_transfer_worker, argc, argv,
	            options, &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		if (o == 't' && str_to_int(optarg, 1, INT64_MAX, &w.id) == -1)
			return command_usage(&command_transfer_worker);
		if (o == 'f' && str_to_int(optarg, 3, 1023, &fd) == -1)
			return command_usage(&command_transfer_worker);
		if (o == 'c')
			config_file = optarg;
	}
	if (w.id == 0 || argc != optind)
		return command_usage(&command_transfer_worker);
	w.fd = (int)fd;
	return work(&w, config_file);
}

const struct command command_transfer_worker = {
	.name = "transfer-worker",
	.usage = "--task-id N [--config FILE]",
	.summary = "Do a transfer that is queued; started by the sync tools",
	.help = "  --task-id N    number of the transfer\n"
	        "  --config FILE  read sandboxes from FILE\n\n"
	        "Prints what goes into the log of the transfer. SIGTERM "
	        "cancels it.\n",
	.hidden = true,
	.run = run,
};
