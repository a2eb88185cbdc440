/*
 * Links: connecting, proving, lending shells.  link_inside.h tells how the
 * parts play together.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ssh/link_inside.h"

/* How long the far side keeps commands alive without hearing from us. */
#define LEASE_SILENCE_S 60

/* A link that answered within this time is taken to be alive. */
#define PROVEN_MS 10000

/* A session of SFTP takes its time on a busy host; longer, and it is lost. */
#define SFTP_MS 10000

/* How long to believe that there is only SFTP: a shell that failed for want of
 * memory or processes comes back. */
#define SFTP_ONLY_MS 60000

#define ROOM_STEP_MS 500   /* between looks for room */
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
	random_hex(l->id, 8);
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
link_release(struct link *l, const char *mark, long waiter)
{
	pthread_mutex_lock(&l->lock);
	if (l->lease != NULL)
		lease_release(l->lease, mark, waiter);
	pthread_mutex_unlock(&l->lock);
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
	l->sftp_only = false;
	l->ahead_known = false;
	l->note[0] = '\0';
	l->generation++;
}

/* With the lock held: the link is dead, nobody shall find it again. */
static void
give_up(struct link *l)
{
	int i;

	for (i = 0; i < l->count; i++)
		master_retire(&l->masters[i]);
	link_let_go(l);
}

/* Log in once more, as master number "count".  Without the lock; only the
 * connecting thread adds masters. */
static int
add_master(struct link *l, const struct until *until, struct err *err)
{
	struct master m;

	if (master_ensure(&m, l->sb, l->count, until, err) == -1) {
		master_free(&m);
		return -1;
	}
	pthread_mutex_lock(&l->lock);
	l->masters[l->count++] = m;
	if (m.new_key[0] != '\0')
		snprintf(l->news, sizeof(l->news), "%s", m.new_key);
	pthread_mutex_unlock(&l->lock);
	return 0;
}

/* With the lock held: all the masters there may be, and no room on any. */
static bool
all_full(const struct link *l)
{
	int i;

	for (i = 0; i < l->count; i++) {
		if (!l->full[i])
			return false;
	}
	return l->count == MASTERS_MAX;
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
	return add_master(l, until, err) == -1 ? -1 : l->count - 1;
}

static void
note_full(struct link *l, int master)
{
	pthread_mutex_lock(&l->lock);
	l->full[master] = true;
	pthread_mutex_unlock(&l->lock);
}

/* Open a shell where there is room.  Without the lock, by the connecting
 * thread. */
static struct shell *
open_shell(struct link *l, bool grow, const struct until *until,
    struct err *err)
{
	char mark[MARK_MAX];
	struct shell *s;
	int m;

	while ((m = roomy_master(l, grow, until, err)) != -1) {
		link_mark(l, mark);
		s = shell_open(l->masters[m].path, mark, until, err);
		if (s != NULL) {
			s->master = m;
			s->generation = l->generation;
			return s;
		}
		if (err->code != ERR_LIMIT)
			return NULL;
		note_full(l, m);
	}
	return NULL;
}

/* The same for the lease. */
static struct lease *
open_lease(struct link *l, const struct until *until, struct err *err)
{
	struct lease *lease;
	int m;

	while ((m = roomy_master(l, true, until, err)) != -1) {
		lease = lease_open(l->masters[m].path, l->id, LEASE_SILENCE_S,
		    until, err);
		if (lease != NULL || err->code != ERR_LIMIT)
			return lease;
		note_full(l, m);
	}
	return NULL;
}

static int
no_shell(struct link *l, struct err *err)
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
 * What commands need: the lease, and shells.  All start at once, since rc
 * files take time.
 */
