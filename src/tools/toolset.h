/*
 * Which tools a client gets: those for sandboxes, those of the server
 * "remote-ssh", or all.
 */
#ifndef TOOLS_TOOLSET_H
#define TOOLS_TOOLSET_H

#include <stdbool.h>

#include "config/config.h"
#include "tools/tool.h"

enum toolset { TOOLSET_SANDBOX, TOOLSET_REMOTE_SSH, TOOLSET_ALL };

#define TOOLSET_VARIABLE "REMOTE_SANDBOX_TOOLSET"
#define TOOLSET_WORDS "sandbox, remote-ssh or all"

/*
 * As "word" says (the variable's value, or NULL).  If it says nothing: what
 * the configuration has, SSH_HOST or other sandboxes or both.  *unknown: it is
 * no word for one, and counts as nothing.
 */
enum toolset toolset_choose(const char *word, const struct config *c,
    bool *unknown);

/* The tools of the set, as a table; the caller frees it. */
const struct tool **toolset_table(enum toolset set);

#endif
