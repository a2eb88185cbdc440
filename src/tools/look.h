/*
 * Looking at sandboxes: is it reachable, how busy is it, several at once.
 */
#ifndef TOOLS_LOOK_H
#define TOOLS_LOOK_H

#include <jansson.h>
#include <stdbool.h>

#include "tools/app.h"
#include "tools/call.h"

/*
 * One object per configured sandbox, in their order: name, host, port, user,
 * is_active, connection_alive, and connection_error or resources.  All are
 * asked at the same time.  NULL if the call was cancelled.
 */
json_t *look_all(struct call *call, bool resources, struct err *err);

/* The same for one. */
json_t *look_one(struct call *call, const struct sandbox *sb, bool resources);

#endif