static int
start_shells(struct link *l, const struct until *until, struct err *err)
{
	struct until ready;
	struct lease *lease;
	struct shell *s;
	int i;

	ready = until_within(until, READY_MS);
	lease = open_lease(l, &ready, err);
	if (lease == NULL)
		return -1;
	pthread_mutex_lock(&l->lock);
	l->lease = lease;
	pthread_mutex_unlock(&l->lock);
	/* One for the call that waits, one for the next. */
	for (i = 0; i < (l->brief ? 1 : 2); i++) {
		s = open_shell(l, i == 0, &ready, err);
		if (s == NULL && err->code != ERR_LIMIT)
			return -1;
		if (s == NULL)
			break;
		pthread_mutex_lock(&l->lock);
		link_keep(l, s);
		pthread_mutex_unlock(&l->lock);
	}
	return lease_wait(lease, &ready, err);
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

	if (add_master(l, until, err) == -1)
		return -1;
	if (start_shells(l, until, err) == -1) {
		/* One that is merely slow is none of these. */
		if (err->code != ERR_IO || !try_sftp(l, until))
			return no_shell(l, err);
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
static int
ensure_connected(struct link *l, const struct until *until, struct err *err)
{
	int rc;

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
static struct sftp *
more_sftp(struct link *l, const struct until *until, struct err *err)
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
	struct sftp *s = more_sftp(l, until, err);

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

	if (!always && clock_ms() - l->proven < PROVEN_MS)
		return 0;
	if (l->sftp_only)
		return prove_sftp(l, until, err);
	if (l->lease == NULL)
		return err_set(err, ERR_IO, "the link was lost");
	lease = lease_take(l->lease);
	pthread_mutex_unlock(&l->lock);
	rc = lease_ping(lease, &soon, err);
	pthread_mutex_lock(&l->lock);
	if (rc == 0 && lease == l->lease)
		l->proven = l->pinged = clock_ms();
	lease_give(lease);
	return rc;
}

/* With the lock held: a link that is there and answers. */
static int
ensure_alive(struct link *l, const struct until *until, bool always,
    struct err *err)
{
	unsigned generation;
	int tries;

	for (tries = 0; tries < 2; tries++) {
		if (ensure_connected(l, until, err) == -1)
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
			give_up(l);
	}
	return err_wrap(err, "%s does not answer", l->sb->name);
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
	gate_open(&l->gate);
	return s;
}

/*
 * With the lock held: the server has no room.  Wait for a shell to come back;
 * look again now and then, since other processes use the masters, too.
 */
static int
wait_for_room(struct link *l, int64_t since, const struct until *until,
    struct err *err)
{
	struct until step = until_within(until, ROOM_STEP_MS);

	if (gate_wait(&l->gate, &l->lock, &step, err) == 0)
		return 0;
	if (err->code != ERR_TIMEOUT || until_check(until, err) == -1)
		return -1;
	memset(l->full, 0, sizeof(l->full));
	if (l->busy > 0 || clock_ms() - since < READY_MS)
		return 0;
	return err_set(err, ERR_LIMIT,
	    "%s allows no further session, and none of ours will end; close "
	    "other sessions on it, or raise MaxSessions there",
	    l->sb->name);
}

/* With the lock held: a shell, waiting for one if there are no more. */
static struct shell *
find_shell(struct link *l, const struct until *until, struct err *err)
{
	int64_t since = clock_ms();
	struct shell *s;

	for (;;) {
		s = pop_idle(l);
		if (s != NULL)
			return s;
		if (!l->connected) {
			err_set(err, ERR_IO, "the link was lost");
			return NULL;
		}
		if (!all_full(l)) {
			s = link_more(l, true, until, err);
			if (s != NULL || err->code != ERR_LIMIT)
				return s;
			continue;
		}
		if (wait_for_room(l, since, until, err) == -1)
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
		rc = link_prove(l, &limit, true, err);
		pthread_mutex_unlock(&l->lock);
		if (rc == -1 && err->code == ERR_TIMEOUT)
			return err_set(err, ERR_IO, "the link was lost");
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
	    "work. If commands should, look at the login shell of its account "
	    "and its rc files: they end at once%s%s",
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

/* A ready shell of a link that is proven if it is not fresh, or if "always"
 * says so.  *lost: there was a link, but it did not hold. */
static struct shell *
take_once(struct link *l, bool always, bool *lost, const struct until *until,
    struct err *err)
{
	struct shell *s = NULL;

	*lost = false;
	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	doubt_sftp_only(l);
	if (ensure_alive(l, until, always, err) == 0) {
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
	if (wait_ready(l, s, until, err) == 0) {
		learn_clock(l, s);
		return s;
	}
	*lost = err->code == ERR_IO;
	if (err->code == ERR_TIMEOUT)
		no_shell(l, err);
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

int
link_end(struct link *l, const struct lease_kill *kill, struct buf *left,
    const struct until *until, struct err *err)
{
	struct lease *lease = NULL;
	int rc;

	pthread_mutex_lock(&l->lock);
	if (l->lease != NULL)
		lease = lease_take(l->lease);
	pthread_mutex_unlock(&l->lock);
	if (lease == NULL)
		return err_set(err, ERR_IO, "the link was lost");
	rc = lease_end(lease, kill, left, until, err);
	lease_give(lease);
	if (rc == -1) {
		/* The next call is to find out whether it is alive. */
		pthread_mutex_lock(&l->lock);
		l->proven = 0;
		pthread_mutex_unlock(&l->lock);
	}
	return rc;
}

int
link_run(struct link *l, const char *script, struct buf *answer, bool *sent,
    const struct until *until, struct err *err)
{
	struct lease *lease = NULL;
	int rc;

	*sent = false;
	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	if (ensure_alive(l, until, false, err) == 0) {
		if (l->lease != NULL)
			lease = lease_take(l->lease);
		else
			err_set(err, ERR_IO, "the link was lost");
	}
	pthread_mutex_unlock(&l->lock);
	if (lease == NULL)
		return -1;
	rc = lease_run(lease, script, answer, sent, until, err);
	lease_give(lease);
	pthread_mutex_lock(&l->lock);
	l->proven = rc == 0 ? clock_ms() : 0;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

void
link_give(struct link *l, struct shell *s, bool usable)
{
	pthread_mutex_lock(&l->lock);
	l->busy--;
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

int
link_check(struct link *l, const struct until *until, struct err *err)
{
	int rc;

	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	rc = ensure_alive(l, until, true, err);
	pthread_mutex_unlock(&l->lock);
	return rc;
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
	rc = ensure_connected(l, until, err);
	if (rc == 0 && l->sftp_only)
		rc = 1;
	pthread_mutex_unlock(&l->lock);
	return rc;
}

struct sftp *
link_sftp(struct link *l, const struct until *until, struct err *err)
{
	struct sftp *s = NULL;
	unsigned generation;
	int tries;

	pthread_mutex_lock(&l->lock);
	l->used = clock_ms();
	/* A link may have died unnoticed, so once more. */
	for (tries = 0; s == NULL && tries < 2; tries++) {
		if (ensure_connected(l, until, err) == -1)
			break;
		generation = l->generation;
		s = more_sftp(l, until, err);
		if (s == NULL && generation == l->generation &&
		    !l->connecting && err->code != ERR_CANCELLED &&
		    err->code != ERR_LIMIT)
			give_up(l);
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
