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

/* The same is seen again and again, and what a resume came to is heard. */
static void
check_steps(const struct watch *first, struct observation *o, bool resumes)
{
	static const enum seen heard[] = { SEEN_RESUMED, SEEN_RESUME_REFUSED,
		SEEN_RESUME_TAKEN };
	enum seen seen = o->seen;
	struct watch w;
	struct step s;
	int64_t now;
	size_t n = 0;

	watch_copy(&w, first);
	w.auto_resume = resumes;
	for (now = 1000; now < 400000 && strcmp(w.status, WATCH_ACTIVE) == 0;
	     now += 40000) {
		watch_step(&w, o, now, &s);
		must(s.count <= STEP_EVENTS);
		must(!s.resume || (resumes && o->state == JOB_LOST));
		must(!s.resume || (o->orphans == 0 && !o->stopped));
		watch_free(&w);
		watch_copy(&w, &s.watch);
		must(w.resume_attempts <= w.max_resume_attempts);
		o->seen = s.resume ? heard[n++ % 3] : seen;
		step_free(&s);
	}
	o->seen = seen;
	watch_free(&w);
}

static void
check(const struct watch *w, struct look *l)
{
	must(l->reached && job_state_name(l->seen.state) != NULL);
	must(utf8_valid(l->log.data, l->log.len));
	must(l->log.len <= LOOK_LOG_MAX);
	must(utf8_valid(l->checkpoint.data, l->checkpoint.len));
	check_steps(w, &l->seen, true);
	check_steps(w, &l->seen, false);
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
	w.resume_delay_s = 0;
	watch_set(&w.resume_command, "x");
	if (look_parse(&l, &w, &query, MARK, (const char *)data, size, &err) ==
	    0)
		check(&w, &l);
	look_free(&l);
	watch_free(&w);
	return 0;
}
