/*
 * Which process is meant: a number alone may belong to a stranger by now, so
 * the time of its start goes with it.  A file per platform.
 */
#ifndef BASE_IDENT_H
#define BASE_IDENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ident {
	pid_t pid;
	int64_t start; /* in the system's own unit; 0: not known */
};

/* This process. */
struct ident ident_self(void);

/* When the process was started; 0 if there is none, or only a zombie. */
int64_t ident_start(pid_t pid);

/* Does this very process still run? */
bool ident_alive(const struct ident *who);

/* Send a signal to this very process; -1 with errno (ESRCH: it is gone). */
int ident_signal(const struct ident *who, int sig);

/* A descriptor, to be closed, that can be read once this child has ended; -1
 * if the system has none. */
int ident_end_fd(pid_t child);

/* Are these two words next to each other on its command line? */
bool ident_has_args(pid_t pid, const char *word, const char *next);

/* A variable as it was given to the nearest of our ancestors that has it; NULL
 * if none is known to have it.  Caller frees. */
char *ident_inherited(const char *name);

/* Another process that has the file open, with its name in "name"; 0 if none
 * is seen.  Only those of this user can be. */
pid_t ident_holder(const char *path, char *name, size_t size);

#endif
