/*
 * Making and proving a link: its masters, the lease, and room for shells on
 * them.  link_inside.h tells how the parts play together.
 */
#include <stdio.h>
#include <string.h>

#include "ssh/link_inside.h"

/* How long the far side keeps commands alive without hearing from us. */
#define LEASE_SILENCE_S 60

/* A link that answered within this time is taken to be alive. */
#define PROVEN_MS 10000

/* A session of SFTP takes its time on a busy host; longer, and it is lost. */
#define SFTP_MS 10000

/*
 * Does a transfer of ours get on?  On a slow line its bytes fill all buffers
 * on the way, and whoever asks something waits behind them for longer than a
 * live link is given; to replace it would end the transfer.  On a dead one
 * nothing is taken any more.
 */
static bool
is_moving(const struct link *l)
{
	return clock_ms() - l->moved < PROVEN_MS;
}

/* With the lock held: shells that nobody has taken, and the lease. */
static void
drop_shells(struct link *l)
{
	struct shell *s;

	while ((s = l->idle) != NULL) {
		l->idle = s->next;
		shell_free(s);
	}
	l->idle_count = 0;
	lease_give(l->lease);
	l->lease = NULL;
	memset(l->full, 0, sizeof(l->full));
}

/* With the lock held: drop what hangs on the masters of this generation. */
void
link_let_go(struct link *l)
{
	drop_shells(l);
	while (l->count > 0) {
		struct master *m = &l->masters[--l->count];

		if (l->sb->throwaway)
			master_end(m);
		master_free(m);
	}
	l->connected = false;
	l->doubted = false;
	l->moved = -PROVEN_MS;
	l->sftp_only = false;
	l->ahead_known = false;
	l->note[0] = '\0';
	l->generation++;
	/* The lease of this one may still be ending what bears its name. */
	random_hex(l->id, 8);
}

/* With the lock held: the link is dead, nobody shall find it again. */
void
link_give_up(struct link *l)
{
	int i;

	for (i = 0; i < l->count; i++)
		master_retire(&l->masters[i]);
	link_let_go(l);
}

/* Log in as this master: a further one, or in place of one that is gone.
 * Without the lock; only the connecting thread changes masters. */
