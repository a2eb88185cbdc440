/* macOS has no call for it: every path is walked. */
#include <errno.h>

#include "sync/resolve.h"

int
resolve_open(int dir_fd, const char *path, int flags)
{
	(void)dir_fd;
	(void)path;
	(void)flags;
	errno = ENOSYS;
	return -1;
}
