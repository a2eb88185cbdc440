/* Starting jobs. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/str.h"
#include "base/utf8.h"
#include "job/job.h"
#include "job/text.h"
#include "ssh/stream.h"

#define START_MS 30000

/* How long a start may be on its way; what comes later is refused, so that
 * after a lost reply there is a time from which on nothing can happen. */
#define TRAVEL_MS 5000
#define FIND_MS 20000 /* after a lost reply, for another connection */
#define FIND_STEP_MS 300
#define SHOW_S 3 /* until a start that was in time can be seen by others */

#define CALL_MAX 64 /* of a script: the moment, and the call */
#define LIMIT_GRACE_MS 2000
#define TITLE_CHARS 120            /* of the command, in its log */
#define NUMBER_MAX (INT64_MAX / 2) /* two of them can be added */

static const char word_signs[] = "abcdefghijklmnopqrstuvwxyz"
                                 "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "0123456789_-";

void
job_name(char out[JOB_NAME_MAX + 1], const char *given)
{
	char tail[RANDOM_HEX(2)];
	size_t i;

	if (str_blank(given)) {
		random_hex(tail, 2);
		snprintf(out, JOB_NAME_MAX + 1, "bg-%lld-%s",
		    (long long)time(NULL), tail);
		return;
	}
	while (*given == ' ')
		given++;
	for (i = 0; i < JOB_NAME_MAX && given[i] != '\0'; i++) {
		bool good = isalnum((unsigned char)given[i]) ||
		    given[i] == '_' || (given[i] == '-' && i > 0);

		out[i] = '_';
		if (good)
			out[i] = given[i];
	}
	out[i] = '\0';
}

int
job_check_path(const char *arg, const char *path, struct err *err)
{
	const unsigned char *at;

	for (at = (const unsigned char *)path; *at != '\0'; at++) {
		if (*at < ' ' || *at == 0x7f)
			return err_set(err, ERR_INVALID,
			    "%s must not hold a newline or another control "
			    "character; nothing was started",
			    arg);
	}
	return 0;
}

void
job_new_id(char out[JOB_ID_MAX + 1])
{
	random_hex(out, 16);
}

void
job_handle_free(struct job_handle *h)
{
	free(h->log_file);
	h->log_file = NULL;
}

/* A directory name for a key that may be anything. */
static void
key_name(char out[64], const char *key)
{
	uint64_t a = 1469598103934665603u, b = 88172645463325252u;
	const unsigned char *at;

	out[0] = '\0';
	if (str_blank(key))
		return;
	for (at = (const unsigned char *)key; *at != '\0'; at++) {
		a = (a ^ *at) * 1099511628211u;
		b = (b ^ *at) * 6364136223846793005u + 1442695040888963407u;
	}
	snprintf(out, 64, "%016" PRIx64 "%016" PRIx64, a, b);
}

static void
add_exports(struct buf *out, const json_t *env)
{
	struct buf text;
	const char *name;
	json_t *value;

	buf_init(&text, SIZE_MAX);
	json_object_foreach ((json_t *)(uintptr_t)env, name, value) {
		buf_addf(&text, "export %s=", name);
		quote_sh(&text, json_string_value(value));
		buf_addc(&text, '\n');
	}
	job_text_set(out, "V", text.data);
	buf_free(&text);
}

/* The beginning of the command in one line, for its log. */
static void
add_title(struct buf *out, const char *command)
{
	struct buf text;
	size_t i, chars = 0;
	bool space = true; /* none at the start */

	buf_init(&text, (size_t)TITLE_CHARS * 4);
	for (i = 0; command[i] != '\0'; i++) {
		bool blank = isspace((unsigned char)command[i]);

		if (((unsigned char)command[i] & 0xc0) != 0x80 &&
		    !(blank && space) && ++chars > TITLE_CHARS)
			break;
		if (!blank)
			buf_addc(&text, command[i]);
		else if (!space)
			buf_addc(&text, ' ');
		space = blank;
	}
	job_text_set(out, "H", text.data);
	buf_free(&text);
}

/* A log below a relative cwd that is named with it again. */
static const char *
log_below(const struct job_start *j, const char *log)
{
	size_t n = strlen(j->cwd);

	if (n == 0 || j->cwd[0] == '/' || j->cwd[0] == '~' ||
	    strncmp(log, j->cwd, n) != 0)
		return log;
	if (j->cwd[n - 1] == '/')
		return log + n;
	return log[n] == '/' ? log + n + 1 : log;
}

/* In seconds of the far side's clock, which was told in whole ones; 0: it is
 * not known. */
static int64_t
not_after(struct link *link)
{
	int64_t now = link_far_clock(link);

	return now > 0 ? (now + TRAVEL_MS) / 1000 + 2 : 0;
}

