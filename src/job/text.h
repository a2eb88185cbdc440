/*
 * What jobs are made of on the far side: texts for any POSIX shell, from
 * src/job/far.  What they are told, and what they print, is there.
 */
#ifndef JOB_TEXT_H
#define JOB_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* Functions that the others use: which process is meant ... */
extern const char job_text_ident[];
/* ... where jobs are, how a run is doing. */
extern const char job_text_common[];
/* Start one; prints one line. */
extern const char job_text_start[];
/* What runs it, kept as a file with the run. */
extern const char job_text_run[];
/* Look at one. */
extern const char job_text_look[];
/* End one. */
extern const char job_text_stop[];
/* Wait until one has had its time, before the text that ends it. */
extern const char job_text_limit[];
/* All of them. */
extern const char job_text_list[];
/* What these need besides where jobs go to Slurm. */
extern const char job_text_slurm[];
/* What a cluster has. */
extern const char job_text_cluster[];

/* NAME='value' */
void job_text_set(struct buf *out, const char *name, const char *value);
void job_text_set_number(struct buf *out, const char *name, int64_t n);

/* What job_text_stop has to know. */
void job_text_set_stop(struct buf *out, const char *name, int grace_ms);

/* q_task='number'; "task" as in struct job_look. */
void job_text_set_task(struct buf *out, int64_t task);

/* One of the texts, with the functions it uses. */
void job_text_add(struct buf *out, const char *text, bool slurm);

#endif
