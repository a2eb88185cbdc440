/* Looking at jobs, ending them, listing them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "job/job.h"
#include "job/slurm.h"
#include "job/text.h"
#include "ssh/exec.h"

#define LOOK_MS 60000
#define SAID_MAX ((size_t)16 << 20)
#define NUMBER_MAX (INT64_MAX / 2) /* two of them can be added */

static const char *const states[] = {
	[JOB_NONE] = "none",
	[JOB_STARTING] = "starting",
	[JOB_RUNNING] = "running",
	[JOB_EXITED] = "exited",
	[JOB_KILLED] = "killed",
	[JOB_LOST] = "lost",
	[JOB_PENDING] = "pending",
	[JOB_UNKNOWN] = "unknown",
};

const char *
job_state_name(enum job_state s)
{
	return states[s];
}

const char *
job_lost_words(const char *reason)
{
	static const char *const words[][2] = {
		{ "reboot", "the host was started again" },
		{ "start", "it never came to run" },
		{ "record", "the record of its end cannot be read" },
		{ "TIMEOUT", "its time limit was reached" },
		{ "PREEMPTED", "Slurm gave its place to another job" },
		{ "NODE_FAIL", "its node failed" },
		{ "BOOT_FAIL", "its node could not be started" },
		{ "REVOKED", "another cluster took it" },
		{ "gone", "Slurm does not know it any more" },
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(words[i][0], reason) == 0)
			return words[i][1];
	}
	return "its runner was killed";
}

bool
job_state_live(enum job_state s)
{
	return s == JOB_RUNNING || s == JOB_STARTING || s == JOB_PENDING;
}

static int
find_state(const char *text, enum job_state *out)
{
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		if (strcmp(states[i], text) == 0) {
			*out = (enum job_state)i;
			return 0;
		}
	}
	return -1;
}

void
job_status_free(struct job_status *s)
{
	free(s->log_file);
	s->log_file = NULL;
	buf_free(&s->log);
}

static int64_t
number(const char *text)
{
	int64_t n;

	return str_to_int(text, INT64_MIN, INT64_MAX, &n) == 0 ? n : 0;
}

/* What the host says besides the status itself. */
struct said {
	char what[96];
	int64_t from, at; /* its bytes begin there, those we asked for here */
	int64_t lines;    /* how many of the last are wanted; 0: all */
	char mark[48];    /* stands where the bytes end, in the last line */
	struct slurm_said slurm;
};

/* The words whose value is a number. */
static int64_t *
number_of(struct job_status *s, struct said *said, const char *word)
{
	const struct {
		const char *word;
		int64_t *value;
	} rows[] = {
		{ "run", &s->run },
		{ "newest", &s->newest },
		{ "ended", &s->ended },
		{ "started", &s->started },
		{ "pid", &s->pid },
		{ "orphans", &s->orphans },
		{ "begin", &s->log_begin },
		{ "size", &s->log_size },
		{ "offset", &s->log_offset },
		{ "from", &said->from },
		{ "at", &said->at },
		{ "lines", &said->lines },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].word, word) == 0)
			return rows[i].value;
	}
	return NULL;
}

/* How grep ended when it read the expression, and its last word on that. */
static void
take_expression(struct job_status *s, const char *value)
{
	const char *why = strstr(value, "grep: ");
	int64_t status;
	char word[8];

	snprintf(word, sizeof(word), "%.*s", (int)strcspn(value, " "), value);
	status = number(word);
	if (status == 2 && why != NULL)
		snprintf(s->bad_grep, sizeof(s->bad_grep), "%s", why + 6);
	else if (status > 128)
		snprintf(s->bad_grep, sizeof(s->bad_grep),
		    "it takes too much time or memory");
	else if (status > 1)
		snprintf(s->bad_grep, sizeof(s->bad_grep), "it ended with %s",
		    value);
}

/* What is no number, or none that can be reckoned with, tells nothing. */
static void
set_number(int64_t *n, const char *word, const char *value)
{
	int64_t least = strcmp(word, "size") == 0 ? -1 : 0;

	(void)str_to_int(value, least, NUMBER_MAX, n);
}

/* Numbers with blanks between them. */
static void
take_left(struct job_status *s, const char *value)
{
	char word[24];

	for (; *value != '\0'; value += *value == ' ') {
		size_t n = strcspn(value, " ");
		int64_t pid;

		snprintf(word, sizeof(word), "%.*s", n < 20 ? (int)n : 20,
		    value);
		if (s->left_count < JOB_LEFT_MAX &&
		    str_to_int(word, 1, NUMBER_MAX, &pid) == 0)
			s->left[s->left_count++] = pid;
		value += n;
	}
}

