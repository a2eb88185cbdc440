/* The far side's texts, put together. */
#include "job/text.h"

#include <inttypes.h>

#include "base/quote.h"

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
job_text_set_task(struct buf *out, int64_t task)
{
	if (task > 0)
		job_text_set_number(out, "U", task - 1);
	else
		buf_adds(out, "U=\n");
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
