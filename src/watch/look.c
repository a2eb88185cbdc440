/*
 * The look.  What the host prints is, in this order: the words about the job
 * (job/job.h) with the log, a line with the mark, a line with the boot's id and
 * the host's name, the checkpoint, and a line with the mark and how reading
 * that went:
 *
 *	-       there is none to read
 *	0       it was read
 *	cwd     its directory is not there
 *	none    the file is not there
 *	denied  the file may not be read
 *	N       what checkpoint_command exited with
 *
 * The job comes first: if it ends meanwhile, the checkpoint that is read is
 * its last one.
 */
#include "watch/look.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/str.h"
#include "ssh/clean.h"
#include "ssh/exec.h"

#define LOOK_MS 60000
#define SAID_MAX ((size_t)4 << 20)
#define COMMAND_S 20 /* for checkpoint_command */

void
look_free(struct look *l)
{
	if (l->reached)
		job_status_free(&l->job);
	buf_free(&l->log);
	buf_free(&l->checkpoint);
	memset(l, 0, sizeof(*l));
}

void
look_resume_name(const struct watch *w, char out[JOB_NAME_MAX + 1])
{
	struct err err;
	json_t *plan =
	    decode_json(w->resume_plan_json, strlen(w->resume_plan_json), &err);
	const char *name = decode_text(json_object_get(plan, "tmux_session"));

	job_name(out, str_blank(name) ? w->tmux_session : name);
	json_decref(plan);
}

void
look_job(const struct watch *w, char name[JOB_NAME_MAX + 1],
    char id[JOB_ID_MAX + 1])
{
	const char *slash = strchr(w->job_run, '/');

	id[0] = '\0';
	if (slash != NULL) {
		snprintf(name, JOB_NAME_MAX + 1, "%.*s",
		    (int)(slash - w->job_run), w->job_run);
		snprintf(id, JOB_ID_MAX + 1, "%s", slash + 1);
	} else if (w->resume_attempts > 0) {
		look_resume_name(w, name);
	} else {
		job_name(name, w->tmux_session);
	}
}

void
look_job_run(char out[JOB_RUN_MAX + 1], const char *name, const char *id)
{
	snprintf(out, JOB_RUN_MAX + 1, "%s/%s", name, id);
}

/* --- the script -----------------------------------------------------------
 */

static void
add_file(struct buf *out, const char *path, size_t max)
{
	buf_adds(out, "p=");
	quote_path(out, path);
	buf_addf(out,
	    "\nif [ -d \"$p\" ]; then ls -t -- \"$p\" 2>/dev/null |"
	    " head -n 50; s=0\n"
	    "elif [ ! -e \"$p\" ]; then s=none\n"
	    "elif [ ! -r \"$p\" ]; then s=denied\n"
	    "else head -c %zu <\"$p\" 2>/dev/null && s=0 || s=denied; fi\n",
	    max + 1);
}

/* The status goes another way than the output, which is cut. */
static void
add_command(struct buf *out, const char *command, size_t max)
{
	buf_adds(out,
	    "b=sh; ! command -v bash >/dev/null 2>&1 || b=bash\n"
	    "set -- \"$b\" -c ");
	quote_sh(out, command);
	buf_addf(out,
	    "\n! command -v timeout >/dev/null 2>&1 ||"
	    " set -- timeout -k 2 %d \"$@\"\n"
	    "exec 3>&1\n"
	    "s=$( { { \"$@\" 3>&- 4>&- </dev/null 2>/dev/null;"
	    " echo $? >&4; } | head -c %zu >&3; } 4>&1 )\n",
	    COMMAND_S, max + 1);
}

static void
add_checkpoint(struct buf *out, const struct watch *w, size_t max)
{
	buf_adds(out, "s=-\n");
	if (max == 0 ||
	    (str_blank(w->checkpoint_command) && str_blank(w->checkpoint_path)))
		return;
	buf_adds(out, "if cd -- ");
	quote_path(out, str_blank(w->cwd) ? "~" : w->cwd);
	buf_adds(out, " 2>/dev/null; then\n");
	if (!str_blank(w->checkpoint_command))
		add_command(out, w->checkpoint_command, max);
	else
		add_file(out, w->checkpoint_path, max);
	buf_adds(out, "else s=cwd; fi\n");
}

