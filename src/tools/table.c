/* The tools of this program, in the order in which clients see them. */
#include "tools/tool.h"

extern const struct tool tool_exec_bash;
extern const struct tool tool_get_active_sandbox;
extern const struct tool tool_get_server_info;
extern const struct tool tool_list_sandboxes;
extern const struct tool tool_select_sandbox;

const struct tool *const tool_table[] = {
	&tool_list_sandboxes,
	&tool_select_sandbox,
	&tool_get_active_sandbox,
	&tool_exec_bash,
	&tool_get_server_info,
	NULL,
};
