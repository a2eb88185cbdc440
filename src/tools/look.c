/* Looking at sandboxes. */
#include "tools/look.h"

#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/dirs.h"
#include "job/cluster.h"
#include "ssh/login.h"
#include "ssh/probe.h"
#include "tools/every.h"

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
	json_t *r = link_sandbox(link)->slurm ? cluster_run(link, until, &err)
	                                      : probe_run(link, until, &err);

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
	struct until until =
	    until_within(&call->until, (int64_t)sb->connect_timeout_s * 1000);
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
	if (alive && link_sftp_only(link, &err)) {
		json_object_set_new(o, "limitation",
		    utf8_json(err.msg, strlen(err.msg)));
		resources = false;
	}
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

static json_t *
ask(struct call *call, const struct sandbox *sb, const void *data)
{
	return look_one(call, sb, *(const bool *)data);
}

json_t *
look_all(struct call *call, bool resources, struct err *err)
{
	return every_sandbox(call, ask, &resources, err);
}
