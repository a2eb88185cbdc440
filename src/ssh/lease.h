/*
 * The lease of a link: a small shell on the far side that hears from us now
 * and then, and ends all commands of the link when it does not.
 */
#ifndef SSH_LEASE_H
#define SSH_LEASE_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/capture.h"
#include "ssh/channel.h"

struct lease {
	struct channel ch;
	struct buf seen;
	char token[NONCE_LEN + 1];
	bool open;
	unsigned pings;
};

/* Open the channel; the lease stands when lease_wait() returns 0. */
int lease_open(struct lease *l, const char *socket, const char *link_id,
    int silence_s, const struct until *until, struct err *err);
int lease_wait(struct lease *l, const struct until *until, struct err *err);
void lease_close(struct lease *l);

/* A round trip: proves that the far side is there. */
int lease_ping(struct lease *l, const struct until *until, struct err *err);

/* Children of this command, below this waiter, may outlive the link. */
void lease_release(struct lease *l, const char *mark, long waiter);

#endif
