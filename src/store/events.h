/*
 * Events of watches, and their delivery.
 *
 * An event is written in the same transaction as the state it tells about
 * (watches_save() in store/watches.h), together with one row for each channel
 * that it must reach.  So nothing that happened can be lost, and what was
 * written is delivered at least once.
 *
 * A deliverer is a thread of the daemon, one for each channel, so that a slow
 * receiver delays nobody.  It goes round like this:
 *
 *	deliveries_take(&query, &list, &count, ...);
 *	for each of the list:
 *		deliver it, in less than lease_s altogether, with the event's
 *		id as idempotency key; then
 *		delivery_done(event_id, channel, ...)             it arrived, or
 *		delivery_failed(event_id, channel, why, when, ...)
 *			try again at the time "when" (delivery_next() tells
 *			which), or never, if "when" is 0.
 *	deliveries_free(list, count);
 *	wait until deliveries_wait() seconds have passed, or for new events.
 *
 * Taking counts a try and hides the row for the time of the lease.  A daemon
 * that is killed at any moment leaves rows that are due again when the lease
 * is over; so a receiver may see an event twice, and never not at all.
 */
#ifndef STORE_EVENTS_H
#define STORE_EVENTS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"

#define EVENT_SSH_UNREACHABLE "ssh_unreachable"
#define EVENT_CONFIG_MISSING "config_missing"
#define EVENT_RUNNING_RESTORED "running_restored"
#define EVENT_COMPLETED "completed"
#define EVENT_FAILED "failed"
#define EVENT_INTERRUPTED "interrupted"
#define EVENT_RESUME_STARTED "resume_started"
#define EVENT_RESUME_FAILED "resume_failed"
#define EVENT_RESUME_EXHAUSTED "resume_exhausted"
#define EVENT_HOST_REBOOTED "host_rebooted"

enum event_channel {
	CHANNEL_FILE,    /* events/event-ID.json in the state directory */
	CHANNEL_DESKTOP, /* a notification on this machine */
	CHANNEL_WEBHOOK, /* webhook_url of the watch */
	CHANNEL_COMMAND, /* event_command of the watch */
	CHANNELS,
};

/* As it is in the table. */
const char *event_channel_name(enum event_channel c);

/* Texts are never NULL after an event was read. */
struct event {
	int64_t id;
	int64_t watch_id;
	char *event_type;
	char *summary;
	char *payload_json;
	int64_t created_ts;
	unsigned channels; /* to be written: bits 1 << enum event_channel */
};

void event_free(struct event *e);
void events_free(struct event *list, size_t count);

/* {id, watch_id, event_type, summary, created_ts, payload}: what receivers get.
 * A payload that is no JSON object becomes an empty one. */
json_t *event_json(const struct event *e);

/* ERR_NOT_FOUND if there is none.  event_free() it in every case. */
int events_get(int64_t id, struct event *e, const struct until *until,
    struct err *err);

/* Which events are asked for. */
struct events_query {
	int64_t watch_id; /* 0: of all watches */
	int64_t after;    /* only those with a higher id; 0: all */
	bool newest;      /* the newest first; else the oldest */
	size_t max;
};

/* *list is allocated: events_free(). */
int events_list(const struct events_query *q, struct event **list,
    size_t *count, const struct until *until, struct err *err);

/* The id of the newest event, 0 if there is none. */
int events_last(int64_t *id, const struct until *until, struct err *err);

/* How long events are kept. */
struct events_keep {
	int64_t age_s; /* none that is older */
	size_t most;   /* no more than so many */
	size_t least;  /* but so many in every case */
};

/* The ids of those that may go, the oldest first, "max" at most: what has still
 * to be delivered stays.  *list is allocated. */
int events_old(const struct events_keep *keep, int64_t now, size_t max,
    int64_t **list, size_t *count, const struct until *until, struct err *err);
int events_remove(const int64_t *list, size_t count, const struct until *until,
    struct err *err);

/* --- Delivery ------------------------------------------------------------- */

/* What has to be delivered, with what its watch says about where to. */
struct delivery {
	struct event event;
	enum event_channel channel;
	int64_t tries; /* this one included */
	char *watch_name;
	char *sandbox_name, *tmux_session, *log_file;
	char *webhook_url, *event_command;
};

struct deliveries_query {
	enum event_channel channel;
	int64_t now, lease_s;
	size_t max;
	/* Is one more for this receiver (its webhook_url or event_command, ""
	 * for other channels) to be taken now?  NULL: always. */
	bool (*may)(const char *receiver, void *data);
	void *data;
};

/* Those that are due, the oldest first; *list is allocated. */
int deliveries_take(const struct deliveries_query *q, struct delivery **list,
    size_t *count, const struct until *until, struct err *err);
void deliveries_free(struct delivery *list, size_t count);

int delivery_done(int64_t event_id, enum event_channel c,
    const struct until *until, struct err *err);
/* "why" is kept for who looks; "when" as told above. */
int delivery_failed(int64_t event_id, enum event_channel c, const char *why,
    int64_t when, const struct until *until, struct err *err);

/* When to try again after "tries" failures: 5 s, doubled each time, an hour at
 * most, and a little by chance; 0 after "give_up" tries.  Pure but for the
 * chance. */
int64_t delivery_next(int64_t tries, int64_t give_up, int64_t now);

/* Seconds until something of this channel is due, 0 if something is,
 * "longest" at most. */
int deliveries_wait(enum event_channel c, int64_t now, int64_t longest,
    int64_t *seconds, const struct until *until, struct err *err);

/* How the delivery of an event went: a list of {channel, state, tries,
 * last_error}, state one of pending, done, failed. */
json_t *deliveries_json(int64_t event_id, const struct until *until,
    struct err *err);

#endif
