/* The running program, as Linux tells it. */
#include <limits.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/self.h"

char *
self_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n <= 0 || n == (ssize_t)sizeof(path))
		return NULL;
	return xstrndup(path, (size_t)n);
}
