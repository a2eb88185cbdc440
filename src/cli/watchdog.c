/*
 * watchdog: the service that looks after watched jobs, for people.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/decode.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/show.h"
#include "cli/table.h"
#include "config/allow.h"
#include "config/keep.h"
#include "ssh/agent.h"
#include "tools/app.h"
#include "tools/tool.h"
#include "watch/service.h"

extern const struct command command_watchdog;

#define LOG_TAIL (256 << 10)

struct given {
	const char *config_file;
	int64_t lines;
	bool no_start, forget, json;
};

static struct until
patience(void)
{
	struct until until = until_never();

	until.cancel_fd = cli_signal_fd();
	return until;
}

static const char *
text_of(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	return s != NULL ? s : "";
}

static void
print_field(const char *name, const char *value)
{
	if (value[0] != '\0')
		printf("%-9s %s\n", name, value);
}

static void
print_state(const json_t *status)
{
	const json_t *service = json_object_get(status, "service");
	const json_t *beat = json_object_get(status, "heartbeat");
	const json_t *ts =
	    json_object_get(json_object_get(beat, "value"), "ts");
	char span[32];

	printf("%-9s ", "watchdog");
	if (json_is_true(json_object_get(service, "running")))
		printf("runs (%s, process %" JSON_INTEGER_FORMAT ")",
		    text_of(service, "kind"),
		    json_integer_value(json_object_get(service, "pid")));
	else
		printf("does not run (would by %s)", text_of(service, "kind"));
	if (ts != NULL) {
		table_span(span, time(NULL) - json_integer_value(ts));
		printf(", last sign of life %s ago%s", span,
		    json_is_true(json_object_get(status, "heartbeat_stale"))
		        ? ", which is too long"
		        : "");
	}
	printf("\n");
}

static void
print_counts(json_t *counts)
{
	const char *name, *between = "";
	json_t *n;

	printf("%-9s ", "watches");
	json_object_foreach (counts, name, n) {
		printf("%s%" JSON_INTEGER_FORMAT " %s", between,
		    json_integer_value(n), name);
		between = ", ";
	}
	printf("\n");
}

static void
print_status(const json_t *status)
{
	const json_t *service = json_object_get(status, "service");
	json_t *warnings;
	size_t i;

	print_state(status);
	print_field("defined", text_of(service, "definition"));
	print_field("database",
	    text_of(json_object_get(status, "paths"), "db_path"));
	print_field("log", text_of(service, "log_file"));
	print_counts(json_object_get(status, "watch_counts"));
	print_field("problem", text_of(service, "problem"));
	print_field("hint", text_of(service, "hint"));
	warnings = keep_warnings();
	for (i = 0; i < json_array_size(warnings); i++)
		print_field("warning",
		    json_string_value(json_array_get(warnings, i)));
	json_decref(warnings);
}

static void
print_installed(const json_t *result)
{
	print_status(json_object_get(result, "status"));
}

static void
print_removed(const json_t *result)
{
	print_field("watchdog", "removed");
	print_field("hint", text_of(result, "hint"));
}

/* As a call of the tool; who wants to see all of the result asks for JSON. */
static int
call_tool(const char *name, const json_t *args, const struct given *g,
    void (*print)(const json_t *))
{
	const struct tool *tool = tool_find(tool_table, name);
	struct call call = { .until = patience() };
	struct err err = ERR_INIT;
	json_t *result = NULL;
	int rc;

	call.app = app_new(g->config_file, NULL, true);
	rc = tool_run(tool, &call, args, &result, &err);
	if (g->json)
		show_json(rc, result, &err);
	else if (rc == -1)
		show_text(rc, result, &err);
	else
		print(result);
	json_decref(result);
	app_free(call.app);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
install(const struct given *g)
{
	json_t *args = json_object();
	int status;

	json_object_set_new(args, "start_now", json_boolean(!g->no_start));
	status = call_tool("install_watchdog", args, g, print_installed);
	json_decref(args);
	return status;
}

static int
uninstall(const struct given *g)
{
	struct until until = patience();
	struct err err;
	int status = call_tool("uninstall_watchdog", NULL, g, print_removed);

	if (status != EXIT_OK || !g->forget)
		return status;
	allow_forget();
	agent_forget();
	if (keep_drop_all(&until, &err) == -1) {
		log_error("%s", err.msg);
		return EXIT_FAILED;
	}
	return EXIT_OK;
}

/* 0 only if one runs and is well: fit for scripts. */
static int
status(const struct given *g)
{
	struct until until = patience();
	struct err err = ERR_INIT;
	json_t *o = service_status(&until, &err);
	bool well;

	if (o == NULL) {
		log_error("%s", err.msg);
		return EXIT_FAILED;
	}
	if (g->json)
		show_json(0, o, &err);
	else
		print_status(o);
	well = json_is_true(
	           json_object_get(json_object_get(o, "service"), "running")) &&
	    json_is_false(json_object_get(o, "heartbeat_stale"));
	json_decref(o);
	return well ? EXIT_OK : EXIT_FAILED;
}

/* The last lines of a text. */
static const char *
last_lines(const char *text, int64_t lines)
{
	const char *at = text + strlen(text);

	if (at > text)
		at--;
	while (at > text && lines > 0) {
		at--;
		if (*at == '\n' && --lines == 0)
			return at + 1;
	}
	return at;
}

static int
logs(const struct given *g)
{
	struct err err;
	char *path = service_log(&err);
	struct buf text;
	FILE *f;
	long size;
	size_t room, n;

	f = path != NULL ? fopen(path, "re") : NULL;
	if (f == NULL) {
		fprintf(stderr, "remote-sandbox-mcp: there is no log yet%s%s\n",
		    path != NULL ? ": " : "", path != NULL ? path : "");
		free(path);
		return EXIT_FAILED;
	}
	fseek(f, 0, SEEK_END);
	size = ftell(f);
	fseek(f, size > LOG_TAIL ? size - LOG_TAIL : 0, SEEK_SET);
	buf_init(&text, LOG_TAIL);
	n = fread(buf_space(&text, LOG_TAIL, &room), 1, LOG_TAIL, f);
	buf_grew(&text, n);
	fclose(f);
	fputs(last_lines(text.data, g->lines), stdout);
	buf_free(&text);
	free(path);
	return EXIT_OK;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "forget", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "lines", required_argument, NULL, 'n' },
		{ "no-start", no_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct given g = { .lines = 50 };
	int o, end = EXIT_USAGE;
	const char *verb;

	while ((o = command_option(&command_watchdog, argc, argv, options,
	            &end)) != -1) {
		if (o == COMMAND_DONE)
			return end;
		if (o == 'c')
			g.config_file = optarg;
		if (o == 'n' && str_to_int(optarg, 1, 1000000, &g.lines) == -1)
			return command_usage(&command_watchdog);
		g.forget |= o == 'f';
		g.json |= o == 'j';
		g.no_start |= o == 's';
	}
	if (argc != optind + 1)
		return command_usage(&command_watchdog);
	verb = argv[optind];
	if (strcmp(verb, "install") == 0)
		return install(&g);
	if (strcmp(verb, "uninstall") == 0)
		return uninstall(&g);
	if (strcmp(verb, "status") == 0)
		return status(&g);
	if (strcmp(verb, "logs") == 0)
		return logs(&g);
	return command_usage(&command_watchdog);
}

const struct command command_watchdog = {
	.name = "watchdog",
	.usage = "install|uninstall|status|logs [OPTION ...]",
	.summary = "The service that looks after watched jobs",
	.help = "  install [--no-start] [--config FILE]\n"
	        "                 install it for this user and start it; "
	        "it keeps what it\n"
	        "                 needs to log in to all sandboxes\n"
	        "  uninstall [--forget]\n"
	        "                 stop and remove it; with --forget also "
	        "what it kept,\n"
	        "                 in files and in the keyring\n"
	        "  status         how it is; status 0 only if it is well\n"
	        "  logs [--lines N]\n"
	        "                 what it said last (50)\n\n"
	        "  --json         print results as JSON\n",
	.run = run,
};
