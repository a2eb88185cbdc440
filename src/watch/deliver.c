/* Delivery of events. */
#include "watch/deliver.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/gate.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "watch/desktop.h"
#include "watch/event.h"
#include "watch/webhook.h"

#define COMMAND_MS 300000
#define DESKTOP_MS 10000
#define STORE_MS 15000
#define LOOK_S 5     /* at least so often the store is asked */
#define STOP_MS 3000 /* for what is cancelled to end */
#define STACK ((size_t)256 << 10)
#define OUTPUT_MAX 8192
#define SLOTS_MAX 16

/* How long a delivery may take, how many run at once, how many of them for one
 * receiver, how often one is tried. */
static const struct plan {
	int64_t lease_s;
	size_t slots, each;
	int64_t give_up;
} plans[CHANNELS] = {
	[CHANNEL_FILE] = { 60, 2, 2, 100 },
	[CHANNEL_DESKTOP] = { 60, 2, 2, 6 },
	[CHANNEL_WEBHOOK] = { 120, 16, 4, 30 },
	[CHANNEL_COMMAND] = { 400, 16, 4, 3 },
};

/* --- One delivery --------------------------------------------------------- */

static int
notify(const struct delivery *one, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, DESKTOP_MS);
	char *name = event_line(one->watch_name, 120);
	char *message = event_line(one->event.summary, 240);
	char *subtitle = xasprintf("watch %" PRId64 "%s%s", one->event.watch_id,
	    name[0] != '\0' ? ": " : "", name);
	int rc = desktop_notify(subtitle, message, &soon, err);

	free(subtitle);
	free(message);
	free(name);
	return rc;
}

/* A file that cannot be written now may be so later, whatever the reason. */
static int
write_file(const struct delivery *one, char **file, struct buf *body,
    struct err *err)
{
	*file = event_file(one->event.id, err);
	if (*file != NULL && event_write(&one->event, body, err) == 0)
		return 0;
	free(*file);
	*file = NULL;
	err->code = ERR_IO;
	return -1;
}

static int
call_webhook(const struct delivery *one, const struct allow *allow,
    const struct until *until, struct err *err)
{
	struct webhook w = { .url = one->webhook_url,
		.event_id = one->event.id,
		.event_type = one->event.event_type };
	struct buf body;
	char *file;
	int rc;

	buf_init(&body, SIZE_MAX);
	rc = write_file(one, &file, &body, err);
	if (rc == 0) {
		w.body_file = file;
		w.body = body.data;
		w.body_len = body.len;
		rc = webhook_send(&w, allow, until, err);
	}
	buf_free(&body);
	free(file);
	return rc;
}

/* What a command printed, line by line. */
static void
log_output(const struct delivery *one, const struct buf *out, bool failed)
{
	char *text = xstrndup(out->data, out->len), *line, *rest;

	for (line = text; line != NULL && *line != '\0'; line = rest) {
		char *clean;

		rest = strchr(line, '\n');
		if (rest != NULL)
			*rest++ = '\0';
		clean = event_line(line, 500);
		if (failed)
			log_warn("event_command of event %" PRId64 ": %s",
			    one->event.id, clean);
		else
			log_info("event_command of event %" PRId64 ": %s",
			    one->event.id, clean);
		free(clean);
	}
	free(text);
}

static int
judge(const struct proc_result *res, struct err *err)
{
	if (res->signal != 0)
		return err_set(err, ERR_IO,
		    "event_command was ended by signal %d", res->signal);
	if (res->exit_code != 0)
		return err_set(err, ERR_IO,
		    "event_command ended with status %d", res->exit_code);
	return 0;
}

