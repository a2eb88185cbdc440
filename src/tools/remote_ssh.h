/*
 * What the tools of the server "remote-ssh" have in common.  Their results are
 * plain text, and they know one machine: that of SSH_HOST.
 */
#ifndef TOOLS_REMOTE_SSH_H
#define TOOLS_REMOTE_SSH_H

#include <jansson.h>

#include "base/buf.h"
#include "job/job.h"
#include "store/remote_jobs.h"
#include "tools/call.h"

/* The link to that machine; to the active sandbox if SSH_HOST is not set. */
struct link *remote_ssh_link(struct call *call, struct err *err);

/* The name of a job of remote_bash on its host. */
void remote_ssh_job_name(char out[JOB_NAME_MAX + 1],
    const struct remote_job *j);

/* What follows begins a line. */
void remote_ssh_new_line(struct buf *text);

/* The text as a result, "(no output)" if there is none; frees it.  News of the
 * link go to the log: the form of these results is others'. */
json_t *remote_ssh_result(struct buf *text, struct link *link);

#endif