void
look_script(struct buf *out, const struct watch *w, const struct look_query *q,
    const char *mark)
{
	char name[JOB_NAME_MAX + 1], id[JOB_ID_MAX + 1];
	struct job_look job = { .name = name,
		.id = id,
		.log_file = w->log_file,
		.last_lines = q->log_lines,
		.since = -1,
		.max_bytes = q->log_max,
		.grep = "",
		.slurm = q->slurm };

	look_job(w, name, id);
	buf_adds(out, "(\n");
	job_look_script(out, &job);
	buf_addf(out,
	    "\n)\nprintf '\\n%s\\n'\n"
	    "{ read -r b </proc/sys/kernel/random/boot_id &&"
	    " read -r k </proc/sys/kernel/hostname && echo \"$b $k\" ||"
	    " sysctl -n kern.bootsessionuuid || echo; } 2>/dev/null\n",
	    mark);
	add_checkpoint(out, w, q->checkpoint_max);
	buf_addf(out, "printf '\\n%s %%s\\n' \"$s\"\nexit 0\n", mark);
}

/* --- reading it -----------------------------------------------------------
 */

static const char *
find(const char *data, size_t len, const char *text)
{
	return memmem(data, len, text, strlen(text));
}

/* The last "max" bytes, whole characters. */
static void
keep_end(struct buf *b, size_t max)
{
	size_t n;

	if (b->len <= max)
		return;
	n = b->len - max;
	while (n < b->len && ((unsigned char)b->data[n] & 0xc0) == 0x80)
		n++;
	buf_drop(b, n);
}

static void
set_trouble(struct look *l, const struct watch *w, const char *how)
{
	const char *path = w->checkpoint_path;
	int64_t n;

	if (strcmp(how, "cwd") == 0)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "the directory '%.150s' (cwd) does not exist", w->cwd);
	else if (strcmp(how, "none") == 0)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "there is no file '%.150s'", path);
	else if (strcmp(how, "denied") == 0)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "the file '%.150s' may not be read", path);
	else if (strcmp(how, "124") == 0)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "checkpoint_command took longer than %d seconds",
		    COMMAND_S);
	else if (str_to_int(how, 0, 255, &n) == 0)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "checkpoint_command exited with %d", (int)n);
	else
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "it was not read in time");
}

/* "data" is what follows the line of the boot. */
static void
take_checkpoint(struct look *l, const struct watch *w,
    const struct look_query *q, const char *mark, const char *data, size_t len)
{
	char *line = xasprintf("\n%s ", mark);
	const char *end = find(data, len, line), *how, *nl;
	bool cut;
	char word[16] = "?";

	if (end != NULL) {
		how = end + strlen(line);
		nl = memchr(how, '\n', (size_t)(data + len - how));
		if (nl != NULL)
			snprintf(word, sizeof(word), "%.*s",
			    nl - how < 15 ? (int)(nl - how) : 15, how);
		len = (size_t)(end - data);
	}
	free(line);
	if (strcmp(word, "-") == 0)
		return;
	cut = len > q->checkpoint_max;
	if (strcmp(word, "0") != 0 && !(cut && strcmp(word, "141") == 0)) {
		set_trouble(l, w, word);
		return;
	}
	clean_text(&l->checkpoint, data, cut ? q->checkpoint_max : len);
	l->seen.checkpoint = l->checkpoint.data;
	if (cut)
		snprintf(l->checkpoint_error, sizeof(l->checkpoint_error),
		    "it is longer than %zu bytes; the rest is left out",
		    q->checkpoint_max);
}

static void
take_job(struct look *l, const struct watch *w)
{
	struct observation *o = &l->seen;
	char id[JOB_ID_MAX + 1];

	o->seen = SEEN_JOB;
	o->state = l->job.state;
	o->exit_code = l->job.exit_code;
	o->signal = l->job.signal;
	o->reason = l->job.reason;
	o->stopped = l->job.stopped;
	o->orphans = l->job.orphans;
	o->superseded = l->job.newest > l->job.run;
	look_job(w, l->name, id);
	look_job_run(o->job_run, l->name, l->job.id);
	o->slurm_state = l->job.slurm_state;
	if (l->job.state == JOB_UNKNOWN) {
		o->seen = SEEN_UNREACHABLE;
		err_set(&l->err, ERR_IO, "%s", l->job.problem);
	}
	clean_text(&l->log, l->job.log.data, l->job.log.len);
	keep_end(&l->log, LOOK_LOG_MAX);
	o->log_tail = l->job.log_size >= 0 ? l->log.data : NULL;
}

