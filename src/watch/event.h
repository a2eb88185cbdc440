/*
 * What is told about an event: its payload, its file, the variables of an
 * event_command, the texts for a person and for an agent.
 *
 * Text from the remote machine is cleaned of terminal tricks, and where an
 * agent will read it, marked as data.
 */
#ifndef WATCH_EVENT_H
#define WATCH_EVENT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/err.h"
#include "base/until.h"
#include "store/events.h"
#include "store/watches.h"

/* Bytes of the log's end, and of a checkpoint's begin, in a payload. */
#define EVENT_TEXT_MAX 20000

/* No variable of the environment may be longer (Linux: 128 KiB). */
#define EVENT_VARIABLE_MAX ((size_t)120 << 10)

/* "extras" (an object, or NULL) is added to the payload; it is released.  Texts
 * of the watch may hold any bytes.  Pure. */
void event_make(struct event *e, const struct watch *w, const char *type,
    const char *summary, json_t *extras, int64_t now);

/* One line without control characters, "max" bytes at most.  Caller frees. */
char *event_line(const char *text, size_t max);

/* events/event-ID.json; the directory is made if need be.  Caller frees. */
char *event_file(int64_t id, struct err *err);
/* Write that file; its text is in "body" afterwards, unless that is NULL. */
int event_write(const struct event *e, struct buf *body, struct err *err);

/* Remove events whose time is over, and their files, some at a time; how many
 * there were.  -1: they could not be. */
int event_prune(int64_t now, const struct until *until, struct err *err);

/* Set the RSMCP_* variables. */
void event_env(struct env *env, const struct delivery *d, const char *file);

/* The event_command that calls Codex where somebody has to do something.
 * "codex" is the program, NULL or "" for the one on the PATH.  A loss of a job
 * that nobody resumes is an end, and it is called for that alone.  Caller
 * frees. */
char *event_codex_command(const char *codex, bool resumes);

#endif
