/* The lease. */
#include "ssh/lease.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/random.h"
#include "ssh/clean.h"
#include "ssh/script.h"

#define SEEN_MAX ((size_t)4 << 20)   /* noise of rc files comes first */
#define STALE_MAX ((size_t)64 << 10) /* answers that nobody waited for */

/* Nothing more will come.  Before the lease stood, what the far side said
 * tells why: an account that is closed, a shell that is none. */
static int
ended(struct lease *l, struct err *err)
{
	struct buf said;
	char text[512];
	ssize_t n;

	if (l->standing)
		return err_set(err, ERR_IO, "the link was lost");
	buf_init(&said, 300);
	clean_text(&said, l->seen.data, l->seen.len < 300 ? l->seen.len : 300);
	n = read(l->ch.err, text, sizeof(text));
	if (n > 0)
		clean_text(&said, text, (size_t)n);
	err_set(err, ERR_IO,
	    "its login shell ended before it was ready; it said: %s",
	    said.len > 0 ? said.data : "nothing");
	buf_free(&said);
	return -1;
}

/* With the lock held: forget the first so many bytes. */
static void
drop_stale(struct lease *l, size_t len)
{
	l->torn = l->seen.data[len - 1] != '\n';
	buf_drop(&l->seen, len);
}

/* With the lock held, before and after: wait for bytes and add them. */
static int
read_more(struct lease *l, const struct until *until, struct err *err)
{
	struct pollfd p = { .fd = l->ch.out, .events = POLLIN };
	char text[4096];
	ssize_t n = -1;
	int rc;

	l->reading = true;
	pthread_mutex_unlock(&l->lock);
	rc = until_poll(until, &p, 1, err);
	if (rc != -1)
		n = read(l->ch.out, text, sizeof(text));
	pthread_mutex_lock(&l->lock);
	l->reading = false;
	gate_open(&l->gate);
	if (rc == -1)
		return -1;
	if (n == 0)
		return ended(l, err);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR
		    ? 0
		    : err_sys(err, "cannot read from the link");
	if (l->standing && l->seen.len > STALE_MAX)
		drop_stale(l, l->seen.len - STALE_MAX / 2);
	buf_add(&l->seen, text, (size_t)n);
	if (l->seen.full)
		return err_set(err, ERR_LIMIT,
		    "the far side prints without end");
	return 0;
}

/* Where the line begins that starts with "word".  Before the lease stands,
 * noise of rc files may come before it in the line. */
static char *
find_line(const struct lease *l, const char *word)
{
	const char *at = l->seen.data, *end = at + l->seen.len;
	size_t n = strlen(word);

	while ((at = memmem(at, (size_t)(end - at), word, n)) != NULL) {
		if (!l->standing ||
		    (at == l->seen.data ? !l->torn : at[-1] == '\n'))
			return l->seen.data + (at - l->seen.data);
		at++;
	}
	return NULL;
}

/* With the lock held: take the line that begins with "word", if it is there.
 * What follows the word goes to "rest". */
static bool
take_line(struct lease *l, const char *word, struct buf *rest)
{
	char *data = l->seen.data, *at = find_line(l, word), *nl;

	if (at == NULL)
		return false;
	nl = memchr(at, '\n', l->seen.len - (size_t)(at - data));
	if (nl == NULL)
		return false;
	if (rest != NULL)
		buf_add(rest, at + strlen(word),
		    (size_t)(nl - at) - strlen(word));
	if (!l->standing) {
		buf_drop(&l->seen, (size_t)(nl - data) + 1); /* with noise */
		return true;
	}
	memmove(at, nl + 1, l->seen.len - (size_t)(nl + 1 - data));
	l->seen.len -= (size_t)(nl + 1 - at);
	l->seen.data[l->seen.len] = '\0';
	return true;
}

