/*
 * Making and proving a link: the first master, the lease and a shell on it.
 * link_inside.h tells how the parts play together.
 */
#include <stdio.h>
#include <string.h>

#include "ssh/link_inside.h"

/* How long the far side keeps commands alive without hearing from us. */
#define LEASE_SILENCE_S 60

/* So long a lease takes to end, in looks for room. */
#define LEASE_END_STEPS 4

/* A session of SFTP takes its time on a busy host; longer, and it is lost. */
#define SFTP_MS 10000

/*
 * Does a transfer of ours get on?  On a slow line its bytes fill all buffers
 * on the way, and whoever asks something waits behind them for longer than a
 * live link is given; to replace it would end the transfer.  On a dead one
 * nothing is taken any more.
 */
bool
link_is_moving(const struct link *l)
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
	memset(l->elsewhere, 0, sizeof(l->elsewhere));
	/* That lease is still ending what bears its name. */
	random_hex(l->id, 8);
}

void
link_reset(struct link *l)
{
	l->connected = false;
	l->doubted = false;
	l->wanted = false;
	l->moved = -PROVEN_MS;
	l->alone = l->asked = -READY_MS;
	l->sftp_only = false;
	l->ahead_known = false;
	l->note[0] = l->refused[0] = '\0';
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
	link_reset(l);
	l->generation++;
}

/* With the lock held: the link is dead, nobody shall find it again. */
void
link_give_up(struct link *l)
{
	int i;

	l->losses++;
	for (i = 0; i < l->count; i++)
		master_retire(&l->masters[i]);
	link_let_go(l);
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
	int m = link_roomy(l, true, until, err);
	struct lease *lease;

	if (m == -1)
		return -1;
	lease =
	    lease_ask(l->masters[m].path, l->id, LEASE_SILENCE_S, until, err);
	if (lease == NULL)
		return -1;
	set_lease(l, lease);
	l->lease_master = m;
	return m;
}

