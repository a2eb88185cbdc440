/* Processes, as macOS tells about them. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/proc.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "base/ident.h"

int64_t
ident_start(pid_t pid)
{
	int what[] = { CTL_KERN, KERN_PROC, KERN_PROC_PID, (int)pid };
	struct kinfo_proc info;
	size_t size = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (pid <= 0 || sysctl(what, 4, &info, &size, NULL, 0) == -1 ||
	    size == 0 || info.kp_proc.p_stat == SZOMB)
		return 0;
	return (int64_t)info.kp_proc.p_starttime.tv_sec * 1000000 +
	    info.kp_proc.p_starttime.tv_usec;
}

struct ident
ident_self(void)
{
	return (struct ident){ getpid(), ident_start(getpid()) };
}

bool
ident_alive(const struct ident *who)
{
	return who->pid > 0 && who->start != 0 &&
	    ident_start(who->pid) == who->start;
}

int
ident_signal(const struct ident *who, int sig)
{
	if (!ident_alive(who)) {
		errno = ESRCH;
		return -1;
	}
	return kill(who->pid, sig);
}

int
ident_end_fd(pid_t child)
{
	(void)child;
	return -1;
}

/* Not told without more rights than it is worth: nobody is recognised. */
bool
ident_has_args(pid_t pid, const char *word, const char *next)
{
	(void)pid;
	(void)word;
	(void)next;
	return false;
}

/* The same. */
char *
ident_inherited(const char *name)
{
	(void)name;
	return NULL;
}

pid_t
ident_holder(const char *path, char *name, size_t size)
{
	(void)path;
	(void)name;
	(void)size;
	return 0;
}