/* Wait for the line that begins with "word". */
static int
wait_line(struct lease *l, const char *word, struct buf *rest,
    const struct until *until, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	while (rc == 0 && !take_line(l, word, rest)) {
		if (l->reading)
			rc = gate_wait(&l->gate, &l->lock, until, err);
		else
			rc = read_more(l, until, err);
	}
	pthread_mutex_unlock(&l->lock);
	return rc;
}

/* A link that does not take this little within two seconds is stuck. */
#define SAY_MS 2000

/* "done" is how much of it was written. */
static int
write_some(struct lease *l, const struct buf *text, size_t *done,
    struct err *err)
{
	struct until soon = until_in(SAY_MS);
	struct pollfd p = { .fd = l->ch.in, .events = POLLOUT };
	ssize_t n;

	for (*done = 0; *done < text->len;) {
		n = write(l->ch.in, text->data + *done, text->len - *done);
		if (n == -1 && errno != EAGAIN && errno != EINTR)
			return err_sys(err, "cannot write to the link");
		if (n > 0) {
			*done += (size_t)n;
		} else if (until_poll(&soon, &p, 1, err) == -1) {
			return err_set(err, ERR_IO, "the link is stuck");
		}
	}
	return 0;
}

/* While "saying" is held.  What follows half a word would be taken for the rest
 * of it, so then nothing does.  "sent": some of it was. */
static int
write_all(struct lease *l, const struct buf *text, bool *sent, struct err *err)
{
	size_t done;
	int rc;

	*sent = false;
	if (l->garbled)
		return err_set(err, ERR_IO, "the link was lost");
	rc = write_some(l, text, &done, err);
	*sent = done > 0;
	l->garbled = rc == -1 && *sent;
	return rc;
}

static int
say(struct lease *l, const struct buf *line, struct err *err)
{
	bool sent;
	int rc;

	pthread_mutex_lock(&l->saying);
	rc = write_all(l, line, &sent, err);
	pthread_mutex_unlock(&l->saying);
	return rc;
}

static unsigned
next_number(struct lease *l)
{
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = ++l->asked;
	pthread_mutex_unlock(&l->lock);
	return n;
}

struct lease *
lease_take(struct lease *l)
{
	pthread_mutex_lock(&l->lock);
	l->users++;
	pthread_mutex_unlock(&l->lock);
	return l;
}

void
lease_give(struct lease *l)
{
	bool last;

	if (l == NULL)
		return;
	pthread_mutex_lock(&l->lock);
	last = --l->users == 0;
	pthread_mutex_unlock(&l->lock);
	if (!last)
		return;
	channel_close(&l->ch);
	buf_free(&l->seen);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->saying);
	free(l);
}

bool
lease_over(const struct lease *l)
{
	return channel_over(&l->ch);
}

struct lease *
lease_ask(const char *socket, const char *link_id, int silence_s,
    const struct until *until, struct err *err)
{
	struct lease *l = xcalloc(1, sizeof(*l));
	struct buf text;
	int rc;

	buf_init(&l->seen, SEEN_MAX);
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->saying, NULL);
	l->users = 1;
	rc = channel_ask(&l->ch, socket, script_boot, until, err);
	if (rc == 0) {
		random_hex(l->token, NONCE_LEN / 2);
		buf_init(&text, 32768);
		script_lease(&text, l->token, link_id, silence_s);
		/* A far side that is gone already has said why; lease_wait()
		 * reads it. */
		if (fs_write_all(l->ch.in, text.data, text.len) == -1 &&
		    errno != EPIPE)
			rc = err_sys(err, "cannot write to the link");
		buf_free(&text);
	}
	if (rc == 0)
		return l;
	lease_give(l);
	return NULL;
}

int
lease_opened(struct lease *l, const struct until *until, struct err *err)
{
	return channel_opened(&l->ch, until, err);
}

