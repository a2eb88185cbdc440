/*
 * What the tools for watches have in common.
 */
#ifndef TOOLS_WATCHING_H
#define TOOLS_WATCHING_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "config/sandbox.h"
#include "ssh/link.h"
#include "store/watches.h"
#include "tools/arg.h"
#include "tools/call.h"
#include "watch/look.h"

/* What a caller wishes for; texts may be "" or NULL. */
struct watch_wish {
	const char *tmux_session, *log_file;
	const char *cwd, *launch_command;
	const char *run_id, *name;
	const char *resume_command;
	const json_t *resume_plan; /* an object, or NULL */
	const char *checkpoint_path, *checkpoint_format, *checkpoint_command;
	int64_t interval_s, max_log_lines;
	const char *webhook_url, *event_command, *codex_command;
	bool codex_wakeup;
	bool auto_resume;
	int64_t max_resume_attempts, alert_after_failures, resume_delay_s;
	const json_t *metadata; /* an object, or NULL */
	bool notify_local;
};

/*
 * The record of a wish, or -1 with what is missing.  Plan and parameters are
 * merged: a parameter that was given beats the plan, and paths in it are
 * resolved as the parameters are.  Pure.
 */
int watching_make(struct watch *w, const struct watch_wish *wish,
    const struct sandbox *sb, struct err *err);

/* A path on the sandbox: absolute, or below "~".  Pure; caller frees. */
char *watching_path(const char *cwd, const char *path);

/* May webhooks go there?  An argument that is wrong is told before anything
 * is started. */
int watching_check_webhook(const char *url, struct err *err);

/*
 * Store the record, after what the watchdog needs to log in; looked at from
 * "delay_s" on.  "notes" (an array) gets sentences for the caller; *kept what
 * was kept for the login.
 */
int watching_store(struct watch *w, const struct sandbox *sb, int64_t delay_s,
    json_t *notes, json_t **kept, const struct until *until, struct err *err);

/* See that a watchdog runs; notes what is wrong if it does not. */
void watching_ensure(json_t *notes, const struct until *until);

/* The sentences in one, as "watch_note", unless there are none. */
void watching_set_note(json_t *result, const json_t *notes);

/* The watch of this number; watch_free() it in every case. */
int watching_get(struct call *call, int64_t id, struct watch *w,
    struct err *err);

/* The link to its sandbox. */
struct link *watching_link(struct call *call, const struct watch *w,
    struct err *err);

/* The object that check_background_task would give. */
json_t *watching_task(const struct look *l, const struct watch *w);

/* {raw, format, parsed}, or null if there is no text. */
json_t *watching_checkpoint(const struct watch *w, const char *text);

/* The state of the watchdog, as several results hold it; NULL on failure. */
json_t *watching_status(const struct until *until, struct err *err);

/* The last look of the daemon's own kind, by a tool. */
int watching_look(struct call *call, const struct watch *w, int64_t lines,
    size_t checkpoint_max, struct look *l, struct err *err);

#define WATCHING_ARG_ID                                                \
	.type = ARG_INT, .required = true, .min = 1, .max = INT64_MAX, \
	.help = "Number of the watch."

#endif
