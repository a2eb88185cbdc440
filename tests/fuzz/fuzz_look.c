/*
 * Whatever a host prints in a look, what is taken of it is clean text and one
 * of the known states; and a step of it keeps the promises about resumes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "watch/look.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MARK "0123456789abcdef"

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check(const struct watch *w, const struct look *l)
{
	struct step s;

	must(l->reached && job_state_name(l->seen.state) != NULL);
	must(utf8_valid(l->log.data, l->log.len));
	must(l->log.len <= LOOK_LOG_MAX);
	must(utf8_valid(l->checkpoint.data, l->checkpoint.len));
	watch_step(w, &l->seen, 1000, &s);
	must(!s.resume || l->seen.state == JOB_LOST);
	must(!s.resume || (l->seen.orphans == 0 && !l->seen.stopped));
	step_free(&s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct look_query query = { .log_lines = 10,
		.log_max = 1000,
		.checkpoint_max = 100 };
	struct watch w;
	struct look l;
	struct err err;

	watch_init(&w);
	w.auto_resume = true;
	w.resume_delay_s = 0;
	watch_set(&w.resume_command, "x");
	if (look_parse(&l, &w, &query, MARK, (const char *)data, size, &err) ==
	    0)
		check(&w, &l);
	look_free(&l);
	watch_free(&w);
	return 0;
}
