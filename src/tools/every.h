/*
 * Asking all sandboxes at the same time.
 */
#ifndef TOOLS_EVERY_H
#define TOOLS_EVERY_H

#include <jansson.h>

#include "tools/app.h"
#include "tools/call.h"

/* What one sandbox has to say; called in several threads. */
typedef json_t *every_ask(struct call *call, const struct sandbox *sb,
    const void *data);

/* A list of the answers, in the order of the configuration.  NULL if the call
 * was cancelled. */
json_t *every_sandbox(struct call *call, every_ask *ask, const void *data,
    struct err *err);

#endif
