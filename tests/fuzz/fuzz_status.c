/*
 * Whatever a host says about a job, about all of them or about a start, it is
 * read or refused, and never more is shown than was asked for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "job/job.h"

#define MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
each(void *data, const char *name, struct job_status *s)
{
	(void)data;
	must(name != NULL && job_state_name(s->state) != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup(size > 0 ? (const char *)data : "", size);
	size_t len = strlen(text);
	struct job_status s;
	struct job_handle h;
	struct err err;

	/* Its log may hold any byte. */
	if (job_status_parse(&s, size > 0 ? (const char *)data : "", size, MAX,
	        &err) == 0) {
		must(s.log.len <= MAX);
		must(job_state_name(s.state) != NULL);
		must(s.left_count <= JOB_LEFT_MAX);
		must(s.exit_code >= -1 && s.exit_code <= 128 + 255);
		job_status_free(&s);
	}
	must(job_list_parse(text, len, each, NULL, &err) >= -1);
	memset(&h, 0, sizeof(h));
	if (job_answer_parse(&h, text, true, "box", &err) == 0) {
		must(h.log_file != NULL && strlen(h.name) <= JOB_NAME_MAX);
		must(strpbrk(h.name, " ;&|<>()$`\\\"'*?[]#~%!{}\n") == NULL);
	}
	job_handle_free(&h);
	free(text);
	return 0;
}
