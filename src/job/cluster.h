/*
 * How busy a cluster is, as its scheduler tells.
 */
#ifndef JOB_CLUSTER_H
#define JOB_CLUSTER_H

#include <jansson.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

/* Ask it.  The object has scheduler, partitions, gpus, jobs and idle_score;
 * what could not be measured is null. */
json_t *cluster_run(struct link *link, const struct until *until,
    struct err *err);

/* Read what the far side printed.  Pure. */
json_t *cluster_parse(const char *text);

#endif
