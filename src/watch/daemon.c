#include "watch/daemon.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/gate.h"
#include "base/lockfile.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/self.h"
#include "base/str.h"
#include "config/dirs.h"
#include "config/keep.h"
#include "ssh/backoff.h"
#include "ssh/link.h"
#include "store/db.h"
#include "store/meta.h"
#include "store/watches.h"
#include "watch/deliver.h"
#include "watch/event.h"
#include "watch/look.h"
#include "watch/resume.h"
#include "watch/step.h"

#define THREADS 128    /* as many as hosts can use, and no more than this */
#define PER_BOX 2      /* looks at one host at a time */
#define DUE_MAX 400    /* taken from the store at once */
#define LOOK_MS 120000 /* for one look, login included */
#define RESUME_MS 90000
#define STORE_MS 15000
#define FRESH_MS 60000 /* a sandbox's record is read again after this */
#define HEARTBEAT_MS 20000
#define CLOCK_SET_MS 5000 /* clocks go apart no further by themselves */
#define PRUNE_MS 3600000
#define HOLD_MS 30000 /* for a watch that could not be stored */
#define END_MS 3000   /* for looks to end */

/* A host, as its record had it.  A record that changed makes a new one; the
 * old one stays until the end, since its link does. */
struct box {
	char *id; /* key of the record, or the name */
	struct sandbox sb;
	json_t *entry;
	int64_t read_ms;
	struct box *next;
};

/* A watch that is due, or being looked at. */
struct task {
	int64_t id;
	char *sandbox_name, *sandbox_key;
	const char *box_id; /* one of the two */
	bool busy;
	int64_t held_ms; /* not to be looked at again before this; 0 */
	struct task *next;
};

struct daemon {
	const struct daemon_options *opt;
	struct links *links;
	struct deliver *deliver;
	char *program;
	int lock_fd;
	char *lock_path, *state_dir;
	int stop[2];              /* written to at the end: cancels all looks */
	int64_t beat_ms, beat_ts; /* the last one, by both clocks */
	int64_t prune_ms;         /* when old events go again */

	pthread_mutex_t lock; /* for all below */
	struct gate gate;
	struct box *boxes;
	struct task *tasks;
	size_t threads, idle;
	bool ending;
};

static struct until
patience(const struct daemon *d, int64_t ms)
{
	struct until u = until_in(ms);

	u.cancel_fd = d->stop[0];
	return u;
}

/* Writing is not cancelled: what was seen is worth keeping. */
static struct until
to_store(void)
{
	return until_in(STORE_MS);
}

/* --- hosts ----------------------------------------------------------------
 */

static struct box *
find_box(struct daemon *d, const char *id)
{
	struct box *b;

	for (b = d->boxes; b != NULL && strcmp(b->id, id) != 0; b = b->next)
		;
	return b;
}

/* With the lock held.  The newest comes first, so it is found. */
static struct box *
renew_box(struct daemon *d, const char *id, struct sandbox *sb)
{
	struct box *b = find_box(d, id);
	json_t *entry = sandbox_entry(sb);

	if (b != NULL && json_equal(b->entry, entry) &&
	    secret_equal(&b->sb.password, &sb->password) &&
	    secret_equal(&b->sb.key_passphrase, &sb->key_passphrase)) {
		json_decref(entry);
		sandbox_free(sb);
	} else {
		b = xcalloc(1, sizeof(*b));
		b->id = xstrdup(id);
		b->sb = *sb;
		b->entry = entry;
		b->next = d->boxes;
		d->boxes = b;
	}
	b->read_ms = clock_ms();
	return b;
}

/* The sandbox of a watch, or NULL with the reason. */
static const struct sandbox *
get_sandbox(struct daemon *d, const struct task *t, const struct until *until,
    struct err *err)
{
	struct sandbox sb;
	struct box *b;

	pthread_mutex_lock(&d->lock);
	b = find_box(d, t->box_id);
	if (b != NULL && clock_ms() - b->read_ms > FRESH_MS)
		b = NULL;
	pthread_mutex_unlock(&d->lock);
	if (b != NULL)
		return &b->sb;
	if (keep_get(t->sandbox_key, t->sandbox_name, &sb, until, err) == -1) {
		sandbox_free(&sb);
		return NULL;
	}
	pthread_mutex_lock(&d->lock);
	b = renew_box(d, t->box_id, &sb);
	pthread_mutex_unlock(&d->lock);
	return &b->sb;
}

static void
free_boxes(struct box *b)
{
	struct box *next;

	for (; b != NULL; b = next) {
		next = b->next;
		sandbox_free(&b->sb);
		json_decref(b->entry);
		free(b->id);
		free(b);
	}
}

