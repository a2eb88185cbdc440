/* The far side's texts, put together. */
#include "job/text.h"

#include <inttypes.h>

#include "base/quote.h"
#include "ssh/script.h"

void
job_text_set(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%s=", name);
	quote_sh(out, value);
	buf_addc(out, '\n');
}

void
job_text_set_number(struct buf *out, const char *name, int64_t n)
{
	buf_addf(out, "%s=%" PRId64 "\n", name, n);
}

void
job_text_set_stop(struct buf *out, const char *name, int grace_ms)
{
	job_text_set(out, "N", name);
	job_text_set_number(out, "G", grace_ms / 10);
	job_text_set(out, "T", script_kill);
	job_text_set(out, "E", script_left);
}

void
job_text_set_task(struct buf *out, int64_t task)
{
	if (task > 0)
		job_text_set_number(out, "q_task", task - 1);
	else
		buf_adds(out, "q_task=\n");
}

void
job_text_add(struct buf *out, const char *text, bool slurm)
{
	buf_adds(out, job_text_ident);
	buf_adds(out, job_text_common);
	if (slurm)
		buf_adds(out, job_text_slurm);
	buf_adds(out, text);
}
