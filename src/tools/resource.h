/*
 * Resources: what a client can read without calling a tool.
 *
 * Listed is what this machine knows by itself, so that a client that lists
 * them when it starts reaches no host; reading asks the host.
 */
#ifndef TOOLS_RESOURCE_H
#define TOOLS_RESOURCE_H

#include <jansson.h>

#include "base/err.h"
#include "tools/call.h"

struct resources {
	/* Arrays as the protocol has them; never NULL. */
	json_t *(*list)(struct call *call);
	json_t *(*templates)(void);
	/* {mimeType, text}, or NULL; ERR_NOT_FOUND if it does not exist. */
	json_t *(*read)(struct call *call, const char *uri, struct err *err);
};

/* Those of this program: see resource_uri.h. */
extern const struct resources resource_set;

/*
 * What may stand for an argument of a prompt, or a variable of a template,
 * that has this name; "others" are those that are known already (an object of
 * strings, or NULL).  An array, empty if nothing is known of it.
 */
json_t *resource_candidates(struct call *call, const char *name,
    const json_t *others);

#endif