static int
run_command(const struct delivery *one, const struct allow *allow,
    const struct until *until, struct err *err)
{
	const char *argv[] = { "/bin/sh", "-lc", one->event_command, NULL };
	struct proc_request req = { .argv = argv,
		.max_output = OUTPUT_MAX,
		.partial = true };
	struct until soon = until_within(until, COMMAND_MS);
	struct proc_result res;
	struct env env;
	char *file;
	int rc;

	if (allow_check_command(allow, "event_command", err) == -1)
		return -1;
	if (write_file(one, &file, NULL, err) == -1)
		return -1;
	env_init(&env);
	event_env(&env, one, file);
	req.env = (const char *const *)env.list;
	rc = proc_run(&req, &res, &soon, err);
	env_free(&env);
	free(file);
	log_output(one, &res.out, rc == -1 || res.exit_code != 0);
	log_output(one, &res.err, rc == -1 || res.exit_code != 0);
	rc = rc == -1 ? err_wrap(err, "event_command") : judge(&res, err);
	proc_result_free(&res);
	return rc;
}

int
deliver_one(const struct delivery *one, const struct allow *allow,
    const struct until *until, struct err *err)
{
	switch (one->channel) {
	case CHANNEL_FILE:
		return event_write(&one->event, NULL, err);
	case CHANNEL_DESKTOP:
		return notify(one, until, err);
	case CHANNEL_WEBHOOK:
		return call_webhook(one, allow, until, err);
	case CHANNEL_COMMAND:
		return run_command(one, allow, until, err);
	case CHANNELS:
		break;
	}
	return err_set(err, ERR_INVALID, "there is no such channel");
}

int64_t
deliver_again(const struct delivery *one, const struct err *why, int64_t now)
{
	if (why->code == ERR_CANCELLED)
		return now; /* we are stopping: the next of us does it */
	if (one->channel != CHANNEL_FILE &&
	    (why->code == ERR_INVALID || why->code == ERR_DENIED ||
	        why->code == ERR_NOT_FOUND))
		return 0;
	return delivery_next(one->tries, plans[one->channel].give_up, now);
}

/* --- All of them ---------------------------------------------------------- */

/* What a thread of a delivery is given. */
struct task {
	struct deliver *all;
	struct delivery *one;
	struct task *next; /* in the list of all */
};

struct deliver {
	pthread_mutex_t lock;
	struct gate gate; /* something is new, or a delivery ended */
	bool stopping;    /* under the lock, as is all of these */
	size_t running[CHANNELS];
	struct task *tasks; /* those that run */
	uint64_t news;      /* counts the pokes */
	int cancel[2];      /* readable: everything is cancelled */
	pthread_t takers[CHANNELS];
	int started;
};

struct taker {
	struct deliver *all;
	enum event_channel channel;
};

static void
report(const struct delivery *one, const struct err *why)
{
	struct until until = until_in(STORE_MS);
	struct err err;
	int64_t when;
	int rc;

	if (why == NULL) {
		rc = delivery_done(one->event.id, one->channel, &until, &err);
	} else {
		when = deliver_again(one, why, time(NULL));
		log_warn("event %" PRId64 " to %s: %s%s", one->event.id,
		    event_channel_name(one->channel), why->msg,
		    when == 0 ? " (given up)" : "");
		rc = delivery_failed(one->event.id, one->channel, why->msg,
		    when, &until, &err);
	}
	/* Not lost: it is due again when its lease is over. */
	if (rc == -1)
		log_warn("cannot note how a delivery went: %s", err.msg);
}

static void *
do_task(void *arg)
{
	struct task *task = arg, **at;
	struct deliver *all = task->all;
	enum event_channel c = task->one->channel;
	struct until until = until_in(plans[c].lease_s * 1000);
	struct err err = ERR_INIT;
	struct allow allow;
	int rc;

	until.cancel_fd = all->cancel[0];
	allow_load(&allow, true);
	/* It may be half saved; what it allows is known later. */
	if (allow.unread && (c == CHANNEL_COMMAND || c == CHANNEL_WEBHOOK))
		rc = err_set(&err, ERR_IO,
		    "the configuration file cannot be read; see "
		    "`remote-sandbox-mcp doctor`");
	else
		rc = deliver_one(task->one, &allow, &until, &err);
	allow_free(&allow);
	report(task->one, rc == 0 ? NULL : &err);
	pthread_mutex_lock(&all->lock);
	for (at = &all->tasks; *at != task; at = &(*at)->next)
		;
	*at = task->next;
	deliveries_free(task->one, 1);
	free(task);
	all->running[c]--;
	all->news++; /* others may wait for this receiver */
	gate_open(&all->gate);
	pthread_mutex_unlock(&all->lock);
	return NULL;
}