/* One "word value" line.  Words we do not know are passed over. */
static int
take_word(struct job_status *s, struct said *said, const char *word,
    const char *value)
{
	int64_t *n = number_of(s, said, word);

	if (slurm_take(&said->slurm, word, value))
		return 0;
	if (n != NULL)
		set_number(n, word, value);
	else if (strcmp(word, "state") == 0)
		return find_state(value, &s->state);
	else if (strcmp(word, "what") == 0)
		snprintf(said->what, sizeof(said->what), "%s", value);
	else if (strcmp(word, "stop") == 0)
		s->stopped = number(value) == 1;
	else if (strcmp(word, "tmux") == 0)
		s->tmux = number(value) == 1;
	else if (strcmp(word, "id") == 0)
		snprintf(s->id, sizeof(s->id), "%s", value);
	else if (strcmp(word, "left") == 0)
		take_left(s, value);
	else if (strcmp(word, "replaced") == 0)
		s->log_replaced = number(value) == 1;
	else if (strcmp(word, "expression") == 0)
		take_expression(s, value);
	else if (strcmp(word, "mark") == 0)
		snprintf(said->mark, sizeof(said->mark), "%s", value);
	else if (strcmp(word, "log") == 0 && value[0] != '\0') {
		free(s->log_file);
		s->log_file = xstrdup(value);
	}
	return 0;
}

static void
take_what(struct job_status *s, const char *what)
{
	int64_t n;

	s->exit_code = -1;
	if (s->state == JOB_LOST)
		snprintf(s->reason, sizeof(s->reason), "%s", what);
	if (str_to_int(what, 0, 255, &n) == -1)
		return;
	if (s->state == JOB_EXITED)
		s->exit_code = (int)n;
	if (s->state == JOB_KILLED) {
		s->signal = (int)n;
		s->exit_code = 128 + (int)n;
	}
}

static int
take_line(struct job_status *s, struct said *said, const char *line)
{
	const char *space = strchr(line, ' ');
	char word[16];

	if (space == NULL || space - line >= (ptrdiff_t)sizeof(word))
		return 0;
	snprintf(word, sizeof(word), "%.*s", (int)(space - line), line);
	return take_word(s, said, word, space + 1);
}

/* The host's word for a job of a scheduler that the entry does not name. */
static const char for_slurm[] =
    "it was given to Slurm: set \"scheduler\": \"slurm\" in the entry of the "
    "sandbox";

/* "elsewhere NODE": the name of the node, else NULL. */
static const char *
node_of(const char *what)
{
	return str_starts(what, "elsewhere ") ? what + 10 : NULL;
}

/* All lines were read. */
static void
conclude(struct job_status *s, const struct said *said)
{
	const char *node = node_of(said->what);

	take_what(s, said->what);
	slurm_judge(&said->slurm, s);
	if (s->state == JOB_RUNNING && node != NULL) {
		s->state = JOB_UNKNOWN;
		snprintf(s->problem, sizeof(s->problem),
		    "it was started on another machine with the same home "
		    "(%.80s); it can only be looked at from there",
		    node);
	}
	if (s->state == JOB_RUNNING && strcmp(said->what, "scheduler") == 0) {
		s->state = JOB_UNKNOWN;
		snprintf(s->problem, sizeof(s->problem), "%s", for_slurm);
	}
}

/* Lines up to an empty one.  Returns how many bytes they had, 0 if there is no
 * empty line, -1 if they make no sense. */
