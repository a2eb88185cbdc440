/* Services on macOS. */
#include <stddef.h>

#include "watch/service_inside.h"

const struct service_kind *const service_kinds[] = { &service_launchd,
	&service_detached, NULL };
const char service_platform[] = "darwin";