/* What runs beside it: sleeps, and then stops the run as anybody would. */
static void
add_limit(struct buf *out, const struct job_start *j)
{
	struct buf text;

	buf_init(&text, SIZE_MAX);
	if (j->limit_s > 0) {
		job_text_set_number(&text, "U", j->limit_s);
		job_text_set_stop(&text, j->name, LIMIT_GRACE_MS);
		job_text_add(&text, job_text_limit, false);
		buf_adds(&text, job_text_stop);
	}
	job_text_set(out, "Q", text.data);
	buf_free(&text);
}

/* What no start has for itself. */
static void
add_starter(struct buf *out, bool slurm)
{
	char *runner = xasprintf("%s%s", job_text_ident, job_text_run);

	job_text_set(out, "R", runner);
	free(runner);
	job_text_add(out, "job_start() {\n", slurm);
	buf_adds(out, job_text_start);
	buf_adds(out, "}\n");
}

/* All but the moment, and the call: these come last. */
static void
make_script(struct buf *out, const struct job_start *j, const char *id,
    const struct sandbox *sb)
{
	char *dir = sandbox_dir(sb, j->cwd);
	char *log = str_blank(j->log_file)
	    ? xasprintf(".codex_logs/%s.log", j->name)
	    : xstrdup(log_below(j, j->log_file));
	char *meta = j->metadata != NULL ? json_dumps(j->metadata, JSON_COMPACT)
	                                 : xstrdup("{}");
	char key[64];

	key_name(key, j->key);
	job_text_set(out, "N", j->name);
	job_text_set(out, "C", dir != NULL ? dir : "");
	job_text_set(out, "L", log);
	job_text_set(out, "K", key);
	job_text_set(out, "I", id);
	job_text_set(out, "X", j->command);
	add_title(out, j->command);
	job_text_set(out, "M", meta);
	job_text_set(out, "E", j->heir_of != NULL ? j->heir_of : "");
	job_text_set(out, "P", j->after != NULL ? j->after : "");
	add_exports(out, j->env);
	add_limit(out, j);
	job_text_set(out, "q_opts", j->slurm != NULL ? j->slurm : "");
	job_text_set_task(out, 0);
	/* Slurm's reads /etc/profile, for which the lease is no place. */
	if (sb->slurm)
		add_starter(out, true);
	free(dir);
	free(log);
	free(meta);
}

/* Put a long script into a file there, at the price of a round trip; "script"
 * becomes one that reads it. */
static int
send_ahead(struct link *link, struct buf *script, const char *id,
    const struct until *until, struct err *err)
{
	char *text = xasprintf("umask 077; case ${XDG_STATE_HOME-} in "
	                       "/*) J=$XDG_STATE_HOME;; "
	                       "*) J=$HOME/.local/state;; esac; "
	                       "J=$J/remote-sandbox-mcp/jobs; mkdir -p \"$J\" "
	                       "&& cat >\"$J/.start-%s\" && "
	                       "printf %%s \"$J/.start-%s\"",
	    id, id);
	struct stream *s = stream_open(link, text, until, err);
	struct buf file;
	char some[512];
	ssize_t n;
	int status = -1;

	free(text);
	if (s == NULL)
		return err_wrap(err, "nothing was started");
	buf_init(&file, 4096);
	if (stream_write(s, script->data, script->len, until, err) == 0) {
		stream_close_in(s);
		while ((n = stream_read(s, some, sizeof(some), until, err)) > 0)
			buf_add(&file, some, (size_t)n);
		if (n == 0)
			status = stream_end(s, until, err);
	}
	if (status > 0)
		err_set(err, ERR_IO, "the command could not be stored: %.200s",
		    stream_words(s));
	stream_free(s);
	if (status == 0) {
		buf_reset(script);
		job_text_set(script, "F", file.data);
		buf_adds(script,
		    "s=`cat \"$F\"` || exit\nrm -f \"$F\"\n"
		    "eval \"$s\"\n");
	}
	buf_free(&file);
	return status == 0 ? 0 : err_wrap(err, "nothing was started");
}

/* "RUN TMUX NUMBER" and the rest of the line. */
static int
take_numbers(struct job_handle *h, const char *text, int64_t *number,
    const char **rest)
{
	int tmux, n = 0;

	/* NOLINTNEXTLINE(cert-err34-c): checked by the count */
	if (sscanf(text, "%" SCNd64 " %d %" SCNd64 " %n", &h->run, &tmux,
	        number, &n) != 3 ||
	    h->run < 0 || h->run > NUMBER_MAX || *number < 0 ||
	    *number > NUMBER_MAX)
		return -1;
	h->tmux = tmux == 1;
	*rest = text + n;
	return 0;
}

/* A word as names and ids are made of, and a space; what follows them, or
 * NULL.  People paste the name into a shell. */
