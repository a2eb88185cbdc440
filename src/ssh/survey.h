/*
 * What a host has to offer, for who looks for a fault: its shell and what
 * that costs, tools, disk, clock; one script in one round trip.  How many
 * sessions it allows is tried.
 */
#ifndef SSH_SURVEY_H
#define SSH_SURVEY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"

struct survey {
	bool shell;       /* a shell came up and ran the script */
	int64_t ready_ms; /* until it did, from asking for a session on */
	int64_t ahead_ms; /* its clock less ours; whole seconds are known */
	bool clock;       /* that is known */
	struct buf noise; /* what its rc files printed before, cleaned */
	json_t *facts;    /* see survey_parse() */
};

/*
 * Ask on the master's socket, in "workdir" (or NULL: the home directory).
 * -1: no session.  A shell that did not come up is a result; survey_free() in
 * every case.
 */
int survey_run(struct survey *s, const char *socket, const char *workdir,
    const struct until *until, struct err *err);
void survey_free(struct survey *s);

/*
 * Read what the script printed.  Pure.
 *
 *	shell	path of the login shell, or null
 *	time	seconds since 1970, or null
 *	dir	"ok", "missing" or "readonly", or null
 *	disk	{total_mb, free_mb, used_pct}, or null
 *	tools	{name: version, or "" if that is not known}
 *	gpu	what nvidia-smi said, or null if there is none
 *	gpu_ok	whether it worked, or null if it did not end
 */
json_t *survey_parse(const char *text);

/* How many sessions the server lets us open at once on this connection, at
 * most "most"; -1 if the connection is lost. */
int survey_sessions(const char *socket, int most, const struct until *until,
    struct err *err);

#endif
