/*
 * Room for channels: logging in, further masters, and what is opened on them.
 * A server allows so many sessions for a connection (MaxSessions), and other
 * processes share our masters: so who finds one full goes to the next, to a
 * further one, or waits.
 */
#include <stdio.h>

#include "ssh/link_inside.h"

int
link_log_in(struct link *l, int number, const struct until *until,
    struct err *err)
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
	l->elsewhere[number] = false;
	l->refused[0] = '\0';
	if (number == l->lease_master)
		l->lease_master = -1; /* it is on the one before */
	if (m.new_key[0] != '\0')
		snprintf(l->news, sizeof(l->news), "%s", m.new_key);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* With the lock held: a master that may have room for a channel, or -1. */
static int
with_room(const struct link *l)
{
	int i;

	for (i = 0; i < l->count; i++) {
		if (!l->full[i] && !l->elsewhere[i])
			return i;
	}
	return -1;
}

/* A login that failed is not tried again at once by everyone who waits. */
bool
link_full(const struct link *l)
{
	if (l->wanted && l->busy > 0)
		return true;
	if (with_room(l) != -1)
		return false;
	return l->count == MASTERS_MAX ||
	    (l->count > 0 && clock_ms() - l->alone < ROOM_STEP_MS);
}

void
link_want(struct link *l)
{
	if (l->count == 0)
		return;
	l->asked = clock_ms();
	master_want(&l->masters[0]);
}

int
link_no_room(const struct link *l, struct err *err)
{
	int i;

	for (i = 0; i < l->count; i++) {
		if (l->elsewhere[i])
			return err_set(err, ERR_LIMIT,
			    "%s allows no further session, and another login "
			    "leads to another machine; name a single one as "
			    "the host of this sandbox",
			    l->sb->name);
	}
	if (l->refused[0] != '\0')
		return err_set(err, ERR_LIMIT,
		    "%s allows no further session, nor another login: %s",
		    l->sb->name, l->refused);
	return err_set(err, ERR_LIMIT,
	    "%s allows no further session; close other sessions on it, or "
	    "raise MaxSessions there",
	    l->sb->name);
}

int
link_roomy(struct link *l, bool grow, const struct until *until,
    struct err *err)
{
	int found;

	pthread_mutex_lock(&l->lock);
	found = with_room(l);
	/* Who starts waits for room, and tries a further login once. */
	if (!l->connected && clock_ms() - l->alone < READY_MS)
		grow = false;
	pthread_mutex_unlock(&l->lock);
	if (found != -1)
		return found;
	if (!grow || l->count == MASTERS_MAX)
		return link_no_room(l, err);
	if (link_log_in(l, l->count, until, err) == 0)
		return l->count - 1;
	/* What stands is enough for who can wait for a session to end. */
	if (l->count > 0 && err->code != ERR_CANCELLED) {
		err->code = ERR_LIMIT;
		pthread_mutex_lock(&l->lock);
		l->alone = clock_ms();
		snprintf(l->refused, sizeof(l->refused), "%.255s", err->msg);
		pthread_mutex_unlock(&l->lock);
	}
	return -1;
}

void
link_note_full(struct link *l, int master)
{
	pthread_mutex_lock(&l->lock);
	l->full[master] = true;
	pthread_mutex_unlock(&l->lock);
}

bool
link_lacks_room(const struct link *l)
{
	return with_room(l) == -1;
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
 * that stands and does not answer as soon as when it is proven may be dead.  So
 * may one that was there when we came, as after a night in a closed laptop: it
 * gets more time, as others may use it, and is left then. */
static struct shell *
shell_on(struct link *l, int m, const struct until *until, struct err *err)
{
	struct until soon = *until;
	char mark[MARK_MAX];
	struct shell *s;
	struct err ended;
	bool kept;

	pthread_mutex_lock(&l->lock);
	kept = !l->connected && l->masters[m].found;
	if (l->connected || kept)
		soon = until_within(until,
		    kept || link_is_moving(l) ? PROVEN_MS : PROVE_MS);
	pthread_mutex_unlock(&l->lock);
	link_mark(l, mark);
	s = shell_open(l->masters[m].path, mark, &soon, err);
	if (s != NULL) {
		s->master = m;
		s->generation = l->generation;
	} else if (err->code == ERR_TIMEOUT &&
	    until_check(until, &ended) == 0) {
		err_set(err, kept ? ERR_NOT_FOUND : ERR_IO,
		    "the link was lost");
		if (kept)
			master_retire(&l->masters[m]);
	}
	return s;
}

/*
 * A master that is gone from a link that stands is replaced, once; the
 * others stay, as they may have work.  A login takes its time, and the lease is
 * on another connection: so it has to answer after that as well.
 */
struct shell *
link_open_shell(struct link *l, bool grow, const struct until *until,
    struct err *err)
{
	struct shell *s = NULL;
	bool renewed = false;
	int m, count = l->count;

	while ((m = link_roomy(l, grow, until, err)) != -1) {
		s = shell_on(l, m, until, err);
		if (s != NULL)
			break;
		if (err->code == ERR_LIMIT) {
			link_note_full(l, m);
		} else if (err->code != ERR_NOT_FOUND || renewed ||
		    !l->connected || !lease_stands(l, until) ||
		    link_log_in(l, m, until, err) == -1) {
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

static void *
grow(void *arg)
{
	struct link *l = arg;
	struct until until = keeper_until(l);
	struct shell *s = NULL;
	struct err err;

	pthread_mutex_lock(&l->lock);
	if (!l->ending)
		s = link_more(l, true, &until, &err);
	if (s != NULL)
		link_keep(l, s);
	l->growing = false;
	gate_open(&l->gate);
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

int
link_grow(struct link *l)
{
	if (l->growing)
		return 0;
	if (!l->keeping || l->ending)
		return -1;
	if (l->grown)
		pthread_join(l->grower, NULL);
	l->growing = pthread_create(&l->grower, NULL, grow, l) == 0;
	l->grown = l->growing;
	return l->growing ? 0 : -1;
}

struct sftp *
link_open_sftp(struct link *l, const struct until *until, struct err *err)
{
	struct sftp *s;
	int m;

	while ((m = link_roomy(l, true, until, err)) != -1) {
		s = sftp_open(l->masters[m].path, until, err);
		if (s != NULL || err->code != ERR_LIMIT)
			return s;
		link_note_full(l, m);
	}
	return NULL;
}
