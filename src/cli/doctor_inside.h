/*
 * A sandbox being looked at, as the doctor's files share it.
 */
#ifndef CLI_DOCTOR_INSIDE_H
#define CLI_DOCTOR_INSIDE_H

#include <jansson.h>
#include <stdint.h>

#include "base/until.h"
#include "config/sandbox.h"
#include "ssh/handshake.h"
#include "ssh/login.h"
#include "ssh/master.h"

struct visit {
	const struct sandbox *sb;
	const char *config_file; /* as the user named it, or NULL */
	const struct until *until;
	json_t *list;
	char *runtime_dir;
	struct login_target target;
	struct handshake hello;
	struct master master;
	int64_t rtt_ms; /* of the TCP connection; 0: not known */
};

/* "ssh -p 2222 ann@host" with another program and more behind it, for the
 * reader to copy.  Caller frees. */
char *visit_line(const struct visit *v, const char *program, const char *rest);

/* What to do about a login that failed so.  Caller frees. */
char *visit_login_todo(const struct visit *v, const struct err *why);

/* Report a check that failed; -1. */
int visit_failed(struct visit *v, const char *check, const char *todo,
    const char *found);

/* From the name's address to the login; -1 if a step failed. */
int visit_way(struct visit *v);

/* What is there, once we are logged in. */
void visit_inside(struct visit *v);

#endif
