/* The tools' manual page, made from their table. */
#ifndef CLI_MANUAL_H
#define CLI_MANUAL_H

#include "tools/tool.h"

/* Print remote-sandbox-mcp-tools(7) as mdoc on stdout. */
void manual_tools(const struct tool *const *table);

#endif
