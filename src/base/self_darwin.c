/* The running program, as macOS tells it. */
#include <limits.h>
#include <mach-o/dyld.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/self.h"

char *
self_path(void)
{
	char path[PATH_MAX], real[PATH_MAX];
	uint32_t size = sizeof(path);

	if (_NSGetExecutablePath(path, &size) != 0 ||
	    realpath(path, real) == NULL)
		return NULL;
	return xstrdup(real);
}

void
self_adopt(void)
{
}
