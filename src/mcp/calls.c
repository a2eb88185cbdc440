/*
 * The pool of call threads.
 *
 * One lock guards everything here and "cancelled" of each request.  A request
 * is in the queue, or in the "current" of one worker, or gone.
 */
#include "mcp/calls.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"

/* Tools keep little on their stack; errors are a kilobyte each. */
#define STACK_SIZE ((size_t)512 << 10)

struct worker {
	struct calls *calls;
	pthread_t thread;
	int cancel[2];           /* pipe; a byte in it: the call is cancelled */
	struct request *current; /* or NULL: waits for work */
};

struct calls {
	const struct calls_ops *ops;
	pthread_mutex_t lock;
	pthread_cond_t work; /* the queue grew, or we are ending */
	struct worker *workers;
	unsigned max_running;
	unsigned started; /* workers that exist */
	unsigned idle;    /* of these, without a call */
	struct request *first;
	struct request **last;
	unsigned queued;
	unsigned max_queued;
	bool ending;
	bool watched; /* somebody waits for nothing to be under way */
	bool told;    /* and was told so */
	int none[2];  /* by a byte in this pipe */
};

struct calls *
calls_new(unsigned max_running, unsigned max_queued,
    const struct calls_ops *ops, struct err *err)
{
	struct calls *c = xcalloc(1, sizeof(*c));

	if (fs_pipe(c->none, err) == -1) {
		free(c);
		return NULL;
	}
	c->ops = ops;
	c->max_running = max_running;
	c->max_queued = max_queued;
	c->workers = xcalloc(max_running, sizeof(*c->workers));
	c->last = &c->first;
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->work, NULL);
	return c;
}

static struct request *
queue_take(struct calls *c)
{
	struct request *rq = c->first;

	c->first = rq->next;
	if (c->first == NULL)
		c->last = &c->first;
	c->queued--;
	return rq;
}

static void
tell_if_none(struct calls *c)
{
	if (!c->watched || c->told || c->queued > 0 || c->idle < c->started)
		return;
	c->told = true;
	(void)!write(c->none[1], "n", 1);
}

/* The call is over: nobody can cancel it any more.  Was it cancelled? */
static bool
finish(struct worker *w, struct request *rq)
{
	char byte;

	w->current = NULL;
	if (rq->cancelled)
		(void)!read(w->cancel[0], &byte, 1);
	return rq->cancelled;
}

static void
serve_one(struct worker *w, struct request *rq)
{
	struct calls *c = w->calls;
	json_t *message;
	bool cancelled;

	w->current = rq;
	c->idle--;
	pthread_mutex_unlock(&c->lock);

	rq->call.until.cancel_fd = w->cancel[0];
	message = c->ops->run(rq);

	pthread_mutex_lock(&c->lock);
	cancelled = finish(w, rq);
	pthread_mutex_unlock(&c->lock);
	if (!cancelled)
		c->ops->reply(rq, message);
	json_decref(message);
	c->ops->drop(rq);

	pthread_mutex_lock(&c->lock);
	c->idle++;
	tell_if_none(c);
}

