/* What Slurm says about a job. */
#include "job/slurm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ROWS_MAX 100000
#define TASKS_MAX ROWS_MAX
#define LISTS_MAX 64 /* rows with a list of tasks; Slurm has one, or a few */
#define MARK "rsmcp "

/* --- rows ----------------------------------------------------------------- */

/* The next field; "" behind the last. */
static void
field(const char **at, char *out, size_t size)
{
	size_t n = strcspn(*at, "|");

	snprintf(out, size, "%.*s", (int)(n < size ? n : size - 1), *at);
	*at += n + ((*at)[n] == '|');
}

static int64_t
field_number(const char **at)
{
	char text[24];
	int64_t n;

	field(at, text, sizeof(text));
	return str_to_int(text, 0, INT64_MAX, &n) == 0 ? n : 0;
}

/* "5", "5_3", "5_[2-9%1]", and "5+0" of jobs of several parts. */
static int
take_id(struct slurm_row *row, const char *id)
{
	size_t n = strspn(id, "0123456789");
	char number[24];

	snprintf(number, sizeof(number), "%.*s", n < 20 ? (int)n : 20, id);
	if (n == 0 || str_to_int(number, 1, INT64_MAX, &row->job) == -1)
		return -1;
	row->task = -1;
	if (id[n] != '_')
		return id[n] == '\0' || id[n] == '+' ? 0 : -1;
	id += n + 1;
	if (id[0] != '[')
		return str_to_int(id, 0, INT64_MAX, &row->task);
	snprintf(row->tasks, sizeof(row->tasks), "%.*s",
	    (int)strcspn(id + 1, "]"), id + 1);
	return 0;
}