static const char *
take_word(char *out, size_t size, const char *text)
{
	const char *space = text + strspn(text, word_signs);

	if (*space != ' ' || space == text || (size_t)(space - text) >= size)
		return NULL;
	snprintf(out, size, "%.*s", (int)(space - text), text);
	return space + 1;
}

/* The scheduler's number; 0: none yet. */
static const char *
take_queued(struct job_handle *h, const char *text)
{
	char number[24];
	const char *rest = take_word(number, sizeof(number), text);

	return rest != NULL &&
	        str_to_int(number, 0, INT64_MAX, &h->slurm_job) == 0
	    ? rest
	    : NULL;
}

/* The start of another: "RUN TMUX ORPHANS JOB ID NAME LOG". */
static int
take_other(struct job_handle *h, const char *text)
{
	const char *rest;

	if (take_numbers(h, text, &h->orphans, &rest) == -1)
		return -1;
	rest = take_queued(h, rest);
	if (rest != NULL)
		rest = take_word(h->id, sizeof(h->id), rest);
	if (rest != NULL)
		rest = take_word(h->name, sizeof(h->name), rest);
	if (rest == NULL)
		return -1;
	h->log_file = xstrdup(rest);
	return 0;
}

int
job_answer_parse(struct job_handle *h, const char *text, bool keyed,
    const char *box, struct err *err)
{
	const char *rest;

	h->refused = str_starts(text, "cwd ") || str_starts(text, "bad ");
	if (str_starts(text, "cwd "))
		return err_set(err, ERR_NOT_FOUND,
		    "the directory '%.300s' (cwd) does not exist on %s, or "
		    "may not be entered; nothing was started. Make it "
		    "there (mkdir -p, in exec_bash with cwd '~'), or give "
		    "another cwd",
		    text + 4, box);
	if (str_starts(text, "bad "))
		return err_set(err, ERR_IO, "%s: %.500s; nothing was started",
		    box, text + 4);
	if (strcmp(text, "stale") == 0)
		return err_set(err, ERR_TIMEOUT,
		    "the start reached %s too late; nothing was started; call "
		    "again",
		    box);
	if (str_starts(text, "ok ") &&
	    take_numbers(h, text + 3, &h->begin, &rest) == 0) {
		h->how = JOB_STARTED;
		h->log_file = xstrdup(rest);
		return 0;
	}
	if (str_starts(text, "queued ") &&
	    (rest = take_queued(h, text + 7)) != NULL &&
	    take_numbers(h, rest, &h->begin, &rest) == 0) {
		h->how = JOB_STARTED;
		h->log_file = xstrdup(rest);
		return 0;
	}
	h->how = JOB_AGAIN;
	if (keyed && str_starts(text, "again ") && take_other(h, text + 6) == 0)
		return 0;
	h->how = JOB_EXISTS;
	if (str_starts(text, "exists ") && take_other(h, text + 7) == 0)
		return 0;
	return err_set(err, ERR_IO, "%s gave a strange answer: %.200s", box,
	    text);
}

/* Is this the run with our word?  0: it is; 1: there is none, or it never came
 * to run; -1: nobody knows yet. */
static int
is_ours(const struct job_status *s, const struct job_start *j, const char *id)
{
	/* sbatch may still be on its way to the scheduler. */
	if (j->slurm != NULL && s->run != 0 && s->slurm_id[0] == '\0')
		return -1;
	if (s->run == 0 || strcmp(s->id, id) != 0)
		return 1;
	/* If it is on another machine of that home, it may still be starting.
	 */
	if (s->state == JOB_STARTING ||
	    (j->slurm == NULL && s->state == JOB_UNKNOWN && s->pid == 0))
		return -1;
	return s->state == JOB_LOST && strcmp(s->reason, "start") == 0 ? 1 : 0;
}

/* Look for it; as is_ours(). */
static int
find_once(struct link *link, const struct job_start *j, struct job_handle *h,
    const struct until *until)
{
	struct job_look q = { .name = j->name,
		.id = h->id,
		.log_file = "",
		.since = -1,
		.grep = "" };
	struct job_status s;
	struct err err;
	int rc;

	if (job_look(link, &q, &s, until, &err) == -1)
		return -1;
	rc = is_ours(&s, j, h->id);
	if (rc != 0) {
		job_status_free(&s);
		return rc;
	}
	str_to_int(s.slurm_id, 1, INT64_MAX, &h->slurm_job);
	h->how = JOB_STARTED;
	h->recovered = true;
	h->run = s.run;
	h->tmux = s.tmux;
	h->begin = s.log_begin;
	h->log_file = xstrdup(s.log_file != NULL ? s.log_file : "");
	job_status_free(&s);
	return 0;
}

