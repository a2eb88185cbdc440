/*
 * remote_bash_output: how a job of remote_bash is doing, and what it printed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "tools/app.h"
#include "tools/expression.h"
#include "tools/jobs.h"
#include "tools/remote.h"
#include "tools/remote_ssh.h"
#include "tools/tool.h"

#define LINES_MAX 1000000 /* bytes are what limits it */

struct remote_bash_output_args {
	const char *bash_id;
	const char *filter;
};

#define ARG(field)      \
	.name = #field, \
	.offset = offsetof(struct remote_bash_output_args, field)

static const struct arg args[] = {
	{ ARG(bash_id), .type = ARG_STRING, .required = true,
	    .help = "ID that remote_bash gave, such as remote-1." },
	{ ARG(filter), .type = ARG_STRING, .dflt_str = "",
	    .help = "Only lines in which this extended regular expression "
	            "matches." },
	{ 0 },
};

static int
not_found(const char *id, const char *why, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "Job %.100s not found%s", id, why);
}

/* Which job is meant, and the link to the sandbox that it was started on:
 * SSH_HOST may be another one today. */
static int
find_job(struct call *call, const char *id, char name[JOB_NAME_MAX + 1],
    struct link **link, struct err *err)
{
	struct remote_job j = { 0 };
	const struct sandbox *sb;
	int64_t n;
	int rc;

	if (!str_starts(id, "remote-") ||
	    str_to_int(id + 7, 1, INT64_MAX, &n) == -1)
		return not_found(id, "", err);
	rc = remote_jobs_get(n, &j, &call->until, err);
	if (rc == -1 && err->code == ERR_NOT_FOUND)
		return not_found(id, "", err);
	if (rc == -1)
		return -1;
	sb = config_find(&call->app->config, j.sandbox_name);
	if (sb == NULL)
		rc = err_set(err, ERR_NOT_FOUND,
		    "Job %s not found: it runs on '%.200s', which this server "
		    "does not know; set SSH_HOST to that",
		    id, j.sandbox_name);
	else
		*link = links_get(call->app->links, sb);
	remote_ssh_job_name(name, &j);
	remote_job_free(&j);
	return rc;
}

/* What is not shown, where it would stand. */
static void
add_left_out(struct buf *text, const struct job_status *s, size_t shown,
    const char *filter)
{
	int64_t all = s->log_offset - s->log_begin;
	const char *log = s->log_file != NULL ? s->log_file : "its log";

	if (filter[0] != '\0' && all > JOB_SEARCH_MAX)
		buf_addf(text, "[only the last %d MB of %s were searched]\n",
		    (int)(JOB_SEARCH_MAX >> 20), log);
	if (filter[0] != '\0' && s->log_cut)
		buf_addf(text, "[earlier lines that match are left out]\n");
	if (filter[0] == '\0' && all > (int64_t)shown)
		buf_addf(text,
		    "[%" PRId64 " earlier bytes are left out; the whole is in "
		    "%s: use remote_file_read, or a filter]\n",
		    all - (int64_t)shown, log);
}

static void
add_status(struct buf *text, struct job_status *s, const char *filter)
{
	size_t shown = s->log.len;

	buf_addf(text, "Status: %s\n", jobs_ended(s) ? "completed" : "running");
	if (jobs_ended(s) && s->exit_code != -1)
		buf_addf(text, "Exit code: %d\n\n", s->exit_code);
	else
		buf_adds(text, "Exit code: N/A\n\n");
	jobs_drop_frame(&s->log, s);
	add_left_out(text, s, shown, filter);
	jobs_log_text(text, s->log.data, s->log.len);
	if (s->state == JOB_LOST) {
		remote_ssh_new_line(text);
		buf_addf(text, "[the job was lost: %s]\n",
		    job_lost_words(s->reason));
	}
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct remote_bash_output_args *a = given;
	char name[JOB_NAME_MAX + 1];
	struct link *link = NULL;
	struct job_status s;
	struct buf text;
	char *filter;
	int rc;

	if (find_job(call, a->bash_id, name, &link, err) == -1)
		return -1;
	filter = expression_new(a->filter, err);
	if (filter == NULL)
		return err_wrap(err, "filter");
	rc = job_look(link,
	    &(struct job_look){
	        .name = name,
	        .log_file = "",
	        .last_lines = LINES_MAX,
	        .since = -1,
	        .max_bytes = remote_answer_chars(false),
	        .grep = filter,
	        .grep_arg = "filter",
	    },
	    &s, &call->until, err);
	free(filter);
	if (rc == -1 && err->code == ERR_INVALID)
		return -1;
	if (rc == -1)
		return err_wrap(err, "cannot tell how %s is doing", a->bash_id);
	if (s.state == JOB_NONE) {
		rc = not_found(a->bash_id, ": its files on the host are gone",
		    err);
	} else {
		buf_init(&text, SIZE_MAX);
		add_status(&text, &s, a->filter);
		*result = remote_ssh_result(&text, link);
	}
	job_status_free(&s);
	return rc;
}

const struct tool tool_remote_bash_output = {
	.name = "remote_bash_output",
	.title = "Output of a background command",
	.description =
	    "How a command that remote_bash started in background is doing: "
	    "running or completed, its exit code, and its output (the end of "
	    "it, if it is long), or only the lines that match filter.",
	.args = args,
	.args_size = sizeof(struct remote_bash_output_args),
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.flags = TOOL_TEXT | TOOL_REMOTE_SSH,
	.run = run,
};
