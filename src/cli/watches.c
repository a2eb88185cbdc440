/*
 * watches: the table of watches.  watch show: one of them, whole.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/decode.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/table.h"
#include "store/watches.h"

extern const struct command command_watches, command_watch;

#define STORE_MS 20000

static void
print_json(json_t *v)
{
	json_dumpf(v, stdout, JSON_INDENT(2) | JSON_SHORT_REALS);
	putchar('\n');
	json_decref(v);
}

static void
add_watch(struct table *t, const struct watch *w, int64_t now)
{
	char id[24], span[32], checked[40] = "never";
	const char *cells[] = { id, w->status, w->last_state, w->sandbox_name,
		w->tmux_session, checked, w->last_summary };

	snprintf(id, sizeof(id), "%" PRId64, w->id);
	if (w->last_checked_ts > 0) {
		table_span(span, now - w->last_checked_ts);
		snprintf(checked, sizeof(checked), "%s ago", span);
	}
	table_add(t, cells);
}

static void
print_watches(const struct watch *list, size_t count, const char *status)
{
	static const char *const head[] = { "ID", "STATUS", "STATE", "SANDBOX",
		"JOB", "LOOKED AT", "WHAT IS KNOWN" };
	struct table t = { .columns = sizeof(head) / sizeof(head[0]) };
	size_t i;

	table_add(&t, head);
	for (i = count; i > 0; i--)
		add_watch(&t, &list[i - 1], (int64_t)time(NULL));
	if (count > 0)
		table_print(&t);
	else if (status[0] != '\0')
		printf("No watch is %s.\n", status);
	else
		printf("Nothing is watched.\n");
	table_free(&t);
}

static int
show_watches(const char *status, bool as_json)
{
	struct until until = until_in(STORE_MS);
	struct watch *list;
	struct err err;
	size_t i, count;
	json_t *all;

	if (watches_list(status, &list, &count, &until, &err) == -1) {
		log_error("%s", err.msg);
		return EXIT_FAILED;
	}
	if (as_json) {
		all = json_array();
		for (i = 0; i < count; i++)
			json_array_append_new(all, watch_json(&list[i]));
		print_json(all);
	} else {
		print_watches(list, count, status);
	}
	watches_free(list, count);
	return EXIT_OK;
}

static int
run_watches(int argc, char **argv)
{
	static const struct option options[] = {
		{ "status", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const char *status = "";
	bool as_json = false;
	int o, rc = EXIT_USAGE;

	while ((o = command_option(&command_watches, argc, argv, options,
	            &rc)) != -1) {
		if (o == COMMAND_DONE)
			return rc;
		if (o == 's')
			status = optarg;
		else
			as_json = true;
	}
	if (argc != optind)
		return command_usage(&command_watches);
	return show_watches(status, as_json);
}

/* --- one of them ----------------------------------------------------------
 */

static void
print_time(const char *name, int64_t ts)
{
	time_t at = (time_t)ts;
	char text[40];
	struct tm tm;

	if (ts <= 0 || localtime_r(&at, &tm) == NULL)
		return;
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	printf("%-12s %s\n", name, text);
}

static void
print_field(const char *name, const char *value)
{
	if (str_blank(value))
		return;
	printf("%-12s ", name);
	table_print_text(value);
}

static void
print_block(const char *name, const char *text)
{
	if (str_blank(text))
		return;
	printf("\n%s:\n", name);
	table_print_text(text);
}

static void
print_watch(const struct watch *w)
{
	printf("%-12s %" PRId64 "\n", "watch", w->id);
	print_field("name", w->name);
	print_field("status", w->status);
	print_field("state", w->last_state);
	print_field("known", w->last_summary);
	print_field("error", w->last_error);
	if (w->last_exit_code != WATCH_NO_CODE)
		printf("%-12s %" PRId64 "\n", "exit code", w->last_exit_code);
	print_field("sandbox", w->sandbox_name);
	print_field("job", w->tmux_session);
	print_field("command", w->launch_command);
	print_field("cwd", w->cwd);
	print_field("log", w->log_file);
	printf("%-12s every %" PRId64 " s\n", "looked at", w->interval_s);
	print_time("last look", w->last_checked_ts);
	print_time("next look", w->next_check_ts);
	if (w->auto_resume) {
		printf("%-12s %" PRId64 " of %" PRId64 " %s\n", "resumed",
		    w->resume_attempts, w->max_resume_attempts,
		    str_plural(w->max_resume_attempts, "time", "times"));
		print_time("resume at", w->resume_due_ts);
	}
	print_field("resume by", w->resume_command);
	print_field("checkpoint", w->checkpoint_path);
	print_field("checkpoint", w->checkpoint_command);
	print_field("problem", w->checkpoint_error);
	print_field("webhook", w->webhook_url);
	print_field("on events", w->event_command);
	print_block("Checkpoint", w->last_checkpoint_text);
	print_block("End of the log", w->last_log_tail);
}

static int
show_watch(int64_t id, bool as_json)
{
	struct until until = until_in(STORE_MS);
	struct watch w;
	struct err err;
	int rc = watches_get(id, &w, &until, &err);

	if (rc == -1)
		log_error("%s", err.msg);
	else if (as_json)
		print_json(watch_json(&w));
	else
		print_watch(&w);
	watch_free(&w);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run_watch(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	bool as_json = false;
	int o, rc = EXIT_USAGE;
	int64_t id;

	while ((o = command_option(&command_watch, argc, argv, options, &rc)) !=
	    -1) {
		if (o == COMMAND_DONE)
			return rc;
		as_json = true;
	}
	if (argc - optind != 2 || strcmp(argv[optind], "show") != 0 ||
	    str_to_int(argv[optind + 1], 1, INT64_MAX, &id) == -1)
		return command_usage(&command_watch);
	return show_watch(id, as_json);
}

const struct command command_watches = {
	.name = "watches",
	.usage = "[--status STATUS] [--json]",
	.summary = "List the jobs that the watchdog looks after",
	.help = "  --status STATUS  active, completed, failed or cancelled\n"
	        "  --json           for scripts\n",
	.run = run_watches,
};

const struct command command_watch = {
	.name = "watch",
	.usage = "show ID [--json]",
	.summary = "Show all that is known of a watch",
	.help = "  ID      its number, as 'watches' lists it\n"
	        "  --json  for scripts\n",
	.run = run_watch,
};
