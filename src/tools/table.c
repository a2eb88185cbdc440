/* The tools of this program, in the order in which clients see them. */
#include "tools/tool.h"

extern const struct tool tool_get_server_info;

const struct tool *const tool_table[] = {
	&tool_get_server_info,
	NULL,
};
