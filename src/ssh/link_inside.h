/*
 * The inside of a link, shared by link.c, connect.c and keeper.c.
 *
 * The lock guards everything in a link.  Slow work (logging in, opening a
 * channel, proving) is done by the thread that needs it, without the lock;
 * "connecting" keeps others from doing the same, and they wait at the gate.
 *
 * A generation is one set of masters.  When a link is found dead, the
 * generation ends: its masters are retired and its shells dropped as they
 * come back.
 */
#ifndef SSH_LINK_INSIDE_H
#define SSH_LINK_INSIDE_H

#include <pthread.h>

#include "base/gate.h"
#include "base/random.h"
#include "ssh/lease.h"
#include "ssh/link.h"
#include "ssh/master.h"

#define PROVE_MS 2000
#define SPARE_SHELLS 2   /* kept ready while a sandbox is in use */
#define READY_MS 30000   /* for rc files of the far side */
#define ROOM_STEP_MS 500 /* between looks for room */

struct link {
	const struct sandbox *sb;
	char id[RANDOM_HEX(8)]; /* of the generation: its marks begin with it */
	pthread_mutex_t lock;
	struct gate gate; /* shells came back, or connecting ended */
	bool connected;
	bool connecting;
	bool sftp_only;     /* no shell comes up there, but SFTP does */
	int64_t looked;     /* when that was found */
	char no_shell[512]; /* what there was to say of the shell, or "" */
	unsigned generation;
	struct master masters[MASTERS_MAX];
	int count;              /* masters of this generation */
	bool full[MASTERS_MAX]; /* that has no room for a channel */
	int64_t alone;          /* when a further login last failed */
	unsigned busy;          /* shells that were taken */
	struct lease *lease;    /* or NULL */
	bool doubted;           /* it failed; shells may well be alive */
	struct shell *idle;     /* ready or about to be */
	unsigned idle_count;
	unsigned marks;
	int64_t proven; /* when the far side last answered */
	int64_t moved;  /* when bytes of a transfer last did */
	int64_t used;   /* when somebody last wanted it, or was done with it */
	int64_t pinged;
	int64_t ahead; /* the far side's clock less ours, in ms; the largest */
	bool ahead_known; /* that a shell of this generation told */
	char news[256];
	char note[LINK_NOTE_MAX];

	pthread_t keeper;
	bool keeping;
	bool brief;  /* for a call or two: no spare shells */
	int stop[2]; /* pipe; its write end closed: the keeper stops */
	bool ending;
	struct gate keeper_gate;
	struct link *next;
};

/* All with the lock held, before and after. */

/* Make sure there is a link; and one that answers ("always": now). */
int link_connect(struct link *l, const struct until *until, struct err *err);
int link_revive(struct link *l, const struct until *until, bool always,
    struct err *err);

/* All the masters there may be (for now), and no room on any. */
bool link_full(const struct link *l);

/* A further shell, or NULL with ERR_LIMIT if the server allows none; with
 * "grow" on a further connection, if need be. */
struct shell *link_more(struct link *l, bool grow, const struct until *until,
    struct err *err);

/* Another session of SFTP. */
struct sftp *link_more_sftp(struct link *l, const struct until *until,
    struct err *err);

/* Keep a shell for a later call. */
void link_keep(struct link *l, struct shell *s);

/* A round trip, if the last sign of life is old, or "always". */
int link_prove(struct link *l, const struct until *until, bool always,
    struct err *err);

/* Drop what hangs on the masters of this generation; and if the link is dead,
 * so that nobody finds it again. */
void link_let_go(struct link *l);
void link_give_up(struct link *l);

/* The sentence about a shell that did not come up. */
int link_no_shell(const struct link *l, struct err *err);

/* Look after the link from now on; end that again (without the lock). */
void keeper_start(struct link *l);
void keeper_stop(struct link *l);

#endif
