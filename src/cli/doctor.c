/*
 * doctor: why a sandbox does not work, or could work better.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/report.h"
#include "tools/app.h"
#include "tools/every.h"

extern const struct command command_doctor;

struct look {
	const struct sandbox *only; /* or NULL: all */
	const char *config_file;    /* as the user named it, or NULL */
};

static json_t *
ask(struct call *call, const struct sandbox *sb, const void *data)
{
	const struct look *look = data;
	json_t *o, *checks;

	if (look->only != NULL && look->only != sb)
		return json_null();
	checks = doctor_host(sb, look->config_file, &call->until);
	o = json_object();
	json_object_set_new(o, "name", json_string(sb->name));
	json_object_set_new(o, "host", json_string(sb->host));
	json_object_set_new(o, "state",
	    json_string(report_word(report_worst(checks))));
	json_object_set_new(o, "checks", checks);
	return o;
}

/* Those that were looked at. */
static json_t *
visit(struct call *call, const struct look *look, struct err *err)
{
	json_t *all = every_sandbox(call, ask, look, err), *list;
	json_t *sb;
	size_t i;

	if (all == NULL)
		return NULL;
	list = json_array();
	json_array_foreach (all, i, sb) {
		if (json_is_object(sb))
			json_array_append(list, sb);
	}
	json_decref(all);
	return list;
}

static enum report_state
worst(const json_t *here, const json_t *sandboxes)
{
	enum report_state state = report_worst(here), s;
	const json_t *sb;
	size_t i;

	json_array_foreach (sandboxes, i, sb) {
		s = report_worst(json_object_get(sb, "checks"));
		state = s > state ? s : state;
	}
	return state;
}

static void
print_title(const json_t *sb, bool brief)
{
	char *title = xasprintf("\nsandbox %s",
	    json_string_value(json_object_get(sb, "name")));

	report_print(title, json_object_get(sb, "checks"), brief);
	free(title);
}

static void
print_people(const json_t *here, const json_t *sandboxes)
{
	bool many = json_array_size(sandboxes) > 1;
	const json_t *sb;
	size_t i;

	report_print("this machine", here, false);
	if (many) {
		printf("\n");
		report_print_table(sandboxes);
	}
	json_array_foreach (sandboxes, i, sb) {
		print_title(sb, many);
	}
	switch (worst(here, sandboxes)) {
	case REPORT_OK:
		printf("\nAll is well.\n");
		break;
	case REPORT_WARNING:
		printf("\nIt works; the warnings tell what could be better.\n");
		break;
	default:
		printf("\nSomething failed; the lines with -> tell what to "
		       "do.\n");
	}
}

static int
examine(const char *config_file, const char *name, bool as_json)
{
	struct call call = { .until = until_never() };
	struct look look = { .config_file = config_file };
	json_t *here, *sandboxes = NULL, *o;
	enum report_state state;
	struct err err;

	call.until.cancel_fd = cli_signal_fd();
	call.app = app_new(config_file, NULL, true);
	if (name != NULL)
		look.only = app_sandbox(call.app, name, &err);
	if (name == NULL || look.only != NULL)
		sandboxes = visit(&call, &look, &err);
	if (sandboxes == NULL) {
		fprintf(stderr, "remote-sandbox-mcp: %s\n", err.msg);
		app_free(call.app);
		return EXIT_FAILED;
	}
	here = doctor_here(&call.app->config, config_file, &call.until);
	state = worst(here, sandboxes);
	if (as_json) {
		o = json_object();
		json_object_set_new(o, "state",
		    json_string(report_word(state)));
		json_object_set(o, "here", here);
		json_object_set(o, "sandboxes", sandboxes);
		json_dumpf(o, stdout, JSON_INDENT(2));
		putchar('\n');
		json_decref(o);
	} else {
		print_people(here, sandboxes);
	}
	json_decref(here);
	json_decref(sandboxes);
	app_free(call.app);
	return state == REPORT_FAILED ? EXIT_FAILED : EXIT_OK;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *config_file = NULL;
	bool as_json = false;
	int o, status = EXIT_USAGE;

	while ((o = command_option(&command_doctor, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		if (o == 'c')
			config_file = optarg;
		else
			as_json = true;
	}
	if (argc - optind > 1)
		return command_usage(&command_doctor);
	return examine(config_file, argv[optind], as_json);
}

const struct command command_doctor = {
	.name = "doctor",
	.usage = "[SANDBOX] [--config FILE] [--json]",
	.summary = "Find out why a sandbox does not work, and what to do",
	.help =
	    "Looks at this machine (ssh and its agent, configuration, files "
	    "with secrets,\n"
	    "database, watchdog) and then at SANDBOX, or at all of them side "
	    "by side:\n"
	    "name, TCP, key exchange, host key, login, sessions, shell, tools, "
	    "disk and\n"
	    "clock. Each line is ok, warning or failed; behind -> stands what "
	    "to do.\n\n"
	    "  --config FILE  read sandboxes from FILE\n"
	    "  --json         for scripts\n\n"
	    "Exit status: 0 nothing failed, 1 something did, 2 wrong usage.\n",
	.run = run,
};