static void
look_init(struct look *l)
{
	memset(l, 0, sizeof(*l));
	buf_init(&l->log, SIZE_MAX);
	buf_init(&l->checkpoint, SIZE_MAX);
	l->seen.seen = SEEN_UNREACHABLE;
	l->seen.exit_code = -1;
	l->seen.reason = l->seen.slurm_state = "";
	l->seen.error = l->err.msg;
	l->seen.boot_id = l->boot_id;
	l->seen.checkpoint_error = l->checkpoint_error;
}

int
look_parse(struct look *l, const struct watch *w, const struct look_query *q,
    const char *mark, const char *data, size_t len, struct err *err)
{
	char *line = xasprintf("\n%s\n", mark);
	const char *end = find(data, len, line), *rest, *nl;
	size_t skip = strlen(line), left;

	look_init(l);
	free(line);
	if (end == NULL)
		return err_set(err, ERR_IO,
		    "the host's word about the job was cut off");
	if (job_status_parse(&l->job, data, (size_t)(end - data), q->log_max,
	        err) == -1)
		return -1;
	l->reached = true;
	take_job(l, w);
	rest = end + skip;
	left = len - (size_t)(rest - data);
	nl = memchr(rest, '\n', left);
	if (nl == NULL)
		return 0;
	/* A job of a cluster runs elsewhere. */
	if (l->job.slurm_id[0] == '\0')
		snprintf(l->boot_id, sizeof(l->boot_id), "%.*s",
		    nl - rest < 100 ? (int)(nl - rest) : 100, rest);
	take_checkpoint(l, w, q, mark, nl + 1, left - (size_t)(nl + 1 - rest));
	return 0;
}

/* --- doing it -------------------------------------------------------------
 */

static bool
take(void *data, const char *bytes, size_t len)
{
	struct buf *said = data;

	buf_add(said, bytes, len);
	return !said->full;
}

/* Why there is no word about the job. */
static void
explain(const struct exec_result *res, const char *box, struct err *err)
{
	if (res->connection_error)
		err_set(err, ERR_IO, "%s", res->problem);
	else if (res->cancelled)
		err_set(err, ERR_CANCELLED, "cancelled");
	else if (res->timed_out)
		err_set(err, ERR_TIMEOUT, "%s did not answer within %d seconds",
		    box, LOOK_MS / 1000);
	else if (res->refused)
		err_set(err, ERR_IO, "%s prints without end", box);
	else if (res->exit_code != 0)
		err_set(err, ERR_IO, "%s cannot tell (%d): %.300s", box,
		    res->exit_code, res->err.data);
}

static int
ask(struct look *l, struct link *link, const struct watch *w,
    const struct look_query *q, const struct until *until, struct err *err)
{
	char mark[RANDOM_HEX(16)];
	struct buf script, said;
	struct exec_request req = {
		.timeout_ms = LOOK_MS,
		.grace_ms = 500,
		.max_chars = 2000,
		.sink = take,
		.sink_data = &said,
	};
	struct exec_result res;
	int rc;

	random_hex(mark, 16);
	buf_init(&script, SIZE_MAX);
	buf_init(&said, SAID_MAX);
	look_script(&script, w, q, mark);
	req.command = script.data;
	rc = exec_run(link, &req, &res, until, err);
	if (rc == 0) {
		/* A checkpoint that hangs does not hide the job's state. */
		rc = look_parse(l, w, q, mark, said.data, said.len, err);
		if (rc == -1)
			explain(&res, link_sandbox(link)->name, err);
		exec_result_free(&res);
	}
	buf_free(&script);
	buf_free(&said);
	return rc;
}

void
watch_look(struct look *l, struct link *link, const struct watch *w,
    const struct look_query *given, const struct until *until)
{
	struct look_query here = *given, *q = &here;
	struct err err = ERR_INIT;

	here.slurm = link_sandbox(link)->slurm;
	look_init(l);
	if (ask(l, link, w, q, until, &err) == 0)
		return;
	look_free(l);
	look_init(l);
	l->err = err;
}