int
lease_wait(struct lease *l, const struct until *until, struct err *err)
{
	struct buf rest;
	int rc;

	buf_init(&rest, MACHINE_MAX);
	rc = wait_line(l, l->token, &rest, until, err);
	if (rc == 0) {
		pthread_mutex_lock(&l->lock);
		l->standing = true;
		snprintf(l->machine, sizeof(l->machine), "%s",
		    rest.len > 0 ? rest.data + strspn(rest.data, " ") : "");
		pthread_mutex_unlock(&l->lock);
	}
	buf_free(&rest);
	return rc;
}

int
lease_ping(struct lease *l, const struct until *until, struct err *err)
{
	unsigned n = next_number(l);
	struct buf line, word;
	int rc;

	buf_init(&line, 64);
	buf_init(&word, 64);
	buf_addf(&line, "p %u\n", n);
	buf_addf(&word, "p %u ", n);
	rc = say(l, &line, err);
	if (rc == 0)
		rc = wait_line(l, word.data, NULL, until, err);
	buf_free(&line);
	buf_free(&word);
	return rc;
}

/* Whether this line is there already. */
static bool
heard(struct lease *l, const char *word)
{
	bool there;

	pthread_mutex_lock(&l->lock);
	there = take_line(l, word, NULL);
	pthread_mutex_unlock(&l->lock);
	return there;
}

/* Behind the kill goes a ping: once that is answered, the kill has begun. */
int
lease_end(struct lease *l, const struct lease_kill *kill, struct buf *left,
    const struct until *until, struct err *err)
{
	unsigned n = next_number(l), begun = next_number(l);
	struct until longer = *until;
	struct buf line, word, ping;
	bool busy;
	int rc;

	buf_init(&line, 256);
	buf_init(&word, 64);
	buf_init(&ping, 64);
	buf_addf(&line, "k %u %s %ld %ld %d\np %u\n", n, kill->mark,
	    kill->waiter, kill->shell, kill->grace_ms / 10, begun);
	buf_addf(&word, "k %u ", n);
	buf_addf(&ping, "p %u ", begun);
	longer.deadline += kill->busy_ms;
	rc = say(l, &line, err);
	if (rc == 0)
		rc = wait_line(l, word.data, left, until, err);
	busy = heard(l, ping.data);
	if (rc == -1 && err->code == ERR_TIMEOUT && busy)
		rc = wait_line(l, word.data, left, &longer, err);
	buf_free(&line);
	buf_free(&word);
	buf_free(&ping);
	return rc;
}

static int
say_script(struct lease *l, unsigned n, const struct lease_script *script,
    bool *sent, struct err *err)
{
	const char *common = script->definitions;
	struct buf line;
	int rc;

	buf_init(&line, SIZE_MAX);
	pthread_mutex_lock(&l->saying);
	if (common != NULL && !l->defined)
		buf_addf(&line, "d 0 %zu\n%s", strlen(common), common);
	buf_addf(&line, "x %u %zu\n%s", n, strlen(script->text), script->text);
	rc = write_all(l, &line, sent, err);
	if (common != NULL && rc == 0)
		l->defined = true;
	pthread_mutex_unlock(&l->saying);
	buf_free(&line);
	return rc;
}

int
lease_run(struct lease *l, const struct lease_script *script,
    struct buf *answer, bool *sent, const struct until *until, struct err *err)
{
	unsigned n = next_number(l);
	struct buf word;
	int rc;

	*sent = false;
	if (strlen(script->text) > LEASE_SCRIPT_MAX)
		return err_set(err, ERR_LIMIT, "the script is too long");
	buf_init(&word, 64);
	buf_addf(&word, "x %u ", n);
	rc = say_script(l, n, script, sent, err);
	if (rc == 0)
		rc = wait_line(l, word.data, answer, until, err);
	buf_free(&word);
	return rc;
}

void
lease_release(struct lease *l, const char *mark, long waiter)
{
	struct buf line;
	struct err err;

	buf_init(&line, 128);
	buf_addf(&line, "r %s %ld\n", mark, waiter);
	say(l, &line, &err);
	buf_free(&line);
}
