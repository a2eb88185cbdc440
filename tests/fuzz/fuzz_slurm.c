/*
 * Whatever Slurm says about jobs and nodes, it is read or passed over, and the
 * numbers that come of it make sense.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "job/cluster.h"
#include "job/slurm.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
one_row(const char *text)
{
	static const enum slurm_kind kinds[] = { SLURM_QUEUE, SLURM_DONE,
		SLURM_ACCT, SLURM_OWN };
	struct job_status s;
	struct slurm_row row;
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (slurm_row_parse(&row, kinds[i], text) == -1)
			continue;
		must(row.task >= -1 && row.code >= -1 && row.signal >= -1);
		must(slurm_tasks_count(row.tasks) >= 0);
		memset(&s, 0, sizeof(s));
		slurm_status(&row, &s);
		must(job_state_name(s.state) != NULL);
	}
}

/* Lines "word value", as the far side prints them. */
static void
all_lines(const char *text, enum job_state far)
{
	struct job_status s = { .state = far, .exit_code = -1 };
	char *copy = xstrdup(text), *at = copy, *line;
	struct slurm_said said;

	slurm_said_init(&said);
	while ((line = strsep(&at, "\n")) != NULL) {
		char *word = strsep(&line, " ");

		one_row(line != NULL ? line : word);
		if (line != NULL)
			slurm_take(&said, word, line);
	}
	slurm_judge(&said, &s);
	must(s.exit_code >= -1 && s.exit_code <= 128 + 255);
	must(s.state != JOB_UNKNOWN || s.problem[0] != '\0');
	must(s.array.pending >= 0 && s.array.running >= 0);
	slurm_said_free(&said);
	free(copy);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup(size > 0 ? (const char *)data : "", size);
	const json_t *score;
	json_t *o;

	all_lines(text, JOB_RUNNING);
	all_lines(text, JOB_LOST);
	o = cluster_parse(text);
	score = json_object_get(o, "idle_score");
	must(json_is_null(score) ||
	    (json_real_value(score) >= 0 && json_real_value(score) <= 1));
	json_decref(o);
	free(text);
	return 0;
}