/* A start on its way: from "last" on, by the clock of that machine, it is
 * refused. */
struct sending {
	struct buf script, common, answer;
	int64_t last;
	char machine[MACHINE_MAX];
	enum link_ran ran;
};

/* Is it sure that nothing of it will show any more?  Another machine has
 * another clock, and may see a shared home late. */
static bool
is_over(struct link *link, const struct sending *s)
{
	char machine[MACHINE_MAX];

	link_machine(link, machine);
	return strcmp(machine, s->machine) == 0 &&
	    link_far_clock(link) / 1000 > s->last + SHOW_S;
}

/*
 * The reply was lost.  The start may still be on its way.
 */
static int
find_again(struct link *link, const struct job_start *j, struct job_handle *h,
    const struct sending *s, const struct until *until)
{
	struct until limit = until_within(until, FIND_MS), step;
	struct err err;
	bool over;
	int rc;

	for (;;) {
		/* Before the look as well: its answer may be late. */
		over = is_over(link, s);
		rc = find_once(link, j, h, &limit);
		if (rc == 0 || until_check(&limit, &err) == -1)
			return rc == 0 ? 0 : -1;
		if (rc == 1 && s->last == 0)
			return -1;
		if (rc == 1 && over && is_over(link, s))
			return 1;
		step = until_within(&limit, FIND_STEP_MS);
		until_poll(&step, NULL, 0, &err);
	}
}

static int
lost_reply(struct link *link, const struct job_start *j, struct job_handle *h,
    const struct sending *s, const struct until *until, struct err *err)
{
	switch (find_again(link, j, h, s, until)) {
	case 0:
		return 0;
	case 1:
		return err_wrap(err, "nothing was started");
	default:
		h->maybe = true;
		return err_wrap(err,
		    "the job '%s' may have been started: ask "
		    "check_background_task before you start it again",
		    j->name);
	}
}

/* A link that has died is made anew first, which takes as long as it takes. */
static int
send_once(struct link *link, struct sending *s, const struct until *until,
    struct err *err)
{
	struct lease_script script = { 0 };
	struct buf text;
	int rc;

	s->ran = LINK_UNSENT;
	if (link_fresh(link, until, err) == -1)
		return -1;
	buf_init(&text, SIZE_MAX);
	buf_add(&text, s->script.data, s->script.len);
	s->last = not_after(link);
	link_machine(link, s->machine);
	job_text_set_number(&text, "T", s->last);
	buf_adds(&text, "job_start\n");
	script.text = text.data;
	if (s->common.len > 0)
		script.definitions = s->common.data;
	rc = link_run(link, &script, &s->answer, &s->ran, until, err);
	buf_free(&text);
	return rc;
}

static int
send_start(struct link *link, struct sending *s, const char *id,
    const struct until *until, struct err *err)
{
	struct err why;
	int rc = 0;

	if (s->script.len + CALL_MAX > LEASE_SCRIPT_MAX)
		rc = send_ahead(link, &s->script, id, until, err);
	if (rc == 0)
		rc = send_once(link, s, until, err);
	if (rc == -1 && s->ran == LINK_GONE && until_check(until, &why) == 0)
		rc = send_once(link, s, until, err);
	return rc;
}

static int
check_start(const struct job_start *j, struct job_handle *h, struct err *err)
{
	memset(h, 0, sizeof(*h));
	snprintf(h->name, sizeof(h->name), "%s", j->name);
	if (j->id != NULL)
		snprintf(h->id, sizeof(h->id), "%s", j->id);
	else
		job_new_id(h->id);
	h->refused = job_check_path("cwd", j->cwd, err) == -1 ||
	    job_check_path("log_file", j->log_file, err) == -1;
	return h->refused ? -1 : 0;
}

int
job_start(struct link *link, const struct job_start *j, struct job_handle *h,
    const struct until *until, struct err *err)
{
	struct until limit = until_within(until, START_MS);
	const struct sandbox *sb = link_sandbox(link);
	struct sending s = { .ran = LINK_UNSENT };
	int rc;

	if (check_start(j, h, err) == -1)
		return -1;
	buf_init(&s.script, SIZE_MAX);
	buf_init(&s.common, SIZE_MAX);
	buf_init(&s.answer, 16384);
	make_script(&s.script, j, h->id, sb);
	if (!sb->slurm)
		add_starter(&s.common, false);
	rc = send_start(link, &s, h->id, &limit, err);
	if (rc == 0)
		rc = job_answer_parse(h, s.answer.data, !str_blank(j->key),
		    sb->name, err);
	else if (s.ran == LINK_SENT)
		rc = lost_reply(link, j, h, &s, until, err);
	buf_free(&s.script);
	buf_free(&s.common);
	buf_free(&s.answer);
	return rc;
}
