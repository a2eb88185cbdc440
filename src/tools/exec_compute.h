/*
 * A command of exec_bash on a compute node: srun around it.
 */
#ifndef TOOLS_EXEC_COMPUTE_H
#define TOOLS_EXEC_COMPUTE_H

#include "job/submit.h"
#include "ssh/exec.h"

/* As exec_run() for "req", whose command is replaced.  What srun leaves in the
 * queue when it is ended is cancelled. */
int exec_compute(struct link *link, struct exec_request *req,
    const struct submit *wish, struct exec_result *res,
    const struct until *until, struct err *err);

#endif