static ssize_t
take_lines(struct job_status *s, struct said *said, const char *data,
    size_t len)
{
	const char *at = data, *end = data + len, *nl;
	bool seen = false;

	memset(said, 0, sizeof(*said));
	slurm_said_init(&said->slurm);
	while ((nl = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		char *line;
		int rc;

		if (nl == at) {
			conclude(s, said);
			return seen ? nl + 1 - data : -1;
		}
		line = xstrndup(at, (size_t)(nl - at));
		rc = take_line(s, said, line);
		seen = seen || str_starts(line, "state ");
		free(line);
		if (rc == -1)
			return -1;
		at = nl + 1;
	}
	return 0;
}

static void
status_init(struct job_status *s)
{
	memset(s, 0, sizeof(*s));
	s->exit_code = -1;
	s->log_size = -1;
	buf_init(&s->log, SIZE_MAX);
}

static void
cut_to(struct buf *b, size_t len)
{
	b->len = len;
	b->data[len] = '\0';
}

/* All after the last newline stands before the mark: a line that nobody can
 * tell yet whether it matches.  It comes with the next bytes, unless it is too
 * long for that. */
static void
drop_marked(struct job_status *s, const char *mark, size_t max)
{
	struct buf *log = &s->log;
	size_t n = strlen(mark) + 1, line;
	bool long_line = log->len > max;

	if (log->len < n || memcmp(log->data + log->len - n, mark, n - 1) != 0)
		return;
	cut_to(log, log->len - n);
	for (line = log->len; line > 0 && log->data[line - 1] != '\n'; line--)
		;
	if (line == 0 && long_line)
		return;
	s->log_offset -= (int64_t)(log->len - line);
	cut_to(log, line);
}

/* The last of them may be cut in the middle of a character: it comes with the
 * next bytes. */
static void
drop_half_character(struct job_status *s)
{
	struct buf *log = &s->log;
	size_t n;

	for (n = 1; n <= 4 && n <= log->len; n++) {
		unsigned char c = (unsigned char)log->data[log->len - n];

		if ((c & 0xc0) == 0x80)
			continue;
		if ((c >= 0xf0 && n < 4) || (c >= 0xe0 && n < 3) ||
		    (c >= 0xc0 && n < 2)) {
			cut_to(log, log->len - n);
			s->log_offset -= (int64_t)n;
		}
		return;
	}
}

/* No more than asked for: the end is what counts, from the start of a line
 * unless that is far, but at least of a character. */
static void
keep_last(struct job_status *s, size_t max)
{
	struct buf *log = &s->log;
	size_t drop;
	const char *nl;

	if (log->len <= max)
		return;
	s->log_cut = true;
	drop = log->len - max;
	nl = memchr(log->data + drop, '\n', max / 4);
	if (nl != NULL)
		drop = (size_t)(nl + 1 - log->data);
	while (drop < log->len && (log->data[drop] & 0xc0) == 0x80)
		drop++;
	buf_drop(log, drop);
}

static void
keep_lines(struct buf *log, int64_t lines)
{
	size_t at = log->len;

	if (at > 0 && log->data[at - 1] == '\n')
		at--; /* it ends the last one */
	for (; at > 0; at--) {
		if (log->data[at - 1] == '\n' && --lines == 0)
			break;
	}
	buf_drop(log, at);
}

static void
take_log(struct job_status *s, const struct said *said, const char *data,
    size_t len, size_t max)
{
	int64_t want = s->log_offset - said->at, before = said->at - said->from;
	bool runs = job_state_live(s->state) || s->state == JOB_UNKNOWN;

	if (before < 0 || want < 0 || before > (int64_t)len) {
		s->log_offset = said->at;
		return;
	}
	data += before;
	len -= (size_t)before;
	if ((int64_t)len > want && said->mark[0] == '\0')
		len = (size_t)want;
	buf_add(&s->log, data, len);
	if (said->mark[0] != '\0')
		drop_marked(s, said->mark, max);
	s->log_more = s->log_size > s->log_offset;
	if (runs || s->log_more)
		drop_half_character(s);
	/* More bytes came than it said. */
	if (s->log_offset < said->at)
		s->log_offset = said->at;
	if (said->lines > 0)
		keep_lines(&s->log, said->lines);
	keep_last(s, max);
}

int
job_status_parse(struct job_status *s, const char *data, size_t len, size_t max,
    struct err *err)
{
	struct said said;
	ssize_t n;

	status_init(s);
	n = take_lines(s, &said, data, len);
	slurm_said_free(&said.slurm);
	if (n <= 0) {
		job_status_free(s);
		return err_set(err, ERR_IO,
		    "the host's word about the job makes no sense");
	}
	take_log(s, &said, data + n, len - (size_t)n, max);
	return 0;
}

static bool
take(void *data, const char *bytes, size_t len)
{
	struct buf *said = data;

	buf_add(said, bytes, len);
	return !said->full;
}

/* Run a text there; "said" gets what it prints.  *lost: the link broke. */
static int
ask_once(struct link *link, const char *script, int64_t ms, struct buf *said,
    bool *lost, const struct until *until, struct err *err)
{
	struct exec_request req = {
		.command = script,
		.timeout_ms = ms,
		.grace_ms = 500,
		.max_chars = 2000,
		/* A cluster's has /etc/profile read. */
		.tame = !link_sandbox(link)->slurm,
		.sink = take,
		.sink_data = said,
	};
	const char *box = link_sandbox(link)->name;
	struct exec_result res;
	int rc = 0;

	*lost = false;
	if (exec_run(link, &req, &res, until, err) == -1)
		return -1;
	if (res.connection_error) {
		*lost = true;
		rc = err_set(err, ERR_IO, "the connection to %s was lost", box);
	} else if (res.cancelled) {
		rc = err_set(err, ERR_CANCELLED, "cancelled");
	} else if (res.timed_out) {
		rc = err_set(err, ERR_TIMEOUT,
		    "%s did not answer within %d seconds", box,
		    (int)(ms / 1000));
	} else if (res.refused) {
		rc = err_set(err, ERR_IO, "%s prints without end", box);
	} else if (res.exit_code != 0) {
		rc = err_set(err, ERR_IO, "%s cannot tell (%d): %.300s", box,
		    res.exit_code, res.err.data);
	}
	exec_result_free(&res);
	return rc;
}

/* The texts change nothing that a second one would not, so if the link breaks
 * they are sent once more. */
static int
ask(struct link *link, const char *script, int64_t ms, struct buf *said,
    const struct until *until, struct err *err)
{
	bool lost;
	int rc;

	buf_init(said, SAID_MAX);
	rc = ask_once(link, script, ms, said, &lost, until, err);
	if (rc == -1 && lost) {
		buf_reset(said);
		rc = ask_once(link, script, ms, said, &lost, until, err);
	}
	return rc;
}

void
job_look_script(struct buf *script, const struct job_look *q)
{
	char mark[RANDOM_HEX(12)];

	random_hex(mark, 12);
	job_text_set(script, "N", q->name);
	job_text_set(script, "I", q->id != NULL ? q->id : "");
	job_text_set(script, "L", q->log_file);
	job_text_set(script, "G", q->grep);
	job_text_set(script, "Q", mark);
	job_text_set(script, "E", q->wait_end ? "1" : "");
	job_text_set_number(script, "A", q->last_lines);
	job_text_set_number(script, "O", q->since);
	job_text_set_number(script, "Z", (int64_t)q->max_bytes);
	job_text_set_number(script, "S", JOB_SEARCH_MAX);
	job_text_set_number(script, "W", q->wait_s);
	job_text_set_task(script, q->task);
	job_text_add(script, job_text_look, q->slurm);
}

/* Our texts come to an end, and so does a link; an expression need not. */
static void
blame_expression(const struct job_look *q, const char *box, struct err *err)
{
	err_set(err, ERR_INVALID,
	    "%s: grep on %s did not come to an end with '%.200s' within %d "
	    "seconds; look for something simpler, or in less",
	    q->grep_arg, box, q->grep, LOOK_MS / 1000 + q->wait_s);
}

int
job_look(struct link *link, const struct job_look *q, struct job_status *s,
    const struct until *until, struct err *err)
{
	const char *box = link_sandbox(link)->name;
	struct job_look here = *q;
	struct buf script, said;
	int rc;

	here.slurm = link_sandbox(link)->slurm;
	buf_init(&script, SIZE_MAX);
	job_look_script(&script, &here);
	rc = ask(link, script.data, LOOK_MS + (int64_t)q->wait_s * 1000, &said,
	    until, err);
	if (rc == 0)
		rc =
		    job_status_parse(s, said.data, said.len, q->max_bytes, err);
	else if (err->code == ERR_TIMEOUT && said.len > 0 && q->grep[0] != '\0')
		blame_expression(q, box, err);
	if (rc == 0 && s->bad_grep[0] != '\0') {
		rc = err_set(err, ERR_INVALID,
		    "%s: grep on %s does not take '%.200s': %s", q->grep_arg,
		    box, q->grep, s->bad_grep);
		job_status_free(s);
	}
	buf_free(&said);
	buf_free(&script);
	return rc;
}

/* The rest of the line that begins with "word ". */
static char *
line_of(const struct buf *said, const char *word)
{
	const char *at = said->data;
	size_t n = strlen(word);

	for (; at != NULL; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, word, n) == 0 && at[n] == ' ')
			return xstrndup(at + n + 1, strcspn(at + n + 1, "\n"));
	}
	return xstrdup("");
}

