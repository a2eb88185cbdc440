/*
 * The inside of a link, shared by link.c, connect.c, room.c and keeper.c.
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
#define PROVEN_MS 10000  /* who answered so long ago is taken to be alive */
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
	int count;                   /* masters of this generation */
	bool full[MASTERS_MAX];      /* that has no room for a channel */
	bool elsewhere[MASTERS_MAX]; /* on another machine than the lease */
	int64_t alone;               /* when a further login last failed */
	char refused[256];           /* why it did, or "" */
	unsigned busy;               /* shells that were taken */
	unsigned waiting;            /* calls that wait for one */
	bool wanted;                 /* another process has no session at all */
	int64_t asked;               /* when we had none, and said so */
	struct lease *lease;         /* or NULL */
	int lease_master;            /* on which it is; -1: on one that went */
	bool doubted;                /* it failed; shells may well be alive */
	unsigned losses;             /* how often something on it was lost */
	struct shell *idle;          /* ready or about to be */
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
	pthread_t grower; /* logs in once more, and ends */
	bool grown;       /* there was one; it is to be joined */
	bool growing;     /* it is at it */
	bool brief;       /* for a call or two: no spare shells */
	int stop[2];      /* pipe; its write end closed: the keeper stops */
	bool ending;
	struct gate keeper_gate;
	struct link *next;
};

/* All with the lock held, before and after. */

/* Make sure there is a link; and one that answers ("always": now). */
int link_connect(struct link *l, const struct until *until, struct err *err);
int link_revive(struct link *l, const struct until *until, bool always,
    struct err *err);

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

/* Did bytes of a transfer move of late? */
bool link_is_moving(const struct link *l);

/* As it is without a login. */
void link_reset(struct link *l);

/* Drop what hangs on the masters of this generation; and if the link is dead,
 * so that nobody finds it again. */
void link_let_go(struct link *l);
void link_give_up(struct link *l);

/* The sentence about a shell that did not come up. */
int link_no_shell(const struct link *l, struct err *err);

/* All the masters there may be (for now), and no room on any; or none that is
 * for us, as long as another process has none. */
bool link_full(const struct link *l);

/* Log in once more, in a thread of its own; 0 if one is at it.  The gate opens
 * when it ends, with a further shell or without. */
int link_grow(struct link *l);

/* Did no master have room when it was last asked?  Limits are of other kinds,
 * too. */
bool link_lacks_room(const struct link *l);

/* We have no session to wait for; let other processes know. */
void link_want(struct link *l);

/* The sentence about a session that is refused. */
int link_no_room(const struct link *l, struct err *err);

/* Without the lock, by the connecting thread: only it changes masters. */

/* Log in as this master: a further one, or in place of one that is gone. */
int link_log_in(struct link *l, int number, const struct until *until,
    struct err *err);

/* A master that may have room for a channel, or -1: a further one, if there is
 * none and "grow" is set.  Note it when it turns out to have none. */
int link_roomy(struct link *l, bool grow, const struct until *until,
    struct err *err);
void link_note_full(struct link *l, int master);

/* A shell, or a session of SFTP, where there is room. */
struct shell *link_open_shell(struct link *l, bool grow,
    const struct until *until, struct err *err);
struct sftp *link_open_sftp(struct link *l, const struct until *until,
    struct err *err);

/* Look after the link from now on; end that again (without the lock). */
void keeper_start(struct link *l);
void keeper_stop(struct link *l);

/* What a thread of ours does ends at once when the link is to end. */
struct until keeper_until(const struct link *l);

#endif