/* Wait until it stands; on another master, if this one has no room. */
static int
settle_lease(struct link *l, int m, const struct until *until, struct err *err)
{
	while (lease_opened(l->lease, until, err) == -1) {
		if (err->code != ERR_LIMIT)
			return -1;
		link_note_full(l, m);
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
 * further ones.  1: there is room for the lease alone.
 */
static int
start_once(struct link *l, const struct until *until, struct err *err)
{
	struct until ready = until_within(until, READY_MS);
	int m = ask_lease(l, &ready, err);
	struct shell *s;

	if (m == -1)
		return -1;
	s = link_open_shell(l, true, &ready, err);
	if (s == NULL && err->code != ERR_LIMIT)
		return -1;
	if (s != NULL) {
		pthread_mutex_lock(&l->lock);
		link_keep(l, s);
		pthread_mutex_unlock(&l->lock);
	}
	if (settle_lease(l, m, &ready, err) == -1)
		return -1;
	return s != NULL ? 0 : 1;
}

/*
 * The masters have no room: other processes of ours, with which we share them,
 * have it all.  They are asked for some, and what we have got is given back, so
 * that of two who start neither has what the other needs.  A lease that was
 * given back has its session for a moment longer; and the two should not try
 * again at the same time.
 */
static void
wait_for_others(struct link *l, bool had_lease, const struct until *until)
{
	struct until step;
	struct err err;
	int steps = 1;

	pthread_mutex_lock(&l->lock);
	drop_shells(l);
	/* The name is new, and begins with a hexadecimal digit at random. */
	if (had_lease)
		steps = LEASE_END_STEPS + (l->id[0] & 3);
	pthread_mutex_unlock(&l->lock);
	while (steps-- > 0 && until_check(until, &err) == 0) {
		pthread_mutex_lock(&l->lock);
		link_want(l);
		pthread_mutex_unlock(&l->lock);
		step = until_within(until, ROOM_STEP_MS);
		until_poll(&step, NULL, 0, &err);
	}
}

static int
start_shells(struct link *l, const struct until *until, struct err *err)
{
	struct until room = until_within(until, READY_MS);
	struct err over;
	bool lacking;
	int rc;

	while ((rc = start_once(l, until, err)) != 0) {
		pthread_mutex_lock(&l->lock);
		lacking = link_lacks_room(l);
		pthread_mutex_unlock(&l->lock);
		if (rc == -1 && (err->code != ERR_LIMIT || !lacking))
			return -1;
		if (until_check(until, err) == -1)
			return -1;
		if (until_check(&room, &over) == -1)
			return rc == 1 ? 0 : link_no_room(l, err);
		wait_for_others(l, rc == 1, &room);
	}
	return 0;
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
	s = link_open_sftp(l, &soon, &err);
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

static void
forget_masters(struct link *l)
{
	pthread_mutex_lock(&l->lock);
	drop_shells(l);
	while (l->count > 0)
		master_free(&l->masters[--l->count]);
	pthread_mutex_unlock(&l->lock);
}

/* A master that nobody has used for a while may end just when we have found
 * it, or not answer; then once more. */
static int
log_in_and_start(struct link *l, bool *logged_in, const struct until *until,
    struct err *err)
{
	int tries, rc = -1;

	for (tries = 0; tries < 2 && rc == -1; tries++) {
		if (tries > 0 && err->code != ERR_NOT_FOUND)
			return -1;
		forget_masters(l);
		*logged_in = link_log_in(l, 0, until, err) == 0;
		if (!*logged_in)
			return -1;
		rc = start_shells(l, until, err);
	}
	return rc;
}

/* Everything a new link needs: a master, and what hangs on it. */
static int
connect_link(struct link *l, const struct until *until, struct err *err)
{
	bool logged_in, sftp_only = false;

	if (log_in_and_start(l, &logged_in, until, err) == -1) {
		if (!logged_in)
			return -1;
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
	pthread_mutex_unlock(&l->lock);
	s = link_open_sftp(l, &soon, err);
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
	struct sftp *s;

	memset(l->full, 0, sizeof(l->full));
	s = link_more_sftp(l, until, err);
	sftp_free(s);
	/* To be refused is an answer. */
	return s != NULL || err->code == ERR_LIMIT ? 0 : -1;
}

int
link_prove(struct link *l, const struct until *until, bool always,
    struct err *err)
{
	struct until soon = until_within(until, PROVE_MS);
	struct lease *lease;
	int64_t now;
	int rc;

	if (!l->connected) /* the lease of one that does not stand yet */
		return err_set(err, ERR_IO, "the link was lost");
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
	now = clock_ms();
	if (rc == -1 && err->code == ERR_TIMEOUT && lease == l->lease &&
	    link_is_moving(l)) {
		rc = 0;
		l->proven = l->moved; /* no later sign of life */
	} else if (rc == 0 && lease == l->lease) {
		l->proven = now;
	}
	if (rc == 0 && lease == l->lease) {
		l->pinged = now;
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
	int64_t begun;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		if (link_connect(l, until, err) == -1)
			return -1;
		generation = l->generation;
		begun = clock_ms();
		if (link_prove(l, until, always, err) == 0)
			return 0;
		if (err->code == ERR_CANCELLED)
			return -1;
		/* Who had no time to hear an answer knows nothing. */
		if (clock_ms() - begun < PROVE_MS / 2 &&
		    until_check(until, err) == -1) {
			if (generation == l->generation)
				l->doubted = true;
			break;
		}
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
	s = link_open_shell(l, grow, until, err);
	pthread_mutex_lock(&l->lock);
	l->connecting = false;
	/* Whoever wants a shell finds out whether the link is alive. */
	if (s == NULL && err->code == ERR_IO)
		l->doubted = true;
	gate_open(&l->gate);
	return s;
}
