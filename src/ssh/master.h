/*
 * OpenSSH masters: one login each, found again by every process of ours.
 *
 * A master is an ssh process of its own, in a session of its own, that
 * listens on a control socket in our runtime directory and outlives us for a
 * while.  Its name there comes from how the sandbox is reached, so that two
 * processes with the same configuration share it and others do not.
 */
#ifndef SSH_MASTER_H
#define SSH_MASTER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/until.h"
#include "config/sandbox.h"

/* Logins at once to one sandbox. */
#define MASTERS_MAX 4

struct master {
	char *path;  /* its control socket */
	char *fail;  /* remembers logins of this entry that failed, or NULL */
	pid_t pid;   /* its process */
	bool theirs; /* the user's own: not ours to end */
	bool found;  /* it was there before; nobody knows whether it answers */
	/* What the login had to say, once: "" or the new host key. */
	char new_key[256];
};

/*
 * Make sure that master "number" (from 0) of the sandbox is there: find it,
 * or log in.  A stale socket is replaced.  The first may be one that the
 * user's own ssh keeps.  master_free() in both cases.
 */
int master_ensure(struct master *m, const struct sandbox *sb, int number,
    const struct until *until, struct err *err);
void master_free(struct master *m);

/* Let the next login be tried at once, though one has just failed: somebody
 * asks who wants to know. */
void master_try_again(const struct sandbox *sb);

/*
 * Processes that share the masters of a sandbox share their sessions as well.
 * One that has none at all says that it wants one, again and again while it
 * waits; the others see it, and give back what they can do without.
 */
void master_want(const struct master *m);
bool master_wanted(const struct master *m);

/* Let nobody find it any more; sessions on it live on.  For a master whose
 * link does not answer; one that another process has started in its place is
 * left alone. */
void master_retire(const struct master *m);

/* The same for all that are kept of a sandbox; how many there were. */
int master_leave(const struct sandbox *sb, const struct until *until);

/* End it, with its sessions and its files. */
void master_end(const struct master *m);

#endif
