/*
 * The watchdog as a service: a systemd user unit, a launchd agent, or a
 * detached process where neither is there.
 *
 * There is one for each user and state directory.  Its daemon holds a lock
 * (watch/daemon.h) and writes a heartbeat into the store; these two tell
 * whether it is well, however it was started.
 */
#ifndef WATCH_SERVICE_H
#define WATCH_SERVICE_H

#include <jansson.h>
#include <stdbool.h>

#include "base/err.h"
#include "base/until.h"

/* Which kind to use: systemd, launchd, detached, or none: never start one. */
#define SERVICE_ENV "REMOTE_SANDBOX_SERVICE"

/*
 * Make sure that a watchdog of this version or a newer one runs; *result is
 * {action, kind, running, ...}, with "warning" and "hint" for the user where
 * there is something to say.  "action" is none, started or restarted; with
 * none there may be nothing else.
 */
int service_ensure(json_t **result, const struct until *until, struct err *err);

/* Install it anew, and start it anew if "start" is set.  *result is what
 * install_watchdog shows of it. */
int service_install(bool start, json_t **result, const struct until *until,
    struct err *err);

/* Stop and remove it.  Database, records and logs stay. */
int service_uninstall(json_t **result, const struct until *until,
    struct err *err);

/* {paths, launchd, service, heartbeat, heartbeat_stale, watch_counts}, or
 * NULL. */
json_t *service_status(const struct until *until, struct err *err);

/* Its log, for people: the path of what it says.  Caller frees. */
char *service_log(struct err *err);

#endif