/* sacct writes "CANCELLED by 1000", and a plus where there is more to say. */
static void
take_state(struct slurm_row *row, const char **at)
{
	field(at, row->state, sizeof(row->state));
	row->state[strspn(row->state, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_")] = '\0';
}

static void
take_exit(struct slurm_row *row, const char **at)
{
	char text[24], *colon;
	int64_t n;

	field(at, text, sizeof(text));
	colon = strchr(text, ':');
	if (colon == NULL)
		return;
	*colon = '\0';
	if (str_to_int(text, 0, 255, &n) == 0)
		row->code = (int)n;
	if (str_to_int(colon + 1, 0, 127, &n) == 0)
		row->signal = (int)n;
}

/* "N exited CODE TIME" or "N killed SIGNAL TIME" */
static int
take_record(struct slurm_row *row, const char *text)
{
	char task[24], how[12], what[12];
	int64_t n;

	if (sscanf(text, "%23s %11s %11s", task, how, what) != 3 ||
	    str_to_int(task, 0, INT64_MAX, &row->task) == -1 ||
	    str_to_int(what, 0, 255, &n) == -1)
		return -1;
	if (strcmp(how, "killed") == 0)
		row->signal = (int)n;
	else
		row->code = (int)n;
	snprintf(row->state, sizeof(row->state), "%s",
	    row->code == 0 ? "COMPLETED" : "FAILED");
	return 0;
}

int
slurm_row_parse(struct slurm_row *row, enum slurm_kind kind, const char *text)
{
	char id[300], some[64];

	memset(row, 0, sizeof(*row));
	row->kind = kind;
	row->code = row->signal = -1;
	if (kind == SLURM_OWN)
		return take_record(row, text);
	field(&text, id, sizeof(id));
	take_state(row, &text);
	if (take_id(row, id) == -1 || row->state[0] == '\0')
		return -1;
	if (kind == SLURM_ACCT)
		take_exit(row, &text);
	else
		field(&text, row->reason, sizeof(row->reason));
	row->start = field_number(&text);
	field(&text, row->nodes, sizeof(row->nodes));
	if (kind == SLURM_ACCT)
		return 0;
	field(&text, some, sizeof(some)); /* the time limit */
	field(&text, some, sizeof(some));
	if (str_starts(some, MARK))
		snprintf(row->mark, sizeof(row->mark), "%.40s",
		    some + strlen(MARK));
	snprintf(row->name, sizeof(row->name), "%s", text);
	return 0;
}

/* --- tasks ---------------------------------------------------------------- */

struct range {
	int64_t first, last, step;
};

static bool
in_range(const struct range *r, int64_t task)
{
	return task >= r->first && task <= r->last &&
	    (task - r->first) % r->step == 0;
}

/* "3", "2-9" or "0-10:2" at the start of "at", which moves behind it. */
static bool
next_range(const char **at, struct range *r)
{
	int n = 0;

	r->step = 1;
	/* NOLINTNEXTLINE(cert-err34-c): checked by the count */
	if (sscanf(*at, "%9" SCNd64 "%n", &r->first, &n) != 1 || r->first < 0)
		return false;
	*at += n;
	r->last = r->first;
	/* NOLINTNEXTLINE(cert-err34-c) */
	if (sscanf(*at, "-%9" SCNd64 "%n", &r->last, &n) == 1)
		*at += n;
	/* NOLINTNEXTLINE(cert-err34-c) */
	if (sscanf(*at, ":%9" SCNd64 "%n", &r->step, &n) == 1)
		*at += n;
	if (r->step < 1)
		r->step = 1;
	*at += **at == ',';
	return r->last >= r->first;
}

int64_t
slurm_tasks_count(const char *tasks)
{
	struct range r;
	int64_t sum = 0;

	while (next_range(&tasks, &r))
		sum += (r.last - r.first) / r.step + 1;
	return sum;
}

bool
slurm_tasks_have(const char *tasks, int64_t task)
{
	struct range r;

	while (next_range(&tasks, &r)) {
		if (in_range(&r, task))
			return true;
	}
	return false;
}

/* --- taking lines --------------------------------------------------------- */

void
slurm_said_init(struct slurm_said *said)
{
	memset(said, 0, sizeof(*said));
	said->task = -1;
}

void
slurm_said_free(struct slurm_said *said)
{
	free(said->rows);
	slurm_said_init(said);
}

static void
add_row(struct slurm_said *said, enum slurm_kind kind, const char *text)
{
	struct slurm_row row;

	if (slurm_row_parse(&row, kind, text) == -1 || said->count >= ROWS_MAX)
		return;
	if (row.tasks[0] != '\0' && ++said->lists > LISTS_MAX)
		return;
	if (said->count == said->cap) {
		said->cap = said->cap > 0 ? 2 * said->cap : 4;
		said->rows = xreallocarray(said->rows, said->cap, sizeof(row));
	}
	said->rows[said->count++] = row;
}

/* "TIME ok", "TIME down WORDS", or "0 " if it was not needed. */
static void
take_queue(struct slurm_said *said, const char *value)
{
	const char *how = strchr(value, ' ');

	how = how != NULL ? how + 1 : "";
	said->ok = strcmp(how, "ok") == 0;
	if (str_starts(how, "down"))
		snprintf(said->trouble, sizeof(said->trouble), "%.190s",
		    how[4] == ' ' ? how + 5 : "");
}

/* "NUMBER", "NUMBER TASK", or "" if it has none. */
static void
take_number(struct slurm_said *said, const char *value)
{
	char number[24] = "", task[24] = "";

	said->seen = true;
	if (sscanf(value, "%23s %23s", number, task) < 1 ||
	    str_to_int(number, 1, INT64_MAX, &said->job) == -1)
		return;
	if (str_to_int(task, 0, INT64_MAX, &said->task) == -1)
		said->task = -1;
}

bool
slurm_take(struct slurm_said *said, const char *word, const char *value)
{
	static const struct {
		const char *word;
		enum slurm_kind kind;
	} rows[] = {
		{ "q", SLURM_QUEUE },
		{ "done", SLURM_DONE },
		{ "acct", SLURM_ACCT },
		{ "task", SLURM_OWN },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].word, word) == 0) {
			add_row(said, rows[i].kind, value);
			return true;
		}
	}
	if (strcmp(word, "queue") == 0)
		take_queue(said, value);
	else if (strcmp(word, "slurm") == 0)
		take_number(said, value);
	else if (strcmp(word, "array") == 0)
		snprintf(said->wanted, sizeof(said->wanted), "%s", value);
	else
		return strcmp(word, "gone") == 0;
	return true;
}