/* --- one watch ------------------------------------------------------------
 */

static void
say_events(const struct step *s)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		log_info("watch %" PRId64 ": event %" PRId64 ", %s: %s",
		    s->watch.id, s->events[i].id, s->events[i].event_type,
		    s->events[i].summary);
}

static void
poke(struct daemon *d)
{
	pthread_mutex_lock(&d->lock);
	if (!d->ending)
		deliver_poke(d->deliver);
	pthread_mutex_unlock(&d->lock);
}

/* Make the step and store it; the record becomes the new one.  1 if a resume
 * is to be started, 0 if not, -1 if it could not be stored. */
static int
apply(struct daemon *d, struct watch *w, const struct observation *o)
{
	struct until until = to_store();
	struct err err;
	struct step s;
	int rc;

	watch_step(w, o, (int64_t)time(NULL), &s);
	rc = watches_save(&s.watch, s.events, s.count, &until, &err);
	if (rc == -1)
		log_error("watch %" PRId64 " could not be stored: %s", w->id,
		    err.msg);
	if (rc == 0) {
		say_events(&s);
		if (s.count > 0)
			poke(d);
		watch_free(w);
		watch_copy(w, &s.watch);
	}
	/* 1: somebody cancelled it meanwhile; then nothing is to be done. */
	rc = rc == 0 ? s.resume : rc == 1 ? 0 : -1;
	step_free(&s);
	return rc;
}

static int
resume(struct daemon *d, struct link *link, struct watch *w)
{
	struct until until = patience(d, RESUME_MS);
	struct observation o;
	struct err err;

	watch_resume(link, w, &o, &err, &until);
	if (err.code == ERR_CANCELLED)
		return 0; /* the next daemon finds it pending */
	backoff_cause(&err);
	return apply(d, w, &o);
}

static int
no_sandbox(struct daemon *d, struct watch *w, const struct err *why)
{
	struct observation o = { .error = why->msg,
		.reason = "",
		.slurm_state = "",
		.boot_id = "",
		.checkpoint_error = "" };

	if (why->code == ERR_CANCELLED)
		return 0;
	o.seen = why->code == ERR_NOT_FOUND ? SEEN_NO_CONFIG : SEEN_UNREACHABLE;
	return apply(d, w, &o);
}

static int
look_at(struct daemon *d, struct task *t, struct watch *w)
{
	struct until until = patience(d, LOOK_MS);
	struct look_query q = { .log_lines = w->max_log_lines,
		.log_max = LOOK_LOG_MAX,
		.checkpoint_max = LOOK_CHECKPOINT_MAX };
	const struct sandbox *sb;
	struct link *link;
	struct look l;
	struct err err;
	int rc = 0;

	sb = get_sandbox(d, t, &until, &err);
	if (sb == NULL)
		return no_sandbox(d, w, &err);
	link = links_get(d->links, sb);
	watch_look(&l, link, w, &q, &until);
	backoff_cause(&l.err);
	if (l.reached || l.err.code != ERR_CANCELLED)
		rc = apply(d, w, &l.seen);
	look_free(&l);
	if (rc == 1)
		rc = resume(d, link, w);
	return rc;
}

/* -1: it could not be read or stored. */
static int
look_after(struct daemon *d, struct task *t)
{
	struct until until = to_store();
	struct watch w;
	struct err err;
	int rc = watches_get(t->id, &w, &until, &err);

	if (rc == 0 && watch_due_at(&w, (int64_t)time(NULL)))
		rc = look_at(d, t, &w);
	else if (rc == -1 && err.code == ERR_NOT_FOUND)
		rc = 0;
	else if (rc == -1)
		log_error("%s", err.msg);
	watch_free(&w);
	return rc;
}

/* --- tasks ----------------------------------------------------------------
 */

static void
free_task(struct task *t)
{
	free(t->sandbox_name);
	free(t->sandbox_key);
	free(t);
}

static void
remove_task(struct daemon *d, struct task *t)
{
	struct task **at;

	for (at = &d->tasks; *at != t; at = &(*at)->next)
		;
	*at = t->next;
	free_task(t);
}

static size_t
busy_at(const struct daemon *d, const char *box_id)
{
	const struct task *t;
	size_t n = 0;

	for (t = d->tasks; t != NULL; t = t->next)
		n += t->busy && strcmp(t->box_id, box_id) == 0;
	return n;
}

/* How many looks there can be at once.  Each host has threads of its own, or
 * some that are dead would take those of the others. */
static size_t
threads_wanted(const struct daemon *d)
{
	const struct task *t, *before;
	size_t n, wanted = 0;

	for (t = d->tasks; t != NULL; t = t->next) {
		n = 0;
		for (before = d->tasks; before != t && n < PER_BOX;
		     before = before->next)
			n += strcmp(before->box_id, t->box_id) == 0;
		wanted += n < PER_BOX;
	}
	return wanted;
}

