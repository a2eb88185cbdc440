/* Processes, as Linux tells about them: /proc, and pidfds for signals. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/secret.h"
#include "base/str.h"

#define ARGS_MAX 65536
#define ENVIRON_MAX ((size_t)2 << 20)
#define ANCESTORS_MAX 32

/* A file of /proc/PID as text; empty if there is none. */
static void
proc_file(pid_t pid, const char *name, struct buf *out)
{
	char path[64];
	struct err err;

	snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, name);
	(void)fs_read(path, out, &err);
}

int64_t
ident_start(pid_t pid)
{
	struct buf text;
	const char *at;
	char *next = NULL;
	int64_t start = 0;
	int field;

	if (pid <= 0)
		return 0;
	buf_init(&text, 4096);
	proc_file(pid, "stat", &text);
	/* "pid (any name) S ..."; the start is the 20th from the state on. */
	at = strrchr(text.data, ')');
	if (at != NULL && at[1] == ' ' && strchr("ZXx", at[2]) == NULL) {
		at += 2;
		for (field = 0; field < 19 && at != NULL; field++) {
			at = strchr(at, ' ');
			at = at != NULL ? at + 1 : NULL;
		}
		if (at != NULL)
			start = strtoll(at, &next, 10);
		if (next == at)
			start = 0;
	}
	buf_free(&text);
	return start;
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
	/* What the descriptor stands for cannot become another process, so
	 * looking and signalling are one. */
	int fd = (int)syscall(SYS_pidfd_open, who->pid, 0);
	int rc;

	if (fd == -1 && errno != ENOSYS && errno != EPERM)
		return -1;
	if (!ident_alive(who)) {
		if (fd != -1)
			close(fd);
		errno = ESRCH;
		return -1;
	}
	if (fd == -1)
		return kill(who->pid, sig);
	rc = (int)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
	close(fd);
	return rc;
}

int
ident_end_fd(pid_t child)
{
	return (int)syscall(SYS_pidfd_open, child, 0);
}

bool
ident_has_args(pid_t pid, const char *word, const char *next)
{
	struct buf text;
	const char *at, *end, *after;
	bool found = false;

	buf_init(&text, ARGS_MAX);
	proc_file(pid, "cmdline", &text);
	end = text.data + text.len;
	for (at = text.data; at < end && !found; at = after) {
		after = at + strlen(at) + 1;
		found = strcmp(at, word) == 0 && after < end &&
		    strcmp(after, next) == 0;
	}
	buf_free(&text);
	return found;
}

/* Its parent; 0 if there is none, or it is not told. */
static pid_t
parent_of(pid_t pid)
{
	struct buf text;
	const char *at;
	int64_t parent = 0;

	buf_init(&text, 4096);
	proc_file(pid, "stat", &text);
	/* "pid (any name) S parent ..." */
	at = strrchr(text.data, ')');
	if (at != NULL && strlen(at) > 4)
		parent = strtoll(at + 4, NULL, 10);
	buf_free(&text);
	return parent > 0 ? (pid_t)parent : 0;
}

/* A variable of what the process was started with, or NULL. */
static char *
variable_of(pid_t pid, const char *name)
{
	size_t len = strlen(name);
	const char *at, *end;
	char *value = NULL;
	struct buf text;

	buf_init(&text, ENVIRON_MAX);
	/* In one block, which is wiped: it may hold secrets. */
	(void)buf_space(&text, ENVIRON_MAX, &(size_t){ 0 });
	proc_file(pid, "environ", &text);
	end = text.data + text.len;
	for (at = text.data; at < end && value == NULL; at += strlen(at) + 1) {
		if (strncmp(at, name, len) == 0 && at[len] == '=')
			value = xstrdup(at + len + 1);
	}
	secret_wipe(text.data, text.len);
	buf_free(&text);
	return value;
}

char *
ident_inherited(const char *name)
{
	pid_t pid = getppid();
	char *value = NULL;
	int i;

	for (i = 0; i < ANCESTORS_MAX && pid > 1 && value == NULL; i++) {
		value = variable_of(pid, name);
		pid = parent_of(pid);
	}
	return value;
}

/* Has the process this file open? */
static bool
holds(const char *pid, const struct stat *file)
{
	char *path = xasprintf("/proc/%s/fd", pid);
	DIR *dir = opendir(path);
	const struct dirent *entry;
	bool found = false;
	struct stat st;

	free(path);
	if (dir == NULL)
		return false;
	while (!found && (entry = readdir(dir)) != NULL)
		found = isdigit((unsigned char)entry->d_name[0]) &&
		    fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
		    st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	closedir(dir);
	return found;
}

pid_t
ident_holder(const char *path, char *name, size_t size)
{
	const struct dirent *entry;
	DIR *dir = NULL;
	struct stat file;
	int64_t pid = 0;
	struct buf comm;

	if (stat(path, &file) == 0)
		dir = opendir("/proc");
	if (dir == NULL)
		return 0;
	while ((entry = readdir(dir)) != NULL) {
		if (str_to_int(entry->d_name, 1, INT32_MAX, &pid) == 0 &&
		    pid != getpid() && holds(entry->d_name, &file))
			break;
		pid = 0;
	}
	closedir(dir);
	if (pid == 0)
		return 0;
	buf_init(&comm, 256);
	proc_file((pid_t)pid, "comm", &comm);
	snprintf(name, size, "%.*s", (int)strcspn(comm.data, "\n"), comm.data);
	buf_free(&comm);
	return (pid_t)pid;
}
