/*
 * The keeper: a thread that looks after a link while it is used.
 */
#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "ssh/link_inside.h"

/* More often than a link counts as fresh, so that no call has to ask; the
 * lease ends everything after 60 s of silence. */
#define LEASE_PING_MS 7000
#define SHELL_AGE_MS 60000 /* older ones are renewed */
#define IDLE_MS 300000     /* then a link lets go of everything */
#define TICK_MS 1000

/* What we have asked for ourselves may be heard for so long. */
#define ASKED_MS 4000

/* With the lock held: take out the idle shells that are too old, or all. */
static struct shell *
take_old(struct link *l, int64_t now, bool all)
{
	struct shell **at = &l->idle, *s, *old = NULL;

	while ((s = *at) != NULL) {
		if (!all && now - s->opened < SHELL_AGE_MS) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		l->idle_count--;
		s->next = old;
		old = s;
	}
	return old;
}

struct until
keeper_until(const struct link *l)
{
	struct until u = until_never();

	u.cancel_fd = l->stop[0];
	return u;
}

static struct until
keeper_within(const struct link *l, int64_t ms)
{
	struct until u = keeper_until(l);

	return until_within(&u, ms);
}

/* With the lock held, before and after: shells for the next calls. */
static void
keep_spare(struct link *l)
{
	struct until until = keeper_within(l, READY_MS);
	struct err err;
	struct shell *s;

	while (l->connected && !l->ending && !l->connecting &&
	    l->idle_count < SPARE_SHELLS) {
		s = link_more(l, false, &until, &err);
		if (s == NULL)
			return;
		link_keep(l, s);
	}
}

/* With the lock held: one look after the link. */
static void
tend(struct link *l)
{
	int64_t now = clock_ms();
	struct until soon = keeper_within(l, PROVE_MS);
	struct shell *s, *old;
	struct err err;

	if (!l->connected)
		return;
	/* Without the lease a command under way would be ended. */
	if (l->busy == 0 && !l->connecting && now - l->used > IDLE_MS) {
		link_let_go(l);
		return;
	}
	if (l->sftp_only)
		return; /* ssh itself notices when such a link dies */
	if (now - l->pinged > LEASE_PING_MS &&
	    link_prove(l, &soon, true, &err) == -1) {
		/* The next call finds out; the far side has its lease. */
		l->pinged = now;
		l->doubted = true;
		return;
	}
	/* A further login may take its time; the lease must hear from us all
	 * the while. */
	if (!l->connected || l->connecting)
		return;
	l->wanted = now - l->asked > ASKED_MS && master_wanted(&l->masters[0]);
	if (l->wanted && l->busy == 0 && l->waiting == 0) {
		link_let_go(l); /* a lease is a session, too */
		return;
	}
	for (old = take_old(l, now, l->wanted && l->waiting == 0);
	     (s = old) != NULL;) {
		old = s->next;
		l->full[s->master] = false;
		shell_free(s);
	}
	if (!l->brief && !l->wanted)
		keep_spare(l);
}

static void *
keep(void *arg)
{
	struct link *l = arg;
	struct err err;

	pthread_mutex_lock(&l->lock);
	while (!l->ending) {
		struct until tick = until_in(TICK_MS);

		tend(l);
		if (!l->ending)
			gate_wait(&l->keeper_gate, &l->lock, &tick, &err);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

void
keeper_start(struct link *l)
{
	struct err err;

	if (l->keeping)
		return;
	if (fs_pipe(l->stop, &err) == -1)
		log_warn("cannot keep shells ready: %s", err.msg);
	else if (pthread_create(&l->keeper, NULL, keep, l) == 0)
		l->keeping = true;
	else {
		log_warn("cannot start a thread for %s", l->sb->name);
		close(l->stop[0]);
		close(l->stop[1]);
	}
}

void
keeper_stop(struct link *l)
{
	pthread_mutex_lock(&l->lock);
	l->ending = true;
	gate_open(&l->keeper_gate);
	pthread_mutex_unlock(&l->lock);
	if (!l->keeping)
		return;
	close(l->stop[1]);
	pthread_join(l->keeper, NULL);
	if (l->grown)
		pthread_join(l->grower, NULL);
	close(l->stop[0]);
	l->keeping = false;
}