/* The first whose host has time for it, or NULL. */
static struct task *
next_task(struct daemon *d)
{
	struct task *t;

	for (t = d->tasks; t != NULL; t = t->next) {
		if (!t->busy && t->held_ms == 0 &&
		    busy_at(d, t->box_id) < PER_BOX)
			return t;
	}
	return NULL;
}

static void *
worker(void *data)
{
	struct until never = until_never();
	struct daemon *d = data;
	struct task *t;
	struct err err;
	int rc;

	pthread_mutex_lock(&d->lock);
	while (!d->ending) {
		t = next_task(d);
		if (t == NULL) {
			d->idle++;
			gate_wait(&d->gate, &d->lock, &never, &err);
			d->idle--;
			continue;
		}
		t->busy = true;
		pthread_mutex_unlock(&d->lock);
		rc = look_after(d, t);
		pthread_mutex_lock(&d->lock);
		t->busy = false;
		if (rc == -1)
			t->held_ms = clock_ms() + HOLD_MS;
		else
			remove_task(d, t);
		gate_open(&d->gate);
	}
	d->threads--;
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

static bool
has_task(const struct daemon *d, int64_t id)
{
	const struct task *t;

	for (t = d->tasks; t != NULL; t = t->next) {
		if (t->id == id)
			return true;
	}
	return false;
}

/* At the end of the list: those that wait longer come first. */
static void
add_task(struct daemon *d, struct watch_due *w)
{
	struct task *t = xcalloc(1, sizeof(*t)), **at;

	t->id = w->id;
	t->sandbox_name = w->sandbox_name;
	t->sandbox_key = w->sandbox_key;
	w->sandbox_name = w->sandbox_key = NULL;
	t->box_id =
	    str_blank(t->sandbox_key) ? t->sandbox_name : t->sandbox_key;
	for (at = &d->tasks; *at != NULL; at = &(*at)->next)
		;
	*at = t;
}

/* Those that could not be stored may be read again. */
static void
drop_held(struct daemon *d)
{
	struct task *t, *next;

	for (t = d->tasks; t != NULL; t = next) {
		next = t->next;
		if (t->held_ms != 0 && t->held_ms <= clock_ms())
			remove_task(d, t);
	}
}

static void
add_threads(struct daemon *d, size_t wanted)
{
	pthread_t thread;

	while (d->threads < THREADS && d->threads < wanted) {
		if (pthread_create(&thread, NULL, worker, d) != 0) {
			log_error("cannot start a thread");
			return;
		}
		pthread_detach(thread);
		d->threads++;
	}
}

/* --- the loop -------------------------------------------------------------
 */

/* After the clock was set, or the machine slept, the last one looks old. */
static bool
beat_due(const struct daemon *d, int64_t now)
{
	int64_t since = clock_ms() - d->beat_ms;
	int64_t off = (now - d->beat_ts) * 1000 - since;

	return d->beat_ms == 0 || since >= HEARTBEAT_MS || off > CLOCK_SET_MS ||
	    off < -CLOCK_SET_MS;
}

static void
beat(struct daemon *d, size_t due)
{
	int64_t now = (int64_t)time(NULL);
	struct until until = to_store();
	struct err err;
	json_t *o;
	char *db;

	if (!beat_due(d, now))
		return;
	db = path_join(d->state_dir, DB_FILE);
	o = json_pack("{s:I, s:i, s:s, s:s, s:i, s:s, s:s*}", "ts",
	    (json_int_t)now, "stale_after_s", META_STALE_S, "config_path",
	    d->opt->config_path, "db_path", db, "pid", (int)getpid(), "version",
	    RSMCP_VERSION, "program", d->program);
	free(db);
	if (o == NULL)
		o = json_pack("{s:I, s:i}", "ts", (json_int_t)now, "pid",
		    (int)getpid());
	if (meta_set("heartbeat", o, now, &until, &err) == -1) {
		log_error("%s", err.msg);
	} else {
		d->beat_ms = clock_ms();
		d->beat_ts = now;
	}
	json_decref(o);
	o = json_pack("{s:I, s:I}", "ts", (json_int_t)now, "due_watch_count",
	    (json_int_t)due);
	(void)meta_set("last_scan", o, now, &until, &err);
	json_decref(o);
}

static void
scan(struct daemon *d)
{
	struct until until = to_store();
	struct watch_due *list = NULL;
	size_t i, count = 0;
	struct err err;

	if (watches_due((int64_t)time(NULL), DUE_MAX, &list, &count, &until,
	        &err) == -1) {
		log_error("%s", err.msg);
		return;
	}
	pthread_mutex_lock(&d->lock);
	drop_held(d);
	for (i = 0; i < count; i++) {
		if (!has_task(d, list[i].id))
			add_task(d, &list[i]);
	}
	add_threads(d, threads_wanted(d));
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->lock);
	watches_due_free(list, count);
	beat(d, count);
}

