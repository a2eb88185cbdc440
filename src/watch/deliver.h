/*
 * Delivery of events: files, notifications, webhooks, local commands.
 *
 * A thread for each channel takes what is due from the store and starts a
 * thread for each delivery, some of them at a time for one receiver, so that a
 * slow one delays nobody.  What fails is tried again later and later; see
 * store/events.h.
 */
#ifndef WATCH_DELIVER_H
#define WATCH_DELIVER_H

#include "base/err.h"
#include "base/until.h"
#include "config/allow.h"
#include "store/events.h"

struct deliver;

/* Begin.  NULL with the reason. */
struct deliver *deliver_new(struct err *err);

/* There are new events. */
void deliver_poke(struct deliver *d);

/* Stop.  What is under way is cancelled, and due again at once. */
void deliver_free(struct deliver *d);

/*
 * Do one delivery.  -1 with ERR_INVALID, ERR_DENIED or ERR_NOT_FOUND if there
 * is no use in trying again.
 */
int deliver_one(const struct delivery *one, const struct allow *allow,
    const struct until *until, struct err *err);

/* When to try again after this failure; 0: never. */
int64_t deliver_again(const struct delivery *one, const struct err *why,
    int64_t now);

#endif
