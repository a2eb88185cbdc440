/*
 * Webhooks: an event as a POST, by the curl program.
 *
 * The name in the URL is resolved by us, its addresses are judged, and curl is
 * told to use these and no others; it follows no redirect.
 */
#ifndef WATCH_WEBHOOK_H
#define WATCH_WEBHOOK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "config/allow.h"

#define WEBHOOK_MS 15000

struct webhook {
	const char *url;
	int64_t event_id;
	const char *event_type;
	const char *body_file; /* what is sent */
	const void *body;      /* the same bytes, to be signed */
	size_t body_len;
};

/*
 * Send it.  -1 with ERR_INVALID or ERR_DENIED if it can never work as things
 * are set up, with another code if it is worth trying again.
 */
int webhook_send(const struct webhook *w, const struct allow *allow,
    const struct until *until, struct err *err);

/* As a tool checks a URL before it is stored: without asking for its
 * addresses, unless it is one itself. */
int webhook_check(const char *url, const struct allow *allow, struct err *err);

#endif
