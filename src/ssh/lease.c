/* The lease. */
#include "ssh/lease.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/random.h"
#include "ssh/capture.h"
#include "ssh/clean.h"
#include "ssh/script.h"

#define SEEN_MAX ((size_t)4 << 20) /* noise of rc files comes first */

/* Nothing more will come.  Before the lease stood, what the far side said
 * tells why: an account that is closed, a shell that is none. */
static int
ended(struct lease *l, struct err *err)
{
	struct buf said;
	char *space;
	size_t room;
	ssize_t n;

	if (l->pings > 0)
		return err_set(err, ERR_IO, "the link was lost");
	space = buf_space(&l->seen, 512, &room);
	n = read(l->ch.err, space, room < 512 ? room : 512);
	if (n > 0)
		buf_grew(&l->seen, (size_t)n);
	buf_init(&said, 300);
	clean_text(&said, l->seen.data, l->seen.len < 300 ? l->seen.len : 300);
	err_set(err, ERR_IO,
	    "its login shell ended before it was ready; it said: %s",
	    said.len > 0 ? said.data : "nothing");
	buf_free(&said);
	return -1;
}

/* Read until a line holds "word"; everything up to it is dropped. */
static int
wait_for(struct lease *l, const char *word, const struct until *until,
    struct err *err)
{
	struct pollfd p = { .fd = l->ch.out, .events = POLLIN };
	char *at, *space;
	size_t room;
	ssize_t n;

	for (;;) {
		at = memmem(l->seen.data, l->seen.len, word, strlen(word));
		if (at != NULL) {
			buf_drop(&l->seen,
			    (size_t)(at - l->seen.data) + strlen(word));
			return 0;
		}
		space = buf_space(&l->seen, 4096, &room);
		if (room == 0)
			return err_set(err, ERR_LIMIT,
			    "the far side prints without end");
		if (until_poll(until, &p, 1, err) == -1)
			return -1;
		n = read(l->ch.out, space, room);
		if (n == 0)
			return ended(l, err);
		if (n == -1 && errno != EAGAIN && errno != EINTR)
			return err_sys(err, "cannot read from the link");
		if (n > 0)
			buf_grew(&l->seen, (size_t)n);
	}
}

void
lease_close(struct lease *l)
{
	if (!l->open)
		return;
	channel_close(&l->ch);
	buf_free(&l->seen);
	l->open = false;
}

int
lease_open(struct lease *l, const char *socket, const char *link_id,
    int silence_s, const struct until *until, struct err *err)
{
	struct buf text;
	int rc;

	memset(l, 0, sizeof(*l));
	buf_init(&l->seen, SEEN_MAX);
	l->open = true;
	rc = channel_open(&l->ch, socket, script_boot, until, err);
	if (rc == 0) {
		random_hex(l->token, NONCE_LEN / 2);
		buf_init(&text, 32768);
		script_lease(&text, l->token, link_id, silence_s);
		if (fs_write_all(l->ch.in, text.data, text.len) == -1)
			rc = err_sys(err, "cannot write to the link");
		buf_free(&text);
	}
	if (rc == -1)
		lease_close(l);
	return rc;
}

int
lease_wait(struct lease *l, const struct until *until, struct err *err)
{
	return wait_for(l, l->token, until, err);
}

int
lease_ping(struct lease *l, const struct until *until, struct err *err)
{
	char word[32];
	struct buf text;
	int rc = 0;

	buf_init(&text, sizeof(word));
	buf_addf(&text, "p %u\n", ++l->pings);
	if (fs_write_all(l->ch.in, text.data, text.len) == -1)
		rc = err_sys(err, "cannot write to the link");
	if (rc == 0)
		rc = wait_for(l, text.data, until, err);
	buf_free(&text);
	return rc;
}

void
lease_release(struct lease *l, const char *mark, long waiter)
{
	struct buf text;

	if (!l->open)
		return;
	buf_init(&text, 128);
	buf_addf(&text, "r %s %ld\n", mark, waiter);
	(void)!fs_write_all(l->ch.in, text.data, text.len);
	buf_free(&text);
}
