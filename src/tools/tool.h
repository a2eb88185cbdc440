/*
 * A tool: what an agent or a person can ask for.
 *
 * One file a tool: an argument struct, its table, run(), and a const struct
 * tool that is listed in the table of table.c.
 */
#ifndef TOOLS_TOOL_H
#define TOOLS_TOOL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "tools/arg.h"
#include "tools/call.h"

/* What a client may assume before it asks its user; all four are sent. */
struct hints {
	bool read_only;   /* changes nothing */
	bool destructive; /* may remove or overwrite */
	bool idempotent;  /* twice is the same as once */
	bool open_world;  /* reaches beyond this machine */
};

enum tool_flags {
	TOOL_ADVANCED =
	    1 << 0, /* listed only when advanced tools are asked for */
	TOOL_TEXT =
	    1 << 1, /* gives a string, shown as it is; no output schema */
	TOOL_RAW =
	    1 << 2, /* gives a whole protocol result, not just its data */
	TOOL_REMOTE_SSH = 1 << 3, /* of another set: see toolset.h */
};

struct tool {
	const char *name;
	const char *title;
	const char *description; /* what, when, what next; a few sentences */
	const struct arg *args;  /* NULL: takes none */
	size_t args_size;
	const char *settled; /* an argument that its sister has: ignored */
	const struct out *outputs; /* NULL with TOOL_TEXT and TOOL_RAW */
	const char *schema; /* JSON text in place of the table's; TOOL_RAW */
	struct hints hints;
	unsigned flags; /* enum tool_flags */

	/*
	 * Do it.  Returns 0 with *result an object (a string if TOOL_TEXT), or
	 * -1 with the error; *result may then hold an object of further fields
	 * for the error reply (a string to come after it if TOOL_TEXT).  "args"
	 * is the bound argument struct.
	 */
	int (*run)(struct call *call, const void *args, json_t **result,
	    struct err *err);
};

/* The tools of this program, in the order they are listed; NULL at the end. */
extern const struct tool *const tool_table[];

const struct tool *tool_find(const struct tool *const *table, const char *name);

/* Has it an argument of this name, or its sister, so that it is ignored? */
bool tool_takes(const struct tool *tool, const char *name);

/* The name in the table most like "name", or NULL if none is near. */
const char *tool_nearest(const struct tool *const *table, const char *name);

/* Bind "arguments" (an object or NULL) and run.  As run() above. */
int tool_run(const struct tool *tool, struct call *call,
    const json_t *arguments, json_t **result, struct err *err);

/* The tool as an entry of tools/list; "listing" is of enum arg_listing. */
json_t *tool_json(const struct tool *tool, unsigned listing);

/* Are advanced tools listed?  (REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS) */
bool tool_advanced_listed(void);

#endif
