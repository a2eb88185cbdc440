/*
 * What a job asks of Slurm, as options of sbatch and srun.
 */
#ifndef JOB_SUBMIT_H
#define JOB_SUBMIT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* NULL, "" and 0 are left to Slurm. */
struct submit {
	const char *partition;
	const char *account;
	const char *qos;
	const char *time;
	int64_t nodes;
	int64_t ntasks;
	int64_t cpus; /* of each task */
	const char *mem;
	const char *gpus;
	const char *constraint;
	const char *array;
	int requeue;   /* place in submit_requeue; -1: as the cluster does */
	json_t *extra; /* list of "--option=value"; or NULL */
};

extern const char *const submit_requeue[]; /* "no", "yes", NULL */

/* Is anything asked for? */
bool submit_given(const struct submit *s);

/* " --option=value ..." as words for a shell; " " if there are none.  Whatever
 * is no such option is refused by a sentence that names the argument. */
int submit_options(struct buf *out, const struct submit *s, bool array_allowed,
    struct err *err);

#endif