/* --- what it means -------------------------------------------------------- */

/* What becomes of a job in a state of Slurm's. */
enum meaning {
	MEANS_PENDING,
	MEANS_RUNNING,
	MEANS_COMPLETED,
	MEANS_FAILED,
	MEANS_CANCELLED,
	MEANS_LOST, /* not its own fault: it can be resumed */
	MEANINGS,
};

static enum meaning
meaning_of(const char *state)
{
	static const struct {
		const char *state;
		enum meaning meaning;
	} rows[] = {
		{ "PENDING", MEANS_PENDING },
		{ "CONFIGURING", MEANS_PENDING },
		{ "REQUEUED", MEANS_PENDING },
		{ "REQUEUE_HOLD", MEANS_PENDING },
		{ "REQUEUE_FED", MEANS_PENDING },
		{ "SPECIAL_EXIT", MEANS_PENDING },
		{ "RESV_DEL_HOLD", MEANS_PENDING },
		{ "COMPLETED", MEANS_COMPLETED },
		{ "FAILED", MEANS_FAILED },
		{ "LAUNCH_FAILED", MEANS_FAILED },
		{ "OUT_OF_MEMORY", MEANS_FAILED },
		{ "DEADLINE", MEANS_FAILED },
		{ "CANCELLED", MEANS_CANCELLED },
		{ "TIMEOUT", MEANS_LOST },
		{ "PREEMPTED", MEANS_LOST },
		{ "NODE_FAIL", MEANS_LOST },
		{ "BOOT_FAIL", MEANS_LOST },
		{ "REVOKED", MEANS_LOST },
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].state, state) == 0)
			return rows[i].meaning;
	}
	/* RUNNING, COMPLETING, SUSPENDED, and whatever is new. */
	return MEANS_RUNNING;
}

static void
set_end(struct job_status *s, enum job_state state, int code, int signal)
{
	s->state = state;
	s->exit_code = code;
	s->signal = signal;
}

/* Is there a record of our own runner about its end? */
static bool
recorded(const struct job_status *s)
{
	return s->state == JOB_EXITED || s->state == JOB_KILLED;
}

static void
set_reason(struct job_status *s, const char *reason)
{
	if (strcmp(reason, "None") != 0 && strcmp(reason, "(null)") != 0)
		snprintf(s->reason, sizeof(s->reason), "%s", reason);
}

/* Its accounting says "0:125" then, which is no signal that there is. */
static bool
too_much_memory(const struct slurm_row *row)
{
	return strcmp(row->state, "OUT_OF_MEMORY") == 0;
}

/* Without a record there is what Slurm has written down itself.  Its queue has
 * no code, but our runner did not come to its end then. */
static void
set_failed(struct job_status *s, const struct slurm_row *row)
{
	bool memory = too_much_memory(row);

	if (recorded(s) && !(memory && s->exit_code == 0))
		return;
	if (memory)
		set_end(s, JOB_KILLED, 128 + 9, 9);
	else if (row->signal > 0)
		set_end(s, JOB_KILLED, 128 + row->signal, row->signal);
	else if (row->code >= 0)
		set_end(s, JOB_EXITED, row->code, 0);
	else {
		set_end(s, JOB_KILLED, -1, 0);
		set_reason(s, row->reason);
	}
}

