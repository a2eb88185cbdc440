/* Looking at sandboxes. */
#include "tools/look.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "config/dirs.h"
#include "ssh/login.h"
#include "ssh/probe.h"

/* Sandboxes asked at the same time. */
#define LOOKERS_MAX 32

/* Logging in may take this much longer than connecting. */
#define LOOK_EXTRA_MS 15000

/* Port and user as ssh would use them, where the entry leaves them out. */
static void
set_address(json_t *o, const struct sandbox *sb, const struct until *until)
{
	struct login_target t = { 0 };
	struct err err;
	char *dir = NULL;

	if (sb->port == 0 || sb->user == NULL)
		dir = dirs_runtime(&err);
	if (dir != NULL)
		login_target(&t, sb, dir, until, &err);
	json_object_set_new(o, "host", json_string(sb->host));
	if (sb->port != 0)
		t.port = sb->port;
	json_object_set_new(o, "port",
	    t.port != 0 ? json_integer(t.port) : json_null());
	if (sb->user != NULL)
		json_object_set_new(o, "user", json_string(sb->user));
	else
		json_object_set_new(o, "user",
		    t.user != NULL ? utf8_json(t.user, strlen(t.user))
		                   : json_null());
	login_target_free(&t);
	free(dir);
}

static void
set_resources(json_t *o, struct link *link, const struct until *until)
{
	struct err err;
	json_t *r = probe_run(link, until, &err);

	if (r == NULL) {
		r = json_object();
		json_object_set_new(r, "error",
		    utf8_json(err.msg, strlen(err.msg)));
	}
	json_object_set_new(o, "resources", r);
}

json_t *
look_one(struct call *call, const struct sandbox *sb, bool resources)
{
	struct link *link = links_get(call->app->links, sb);
	struct until until = until_within(&call->until,
	    (int64_t)sb->connect_timeout_s * 1000 + LOOK_EXTRA_MS);
	json_t *o = json_object();
	struct err err;
	char news[256];
	bool alive;

	json_object_set_new(o, "name", json_string(sb->name));
	set_address(o, sb, &until);
	json_object_set_new(o, "is_active",
	    json_boolean(sb == app_active(call->app)));
	alive = link_check(link, &until, &err) == 0;
	json_object_set_new(o, "connection_alive", json_boolean(alive));
	if (!alive)
		json_object_set_new(o, "connection_error",
		    utf8_json(err.msg, strlen(err.msg)));
	link_news(link, news, sizeof(news));
	if (news[0] != '\0')
		json_object_set_new(o, "host_key_added",
		    utf8_json(news, strlen(news)));
	if (alive && resources)
		set_resources(o, link, &until);
	return o;
}

/* What the threads of look_all() share. */
struct looking {
	struct call *call;
	bool resources;
	pthread_mutex_t lock;
	size_t next;
	json_t **results;
};

static void *
looker(void *arg)
{
	struct looking *l = arg;
	const struct config *c = &l->call->app->config;
	size_t i;

	for (;;) {
		pthread_mutex_lock(&l->lock);
		i = l->next++;
		pthread_mutex_unlock(&l->lock);
		if (i >= c->count)
			return NULL;
		l->results[i] =
		    look_one(l->call, &c->sandboxes[i], l->resources);
	}
}

json_t *
look_all(struct call *call, bool resources, struct err *err)
{
	size_t count = call->app->config.count, i, started = 0;
	size_t wanted = count < LOOKERS_MAX ? count : LOOKERS_MAX;
	struct looking l = { .call = call, .resources = resources };
	pthread_t threads[LOOKERS_MAX];
	json_t *list = json_array();

	l.results = xcalloc(count + 1, sizeof(json_t *));
	pthread_mutex_init(&l.lock, NULL);
	while (started + 1 < wanted &&
	    pthread_create(&threads[started], NULL, looker, &l) == 0)
		started++;
	looker(&l); /* this thread helps; alone, if need be */
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (i = 0; i < count; i++)
		json_array_append_new(list, l.results[i]);
	pthread_mutex_destroy(&l.lock);
	free(l.results);
	if (until_check(&call->until, err) == -1) {
		json_decref(list);
		return NULL;
	}
	return list;
}
