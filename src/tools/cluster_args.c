/* The arguments that are for clusters. */
#include "tools/cluster_args.h"

#define ARG(field) .name = #field, .offset = offsetof(struct submit, field)
#define TEXT(field, words)                                      \
	{                                                       \
		ARG(field), .type = ARG_STRING, .help = (words) \
	}
#define COUNT(field, words)                                            \
	{                                                              \
		ARG(field), .type = ARG_INT, .min = 0, .max = 1000000, \
		            .help = (words)                            \
	}

const struct arg cluster_fields[] = {
	TEXT(partition, "Partition."),
	TEXT(account, "Account."),
	TEXT(qos, "Quality of service."),
	TEXT(time, "Limit: minutes, or days-hours:minutes:seconds."),
	COUNT(nodes, "Nodes."),
	COUNT(ntasks, "Tasks."),
	COUNT(cpus, "CPUs of each task."),
	TEXT(mem, "Memory of each node, such as 16G."),
	TEXT(gpus, "Number, or TYPE:NUMBER."),
	TEXT(constraint, "Features of the nodes."),
	TEXT(array,
	    "Tasks of an array, such as 0-9%2; NAME[3] is one of them."),
	{ ARG(requeue), .type = ARG_ENUM, .choices = submit_requeue,
	    .help = "Whether Slurm runs it again after a failed node or "
	            "preemption." },
	{ ARG(extra), .type = ARG_STRINGS,
	    .help = "Further options, such as --exclusive." },
	{ 0 },
};

int
cluster_options(struct buf *out, const struct sandbox *sb,
    const struct submit *s, bool array_allowed, struct err *err)
{
	if (!sb->slurm && submit_given(s))
		return err_set(err, ERR_INVALID,
		    "argument 'slurm' is for clusters, and %s is none; if it "
		    "is, set \"scheduler\": \"slurm\" in its entry",
		    sb->name);
	return submit_options(out, s, array_allowed, err);
}