static int
log_in(struct link *l, int number, const struct until *until, struct err *err)
{
	struct master m;

	if (master_ensure(&m, l->sb, number, until, err) == -1) {
		master_free(&m);
		return -1;
	}
	pthread_mutex_lock(&l->lock);
	if (number == l->count)
		l->count++;
	else
		master_free(&l->masters[number]);
	l->masters[number] = m;
	if (m.new_key[0] != '\0')
		snprintf(l->news, sizeof(l->news), "%s", m.new_key);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* With the lock held: all the masters there may be, and no room on any.  A
 * login that failed is not tried again at once by everyone who waits. */
bool
link_full(const struct link *l)
{
	int i;

	for (i = 0; i < l->count; i++) {
		if (!l->full[i])
			return false;
	}
	return l->count == MASTERS_MAX ||
	    (l->count > 0 && clock_ms() - l->alone < ROOM_STEP_MS);
}

/*
 * A master that may have room for a channel, or -1: a further one, if there
 * is none and "grow" is set.  Without the lock, by the connecting thread.
 */
static int
roomy_master(struct link *l, bool grow, const struct until *until,
    struct err *err)
{
	int i, found = -1;

	pthread_mutex_lock(&l->lock);
	for (i = 0; i < l->count && found == -1; i++) {
		if (!l->full[i])
			found = i;
	}
	pthread_mutex_unlock(&l->lock);
	if (found != -1)
		return found;
	if (!grow || l->count == MASTERS_MAX)
		return err_set(err, ERR_LIMIT, "%s allows no further session",
		    l->sb->name);
	if (log_in(l, l->count, until, err) == 0)
		return l->count - 1;
	/* What stands is enough for who can wait for a shell to come back. */
	if (l->connected && err->code != ERR_CANCELLED) {
		err->code = ERR_LIMIT;
		pthread_mutex_lock(&l->lock);
		l->alone = clock_ms();
		pthread_mutex_unlock(&l->lock);
	}
	return -1;
}

static void
note_full(struct link *l, int master)
{
	pthread_mutex_lock(&l->lock);
	l->full[master] = true;
	pthread_mutex_unlock(&l->lock);
}

/* Without its lease a link is lost, whatever else is there. */
static bool
lease_stands(struct link *l, const struct until *until)
{
	struct until soon = until_within(until, PROVE_MS);
	struct err err;
	int rc;

	pthread_mutex_lock(&l->lock);
	rc = l->lease != NULL ? link_prove(l, &soon, true, &err) : -1;
	pthread_mutex_unlock(&l->lock);
	return rc == 0;
}

/* A shell on this master.  To open its channel takes a round trip, and a link
 * that stands and does not answer as soon as when it is proven may be dead. */
static struct shell *
shell_on(struct link *l, int m, const struct until *until, struct err *err)
{
	struct until soon = *until;
	char mark[MARK_MAX];
	struct shell *s;
	struct err ended;

	pthread_mutex_lock(&l->lock);
	if (l->connected && !is_moving(l))
		soon = until_within(until, PROVE_MS);
	pthread_mutex_unlock(&l->lock);
	link_mark(l, mark);
	s = shell_open(l->masters[m].path, mark, &soon, err);
	if (s != NULL) {
		s->master = m;
		s->generation = l->generation;
	} else if (err->code == ERR_TIMEOUT &&
	    until_check(until, &ended) == 0) {
		err_set(err, ERR_IO, "the link was lost");
	}
	return s;
}

/*
 * Open a shell where there is room.  Without the lock, by the connecting
 * thread.  A master that is gone from a link that stands is replaced, once; the
 * others stay, as they may have work.  A login takes its time, and the lease is
 * on another connection: so it has to answer after that as well.
 */
static struct shell *
open_shell(struct link *l, bool grow, const struct until *until,
    struct err *err)
{
	struct shell *s = NULL;
	bool renewed = false;
	int m, count = l->count;

	while ((m = roomy_master(l, grow, until, err)) != -1) {
		s = shell_on(l, m, until, err);
		if (s != NULL)
			break;
		if (err->code == ERR_LIMIT) {
			note_full(l, m);
		} else if (err->code != ERR_NOT_FOUND || renewed ||
		    !l->connected || !lease_stands(l, until) ||
		    log_in(l, m, until, err) == -1) {
			return NULL;
		} else {
			renewed = true;
		}
	}
	if (s != NULL && l->connected && (renewed || l->count > count) &&
	    !lease_stands(l, until)) {
		shell_free(s);
		err_set(err, ERR_IO, "the link was lost");
		return NULL;
	}
	return s;
}

static void
set_lease(struct link *l, struct lease *lease)
{
	pthread_mutex_lock(&l->lock);
	lease_give(l->lease);
	l->lease = lease;
	pthread_mutex_unlock(&l->lock);
}

/* Ask for the lease where there may be room; on which master, or -1. */
static int
ask_lease(struct link *l, const struct until *until, struct err *err)
{
	int m = roomy_master(l, true, until, err);
	struct lease *lease;

	if (m == -1)
		return -1;
	lease =
	    lease_ask(l->masters[m].path, l->id, LEASE_SILENCE_S, until, err);
	if (lease == NULL)
		return -1;
	set_lease(l, lease);
	return m;
}

/* Wait until it stands; on another master, if this one has no room. */
static int
settle_lease(struct link *l, int m, const struct until *until, struct err *err)
{
	while (lease_opened(l->lease, until, err) == -1) {
		if (err->code != ERR_LIMIT)
			return -1;
		note_full(l, m);
		set_lease(l, NULL);
		m = ask_lease(l, until, err);
		if (m == -1)
			return -1;
	}
	return lease_wait(l->lease, until, err);
}

int
link_no_shell(const struct link *l, struct err *err)
{
	if (err->code == ERR_TIMEOUT)
		return err_set(err, ERR_IO,
		    "logged in to %s, but no shell came up there within %d "
		    "seconds; look at the rc files of its account",
		    l->sb->name, READY_MS / 1000);
	return err_wrap(err, "logged in to %s, but", l->sb->name);
}

/* With the lock held: keep a shell for a later call. */
void
link_keep(struct link *l, struct shell *s)
{
	struct shell **at;

	/* At the end: it is the least ready of all. */
	for (at = &l->idle; *at != NULL; at = &(*at)->next)
		;
	s->next = NULL;
	*at = s;
	l->idle_count++;
}

/*
 * What commands need: the lease, and a shell for the call that waits.  Both
 * start at once, since round trips and rc files take time.  The keeper sees to
 * further ones.
 */
static int
start_shells(struct link *l, const struct until *until, struct err *err)
{
	struct until ready = until_within(until, READY_MS);
	int m = ask_lease(l, &ready, err);
	struct shell *s;

	if (m == -1)
		return -1;
	s = open_shell(l, true, &ready, err);
	if (s == NULL && err->code != ERR_LIMIT)
		return -1;
	if (s != NULL) {
		pthread_mutex_lock(&l->lock);
		link_keep(l, s);
		pthread_mutex_unlock(&l->lock);
	}
	return settle_lease(l, m, &ready, err);
}

/* And for SFTP. */
static struct sftp *
open_sftp(struct link *l, const struct until *until, struct err *err)
{
	struct sftp *s;
	int m;

	while ((m = roomy_master(l, true, until, err)) != -1) {
		s = sftp_open(l->masters[m].path, until, err);
		if (s != NULL || err->code != ERR_LIMIT)
			return s;
		note_full(l, m);
	}
	return NULL;
}

/*
 * No shell came up.  A server that allows SFTP alone starts that instead,
 * which takes our text for a packet that makes no sense and ends at once.
 */
static bool
try_sftp(struct link *l, const struct until *until)
{
	struct until soon = until_within(until, SFTP_MS);
	struct sftp *s;
	struct err err;

	pthread_mutex_lock(&l->lock);
	drop_shells(l);
	pthread_mutex_unlock(&l->lock);
	s = open_sftp(l, &soon, &err);
	sftp_free(s);
	return s != NULL;
}

/* With the lock held: what was heard of the shell, if it is news. */
static void
note_no_shell(struct link *l, const char *msg)
{
	if (strstr(msg, "said: nothing") != NULL ||
	    strstr(msg, "allows sftp connections only") != NULL)
		msg = "";
	snprintf(l->no_shell, sizeof(l->no_shell), "%.500s", msg);
	l->no_shell[strcspn(l->no_shell, "\r\n")] = '\0';
}

/* Everything a new link needs: a master, and what hangs on it. */
static int
connect_link(struct link *l, const struct until *until, struct err *err)
{
	bool sftp_only = false;

	if (log_in(l, 0, until, err) == -1)
		return -1;
	if (start_shells(l, until, err) == -1) {
		/* One that is merely slow is none of these. */
		if (err->code != ERR_IO || !try_sftp(l, until))
			return link_no_shell(l, err);
		sftp_only = true;
	}
	pthread_mutex_lock(&l->lock);
	l->sftp_only = sftp_only;
	note_no_shell(l, sftp_only ? err->msg : "");
	l->proven = l->pinged = l->looked = clock_ms();
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* With the lock held: wait for a login that another thread is doing. */
static int
wait_connected(struct link *l, const struct until *until, struct err *err)
{
	while (l->connecting) {
		if (gate_wait(&l->gate, &l->lock, until, err) == -1)
			return -1;
	}
	return 0;
}

/* With the lock held, before and after; makes sure there is a link. */
int
link_connect(struct link *l, const struct until *until, struct err *err)
{
	int rc;

	/* One that stands is good enough, though somebody may be logging in
	 * for a further connection. */
	if (l->connected)
		return 0;
	if (wait_connected(l, until, err) == -1)
		return -1;
	if (l->connected)
		return 0;
	l->connecting = true;
	pthread_mutex_unlock(&l->lock);
	rc = connect_link(l, until, err);
	pthread_mutex_lock(&l->lock);
	l->connecting = false;
	if (rc == 0) {
		l->connected = true;
		keeper_start(l);
	} else {
		link_let_go(l);
	}
	gate_open(&l->gate);
	return rc;
}

/* With the lock held, before and after: another session of SFTP. */
struct sftp *
link_more_sftp(struct link *l, const struct until *until, struct err *err)
{
	struct until soon;
	struct sftp *s;

	if (wait_connected(l, until, err) == -1)
		return NULL;
	if (!l->connected) {
		err_set(err, ERR_IO, "the link was lost");
		return NULL;
	}
	soon = until_within(until, SFTP_MS);
	l->connecting = true;
	memset(l->full, 0, sizeof(l->full));
	pthread_mutex_unlock(&l->lock);
	s = open_sftp(l, &soon, err);
	pthread_mutex_lock(&l->lock);
	l->connecting = false;
	gate_open(&l->gate);
	if (s != NULL)
		l->proven = clock_ms();
	return s;
}

static int
prove_sftp(struct link *l, const struct until *until, struct err *err)
{
	struct sftp *s = link_more_sftp(l, until, err);

	sftp_free(s);
	return s != NULL ? 0 : -1;
}

int
link_prove(struct link *l, const struct until *until, bool always,
    struct err *err)
{
	struct until soon = until_within(until, PROVE_MS);
	struct lease *lease;
	int rc;

	if (!always && !l->doubted && clock_ms() - l->proven < PROVEN_MS)
		return 0;
	if (l->sftp_only)
		return prove_sftp(l, until, err);
	if (l->lease == NULL)
		return err_set(err, ERR_IO, "the link was lost");
	lease = lease_take(l->lease);
	pthread_mutex_unlock(&l->lock);
	rc = lease_ping(lease, &soon, err);
	pthread_mutex_lock(&l->lock);
	if (rc == -1 && err->code == ERR_TIMEOUT && lease == l->lease &&
	    is_moving(l))
		rc = 0;
	if (rc == 0 && lease == l->lease) {
		l->proven = l->pinged = clock_ms();
		l->doubted = false;
	}
	lease_give(lease);
	return rc;
}

/* With the lock held: a link that is there and answers. */
int
link_revive(struct link *l, const struct until *until, bool always,
    struct err *err)
{
	unsigned generation;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		if (link_connect(l, until, err) == -1)
			return -1;
		generation = l->generation;
		if (link_prove(l, until, always, err) == 0)
			return 0;
		if (err->code == ERR_CANCELLED)
			return -1;
		/* Unless another thread has replaced it meanwhile; one that
		 * opens a shell has not. */
		if (wait_connected(l, until, err) == -1)
			return -1;
		if (generation == l->generation)
			link_give_up(l);
	}
	return err_wrap(err, "%s does not answer", l->sb->name);
}

/*
 * With the lock held, before and after: a further shell, or NULL with
 * ERR_LIMIT if the server allows none.
 */
struct shell *
link_more(struct link *l, bool grow, const struct until *until, struct err *err)
{
	unsigned generation = l->generation;
	struct shell *s;

	if (wait_connected(l, until, err) == -1)
		return NULL;
	if (!l->connected || generation != l->generation) {
		err_set(err, ERR_IO, "the link was lost");
		return NULL;
	}
	l->connecting = true;
	pthread_mutex_unlock(&l->lock);
	s = open_shell(l, grow, until, err);
	pthread_mutex_lock(&l->lock);
	l->connecting = false;
	/* Whoever wants a shell finds out whether the link is alive. */
	if (s == NULL && err->code == ERR_IO)
		l->doubted = true;
	gate_open(&l->gate);
	return s;
}
