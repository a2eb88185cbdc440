/* The kinds of a service, and what they are told. */
#ifndef WATCH_SERVICE_INSIDE_H
#define WATCH_SERVICE_INSIDE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/proc.h"
#include "base/until.h"

/* What is to run, and where. */
struct service_spec {
	char *program;
	char *home;
	char *state_dir, *config_path, *db_path;
	char *out_log, *err_log;
	char *path;     /* PATH for it */
	char suffix[9]; /* of its name: "" for the usual state directory */
	long uid;
};

int service_spec_make(struct service_spec *s, struct err *err);
void service_spec_free(struct service_spec *s);

struct service_kind {
	const char *name;
	bool (*usable)(const struct until *until);
	/* How the system calls it.  Caller frees. */
	char *(*label)(const struct service_spec *s);
	/* The file that defines it; NULL if there is none.  Caller frees. */
	char *(*file)(const struct service_spec *s);
	void (*text)(const struct service_spec *s, struct buf *out);
	/* With the file in place: have it started with the login, and if
	 * "now" is set, start it now, anew if it runs. */
	int (*start)(const struct service_spec *s, bool now,
	    const struct until *until, struct err *err);
	/* Stop it, and have it never started again; the file is still there. */
	int (*stop)(const struct service_spec *s, const struct until *until,
	    struct err *err);
	/* Add what the system says of it to an object. */
	void (*status)(const struct service_spec *s, json_t *o,
	    const struct until *until);
};

extern const struct service_kind service_systemd;
extern const struct service_kind service_launchd;
extern const struct service_kind service_detached;

/* Those of this platform, the best first; NULL-terminated. */
extern const struct service_kind *const service_kinds[];
extern const char service_platform[];

/* Run a program of the system; an exit status other than 0 is a failure with
 * what it said.  "out" may be NULL. */
int service_run(const char *const *argv, struct buf *out,
    const struct until *until, struct err *err);

/* --- Decisions ------------------------------------------------------------ */

struct service_seen {
	bool held;         /* a daemon has the lock */
	bool fresh;        /* its heartbeat is */
	bool program_gone; /* what it runs is not there any more */
	int order;         /* its version: < 0 older than ours, > 0 newer */
};

enum service_need { SERVICE_GOOD, SERVICE_START, SERVICE_RESTART };

enum service_need service_decide(const struct service_seen *seen);

/* As strcmp() for versions like "0.10.2". */
int service_order(const char *a, const char *b);

/* Is a heartbeat of this time alive at "now"?  One from the future is a clock
 * that was set back, and counts within the same bounds. */
bool service_fresh(int64_t ts, int64_t now);

/* --- What runs ------------------------------------------------------------ */

/* What the daemon last said of itself, or JSON null. */
json_t *service_heartbeat(const struct until *until);
void service_see_beat(struct service_seen *seen, const json_t *beat);

/* Look at the daemon that runs; one that was asleep is given time to say
 * something. */
void service_see(struct service_seen *seen, const struct service_spec *s,
    const struct until *until);
void service_see_awake(struct service_seen *seen, const struct service_spec *s,
    const struct until *until);

/* Wait until one runs and has said so. */
bool service_is_up(const struct service_spec *s, const struct until *until);

/* End the daemon that has the lock, however it was started. */
int service_end_holder(const struct service_spec *s, const struct until *until,
    struct err *err);

#endif
