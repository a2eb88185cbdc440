/* What the tools of the server "remote-ssh" have in common. */
#include "tools/remote_ssh.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/utf8.h"
#include "tools/app.h"

struct link *
remote_ssh_link(struct call *call, struct err *err)
{
	const struct sandbox *sb = app_ssh_host(call->app, err);

	return sb != NULL ? links_get(call->app->links, sb) : NULL;
}

void
remote_ssh_job_name(char out[JOB_NAME_MAX + 1], const struct remote_job *j)
{
	snprintf(out, JOB_NAME_MAX + 1, "remote-%" PRId64 "-%s", j->id,
	    j->token);
}

void
remote_ssh_new_line(struct buf *text)
{
	if (text->len > 0 && text->data[text->len - 1] != '\n')
		buf_addc(text, '\n');
}

json_t *
remote_ssh_result(struct buf *text, struct link *link)
{
	char news[256];
	json_t *result;

	link_news(link, news, sizeof(news));
	if (news[0] != '\0')
		log_warn("%s", news);
	if (text->len == 0)
		buf_adds(text, "(no output)");
	result = utf8_json(text->data, text->len);
	buf_free(text);
	return result;
}
