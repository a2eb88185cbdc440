/*
 * events: what happened to watched jobs, and what happens.
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
#include "store/events.h"

extern const struct command command_events;

#define STORE_MS 20000
#define STEP_MS 500
#define AT_ONCE 100

struct request {
	int64_t watch_id;
	int64_t limit;
	bool follow, as_json;
};

static void
print_event(const struct event *e, bool as_json)
{
	time_t at = (time_t)e->created_ts;
	char when[40] = "?", id[24], watch[24];
	const char *cells[] = { when, id, watch, e->event_type, e->summary };
	struct table t = { .columns = sizeof(cells) / sizeof(cells[0]) };
	struct tm tm;
	json_t *o;

	if (as_json) {
		o = event_json(e);
		json_dumpf(o, stdout, JSON_COMPACT | JSON_SHORT_REALS);
		putchar('\n');
		json_decref(o);
		return;
	}
	if (localtime_r(&at, &tm) != NULL)
		strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", &tm);
	snprintf(id, sizeof(id), "#%-4" PRId64, e->id);
	snprintf(watch, sizeof(watch), "watch %-4" PRId64, e->watch_id);
	table_add(&t, cells);
	table_print(&t);
	table_free(&t);
}

/* The newest "limit" ones, the oldest first; *last is the id to go on from. */
static int
print_old(const struct request *r, int64_t *last, const struct until *until,
    struct err *err)
{
	struct events_query q = { .watch_id = r->watch_id,
		.newest = true,
		.max = (size_t)r->limit };
	struct event *list;
	size_t i, count;

	if (events_last(last, until, err) == -1 ||
	    events_list(&q, &list, &count, until, err) == -1)
		return -1;
	for (i = count; i > 0; i--) {
		print_event(&list[i - 1], r->as_json);
		if (list[i - 1].id > *last)
			*last = list[i - 1].id;
	}
	events_free(list, count);
	if (*last == 0 && !r->as_json && !r->follow)
		puts("Nothing has happened to watched jobs.");
	return 0;
}

static int
print_new(const struct request *r, int64_t *last, struct err *err)
{
	struct until until = until_in(STORE_MS);
	struct events_query q = { .watch_id = r->watch_id,
		.after = *last,
		.max = AT_ONCE };
	struct event *list;
	size_t i, count;

	if (events_list(&q, &list, &count, &until, err) == -1)
		return -1;
	for (i = 0; i < count; i++) {
		print_event(&list[i], r->as_json);
		*last = list[i].id;
	}
	events_free(list, count);
	return 0;
}

static int
follow(const struct request *r, int64_t last, struct err *err)
{
	int signals = cli_signal_fd();
	struct until step;
	struct err why;

	for (;;) {
		if (fflush(stdout) != 0)
			return 0; /* nobody reads any more */
		step = until_in(STEP_MS);
		step.cancel_fd = signals;
		until_poll(&step, NULL, 0, &why);
		if (why.code == ERR_CANCELLED)
			return 0;
		if (print_new(r, &last, err) == -1)
			return -1;
	}
}

static int
work(const struct request *r)
{
	struct until until = until_in(STORE_MS);
	struct err err;
	int64_t last = 0;
	int rc = print_old(r, &last, &until, &err);

	if (rc == 0 && r->follow)
		rc = follow(r, last, &err);
	if (rc == -1)
		log_error("%s", err.msg);
	return rc == 0 ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "watch", required_argument, NULL, 'w' },
		{ "limit", required_argument, NULL, 'l' },
		{ "follow", no_argument, NULL, 'f' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct request r = { .limit = 20 };
	int o, rc = EXIT_USAGE;

	while ((o = command_option(&command_events, argc, argv, options,
	            &rc)) != -1) {
		if (o == COMMAND_DONE)
			return rc;
		if (o == 'w' &&
		    str_to_int(optarg, 1, INT64_MAX, &r.watch_id) == -1)
			return command_usage(&command_events);
		if (o == 'l' && str_to_int(optarg, 0, 100000, &r.limit) == -1)
			return command_usage(&command_events);
		r.follow = r.follow || o == 'f';
		r.as_json = r.as_json || o == 'j';
	}
	if (argc != optind)
		return command_usage(&command_events);
	return work(&r);
}

const struct command command_events = {
	.name = "events",
	.usage = "[--watch ID] [--limit N] [--follow] [--json]",
	.summary = "Show what happened to watched jobs",
	.help = "  --watch ID  only those of this watch\n"
	        "  --limit N   the newest N of the old ones (20)\n"
	        "  --follow    go on with new ones, until interrupted\n"
	        "  --json      one JSON object a line\n",
	.run = run,
};
