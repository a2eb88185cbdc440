/* Which tools a client gets. */
#include "tools/toolset.h"

#include "base/mem.h"
#include "base/str.h"

static bool
other_sandboxes(const struct config *c)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		if (!c->sandboxes[i].ssh_host)
			return true;
	}
	return c->list_set || c->host_set;
}

enum toolset
toolset_choose(const char *word, const struct config *c, bool *unknown)
{
	*unknown = false;
	if (!str_blank(word)) {
		if (str_same(word, "sandbox"))
			return TOOLSET_SANDBOX;
		if (str_same(word, "remote-ssh"))
			return TOOLSET_REMOTE_SSH;
		if (str_same(word, "all"))
			return TOOLSET_ALL;
		*unknown = true;
	}
	if (!c->ssh_host_set)
		return TOOLSET_SANDBOX;
	return other_sandboxes(c) ? TOOLSET_ALL : TOOLSET_REMOTE_SSH;
}

static bool
has(enum toolset set, const struct tool *tool)
{
	bool remote_ssh = (tool->flags & TOOL_REMOTE_SSH) != 0;

	return set == TOOLSET_ALL || remote_ssh == (set == TOOLSET_REMOTE_SSH);
}

const struct tool **
toolset_table(enum toolset set)
{
	const struct tool *const *t;
	const struct tool **table;
	size_t n = 0;

	for (t = tool_table; *t != NULL; t++)
		n++;
	table = xcalloc(n + 1, sizeof(void *));
	n = 0;
	for (t = tool_table; *t != NULL; t++) {
		if (has(set, *t))
			table[n++] = *t;
	}
	return table;
}
