/*
 * sync: make a tree on one side like the one on the other, by hand.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/meter.h"
#include "ssh/clean.h"
#include "tools/app.h"

extern const struct command command_sync;

/* "name:path" is on a sandbox; "./a:b" and "/a:b" are local, as with scp. */
static const char *
remote_part(const char *where)
{
	const char *colon = strchr(where, ':'), *slash = strchr(where, '/');

	if (colon == NULL || colon == where || (slash != NULL && slash < colon))
		return NULL;
	return colon + 1;
}

/* Which way; -1 after saying what is wrong. */
static int
read_places(const char *from, const char *to, struct sync_request *q,
    char **sandbox)
{
	const char *far_from = remote_part(from), *far_to = remote_part(to);
	const char *far = far_from != NULL ? from : to;

	if ((far_from == NULL) == (far_to == NULL)) {
		fprintf(stderr,
		    "remote-sandbox-mcp: one of '%s' and '%s' must be "
		    "SANDBOX:PATH, the other one local\n",
		    from, to);
		return -1;
	}
	q->direction = far_from != NULL ? SYNC_DOWN : SYNC_UP;
	q->remote_path = far_from != NULL ? far_from : far_to;
	q->local_path = far_from != NULL ? to : from;
	if (q->remote_path[0] == '\0')
		q->remote_path = ".";
	*sandbox = xstrndup(far, strcspn(far, ":"));
	return 0;
}

static void
show_progress(void *data, const struct sync_progress *p)
{
	meter_show(data, p);
}

/* What a sync says is in the words of the tools; these are ours. */
static const struct {
	const char *said, *meant;
} words[] = {
	{ "delete_extras", "--delete" },
	{ "dry_run: true", "--dry-run" },
	{ "confirm_delete: true", "--yes" },
	{ "use_gitignore", "--gitignore" },
	{ "excludes", "--exclude" },
	{ "local_path and remote_path", "the paths" },
	{ "local_path '", "'" },
	{ "remote_path '", "'" },
	{ "local_path", "the local path" },
	{ "remote_path", "the remote path" },
};

/* A sentence in our words, but for what it quotes: that is a path. */
static char *
reworded(const char *text)
{
	struct buf b;
	bool quoted = false;
	size_t i, n;

	buf_init(&b, SIZE_MAX);
	for (; *text != '\0'; text += n) {
		const char *to = NULL;

		n = 1;
		for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
			if (quoted || to != NULL ||
			    !str_starts(text, words[i].said))
				continue;
			to = words[i].meant;
			n = strlen(words[i].said);
		}
		if (text[n - 1] == '\'')
			quoted = !quoted;
		if (to != NULL)
			buf_adds(&b, to);
		else
			buf_addc(&b, *text);
	}
	return buf_take(&b);
}

/* Text from a host, without its tricks. */
static void
print_clean(FILE *out, const char *text)
{
	struct buf b;

	buf_init(&b, 8192);
	clean_text(&b, text, strlen(text));
	fputs(b.data, out);
	buf_free(&b);
}

static void
print_reworded(const char *text)
{
	char *ours = reworded(text);

	print_clean(stderr, ours);
	free(ours);
}

static void
print_problems(const struct sync_report *r)
{
	const json_t *o;
	size_t i;

	json_array_foreach (r->problems, i, o) {
		fputs("  ", stderr);
		print_clean(stderr,
		    json_string_value(json_object_get(o, "path")));
		fputs(": ", stderr);
		print_reworded(
		    json_string_value(json_object_get(o, "problem")));
		fputs("\n", stderr);
	}
	if (r->problem_count > (int64_t)json_array_size(r->problems))
		fprintf(stderr, "  and %" PRId64 " more\n",
		    r->problem_count - (int64_t)json_array_size(r->problems));
}

static void
print_plan(const struct sync_report *r)
{
	const json_t *o;
	size_t i;

	json_array_foreach (r->plan, i, o) {
		printf("  %-10s ",
		    json_string_value(json_object_get(o, "action")));
		print_clean(stdout,
		    json_string_value(json_object_get(o, "path")));
		printf("\n");
	}
}

/* Did something not come that could have?  Devices, sockets and FIFOs are no
 * files to be moved: a tree that has one would else never be done. */
static bool
is_incomplete(const struct sync_report *r)
{
	return r->problem_count > r->specials;
}