static int
start_thread(pthread_t *thread, bool detached, void *(*run)(void *), void *arg)
{
	pthread_attr_t attr;
	int failed;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	failed = pthread_create(thread, &attr, run, arg);
	pthread_attr_destroy(&attr);
	return failed;
}

/* With the lock held.  A clock that was set makes a delivery due again before
 * it has come to its end. */
static bool
is_running(const struct deliver *all, const struct delivery *one)
{
	const struct task *t;

	for (t = all->tasks; t != NULL; t = t->next) {
		if (t->one->event.id == one->event.id &&
		    t->one->channel == one->channel)
			return true;
	}
	return false;
}

/* Takes what "one" holds, if it is not under way already. */
static void
start_task(struct deliver *all, struct delivery *one)
{
	enum event_channel c = one->channel;
	struct task *task;
	pthread_t thread;
	bool twice;

	pthread_mutex_lock(&all->lock);
	twice = is_running(all, one);
	pthread_mutex_unlock(&all->lock);
	if (twice)
		return;
	task = xcalloc(1, sizeof(*task));
	task->all = all;
	task->one = xmalloc(sizeof(*one));
	*task->one = *one;
	memset(one, 0, sizeof(*one));
	pthread_mutex_lock(&all->lock);
	all->running[c]++;
	task->next = all->tasks;
	all->tasks = task;
	pthread_mutex_unlock(&all->lock);
	/* Without a thread it has to be done here. */
	if (start_thread(&thread, true, do_task, task) != 0)
		do_task(task);
}

/* Wait until there is news, "ms" at most; false at the end. */
static bool
wait_for_news(struct deliver *all, uint64_t *seen, int64_t ms)
{
	struct until until = until_in(ms);
	struct err err;
	bool go_on;

	until.cancel_fd = all->cancel[0];
	pthread_mutex_lock(&all->lock);
	while (!all->stopping && all->news == *seen &&
	    gate_wait(&all->gate, &all->lock, &until, &err) == 0)
		;
	*seen = all->news;
	go_on = !all->stopping;
	pthread_mutex_unlock(&all->lock);
	return go_on;
}

/* Wait for a free slot; how many there are.  False at the end. */
static bool
wait_for_slots(struct deliver *all, enum event_channel c, size_t *slots)
{
	struct until never = until_never();
	struct err err;
	bool go_on;

	never.cancel_fd = all->cancel[0];
	pthread_mutex_lock(&all->lock);
	while (!all->stopping && all->running[c] >= plans[c].slots &&
	    gate_wait(&all->gate, &all->lock, &never, &err) == 0)
		;
	*slots = plans[c].slots - all->running[c];
	go_on = !all->stopping;
	pthread_mutex_unlock(&all->lock);
	return go_on;
}

/* What is being taken. */
struct picking {
	struct deliver *all;
	enum event_channel channel;
	char *receivers[SLOTS_MAX]; /* of those that were */
	size_t count;
};

static const char *
receiver_of(const struct delivery *one)
{
	if (one->channel == CHANNEL_WEBHOOK)
		return one->webhook_url;
	return one->channel == CHANNEL_COMMAND ? one->event_command : "";
}

/* Not too many for one receiver, or they take all slots when it is slow. */
static bool
may_take(const char *receiver, void *data)
{
	struct picking *p = data;
	const struct task *t;
	size_t i, n = 0;

	pthread_mutex_lock(&p->all->lock);
	for (t = p->all->tasks; t != NULL; t = t->next)
		n += t->one->channel == p->channel &&
		    strcmp(receiver_of(t->one), receiver) == 0;
	pthread_mutex_unlock(&p->all->lock);
	for (i = 0; i < p->count; i++)
		n += strcmp(p->receivers[i], receiver) == 0;
	if (n >= plans[p->channel].each)
		return false;
	p->receivers[p->count++] = xstrdup(receiver);
	return true;
}