int
job_stop(struct link *link, const char *name, int64_t task, int grace_ms,
    struct job_end *e, const struct until *until, struct err *err)
{
	struct buf script, said;
	char *text;
	int rc;

	memset(e, 0, sizeof(*e));
	buf_init(&e->survivors, 4096);
	buf_init(&script, SIZE_MAX);
	job_text_set_stop(&script, name, grace_ms);
	job_text_set_task(&script, task);
	job_text_add(&script, job_text_stop, link_sandbox(link)->slurm);
	rc = ask(link, script.data, LOOK_MS + grace_ms, &said, until, err);
	buf_free(&script);
	if (rc == 0) {
		text = line_of(&said, "was");
		e->was_running = strcmp(text, "1") == 0;
		free(text);
		text = line_of(&said, "state");
		rc = find_state(text, &e->state);
		if (strcmp(text, "scheduler") == 0)
			err_set(err, ERR_INVALID, "%s", for_slurm);
		else if (node_of(text) != NULL)
			err_set(err, ERR_INVALID,
			    "the job was started on another machine with the "
			    "same home (%.80s), and can only be ended from "
			    "there",
			    node_of(text));
		else if (rc == -1)
			err_set(err, ERR_IO,
			    "the host's word about the job makes no sense");
		free(text);
		text = line_of(&said, "left");
		buf_adds(&e->survivors, text);
		e->verified = e->survivors.len == 0;
		free(text);
	}
	buf_free(&said);
	return rc;
}

