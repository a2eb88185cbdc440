/* What tools that work on a sandbox have in common. */
#include "tools/remote.h"

#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "tools/app.h"

#define REST 1000 /* for everything but the data */

size_t
remote_answer_chars(bool more)
{
	return more ? REMOTE_ANSWER_MOST : REMOTE_ANSWER_CHARS - REST;
}

struct link *
remote_link(struct call *call, const char *sandbox_name, struct err *err)
{
	const struct sandbox *sb = app_sandbox(call->app, sandbox_name, err);

	return sb != NULL ? links_get(call->app->links, sb) : NULL;
}

int
remote_path_check(const char *path, struct err *err)
{
	if (!str_blank(path))
		return 0;
	return err_set(err, ERR_INVALID,
	    "argument 'remote_path' must not be empty");
}

void
remote_set_news(json_t *result, struct link *link)
{
	char news[256];

	link_news(link, news, sizeof(news));
	if (news[0] != '\0')
		json_object_set_new(result, "host_key_added",
		    utf8_json(news, strlen(news)));
}

void
remote_set_sandbox(json_t *result, struct link *link, const char *sandbox_name)
{
	if (str_blank(sandbox_name))
		json_object_set_new(result, "sandbox",
		    json_string(link_sandbox(link)->name));
	remote_set_news(result, link);
}

void
remote_exec_progress(void *call, int64_t elapsed_ms, const char *line)
{
	call_progress(call, (double)elapsed_ms / 1000, 0, line);
}
