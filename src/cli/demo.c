/*
 * demo: the main things, shown on a private sshd on this machine.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/show.h"
#include "ssh/localhost.h"
#include "tools/app.h"
#include "tools/tool.h"

extern const struct command command_demo;

#define TOGETHER 8

struct demo {
	struct app *app;
	struct until until;
	bool failed;
};

/* Call a tool as an agent would; the result, or NULL after showing why not. */
static json_t *
call(struct demo *d, const char *name, const json_t *args)
{
	struct call c = { .until = d->until, .app = d->app };
	const struct tool *tool = tool_find(tool_table, name);
	struct err err = ERR_INIT;
	json_t *result = NULL;

	if (tool_run(tool, &c, args, &result, &err) == 0)
		return result;
	show_text(-1, result, &err);
	json_decref(result);
	return NULL;
}

/* One step: what it shows, the call, its result, and what must be in it. */
static void
step(struct demo *d, const char *title, const char *name, json_t *args,
    const char *field, const json_t *expected)
{
	char *text = json_dumps(args, JSON_COMPACT);
	struct err err = ERR_INIT;
	json_t *result;

	printf("\n--- %s\n    %s %s\n\n", title, name, text);
	fflush(stdout);
	result = call(d, name, args);
	if (result != NULL)
		show_text(0, result, &err);
	if (result == NULL ||
	    (field != NULL &&
	        !json_equal(json_object_get(result, field), expected))) {
		printf("(this is not what was expected)\n");
		d->failed = true;
	}
	free(text);
	json_decref(args);
	json_decref(result);
}

static void *
sleeper(void *arg)
{
	json_t *args = json_pack("{s:s}", "command", "sleep 1; echo $$");

	json_decref(call(arg, "exec_bash", args));
	json_decref(args);
	return NULL;
}

/* Calls do not wait for one another. */
static void
together(struct demo *d)
{
	pthread_t threads[TOGETHER];
	int64_t began = clock_ms();
	int i, started = 0;

	printf("\n--- %d commands at once, each \"sleep 1\"\n\n", TOGETHER);
	fflush(stdout);
	for (i = 0; i < TOGETHER; i++) {
		if (pthread_create(&threads[started], NULL, sleeper, d) == 0)
			started++;
	}
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	printf("all %d done after %.2f s\n", started,
	    (double)(clock_ms() - began) / 1000);
}

static void
story(struct demo *d)
{
	json_t *three = json_integer(3), *yes = json_true();

	step(d, "Which machines are there, and are they idle?",
	    "list_sandboxes", json_pack("{s:b}", "check_resources", 1), NULL,
	    NULL);
	step(d, "Run a command: output, error output and exit code, apart",
	    "exec_bash",
	    json_pack("{s:s}", "command",
	        "echo hello from $(uname -n); echo oops >&2; exit 3"),
	    "exit_code", three);
	step(d, "The next one finds everything ready", "exec_bash",
	    json_pack("{s:s, s:s}", "command", "pwd", "cwd", "/tmp"), NULL,
	    NULL);
	step(d,
	    "A command that ignores SIGTERM and hides a child: at the timeout "
	    "all of it is gone",
	    "exec_bash",
	    json_pack("{s:s, s:i}", "command",
	        "trap '' TERM; setsid sleep 600 & echo started; sleep 600",
	        "timeout_s", 1),
	    "kill_verified", yes);
	together(d);
	json_decref(three);
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct demo d = { .until = until_never() };
	struct localhost *host;
	struct err err;
	int status = EXIT_OK;

	if (command_option(&command_demo, argc, argv, options, &status) ==
	    COMMAND_DONE)
		return status;
	if (argc != optind)
		return command_usage(&command_demo);
	d.until.cancel_fd = cli_signal_fd();
	printf("Starting a private sshd on this machine as sandbox "
	       "\"local\" ...\n");
	fflush(stdout);
	host = localhost_start(NULL, &d.until, &err);
	if (host == NULL) {
		fprintf(stderr, "remote-sandbox-mcp: %s\n", err.msg);
		return EXIT_FAILED;
	}
	d.app = app_new_only(localhost_entry(host));
	story(&d);
	app_free(d.app);
	localhost_stop(host);
	printf("\nThe private sshd is gone again.\n");
	return d.failed ? EXIT_FAILED : EXIT_OK;
}

const struct command command_demo = {
	.name = "demo",
	.usage = "",
	.summary = "Show the main things on a private sshd on this machine",
	.help = "Needs the OpenSSH server program (sshd), but not root; "
	        "nothing is left behind.\n",
	.run = run,
};
