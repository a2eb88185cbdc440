/*
 * What tools that work on a sandbox have in common: which one it is, and what
 * their results say of it.
 */
#ifndef TOOLS_REMOTE_H
#define TOOLS_REMOTE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ssh/link.h"
#include "tools/call.h"

/* No answer has more characters than this unless it is asked for more: what
 * an agent did not expect must not fill its context. */
#define REMOTE_ANSWER_CHARS 40000
/* And never more than this for the data: it is in a message twice, and one of
 * more than 10 MiB is no use to anybody. */
#define REMOTE_ANSWER_MOST 3000000

/* Characters for the data, if the caller asked for more than the default or
 * not. */
size_t remote_answer_chars(bool more);

/* The link to the sandbox a tool was asked for; "" is the active one. */
struct link *remote_link(struct call *call, const char *sandbox_name,
    struct err *err);

/* A path that must be there; -1 if it is blank. */
int remote_path_check(const char *path, struct err *err);

/* "host_key_added", if a login had that to say. */
void remote_set_news(json_t *result, struct link *link);

/* The same, and "sandbox" where the caller named none. */
void remote_set_sandbox(json_t *result, struct link *link,
    const char *sandbox_name);

/* "progress" of a struct exec_request whose data is the call. */
void remote_exec_progress(void *call, int64_t elapsed_ms, const char *line);

#define REMOTE_ARG_SANDBOX                  \
	.type = ARG_STRING, .dflt_str = "", \
	.help = "Sandbox to use; the active one if empty."

#define REMOTE_OUT_SANDBOX \
	"sandbox", OUT_STRING, "The active one, if none was named."
#define REMOTE_OUT_NEWS \
	"host_key_added", OUT_STRING, "A new host key was remembered."

#endif
