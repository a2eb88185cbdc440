/*
 * The lease of a link: a small shell on the far side that hears from us now
 * and then, and ends all commands of the link when it does not.  It also ends
 * single commands, because it is always there.
 *
 * Any thread may ask it; answers come as lines that name what they answer, in
 * any order.  One of those who wait reads for all.
 */
#ifndef SSH_LEASE_H
#define SSH_LEASE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/gate.h"
#include "base/until.h"
#include "ssh/capture.h"
#include "ssh/channel.h"
#include "ssh/script.h"

struct lease {
	struct channel ch;
	char token[NONCE_LEN + 1];
	bool standing;             /* it has answered */
	char machine[MACHINE_MAX]; /* set by then */

	pthread_mutex_t lock; /* guards the rest */
	struct gate gate;     /* there is more to look at */
	struct buf seen;      /* lines that nobody has taken yet */
	bool torn;            /* the first of them lacks its beginning */
	bool reading;         /* somebody reads */
	unsigned asked;
	unsigned users;

	pthread_mutex_t saying; /* what one says is not cut by another */
	bool defined;           /* it has the definitions; guarded by that */
	bool garbled;           /* it got half a word; the same */
};

/* Ask for the channel; see that it is open (ERR_LIMIT if the master has no
 * room); the lease stands when lease_wait() returns 0. */
struct lease *lease_ask(const char *socket, const char *link_id, int silence_s,
    const struct until *until, struct err *err);
int lease_opened(struct lease *l, const struct until *until, struct err *err);
int lease_wait(struct lease *l, const struct until *until, struct err *err);

/* It is shared: whoever keeps it takes it and gives it back; the channel is
 * closed when the last one does.  lease_ask() has taken it once. */
struct lease *lease_take(struct lease *l);
void lease_give(struct lease *l); /* NULL is fine */

/* Has it come to its end over there?  What nobody has asked since, nobody has
 * heard of. */
bool lease_over(const struct lease *l);

/* A round trip: proves that the far side is there. */
int lease_ping(struct lease *l, const struct until *until, struct err *err);

/* What is to be ended: a command's mark, its waiter and its shell. */
struct lease_kill {
	const char *mark;
	long waiter, shell;
	int grace_ms; /* between TERM and KILL */
	int busy_ms;  /* so much longer than "until", if it is at it then */
};

/* End it.  "left" gets what is still there: "pid:command ...", or nothing. */
int lease_end(struct lease *l, const struct lease_kill *kill, struct buf *left,
    const struct until *until, struct err *err);

/* A short script (LEASE_SCRIPT_MAX bytes), which has to print a line of one
 * piece that begins with $A, and then "trap - 0". */
struct lease_script {
	const char *text;
	/* Functions and constants that it uses, or NULL.  The far side gets
	 * them once; so all that are ever passed are the same. */
	const char *definitions;
};

/*
 * Run it in a shell of its own that is nobody's command: what it starts belongs
 * to no call, and nothing ends it when the link does.  "answer" gets the line,
 * without $A.  ERR_IO if nobody knows whether it ran; *sent says whether it may
 * have.
 */
#define LEASE_SCRIPT_MAX ((size_t)48 << 10)
int lease_run(struct lease *l, const struct lease_script *script,
    struct buf *answer, bool *sent, const struct until *until, struct err *err);

/* Children of this command, below this waiter, may outlive the link. */
void lease_release(struct lease *l, const char *mark, long waiter);

#endif