static void
apply(struct job_status *s, const struct slurm_row *row)
{
	enum meaning m = meaning_of(row->state);

	if (row->kind != SLURM_OWN)
		snprintf(s->slurm_state, sizeof(s->slurm_state), "%s",
		    row->state);
	snprintf(s->nodes, sizeof(s->nodes), "%s", row->nodes);
	/* Of one that waits it is a guess; it has when it was submitted. */
	if (row->start > 0 && m != MEANS_PENDING)
		s->started = row->start;
	s->reason[0] = '\0';
	switch (m) {
	case MEANS_PENDING:
		set_end(s, JOB_PENDING, -1, 0);
		set_reason(s, row->reason);
		break;
	case MEANS_COMPLETED:
		if (!recorded(s))
			set_end(s, JOB_EXITED, 0, 0);
		break;
	case MEANS_FAILED:
		set_failed(s, row);
		break;
	case MEANS_CANCELLED:
		s->stopped = true;
		if (!recorded(s))
			set_end(s, JOB_KILLED, -1, 0);
		break;
	case MEANS_LOST:
		set_end(s, JOB_LOST, -1, 0);
		snprintf(s->reason, sizeof(s->reason), "%s", row->state);
		break;
	default:
		set_end(s, JOB_RUNNING, -1, 0);
	}
	if (m == MEANS_PENDING || m == MEANS_RUNNING)
		s->ended = 0;
}

/* Of two rows about the same: what is there now, else the newer word of the
 * one who knows best. */
static bool
better(const struct slurm_row *a, const struct slurm_row *b)
{
	if (a->kind == SLURM_QUEUE || b->kind == SLURM_QUEUE)
		return a->kind == SLURM_QUEUE && b->kind != SLURM_QUEUE;
	if (a->kind != b->kind)
		return a->kind < b->kind;
	return a->start > b->start;
}

static const struct slurm_row *
best_row(const struct slurm_said *said)
{
	const struct slurm_row *best = NULL;
	size_t i;

	for (i = 0; i < said->count; i++) {
		const struct slurm_row *r = &said->rows[i];
		bool mine = r->task == said->task;

		if (r->tasks[0] != '\0')
			mine = said->task >= 0 &&
			    slurm_tasks_have(r->tasks, said->task);
		if (mine && (best == NULL || better(r, best)))
			best = r;
	}
	return best;
}

static void
set_unknown(const struct slurm_said *said, struct job_status *s)
{
	set_end(s, JOB_UNKNOWN, -1, 0);
	s->ended = 0;
	snprintf(s->problem, sizeof(s->problem), "Slurm could not be asked: %s",
	    said->trouble[0] != '\0' ? said->trouble : "it gave no answer");
}

/* --- arrays --------------------------------------------------------------- */

static bool
is_array(const struct slurm_said *said)
{
	size_t i;

	for (i = 0; i < said->count; i++) {
		if (said->rows[i].task >= 0 || said->rows[i].tasks[0] != '\0')
			return true;
	}
	return false;
}

static int
by_task(const void *a, const void *b)
{
	const struct slurm_row *x = *(const struct slurm_row *const *)a;
	const struct slurm_row *y = *(const struct slurm_row *const *)b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return better(x, y) ? -1 : better(y, x);
}

static void
note_failed(struct job_array *a, int64_t task)
{
	size_t n = strlen(a->bad);

	if (n + 24 < sizeof(a->bad))
		snprintf(a->bad + n, sizeof(a->bad) - n, "%s%" PRId64,
		    n > 0 ? "," : "", task);
}

static void
count_row(struct job_status *s, const struct slurm_row *row)
{
	struct job_array *a = &s->array;
	int64_t n = row->task >= 0 ? 1 : slurm_tasks_count(row->tasks);
	int64_t *const counts[MEANINGS] = { &a->pending, &a->running,
		&a->completed, &a->failed, &a->cancelled, &a->lost };
	enum meaning m = meaning_of(row->state);

	*counts[m] += n;
	if (m >= MEANS_FAILED && row->task >= 0)
		note_failed(a, row->task);
	if (m == MEANS_LOST)
		snprintf(s->reason, sizeof(s->reason), "%s", row->state);
	if (m == MEANS_PENDING && a->running == 0)
		set_reason(s, row->reason);
}

