/*
 * The arguments that are for clusters: what a job asks of Slurm.
 */
#ifndef TOOLS_CLUSTER_ARGS_H
#define TOOLS_CLUSTER_ARGS_H

#include "base/buf.h"
#include "base/err.h"
#include "config/sandbox.h"
#include "job/submit.h"
#include "tools/arg.h"

/* For a struct submit. */
extern const struct arg cluster_fields[];

#define CLUSTER_ARG_SLURM                                              \
	.type = ARG_OBJECT, .fields = cluster_fields, .cluster = true, \
	.help = "What to ask of Slurm, on a cluster."

/* The options of a job there; refused on a sandbox that is no cluster. */
int cluster_options(struct buf *out, const struct sandbox *sb,
    const struct submit *s, bool array_allowed, struct err *err);

#endif
