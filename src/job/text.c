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
job_text_add(struct buf *out, const char *text)
{
	buf_adds(out, job_text_ident);
	buf_adds(out, job_text_common);
	buf_adds(out, text);
}
