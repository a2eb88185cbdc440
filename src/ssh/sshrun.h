/*
 * Running the ssh program, with the environment it is to have.
 */
#ifndef SSH_SSHRUN_H
#define SSH_SSHRUN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/proc.h"
#include "base/until.h"
#include "ssh/askpass.h"

/*
 * Run the command line "list" (strings) to its end.  Its environment is ours
 * without secrets and with an agent if there is one; with "ask" (or NULL) our
 * program answers its prompts.  In a "session" of its own it outlives us.
 */
int sshrun(const json_t *list, const struct askpass *ask, bool session,
    struct proc_result *res, const struct until *until, struct err *err);

/* Is there an ssh program, and is it fit for us?  Looks once per process. */
int sshrun_check(const struct until *until, struct err *err);

/* What "ssh -v" wrote.  If it told its version, nobody has to look again. */
void sshrun_heard(const char *text);

/* The version that "ssh -V" printed, as major * 100 + minor; 0 if unreadable.
 */
int sshrun_version(const char *text);

#endif