static void
print_report(const struct sync_report *r, const struct sync_request *q)
{
	struct buf bytes, time;

	buf_init(&bytes, 100);
	buf_init(&time, 100);
	meter_bytes(&bytes, r->bytes);
	meter_time(&time, r->duration_ms / 1000);
	if (q->dry_run)
		print_plan(r);
	printf("%s%" PRId64 " %s (%s) and %" PRId64 " %s %s, "
	       "%" PRId64 " unchanged, %" PRId64 " deleted",
	    q->dry_run ? "would be: " : "", r->files,
	    str_plural(r->files, "file", "files"), bytes.data, r->dirs,
	    str_plural(r->dirs, "directory", "directories"),
	    q->direction == SYNC_UP ? "sent" : "fetched", r->skipped,
	    r->deleted_files + r->deleted_dirs);
	printf(", in %s\n", time.data);
	if (r->problem_count > 0) {
		fprintf(stderr, "%" PRId64 " %s:\n", r->problem_count,
		    is_incomplete(r) ? "could not be synced" : "left out");
		print_problems(r);
	}
	buf_free(&bytes);
	buf_free(&time);
}

static int
sync_now(const struct sync_request *q, const char *sandbox,
    const char *config_file)
{
	struct until until = until_never();
	struct app *app = app_new(config_file, NULL, true);
	struct err err = ERR_INIT;
	const struct sandbox *sb = app_sandbox(app, sandbox, &err);
	struct sync_report report;
	struct meter meter;
	int rc = -1;
	bool left = false;

	until.cancel_fd = cli_signal_fd();
	meter_init(&meter, stderr, isatty(STDERR_FILENO) == 1);
	if (sb != NULL) {
		rc = sync_run(links_get(app->links, sb), q, show_progress,
		    &meter, &report, &until, &err);
		meter_end(&meter);
		if (rc == 0)
			print_report(&report, q);
		left = is_incomplete(&report);
		sync_report_free(&report);
	}
	if (rc == -1) {
		fputs("remote-sandbox-mcp: ", stderr);
		print_reworded(err.msg);
		fputs("\n", stderr);
	}
	app_free(app);
	return rc == 0 && !left ? EXIT_OK : EXIT_FAILED;
}

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "delete", no_argument, NULL, 'd' },
		{ "dry-run", no_argument, NULL, 'n' },
		{ "exclude", required_argument, NULL, 'e' },
		{ "exclude-from", required_argument, NULL, 'f' },
		{ "checksum", no_argument, NULL, 's' },
		{ "gitignore", no_argument, NULL, 'g' },
		{ "yes", no_argument, NULL, 'y' },
		{ "config", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	struct sync_request q = { 0 };
	json_t *excludes = json_array();
	const char *config_file = NULL;
	char *sandbox = NULL;
	int o, status = EXIT_USAGE;

	while ((o = command_option(&command_sync, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			goto out;
		q.delete_extras |= o == 'd';
		q.dry_run |= o == 'n';
		q.checksum |= o == 's';
		q.use_gitignore |= o == 'g';
		q.confirm_delete |= o == 'y';
		if (o == 'e')
			json_array_append_new(excludes,
			    utf8_json(optarg, strlen(optarg)));
		else if (o == 'f')
			q.exclude_file = optarg;
		else if (o == 'c')
			config_file = optarg;
	}
	q.excludes = excludes;
	if (argc - optind != 2 ||
	    read_places(argv[optind], argv[optind + 1], &q, &sandbox) == -1)
		status = command_usage(&command_sync);
	else
		status = sync_now(&q, sandbox, config_file);
out:
	json_decref(excludes);
	free(sandbox);
	return status;
}

const struct command command_sync = {
	.name = "sync",
	.usage = "[--delete] [--dry-run] [--exclude PATTERN] "
	         "[--exclude-from FILE] [--checksum] [--gitignore] [--yes] "
	         "[--config FILE] FROM TO",
	.summary = "Make files on one side like those on the other",
	.help =
	    "  FROM, TO             one is local, the other SANDBOX:PATH\n"
	    "  --delete             delete what FROM does not have\n"
	    "  --dry-run            only tell what would be done\n"
	    "  --exclude PATTERN    leave these alone; may be repeated. \"x\" is\n"
	    "                       any x, \"x/\" any directory x, \"/x\" the one\n"
	    "                       at the top; \"!x\" includes x again\n"
	    "  --exclude-from FILE  patterns, one a line\n"
	    "  --checksum           compare content, not size and time\n"
	    "  --gitignore          leave alone what .gitignore files name\n"
	    "  --yes                delete even if that is most of TO\n"
	    "  --config FILE        read sandboxes from FILE\n\n"
	    "Devices, sockets and FIFOs are left out, and named.\n\n"
	    "Exit status: 0 all else is done, 1 something was not, 2 wrong "
	    "usage.\n",
	.run = run,
};
