/*
 * The link to a sandbox: its masters, shells that are ready, and the lease.
 * One per sandbox in use; calls share it and never wait for another sandbox.
 */
#ifndef SSH_LINK_H
#define SSH_LINK_H

#include <stdbool.h>

#include "base/err.h"
#include "base/until.h"
#include "config/config.h"
#include "ssh/lease.h"
#include "ssh/sftp.h"
#include "ssh/shell.h"

struct link;
struct links;

/*
 * All links of a process.  "brief": for a call or two, so nothing is kept
 * ready for further ones.
 */
struct links *links_new(bool brief);
void links_free(struct links *l);

/* The link of this sandbox.  Does not connect. */
struct link *links_get(struct links *l, const struct sandbox *sb);

const struct sandbox *link_sandbox(const struct link *l);

/*
 * A ready shell: one that waits, or a new one; connects if need be.  A link
 * that was idle (any link, if "always") is proven first and replaced if it
 * does not answer.  Give it back with link_give(), in whatever state.
 */
struct shell *link_take(struct link *l, bool always, const struct until *until,
    struct err *err);

/* End the command of a shell; "left" gets what could not be ended.  -1: nobody
 * knows. */
int link_end(struct link *l, const struct shell *s,
    const struct lease_kill *kill, struct buf *left, const struct until *until,
    struct err *err);

/* What became of a script. */
enum link_ran {
	LINK_UNSENT, /* it did not run */
	LINK_GONE,   /* nor did this: the link had died, so try again */
	LINK_SENT,   /* if it failed, nobody knows */
};

/*
 * Run a short script that belongs to no command (lease_run): to start what
 * shall outlive us.  "answer" gets its line.
 */
int link_run(struct link *l, const struct lease_script *script,
    struct buf *answer, enum link_ran *ran, const struct until *until,
    struct err *err);

/* "usable": it is ready, or will be, for another command. */
void link_give(struct link *l, struct shell *s, bool usable);

/*
 * This shell, or the command on it, ended without a word.  Those that wait on
 * the same connection are no better, and whoever comes next proves the link.
 * Give it back all the same.
 */
void link_lost(struct link *l, const struct shell *gone);

/* How often something on it was lost: who failed meanwhile may know why. */
unsigned link_losses(struct link *l);

/* A mark for the next command of a shell. */
void link_mark(struct link *l, char out[MARK_MAX]);

/* The far side's clock now, in ms, as far as the shells have told; -1 if none
 * has. */
int64_t link_far_clock(struct link *l);

/* The word that tells the machine of this link from others; "" if there is none
 * now. */
void link_machine(struct link *l, char out[MACHINE_MAX]);

/* The far side answered just now. */
void link_proven(struct link *l);

/* Bytes of a transfer have moved just now, by this shell. */
void link_moved(struct link *l, const struct shell *s);

/* The children of the command that a shell has run may outlive the link. */
void link_release(struct link *l, const struct shell *s, const char *mark,
    long waiter);

/* Connect if need be, and prove the link by a round trip. */
int link_check(struct link *l, const struct until *until, struct err *err);
/* The same, but one that answered a moment ago is good enough. */
int link_fresh(struct link *l, const struct until *until, struct err *err);

/*
 * A server may allow SFTP and nothing else (ForceCommand internal-sftp): then
 * no shell can be taken, and files are moved by sessions of link_sftp().
 */

/* Connect if need be.  0: there are shells; 1: there is SFTP only. */
int link_ways(struct link *l, const struct until *until, struct err *err);
/* What is known of that without connecting, and the sentence about it. */
bool link_sftp_only(struct link *l, struct err *err);

/* A new session, of a link that is replaced if it does not answer.  Close it
 * with sftp_free(). */
struct sftp *link_sftp(struct link *l, const struct until *until,
    struct err *err);

/*
 * A line about the host for whoever uses the link, good while this login
 * lasts: "" at first.  NULL forgets it.
 */
#define LINK_NOTE_MAX 64
void link_recall(struct link *l, char out[LINK_NOTE_MAX]);
void link_remember(struct link *l, const char *note);

/* What a login had to say (a new host key), once; "" if nothing. */
void link_news(struct link *l, char *out, size_t size);

#endif
