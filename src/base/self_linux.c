/* The running program, as Linux tells it. */
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/self.h"
#include "base/str.h"

#define GONE " (deleted)"

char *
self_path(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path));

	if (n <= 0 || n == (ssize_t)sizeof(path))
		return NULL;
	path[n] = '\0';
	/* A newer one may have taken its place. */
	if (str_ends(path, GONE) && access(path, F_OK) == -1)
		n -= (ssize_t)strlen(GONE);
	return xstrndup(path, (size_t)n);
}

void
self_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}