static void *
work(void *arg)
{
	struct worker *w = arg;
	struct calls *c = w->calls;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		if (c->queued > 0)
			serve_one(w, queue_take(c));
		else if (c->ending)
			break;
		else
			pthread_cond_wait(&c->work, &c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* With the lock held.  A machine that gives no more threads is no error as
 * long as there is one. */
static int
start_worker(struct calls *c)
{
	struct worker *w = &c->workers[c->started];
	pthread_attr_t attr;
	struct err err;
	int rc;

	if (fs_pipe(w->cancel, &err) == -1) {
		log_warn("cannot start a call thread: %s", err.msg);
		return -1;
	}
	w->calls = c;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_SIZE);
	rc = pthread_create(&w->thread, &attr, work, w);
	pthread_attr_destroy(&attr);
	if (rc != 0) {
		close(w->cancel[0]);
		close(w->cancel[1]);
		log_warn("cannot start a call thread: error %d", rc);
		return -1;
	}
	c->started++;
	c->idle++;
	return 0;
}

int
calls_add(struct calls *c, struct request *rq)
{
	int rc = -1;

	pthread_mutex_lock(&c->lock);
	if (c->queued >= c->idle && c->started < c->max_running)
		start_worker(c);
	if (c->started > 0 && c->queued < c->idle + c->max_queued) {
		rq->next = NULL;
		*c->last = rq;
		c->last = &rq->next;
		c->queued++;
		pthread_cond_signal(&c->work);
		rc = 0;
	}
	pthread_mutex_unlock(&c->lock);
	return rc;
}

/* With the lock held: the place in the queue that points to this id. */
static struct request **
find_queued(struct calls *c, const json_t *id)
{
	struct request **at;

	for (at = &c->first; *at != NULL; at = &(*at)->next) {
		if (json_equal((*at)->msg.id, id))
			return at;
	}
	return NULL;
}

/* With the lock held: the worker that runs this id. */
static struct worker *
find_running(struct calls *c, const json_t *id)
{
	unsigned i;

	for (i = 0; i < c->started; i++) {
		struct request *rq = c->workers[i].current;

		if (rq != NULL && json_equal(rq->msg.id, id))
			return &c->workers[i];
	}
	return NULL;
}

bool
calls_have(struct calls *c, const json_t *id)
{
	bool have;

	pthread_mutex_lock(&c->lock);
	have = find_running(c, id) != NULL || find_queued(c, id) != NULL;
	pthread_mutex_unlock(&c->lock);
	return have;
}

static void
cancel_running(struct worker *w)
{
	if (w->current->cancelled)
		return;
	w->current->cancelled = true;
	(void)!write(w->cancel[1], "c", 1);
}

void
calls_cancel(struct calls *c, const json_t *id)
{
	struct request **at, *rq = NULL;
	struct worker *w;

	pthread_mutex_lock(&c->lock);
	w = find_running(c, id);
	at = w == NULL ? find_queued(c, id) : NULL;
	if (w != NULL)
		cancel_running(w);
	else if (at != NULL) {
		rq = *at;
		*at = rq->next;
		if (*at == NULL)
			c->last = at;
		c->queued--;
		tell_if_none(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (rq != NULL)
		c->ops->drop(rq);
}

void
calls_cancel_all(struct calls *c)
{
	struct request *rq;
	unsigned i;

	pthread_mutex_lock(&c->lock);
	while (c->queued > 0) {
		rq = queue_take(c);
		c->ops->drop(rq);
	}
	for (i = 0; i < c->started; i++) {
		if (c->workers[i].current != NULL)
			cancel_running(&c->workers[i]);
	}
	tell_if_none(c);
	pthread_mutex_unlock(&c->lock);
}

int
calls_wait(struct calls *c, int ms)
{
	struct pollfd none = { .fd = c->none[0], .events = POLLIN };
	struct until until = until_in(ms);
	struct err err;
	char byte;
	int rc;

	pthread_mutex_lock(&c->lock);
	c->watched = true;
	tell_if_none(c);
	pthread_mutex_unlock(&c->lock);
	rc = until_poll(&until, &none, 1, &err) == -1 ? -1 : 0;
	pthread_mutex_lock(&c->lock);
	c->watched = false;
	if (c->told)
		(void)!read(c->none[0], &byte, 1);
	c->told = false;
	pthread_mutex_unlock(&c->lock);
	return rc;
}

void
calls_free(struct calls *c)
{
	unsigned i;

	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_broadcast(&c->work);
	pthread_mutex_unlock(&c->lock);
	for (i = 0; i < c->started; i++) {
		pthread_join(c->workers[i].thread, NULL);
		close(c->workers[i].cancel[0]);
		close(c->workers[i].cancel[1]);
	}
	close(c->none[0]);
	close(c->none[1]);
	pthread_cond_destroy(&c->work);
	pthread_mutex_destroy(&c->lock);
	free(c->workers);
	free(c);
}