/* Jobs of the queue that are ours; the others are told about besides. */
static void
note_known(json_t *known, const struct slurm_said *said)
{
	char job[24];

	snprintf(job, sizeof(job), "%lld", (long long)said->job);
	if (said->job > 0)
		json_object_set_new(known, job, json_true());
}

static void
take_other(const char *line, const json_t *known, job_each *each, void *data)
{
	struct slurm_row row;
	struct job_status s;
	char job[24];

	if (!str_starts(line, "q ") ||
	    slurm_row_parse(&row, SLURM_QUEUE, line + 2) == -1)
		return;
	snprintf(job, sizeof(job), "%lld", (long long)row.job);
	if (json_object_get(known, job) != NULL)
		return;
	status_init(&s);
	slurm_status(&row, &s);
	if (job_state_live(s.state))
		each(data, row.name, &s);
	job_status_free(&s);
}

/* "queue ..." and "q ROW" lines up to an empty one.  Returns how many bytes
 * they had. */
static size_t
take_others(const char *text, size_t len, const json_t *known, job_each *each,
    void *data)
{
	const char *at = text, *end = text + len, *nl;

	while (
	    (nl = memchr(at, '\n', (size_t)(end - at))) != NULL && nl != at) {
		char *line = xstrndup(at, (size_t)(nl - at));

		take_other(line, known, each, data);
		free(line);
		at = nl + 1;
	}
	return (size_t)(at - text) + (nl != NULL);
}

int64_t
job_list_parse(const char *text, size_t len, job_each *each, void *data,
    struct err *err)
{
	const char *at = text, *end = text + len;
	json_t *known = json_object();
	int64_t gone;

	while (str_starts(at, "name ")) {
		char *name = xstrndup(at + 5, strcspn(at + 5, "\n"));
		struct job_status s;
		struct said said;
		ssize_t used;

		status_init(&s);
		used = take_lines(&s, &said, at, (size_t)(end - at));
		if (used > 0)
			each(data, name, &s);
		note_known(known, &said.slurm);
		slurm_said_free(&said.slurm);
		job_status_free(&s);
		free(name);
		if (used <= 0)
			break;
		at += used;
	}
	if (str_starts(at, "queue "))
		at += take_others(at, (size_t)(end - at), known, each, data);
	json_decref(known);
	if (str_starts(at, "gone ") &&
	    str_to_int(at + 5, 0, INT64_MAX, &gone) == 0)
		return gone;
	return err_set(err, ERR_IO,
	    "the host's word about its jobs makes no sense");
}

int64_t
job_list(struct link *link, int cleanup_days, job_each *each, void *data,
    const struct until *until, struct err *err)
{
	struct buf script, said;
	int64_t gone = -1;

	buf_init(&script, SIZE_MAX);
	job_text_set_number(&script, "A", cleanup_days);
	job_text_set_task(&script, 0);
	job_text_add(&script, job_text_list, link_sandbox(link)->slurm);
	if (ask(link, script.data, LOOK_MS, &said, until, err) == 0)
		gone = job_list_parse(said.data, said.len, each, data, err);
	buf_free(&script);
	buf_free(&said);
	return gone;
}
