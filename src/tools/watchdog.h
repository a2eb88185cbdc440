/* What the tools for the watchdog's service share. */
#ifndef TOOLS_WATCHDOG_H
#define TOOLS_WATCHDOG_H

#include "tools/arg.h"

/* The fields of the watchdog's state, in results that are it. */
extern const struct out watchdog_status_outputs[];

#endif