/* The code of the array is the highest of its tasks that failed, as Slurm
 * counts it.  "rows" are all of one task, the best one first. */
static void
note_code(const struct slurm_row *const *rows, size_t count, int *worst)
{
	int top = -1;
	size_t i;

	if (meaning_of(rows[0]->state) != MEANS_FAILED)
		return;
	for (i = 0; i < count && rows[i]->task == rows[0]->task; i++) {
		int code =
		    rows[i]->signal > 0 ? 128 + rows[i]->signal : rows[i]->code;

		if (!too_much_memory(rows[i]) && code > top)
			top = code;
	}
	if (top <= 0 && too_much_memory(rows[0]))
		top = 128 + 9;
	if (top > *worst)
		*worst = top;
}

static void
conclude(struct job_status *s, int worst)
{
	const struct job_array *a = &s->array;

	if (a->running > 0)
		set_end(s, JOB_RUNNING, -1, 0);
	else if (a->pending > 0)
		set_end(s, JOB_PENDING, -1, 0);
	else if (a->lost > 0)
		set_end(s, JOB_LOST, -1, 0);
	else if (a->failed > 0)
		set_end(s, JOB_EXITED, worst, 0);
	else if (a->cancelled > 0)
		set_end(s, JOB_KILLED, -1, 0);
	else
		set_end(s, JOB_EXITED, 0, 0);
	s->stopped = s->stopped || a->cancelled > 0;
}

static int
task_is(const void *key, const void *row)
{
	const int64_t *task = key;
	const struct slurm_row *const *r = row;

	return *task < (*r)->task ? -1 : *task > (*r)->task;
}

/* The tasks that there is a word about. */
struct told {
	const struct slurm_row *const *rows; /* of single ones, sorted */
	size_t count;
	struct range *lists;
	size_t list_count;
};

/* What the lists say is read once, and not for each task: they are long. */
static void
read_lists(struct told *t, const struct slurm_said *said)
{
	size_t i, cap = 0;
	struct range r;

	for (i = 0; i < said->count; i++) {
		const char *at = said->rows[i].tasks;

		while (next_range(&at, &r)) {
			if (t->list_count == cap) {
				cap = cap > 0 ? 2 * cap : 4;
				t->lists = xreallocarray(t->lists, cap,
				    sizeof(*t->lists));
			}
			t->lists[t->list_count++] = r;
		}
	}
}

static bool
is_told(const struct told *t, int64_t task)
{
	size_t i;

	if (bsearch(&task, t->rows, t->count, sizeof(const struct slurm_row *),
	        task_is) != NULL)
		return true;
	for (i = 0; i < t->list_count; i++) {
		if (in_range(&t->lists[i], task))
			return true;
	}
	return false;
}

/* Tasks that nobody says a word about: they are still to come, or they left
 * no record and Slurm has forgotten them. */
static void
count_silent(const struct slurm_said *said, const struct slurm_row *const *rows,
    size_t count, bool over, struct job_array *a)
{
	struct told told = { .rows = rows, .count = count };
	const char *at = said->wanted;
	int64_t task, tried = 0;
	struct range r;

	read_lists(&told, said);
	while (next_range(&at, &r)) {
		for (task = r.first; task <= r.last && tried < TASKS_MAX;
		     task += r.step) {
			tried++;
			if (is_told(&told, task))
				continue;
			if (!over) {
				a->pending++;
				continue;
			}
			a->lost++;
			note_failed(a, task);
		}
	}
	free(told.lists);
}

/* A list of tasks that is as long as its place may have been cut, and of too
 * many some were dropped. */
