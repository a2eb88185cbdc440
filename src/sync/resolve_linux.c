/* openat2(), for which glibc has no wrapper. */
#include <errno.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sync/resolve.h"

/* Kernels before 5.6 do not have it, filters of containers forbid it (EPERM),
 * and EAGAIN means that it lost a race.  Walking is always possible, and tells
 * the true reason if that fails too. */
int
resolve_open(int dir_fd, const char *path, int flags)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
	};
	long fd = syscall(SYS_openat2, dir_fd, path, &how, sizeof(how));

	if (fd == -1 &&
	    (errno == EPERM || errno == EINVAL || errno == E2BIG ||
	        errno == EAGAIN))
		errno = ENOSYS;
	return (int)fd;
}
