/* Writing an event inside a transaction of another table. */
#ifndef STORE_EVENTS_INSIDE_H
#define STORE_EVENTS_INSIDE_H

#include "store/db.h"
#include "store/events.h"

/* Sets its id. */
int events_insert(struct db *db, struct event *e, struct err *err);

#endif
