/*
 * Links: lending their shells, and what goes with that.  link_inside.h tells
 * how the parts play together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ssh/link_inside.h"

/* How long to believe that there is only SFTP: a shell that failed for want of
 * memory or processes comes back. */
#define SFTP_ONLY_MS 60000

#define READY_STEP_MS 2000 /* between looks whether the link is alive */

struct links {
	bool brief;
	pthread_mutex_t lock;
	struct link *first;
};

static struct link *
link_new(const struct sandbox *sb, bool brief)
{
	struct link *l = xcalloc(1, sizeof(*l));

	l->sb = sb;
	l->brief = brief;
	link_reset(l);
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

struct links *
links_new(bool brief)
{
	struct links *l = xcalloc(1, sizeof(*l));

	l->brief = brief;
	pthread_mutex_init(&l->lock, NULL);
	return l;
}

struct link *
links_get(struct links *ls, const struct sandbox *sb)
{
	struct link *l;

	pthread_mutex_lock(&ls->lock);
	for (l = ls->first; l != NULL && l->sb != sb; l = l->next)
		;
	if (l == NULL) {
		l = link_new(sb, ls->brief);
		l->next = ls->first;
		ls->first = l;
	}
	pthread_mutex_unlock(&ls->lock);
	return l;
}

const struct sandbox *
link_sandbox(const struct link *l)
{
	return l->sb;
}

/* With the lock held. */
static void
next_mark(struct link *l, char out[MARK_MAX])
{
	snprintf(out, MARK_MAX, "%s.%u.", l->id, ++l->marks);
}

void
link_mark(struct link *l, char out[MARK_MAX])
{
	pthread_mutex_lock(&l->lock);
	next_mark(l, out);
	pthread_mutex_unlock(&l->lock);
}

int64_t
link_far_clock(struct link *l)
{
	int64_t now;

	pthread_mutex_lock(&l->lock);
	now = l->ahead_known ? clock_ms() + l->ahead : -1;
	pthread_mutex_unlock(&l->lock);
	return now;
}

void
link_machine(struct link *l, char out[MACHINE_MAX])
{
	pthread_mutex_lock(&l->lock);
	snprintf(out, MACHINE_MAX, "%s",
	    l->connected && l->lease != NULL ? l->lease->machine : "");
	pthread_mutex_unlock(&l->lock);
}

/* A shell became ready and told its time. */
static void
learn_clock(struct link *l, const struct shell *s)
{
	pthread_mutex_lock(&l->lock);
	if (!l->ahead_known || s->ahead > l->ahead)
		l->ahead = s->ahead;
	l->ahead_known = true;
	pthread_mutex_unlock(&l->lock);
}

void
link_proven(struct link *l)
{
	pthread_mutex_lock(&l->lock);
	l->proven = clock_ms();
	pthread_mutex_unlock(&l->lock);
}

void
link_moved(struct link *l, const struct shell *s)
{
	pthread_mutex_lock(&l->lock);
	if (s->generation == l->generation)
		l->moved = clock_ms();
	pthread_mutex_unlock(&l->lock);
}

/* With the lock held: the lease of the link that this shell is of, or NULL.
 * Behind one name there may be several machines, and the numbers of processes
 * are those of one. */
static struct lease *
lease_of(const struct link *l, const struct shell *s)
{
	return s->generation == l->generation ? l->lease : NULL;
}

void
link_release(struct link *l, const struct shell *s, const char *mark,
    long waiter)
{
	struct lease *lease;

	pthread_mutex_lock(&l->lock);
	lease = lease_of(l, s);
	if (lease != NULL)
		lease_take(lease);
	pthread_mutex_unlock(&l->lock);
	if (lease != NULL)
		lease_release(lease, mark, waiter);
	lease_give(lease);
}

void
link_news(struct link *l, char *out, size_t size)
{
	pthread_mutex_lock(&l->lock);
	snprintf(out, size, "%s", l->news);
	l->news[0] = '\0';
	pthread_mutex_unlock(&l->lock);
}

void
link_recall(struct link *l, char out[LINK_NOTE_MAX])
{
	pthread_mutex_lock(&l->lock);
	memcpy(out, l->note, LINK_NOTE_MAX);
	pthread_mutex_unlock(&l->lock);
}

void
link_remember(struct link *l, const char *note)
{
	pthread_mutex_lock(&l->lock);
	snprintf(l->note, sizeof(l->note), "%s", note != NULL ? note : "");
	pthread_mutex_unlock(&l->lock);
}

/* With the lock held: the first idle shell, or NULL. */
static struct shell *
pop_idle(struct link *l)
{
	struct shell *s = l->idle;

	if (s != NULL) {
		l->idle = s->next;
		l->idle_count--;
		s->next = NULL;
	}
	return s;
}

/*
 * With the lock held: the server has no room.  Wait for a shell to come back;
 * look again now and then, since other processes use the masters, too.  *since:
 * since when there is none of ours to wait for.
 */
static int
wait_for_room(struct link *l, int64_t *since, const struct until *until,
    struct err *err)
{
	struct until step = until_within(until, ROOM_STEP_MS);
	int rc;

	l->waiting++;
	rc = gate_wait(&l->gate, &l->lock, &step, err);
	l->waiting--;
	if (rc == 0)
		return 0;
	if (err->code != ERR_TIMEOUT || until_check(until, err) == -1)
		return -1;
	if (l->busy > 0)
		*since = clock_ms();
	else if (link_lacks_room(l))
		link_want(l);
	if (l->connecting)
		return 0; /* that one is looking */
	memset(l->full, 0, sizeof(l->full));
	return clock_ms() - *since < READY_MS ? 0 : link_no_room(l, err);
}

/* With the lock held: a round trip.  ERR_IO if nobody answers. */
static int
prove_now(struct link *l, const struct until *until, struct err *err)
{
	int rc = link_prove(l, until, true, err);

	return rc == -1 && err->code == ERR_TIMEOUT
	    ? err_set(err, ERR_IO, "the link was lost")
	    : rc;
}

/*
 * With the lock held: a further shell.  To log in for it takes its time, or
 * does not end, and a shell may come back meanwhile: so that is done beside the
 * calls that wait, unless there is none to come back.
 */
static struct shell *
one_more(struct link *l, const struct until *until, struct err *err)
{
	bool alone = l->busy == 0;
	struct shell *s = link_more(l, alone, until, err);

	if (s != NULL || alone || err->code != ERR_LIMIT || l->idle != NULL ||
	    !l->connected || link_full(l) || link_grow(l) == 0)
		return s;
	return link_more(l, true, until, err);
}

/* With the lock held: a shell, waiting for one if there are no more. */
static struct shell *
find_shell(struct link *l, const struct until *until, struct err *err)
{
	int64_t since = clock_ms();
	struct shell *s;

	for (;;) {
		if (!l->connected) {
			err_set(err, ERR_IO, "the link was lost");
			return NULL;
		}
		s = pop_idle(l);
		if (s != NULL)
			return s;
		if (l->doubted) {
			if (prove_now(l, until, err) == -1)
				return NULL;
			continue;
		}
		if (!link_full(l) && !l->connecting) {
			s = one_more(l, until, err);
			if (s != NULL || err->code != ERR_LIMIT)
				return s;
			if (l->idle != NULL)
				continue;
		}
		if (wait_for_room(l, &since, until, err) == -1)
			return NULL;
	}
}

/*
 * Wait until the shell is ready.  rc files may take their time, but a link
 * that does not answer meanwhile is lost: ERR_IO.
 */
static int
wait_ready(struct link *l, struct shell *s, const struct until *until,
    struct err *err)
{
	struct until limit = until_within(until, READY_MS);
	struct until step;
	int rc;

	for (;;) {
		step = until_within(&limit, READY_STEP_MS);
		if (shell_ready(s, &step, err) == 0)
			return 0;
		if (err->code != ERR_TIMEOUT || until_check(&limit, err) == -1)
			return -1;
		pthread_mutex_lock(&l->lock);
		rc = prove_now(l, &limit, err);
		pthread_mutex_unlock(&l->lock);
		if (rc == -1)
			return -1;
	}
}

/* With the lock held. */
static int
sftp_only_err(struct link *l, struct err *err)
{
	bool more = l->no_shell[0] != '\0';

	return err_set(err, ERR_DENIED,
	    "%s allows file transfer (SFTP) only: commands cannot be run "
	    "there; list_remote_files, read_remote_file and the sync tools "
	    "work. If commands should, look at ForceCommand in its sshd_config, "
	    "and at the login shell of its account and its rc files: they end "
	    "at once%s%s",
	    l->sb->name, more ? ", saying: " : "", l->no_shell);
}

/* With the lock held: the next one to want a shell looks again. */
static void
doubt_sftp_only(struct link *l)
{
	if (l->connected && !l->connecting && l->sftp_only &&
	    clock_ms() - l->looked > SFTP_ONLY_MS)
		link_let_go(l);
}

/* With the lock held: drop those that wait on the master of this one. */
static void
drop_beside(struct link *l, const struct shell *gone)
{
	struct shell **at, *s;

	for (at = &l->idle; (s = *at) != NULL;) {
		if (s->master != gone->master ||
		    s->generation != gone->generation) {
			at = &s->next;
			continue;
		}
		*at = s->next;
		l->idle_count--;
		shell_free(s);
	}
}

void
link_lost(struct link *l, const struct shell *gone)
{
	pthread_mutex_lock(&l->lock);
	l->losses++;
	if (gone->generation == l->generation)
		l->doubted = true;
	drop_beside(l, gone);
	pthread_mutex_unlock(&l->lock);
}

unsigned
link_losses(struct link *l)
{
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = l->losses;
	pthread_mutex_unlock(&l->lock);
	return n;
}

/*
 * Another thread may have replaced the link while the shell came up.  It is
 * alive all the same, but its lease has gone, and nobody would end what runs
 * there.  One that is ready before its lease goes is ended by that.
 *
 * Nor would the lease end what runs on another machine, to which a further
 * login may lead: 1, and its master is not used again.  What is on the lease's
 * own connection is where it is; a name may change, too.
 */
static int
still_ours(struct link *l, const struct shell *s, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	if (s->generation != l->generation || l->lease == NULL ||
	    lease_over(l->lease)) {
		rc = err_set(err, ERR_IO, "the link was lost");
	} else if (s->master != l->lease_master &&
	    strcmp(s->machine, l->lease->machine) != 0) {
		l->elsewhere[s->master] = true;
		drop_beside(l, s);
		rc = 1;
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* A ready shell of a link that is proven if it is not fresh, or if "always"
 * says so.  *lost: there was a link, but it did not hold. */
static struct shell *
take_once(struct link *l, bool always, bool *lost, const struct until *until,
    struct err *err)
{
	struct shell *s = NULL;
	int rc;

	*lost = false;
	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	doubt_sftp_only(l);
	if (link_revive(l, until, always, err) == 0) {
		if (l->sftp_only)
			sftp_only_err(l, err);
		else
			s = find_shell(l, until, err);
		*lost = s == NULL && err->code != ERR_LIMIT && !l->sftp_only;
		l->busy += s != NULL;
	}
	/* With one left, more can wait: starting them would cost this call
	 * time, too. */
	if (l->idle_count == 0)
		gate_open(&l->keeper_gate);
	pthread_mutex_unlock(&l->lock);
	if (s == NULL)
		return NULL;
	rc = wait_ready(l, s, until, err);
	if (rc == 0)
		rc = still_ours(l, s, err);
	if (rc == 0) {
		learn_clock(l, s);
		return s;
	}
	if (rc == 1) { /* with one master fewer to go to */
		link_give(l, s, false);
		return take_once(l, always, lost, until, err);
	}
	*lost = err->code == ERR_IO;
	if (*lost)
		link_lost(l, s);
	if (err->code == ERR_TIMEOUT)
		link_no_shell(l, err);
	link_give(l, s, false);
	return NULL;
}

struct shell *
link_take(struct link *l, bool always, const struct until *until,
    struct err *err)
{
	struct err why;
	bool lost;
	struct shell *s = take_once(l, always, &lost, until, err);

	/* Nothing was sent yet, so once more is safe: a link or an idle shell
	 * may have died unnoticed. */
	if (s == NULL && lost && until_check(until, &why) == 0)
		s = take_once(l, true, &lost, until, err);
	return s;
}

/* Its lease is gone, and with it who would end the command.  Any other on that
 * machine can, by the mark: so the link is made anew. */
static int
end_anew(struct link *l, const struct shell *s, const struct lease_kill *kill,
    struct buf *left, const struct until *until, struct err *err)
{
	struct lease *lease = NULL;
	struct err ignored;
	int rc = -1;

	if (s->machine[0] == '\0' || s->machine[0] == '-')
		return -1; /* nobody knows which it is */
	if (channel_over(&s->ch))
		return -1; /* its processes may have given their numbers away */
	pthread_mutex_lock(&l->lock);
	if (link_revive(l, until, false, &ignored) == 0 && l->lease != NULL &&
	    strcmp(l->lease->machine, s->machine) == 0)
		lease = lease_take(l->lease);
	pthread_mutex_unlock(&l->lock);
	if (lease != NULL)
		rc = lease_end(lease, kill, left, until, err);
	lease_give(lease);
	return rc;
}

int
link_end(struct link *l, const struct shell *s, const struct lease_kill *kill,
    struct buf *left, const struct until *until, struct err *err)
{
	struct lease *lease;
	int rc = -1;

	pthread_mutex_lock(&l->lock);
	lease = lease_of(l, s);
	if (lease != NULL)
		lease_take(lease);
	pthread_mutex_unlock(&l->lock);
	if (lease != NULL)
		rc = lease_end(lease, kill, left, until, err);
	else
		err_set(err, ERR_IO, "the link was lost");
	if (rc == -1 && lease != NULL) {
		/* The next call is to find out whether it is alive. */
		pthread_mutex_lock(&l->lock);
		l->doubted = true;
		pthread_mutex_unlock(&l->lock);
	}
	lease_give(lease);
	if (rc == -1 && err->code == ERR_IO)
		rc = end_anew(l, s, kill, left, until, err);
	return rc;
}

int
link_run(struct link *l, const struct lease_script *script, struct buf *answer,
    enum link_ran *ran, const struct until *until, struct err *err)
{
	struct lease *lease = NULL;
	bool sent = false;
	int rc;

	*ran = LINK_UNSENT;
	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	doubt_sftp_only(l);
	if (link_revive(l, until, false, err) == 0) {
		if (l->sftp_only)
			sftp_only_err(l, err);
		else if (l->lease != NULL)
			lease = lease_take(l->lease);
		else
			err_set(err, ERR_IO, "the link was lost");
	}
	pthread_mutex_unlock(&l->lock);
	if (lease == NULL)
		return -1;
	rc = lease_run(lease, script, answer, &sent, until, err);
	if (sent)
		*ran = LINK_SENT;
	else if (rc == -1 && err->code == ERR_IO)
		*ran = LINK_GONE; /* it took not a byte */
	lease_give(lease);
	pthread_mutex_lock(&l->lock);
	if (rc == 0)
		l->proven = clock_ms();
	else
		l->doubted = true;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void
link_give(struct link *l, struct shell *s, bool usable)
{
	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	l->busy--;
	if (l->wanted && l->busy > 0)
		usable = false;
	if (!usable || s->generation != l->generation || !l->connected) {
		if (s->generation == l->generation)
			l->full[s->master] = false;
		shell_free(s);
	} else {
		link_keep(l, s);
	}
	if (l->busy == 0 && l->idle_count < SPARE_SHELLS)
		gate_open(&l->keeper_gate);
	gate_open(&l->gate);
	pthread_mutex_unlock(&l->lock);
}

static int
revive(struct link *l, bool always, const struct until *until, struct err *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	rc = link_revive(l, until, always, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
}

int
link_check(struct link *l, const struct until *until, struct err *err)
{
	return revive(l, true, until, err);
}

int
link_fresh(struct link *l, const struct until *until, struct err *err)
{
	return revive(l, false, until, err);
}

bool
link_sftp_only(struct link *l, struct err *err)
{
	bool only;

	pthread_mutex_lock(&l->lock);
	only = l->connected && l->sftp_only;
	if (only)
		sftp_only_err(l, err);
	pthread_mutex_unlock(&l->lock);
	return only;
}

int
link_ways(struct link *l, const struct until *until, struct err *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	rc = link_connect(l, until, err);
	if (rc == 0 && l->sftp_only)
		rc = 1;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

struct sftp *
link_sftp(struct link *l, const struct until *until, struct err *err)
{
	int64_t since = clock_ms();
	struct sftp *s = NULL;
	unsigned generation;
	int tries = 0;

	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	if (!l->connecting) /* sessions end, and nobody tells */
		memset(l->full, 0, sizeof(l->full));
	/* A link may have died unnoticed, so once more. */
	while (s == NULL && tries < 2) {
		if (link_connect(l, until, err) == -1)
			break;
		if (l->connecting || link_full(l)) {
			if (wait_for_room(l, &since, until, err) == -1)
				break;
			continue;
		}
		generation = l->generation;
		s = link_more_sftp(l, until, err);
		if (s == NULL && err->code == ERR_LIMIT)
			continue;
		tries++;
		if (s == NULL && generation == l->generation &&
		    !l->connecting && err->code != ERR_CANCELLED)
			link_give_up(l);
	}
	pthread_mutex_unlock(&l->lock);
	if (s == NULL)
		err_wrap(err, "SFTP on %s", l->sb->name);
	return s;
}

static void
link_free(struct link *l)
{
	keeper_stop(l);
	link_let_go(l);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void
links_free(struct links *ls)
{
	struct link *l;

	if (ls == NULL)
		return;
	while ((l = ls->first) != NULL) {
		ls->first = l->next;
		link_free(l);
	}
	pthread_mutex_destroy(&ls->lock);
	free(ls);
}
