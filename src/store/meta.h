/* The table of the daemon's own news: its heartbeat, its last scan. */
#ifndef STORE_META_H
#define STORE_META_H

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"

/* A heartbeat that is older is a dead daemon's. */
#define META_STALE_S 180

int meta_set(const char *key, const json_t *value, int64_t now,
    const struct until *until, struct err *err);

/* {key, value, updated_ts}; JSON null if there is none.  NULL on failure. */
json_t *meta_get(const char *key, const struct until *until, struct err *err);

#endif
