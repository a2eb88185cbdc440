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

/* The arguments of both tools that make a watch; they have it as "watch". */
struct watching_args {
	const char *run_id;
	const char *resume_command;
	json_t *resume_plan_json;
	const char *checkpoint_path;
	const char *checkpoint_format;
	const char *checkpoint_command;
	int64_t interval_s;
	int64_t max_log_lines;
	const char *webhook_url;
	const char *event_command;
	bool auto_resume;
	int64_t max_resume_attempts;
	json_t *metadata_json;
	bool ensure_watchdog;
	bool notify_local;
	int64_t alert_after_failures;
	int64_t resume_delay_s;
};

#define WATCHING_ROW(t, field, words, ...)                          \
	{                                                           \
		.name = #field, .offset = offsetof(t, watch.field), \
		.help = (words), __VA_ARGS__                        \
	}
#define WATCHING_TEXT .type = ARG_STRING, .dflt_str = ""
#define WATCHING_INT(low, high, std) \
	.type = ARG_INT, .min = (low), .max = (high), .dflt = (std)
#define WATCHING_BOOL(std) .type = ARG_BOOL, .dflt = (std)
#define WATCHING_MORE .advanced = true

/* Their rows, for an argument struct of this type. */
#define WATCHING_ARGS(t)                                                      \
	WATCHING_ROW(t, run_id, "Name of the run; that of the job if empty.", \
	    WATCHING_TEXT, WATCHING_MORE),                                    \
	    WATCHING_ROW(t, resume_command,                                   \
	        "What brings it back after a loss.", WATCHING_TEXT),          \
	    WATCHING_ROW(t, resume_plan_json,                                 \
	        "How to resume, for whoever reads the events.",               \
	        .type = ARG_JSON, WATCHING_MORE),                             \
	    WATCHING_ROW(t, checkpoint_path,                                  \
	        "File on the sandbox that tells its progress.",               \
	        WATCHING_TEXT),                                               \
	    WATCHING_ROW(t, checkpoint_format,                                \
	        "json or text; the plan's, or text, if absent.",              \
	        .type = ARG_STRING, WATCHING_MORE),                           \
	    WATCHING_ROW(t, checkpoint_command,                               \
	        "Command that prints its progress.", WATCHING_TEXT,           \
	        WATCHING_MORE),                                               \
	    WATCHING_ROW(t, interval_s, "Seconds between looks.",             \
	        WATCHING_INT(1, 86400, 300)),                                 \
	    WATCHING_ROW(t, max_log_lines, "Lines of the log to keep.",       \
	        WATCHING_INT(1, 10000, 80), WATCHING_MORE),                   \
	    WATCHING_ROW(t, webhook_url, "Where events are posted.",          \
	        WATCHING_TEXT, WATCHING_MORE),                                \
	    WATCHING_ROW(t, event_command, "Local command for each event.",   \
	        WATCHING_TEXT, WATCHING_MORE),                                \
	    WATCHING_ROW(t, auto_resume,                                      \
	        "Run resume_command after a loss, not after an exit code or " \
	        "a signal; needs a checkpoint.",                              \
	        WATCHING_BOOL(0)),                                            \
	    WATCHING_ROW(t, max_resume_attempts, "How often, at most.",       \
	        WATCHING_INT(0, 1000, 1), WATCHING_MORE),                     \
	    WATCHING_ROW(t, metadata_json, "Anything to keep with it.",       \
	        .type = ARG_JSON, WATCHING_MORE),                             \
	    WATCHING_ROW(t, ensure_watchdog,                                  \
	        "Start the watchdog if none runs.", WATCHING_BOOL(1),         \
	        WATCHING_MORE),                                               \
	    WATCHING_ROW(t, notify_local, "Show events on the desktop.",      \
	        WATCHING_BOOL(1), WATCHING_MORE),                             \
	    WATCHING_ROW(t, alert_after_failures,                             \
	        "Failed looks before an alert.", WATCHING_INT(1, 1000, 2),    \
	        WATCHING_MORE),                                               \
	    WATCHING_ROW(t, resume_delay_s, "Seconds before a resume.",       \
	        WATCHING_INT(0, 86400, 300), WATCHING_MORE)

/* What a caller wishes for; texts may be "" or NULL. */
struct watch_wish {
	const char *tmux_session, *log_file;
	const char *cwd, *launch_command;
	const char *name;
	bool codex_wakeup;
	const char *codex_command;
	const struct watching_args *args;
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

/* A sandbox is gone for good, which nobody else logs in to by this key file:
 * cancel its watches and remove what was kept of it. */
int watching_leave(const char *key_file, const struct until *until,
    struct err *err);

/* See that a watchdog runs; notes what is wrong if it does not. */
void watching_ensure(json_t *notes, const struct until *until);

/* The sentences in one, as "watch_note", unless there are none. */
void watching_set_note(json_t *result, const json_t *notes);

/* The watch of this number; watch_free() it in every case. */
int watching_get(struct call *call, int64_t id, struct watch *w,
    struct err *err);

/*
 * Its sandbox; NULL if it is not here, or is not the one that the watch is for:
 * servers with other lists may call another machine by its name.
 */
const struct sandbox *watching_sandbox(struct call *call, const struct watch *w,
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

/* Cut long texts in a part of the result; see tools/fit.h. */
void watching_fit(json_t *result, const char *part, size_t max);

/* What a watch may take that is not all that was asked for. */
#define WATCHING_BRIEF 4000

#define WATCHING_OUT_CUT                                                   \
	"texts_cut", OUT_BOOL,                                             \
	    "Long texts were cut; events/ of the state directory and the " \
	    "sandbox have them whole."

/* The last look of the daemon's own kind, by a tool. */
int watching_look(struct call *call, const struct watch *w, int64_t lines,
    size_t checkpoint_max, struct look *l, struct err *err);

#define WATCHING_ARG_ID                                                \
	.type = ARG_INT, .required = true, .min = 1, .max = INT64_MAX, \
	.help = "Number of the watch."

#endif