static bool
lists_are_whole(const struct slurm_said *said)
{
	size_t i;

	if (said->lists > LISTS_MAX)
		return false;
	for (i = 0; i < said->count; i++) {
		if (strlen(said->rows[i].tasks) + 1 ==
		    sizeof(said->rows[i].tasks))
			return false;
	}
	return true;
}

static bool
in_queue(const struct slurm_said *said)
{
	size_t i;

	for (i = 0; i < said->count; i++) {
		if (said->rows[i].kind == SLURM_QUEUE)
			return true;
	}
	return false;
}

/* All tasks: each counts once, by its best row. */
static void
judge_array(const struct slurm_said *said, struct job_status *s)
{
	const struct slurm_row **rows =
	    xcalloc(said->count + 1, sizeof(const struct slurm_row *));
	bool over = s->state != JOB_RUNNING;
	size_t count = 0, i;
	int worst = 1;

	s->reason[0] = '\0';
	for (i = 0; i < said->count; i++) {
		const struct slurm_row *r = &said->rows[i];

		if (r->task >= 0)
			rows[count++] = r;
		else if (r->tasks[0] != '\0')
			count_row(s, r);
	}
	qsort(rows, count, sizeof(const struct slurm_row *), by_task);
	for (i = 0; i < count; i++) {
		if (i > 0 && rows[i]->task == rows[i - 1]->task)
			continue;
		count_row(s, rows[i]);
		note_code(rows + i, count - i, &worst);
	}
	/* If it is not over, the copy of the queue has the others; one that is
	 * older than the job has none at all. */
	if ((over || !in_queue(said)) && lists_are_whole(said))
		count_silent(said, rows, count, over, &s->array);
	if (over && s->array.lost > 0 && s->reason[0] == '\0')
		snprintf(s->reason, sizeof(s->reason), "gone");
	conclude(s, worst);
	/* Tasks have ended, but nobody said that all of them have. */
	if (!over && !job_state_live(s->state))
		set_end(s, JOB_RUNNING, -1, 0);
	free(rows);
}

/* --- all of it ------------------------------------------------------------ */

static void
set_id(int64_t job, int64_t task, struct job_status *s)
{
	int n = snprintf(s->slurm_id, sizeof(s->slurm_id), "%" PRId64, job);

	if (task >= 0)
		snprintf(s->slurm_id + n, sizeof(s->slurm_id) - (size_t)n,
		    "_%" PRId64, task);
}

/* The far side says "running" of all that is not over for sure. */
static void
judge_live(const struct slurm_said *said, const struct slurm_row *row,
    struct job_status *s)
{
	if (!said->ok)
		set_unknown(said, s);
	else if (row != NULL)
		apply(s, row);
	else /* it was submitted just now */
		set_end(s, JOB_PENDING, -1, 0);
}

void
slurm_judge(const struct slurm_said *said, struct job_status *s)
{
	const struct slurm_row *row;

	if (!said->seen || s->state == JOB_NONE)
		return;
	if (said->job == 0) { /* it has no number (yet) */
		if (s->state == JOB_RUNNING)
			set_unknown(said, s);
		return;
	}
	set_id(said->job, said->task, s);
	row = best_row(said);
	if (said->task < 0 &&
	    (is_array(said) ||
	        (said->wanted[0] != '\0' && s->state != JOB_RUNNING))) {
		s->array.is = true;
		if (s->state == JOB_RUNNING && !said->ok)
			set_unknown(said, s);
		else
			judge_array(said, s);
	} else if (s->state == JOB_RUNNING) {
		judge_live(said, row, s);
	} else if (row != NULL) {
		apply(s, row);
	} else if (!recorded(s)) {
		set_end(s, JOB_LOST, -1, 0);
		snprintf(s->reason, sizeof(s->reason), "gone");
	}
}

void
slurm_status(const struct slurm_row *row, struct job_status *s)
{
	set_id(row->job, row->task, s);
	apply(s, row);
}