/* Old events go, some at a time and then an hour later. */
static void
prune(struct daemon *d)
{
	struct until until = to_store();
	struct err err;
	int n;

	if (clock_ms() < d->prune_ms)
		return;
	n = event_prune((int64_t)time(NULL), &until, &err);
	if (n == -1)
		log_error("old events could not be removed: %s", err.msg);
	if (n <= 0)
		d->prune_ms = clock_ms() + PRUNE_MS;
}

/* How long until something is due, at most the loop's sleep. */
static int64_t
pause_ms(const struct daemon *d)
{
	int64_t seconds = d->opt->loop_sleep_s;
	struct until until = to_store();
	struct err err;

	if (watches_wait((int64_t)time(NULL), d->opt->loop_sleep_s, &seconds,
	        &until, &err) == -1)
		return d->opt->loop_sleep_s * 1000;
	/* What is due and not done yet must not make the loop hot. */
	return seconds > 0 ? seconds * 1000 : 500;
}

static void
loop(struct daemon *d)
{
	struct until until;
	struct err err;

	for (;;) {
		scan(d);
		prune(d);
		until = until_in(pause_ms(d));
		until.cancel_fd = d->opt->cancel_fd;
		until_poll(&until, NULL, 0, &err);
		if (err.code == ERR_CANCELLED)
			return;
	}
}

/* --- begin and end --------------------------------------------------------
 */

static int
take_lock(struct daemon *d, struct err *err)
{
	struct until now = until_in(0);
	char text[LOCKFILE_TEXT], holder[LOCKFILE_TEXT];

	d->state_dir = dirs_state(err);
	if (d->state_dir == NULL)
		return -1;
	d->lock_path = path_join(d->state_dir, DAEMON_LOCK);
	snprintf(text, sizeof(text), "%ld", (long)getpid());
	d->lock_fd = lockfile_take(d->lock_path, text, holder, &now, err);
	if (d->lock_fd == -1 && err->code == ERR_DENIED)
		err_set(err, ERR_DENIED,
		    "another watchdog (process %.20s) looks after %s already",
		    holder, d->state_dir);
	return d->lock_fd == -1 ? -1 : 0;
}

/* Looks are cancelled and given a little time; what is stuck after that does
 * not hold up the end. */
static bool
end_threads(struct daemon *d)
{
	struct until until = until_in(END_MS);
	struct err err;
	bool gone;

	(void)!write(d->stop[1], "s", 1);
	pthread_mutex_lock(&d->lock);
	d->ending = true;
	gate_open(&d->gate);
	while (
	    d->threads > 0 && gate_wait(&d->gate, &d->lock, &until, &err) == 0)
		;
	gone = d->threads == 0;
	pthread_mutex_unlock(&d->lock);
	return gone;
}

static void
daemon_free(struct daemon *d)
{
	struct task *next;

	deliver_free(d->deliver);
	links_free(d->links);
	free(d->program);
	free_boxes(d->boxes);
	for (; d->tasks != NULL; d->tasks = next) {
		next = d->tasks->next;
		free_task(d->tasks);
	}
	close(d->stop[0]);
	close(d->stop[1]);
	pthread_mutex_destroy(&d->lock);
	if (d->lock_fd != -1)
		lockfile_give(d->lock_path, d->lock_fd);
	free(d->lock_path);
	free(d->state_dir);
	free(d);
}

int
daemon_run(const struct daemon_options *opt, struct err *err)
{
	struct daemon *d = xcalloc(1, sizeof(*d));
	int rc;

	d->opt = opt;
	d->lock_fd = -1;
	d->stop[0] = d->stop[1] = -1;
	pthread_mutex_init(&d->lock, NULL);
	rc = take_lock(d, err);
	if (rc == 0)
		rc = fs_pipe(d->stop, err);
	if (rc == 0) {
		d->links = links_new(false);
		d->deliver = deliver_new(err);
		if (d->deliver == NULL)
			rc = -1;
	}
	if (rc == 0) {
		d->program = self_path();
		log_info("the watchdog works on %s", d->state_dir);
		loop(d);
		if (!end_threads(d)) {
			deliver_free(d->deliver);
			lockfile_give(d->lock_path, d->lock_fd);
			_exit(0);
		}
	}
	daemon_free(d);
	return rc;
}
