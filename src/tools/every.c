/* Asking all sandboxes. */
#include "tools/every.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"

/* Sandboxes asked at the same time. */
#define THREADS_MAX 32

/* What the threads share. */
struct asking {
	struct call *call;
	every_ask *ask;
	const void *data;
	pthread_mutex_t lock;
	size_t next;
	json_t **results;
};

static void *
asker(void *arg)
{
	struct asking *a = arg;
	const struct config *c = &a->call->app->config;
	size_t i;

	for (;;) {
		pthread_mutex_lock(&a->lock);
		i = a->next++;
		pthread_mutex_unlock(&a->lock);
		if (i >= c->count)
			return NULL;
		a->results[i] = a->ask(a->call, &c->sandboxes[i], a->data);
	}
}

json_t *
every_sandbox(struct call *call, every_ask *ask, const void *data,
    struct err *err)
{
	size_t count = call->app->config.count, i, started = 0;
	size_t wanted = count < THREADS_MAX ? count : THREADS_MAX;
	struct asking a = { .call = call, .ask = ask, .data = data };
	pthread_t threads[THREADS_MAX];
	json_t *list = json_array();

	a.results = xcalloc(count + 1, sizeof(json_t *));
	pthread_mutex_init(&a.lock, NULL);
	while (started + 1 < wanted &&
	    pthread_create(&threads[started], NULL, asker, &a) == 0)
		started++;
	asker(&a); /* this thread helps; alone, if need be */
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < count; i++)
		json_array_append_new(list, a.results[i]);
	pthread_mutex_destroy(&a.lock);
	free(a.results);
	if (until_check(&call->until, err) == -1) {
		json_decref(list);
		return NULL;
	}
	return list;
}