static int
take_due(struct deliver *all, const struct deliveries_query *given,
    struct delivery **list, size_t *count, const struct until *until,
    struct err *err)
{
	struct picking p = { .all = all, .channel = given->channel };
	struct deliveries_query q = *given;
	int rc;

	assert(q.max <= SLOTS_MAX);
	q.may = may_take;
	q.data = &p;
	rc = deliveries_take(&q, list, count, until, err);
	while (p.count > 0)
		free(p.receivers[--p.count]);
	return rc;
}

/* Start what is due; the milliseconds until there may be more. */
static int64_t
take_some(struct deliver *all, enum event_channel c, size_t max)
{
	struct until until = until_in(STORE_MS);
	int64_t now = time(NULL), seconds = LOOK_S;
	struct deliveries_query q = { .channel = c,
		.now = now,
		.lease_s = plans[c].lease_s,
		.max = max };
	struct delivery *list = NULL;
	struct err err;
	size_t n = 0, i;

	until.cancel_fd = all->cancel[0];
	if (take_due(all, &q, &list, &n, &until, &err) == -1) {
		if (err.code != ERR_CANCELLED)
			log_warn("cannot ask for events to deliver: %s",
			    err.msg);
		return (int64_t)LOOK_S * 1000;
	}
	for (i = 0; i < n; i++)
		start_task(all, &list[i]);
	deliveries_free(list, n);
	if (n > 0)
		return 0;
	if (deliveries_wait(c, now, LOOK_S, &seconds, &until, &err) == -1)
		return (int64_t)LOOK_S * 1000;
	/* A second at least: the clock of the store has no finer ones. */
	return (seconds > 0 ? seconds : 1) * 1000;
}

static void *
take_all(void *arg)
{
	struct taker *taker = arg;
	struct deliver *all = taker->all;
	enum event_channel c = taker->channel;
	uint64_t seen = 0;
	int64_t ms;
	size_t slots;

	free(taker);
	while (wait_for_slots(all, c, &slots)) {
		ms = slots > 0 ? take_some(all, c, slots) : 1000;
		if (ms > 0 && !wait_for_news(all, &seen, ms))
			break;
	}
	return NULL;
}

struct deliver *
deliver_new(struct err *err)
{
	struct deliver *d = xcalloc(1, sizeof(*d));
	struct taker *taker;

	if (fs_pipe(d->cancel, err) == -1) {
		free(d);
		return NULL;
	}
	pthread_mutex_init(&d->lock, NULL);
	for (; d->started < CHANNELS; d->started++) {
		taker = xcalloc(1, sizeof(*taker));
		taker->all = d;
		taker->channel = (enum event_channel)d->started;
		errno = start_thread(&d->takers[d->started], false, take_all,
		    taker);
		if (errno != 0) {
			err_sys(err, "cannot start a thread for deliveries");
			free(taker);
			deliver_free(d);
			return NULL;
		}
	}
	return d;
}

void
deliver_poke(struct deliver *d)
{
	pthread_mutex_lock(&d->lock);
	d->news++;
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->lock);
}

static size_t
count_running(const struct deliver *d)
{
	size_t n = 0;
	int c;

	for (c = 0; c < CHANNELS; c++)
		n += d->running[c];
	return n;
}

void
deliver_free(struct deliver *d)
{
	struct until until = until_in(STOP_MS);
	struct err err;
	size_t left;
	int i;

	if (d == NULL)
		return;
	pthread_mutex_lock(&d->lock);
	d->stopping = true;
	gate_open(&d->gate);
	pthread_mutex_unlock(&d->lock);
	(void)fs_write_all(d->cancel[1], "x", 1);
	for (i = 0; i < d->started; i++)
		pthread_join(d->takers[i], NULL);
	pthread_mutex_lock(&d->lock);
	while (count_running(d) > 0 &&
	    gate_wait(&d->gate, &d->lock, &until, &err) == 0)
		;
	left = count_running(d);
	pthread_mutex_unlock(&d->lock);
	if (left > 0)
		return; /* stuck ones still use it */
	close(d->cancel[0]);
	close(d->cancel[1]);
	pthread_mutex_destroy(&d->lock);
	free(d);
}
