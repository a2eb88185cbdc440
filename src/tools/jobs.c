/* Jobs, for the tools. */
#include "tools/jobs.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/str.h"
#include "base/utf8.h"
#include "ssh/clean.h"

int64_t
jobs_name(char out[JOB_NAME_MAX + 1], const char *given)
{
	const char *open = strrchr(given, '[');
	char number[16];
	int64_t task;
	size_t n = open != NULL ? strspn(open + 1, "0123456789") : 0;

	if (n > 0 && n < 10 && strcmp(open + 1 + n, "]") == 0) {
		char *base = xstrndup(given, (size_t)(open - given));

		snprintf(number, sizeof(number), "%.*s", (int)n, open + 1);
		job_name(out, base);
		free(base);
		return str_to_int(number, 0, INT32_MAX, &task) == 0 ? task + 1
		                                                    : 0;
	}
	job_name(out, given);
	return 0;
}

bool
jobs_variable_name(const char *name)
{
	const char *at;

	if (!isalpha((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (at = name; *at != '\0'; at++) {
		if (!isalnum((unsigned char)*at) && *at != '_')
			return false;
	}
	return true;
}

/* Two shells read it, and zsh takes a word that begins with "=" for the name
 * of a program. */
static void
add_attach(struct buf *out, const char *name)
{
	char *target = xasprintf("=%s", name);
	struct buf far;

	buf_init(&far, 1024);
	buf_adds(&far, "tmux attach -t ");
	quote_sh(&far, target);
	if (strpbrk(far.data, "\"$`\\!") == NULL)
		buf_addf(out, "\"%s\"", far.data); /* easier to read */
	else
		quote_sh(out, far.data);
	buf_free(&far);
	free(target);
}

void
jobs_set_attach(json_t *o, const struct sandbox *sb, const char *name)
{
	struct buf text;

	buf_init(&text, 2048);
	buf_adds(&text, "ssh -t ");
	if (sb->port != 0)
		buf_addf(&text, "-p %d ", sb->port);
	if (sb->key_file != NULL) {
		buf_adds(&text, "-i ");
		quote_sh(&text, sb->key_file);
		buf_addc(&text, ' ');
	}
	if (sb->user != NULL) {
		quote_sh(&text, sb->user);
		buf_addc(&text, '@');
	}
	quote_sh(&text, sb->host);
	buf_addc(&text, ' ');
	add_attach(&text, name);
	json_object_set_new(o, "attach_command",
	    utf8_json(text.data, text.len));
	buf_free(&text);
}

/* What a terminal would show of the line at last. */
static void
add_line(struct buf *out, const char *line, size_t len)
{
	const char *cr;

	while (len > 0 && line[len - 1] == '\r')
		len--;
	cr = memrchr(line, '\r', len);
	if (cr != NULL) {
		len -= (size_t)(cr + 1 - line);
		line = cr + 1;
	}
	clean_text(out, line, len);
}

void
jobs_log_text(struct buf *out, const char *data, size_t len)
{
	while (len > 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;

		add_line(out, data, n);
		if (nl == NULL)
			return;
		buf_addc(out, '\n');
		data += n + 1;
		len -= n + 1;
	}
}

static void
set_time(json_t *o, const char *name, int64_t when)
{
	time_t t = (time_t)when;
	char text[32];
	struct tm tm;

	if (when <= 0 || gmtime_r(&t, &tm) == NULL)
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(o, name, json_string(text));
}

bool
jobs_ended(const struct job_status *s)
{
	return !job_state_live(s->state) && s->state != JOB_UNKNOWN;
}

void
jobs_drop_frame(struct buf *log, const struct job_status *s)
{
	static const char *const heads[] = { "== session: ", "== started_at: ",
		"== command: " };
	char last[32];
	size_t i, n;

	for (i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (!str_starts(log->data, heads[i]))
			continue;
		n = strcspn(log->data, "\n");
		buf_drop(log, n + (log->data[n] == '\n'));
	}
	n = (size_t)snprintf(last, sizeof(last), "EXIT_CODE=%d\n",
	    s->exit_code);
	if (jobs_ended(s) && log->len >= n &&
	    strcmp(log->data + log->len - n, last) == 0) {
		log->len -= n;
		log->data[log->len] = '\0';
	}
}

static void
set_array(json_t *o, const struct job_array *a)
{
	json_t *tasks = json_object();

	json_object_set_new(tasks, "pending", json_integer(a->pending));
	json_object_set_new(tasks, "running", json_integer(a->running));
	json_object_set_new(tasks, "completed", json_integer(a->completed));
	json_object_set_new(tasks, "failed", json_integer(a->failed));
	json_object_set_new(tasks, "cancelled", json_integer(a->cancelled));
	json_object_set_new(tasks, "lost", json_integer(a->lost));
	if (a->bad[0] != '\0')
		json_object_set_new(tasks, "bad", json_string(a->bad));
	json_object_set_new(o, "array", tasks);
}

static void
set_text(json_t *o, const char *name, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(o, name, utf8_json(text, strlen(text)));
}

static void
set_slurm(json_t *o, const struct job_status *s)
{
	set_text(o, "slurm_job_id", s->slurm_id);
	set_text(o, "slurm_state", s->slurm_state);
	set_text(o, "nodes", s->nodes);
	set_text(o, "problem", s->problem);
	if (s->array.is)
		set_array(o, &s->array);
}

void
jobs_set_status(json_t *o, const struct job_status *s)
{
	json_object_set_new(o, "state", json_string(job_state_name(s->state)));
	json_object_set_new(o, "running",
	    s->state == JOB_UNKNOWN ? json_null()
	                            : json_boolean(!jobs_ended(s)));
	if (s->exit_code != -1)
		json_object_set_new(o, "exit_code", json_integer(s->exit_code));
	if (s->signal != 0)
		json_object_set_new(o, "signal", json_integer(s->signal));
	if (s->state == JOB_LOST)
		json_object_set_new(o, "reason",
		    json_string(job_lost_words(s->reason)));
	else if (s->state == JOB_PENDING)
		set_text(o, "reason", s->reason);
	set_slurm(o, s);
	if (s->orphans > 0)
		json_object_set_new(o, "orphans", json_integer(s->orphans));
	if (s->stopped)
		json_object_set_new(o, "stopped", json_true());
	set_time(o, "started_at", s->started);
	set_time(o, "ended_at", s->ended);
	if (s->started > 0 && s->ended >= s->started)
		json_object_set_new(o, "duration_s",
		    json_integer(s->ended - s->started));
	if (s->pid > 0)
		json_object_set_new(o, "pid", json_integer(s->pid));
	if (s->run > 0)
		json_object_set_new(o, "run", json_integer(s->run));
	if (s->log_file != NULL)
		json_object_set_new(o, "log_file",
		    utf8_json(s->log_file, strlen(s->log_file)));
	json_object_set_new(o, "log_size",
	    s->log_size >= 0 ? json_integer(s->log_size) : json_null());
}

int
jobs_none(const struct sandbox *sb, const char *name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND,
	    "there is no job named '%.200s' on %s; list_background_tasks tells "
	    "which there are%s",
	    name, sb->name,
	    sb->slurm ? " (those without 'run' were not started here: "
	                "exec_bash with scontrol or scancel reaches them by "
	                "their slurm_job_id)"
	              : "");
}
