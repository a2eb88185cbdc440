/* The doctor's look at a sandbox. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/quote.h"
#include "cli/doctor.h"
#include "cli/doctor_inside.h"
#include "cli/report.h"

char *
visit_line(const struct visit *v, const char *program, const char *rest)
{
	struct buf b;

	buf_init(&b, 4096);
	buf_adds(&b, program);
	if (v->target.port != 0 && v->target.port != 22)
		buf_addf(&b, " -p %d", v->target.port);
	buf_addc(&b, ' ');
	if (v->sb->user != NULL)
		buf_addf(&b, "%s@", v->sb->user);
	quote_sh(&b, v->sb->host);
	buf_adds(&b, rest);
	return buf_take(&b);
}

int
visit_failed(struct visit *v, const char *check, const char *todo,
    const char *found)
{
	report_add(v->list, check, REPORT_FAILED, todo, "%s", found);
	return -1;
}

json_t *
doctor_host(const struct sandbox *sb, const char *config_file,
    const struct until *until)
{
	struct visit v = {
		.sb = sb,
		.config_file = config_file,
		.until = until,
		.list = json_array(),
	};

	if (visit_way(&v) == 0)
		visit_inside(&v);
	master_free(&v.master);
	login_target_free(&v.target);
	free(v.runtime_dir);
	return v.list;
}
