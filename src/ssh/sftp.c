/* Sessions of SFTP. */
#include "ssh/sftp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ssh/channel.h"
#include "ssh/clean.h"

#define VERSION 3
#define READ_SIZE ((size_t)128 << 10)

/* Not sent yet, and not answered yet: more of either helps nobody. */
#define OUT_MAX ((size_t)1 << 20)
#define PENDING_MAX 256

#define LOOK_MS 1000
#define GREETING_MS 30000

/* What is polled. */
enum { IN, OUT, ERR, COUNT };

/* Who waits for the reply with this id. */
struct wait {
	sftp_done *done; /* NULL: the id is free */
	void *data;
};

struct sftp {
	struct channel ch;
	unsigned extras;
	struct buf in;
	struct buf out;
	size_t out_at; /* sent already */
	struct wait *waits;
	size_t wait_count, pending;
	size_t packet;      /* where the request begins that is being made */
	uint32_t packet_id; /* and its id */
	bool broken;        /* nothing more will come */
	int64_t silence_ms; /* how long nothing may move; 0: for ever */
	int64_t moved;      /* when something did */
};

bool
sftp_can(const struct sftp *s, enum sftp_extra what)
{
	return (s->extras & what) != 0;
}

bool
sftp_room(const struct sftp *s)
{
	return s->out.len - s->out_at < OUT_MAX && s->pending < PENDING_MAX;
}

bool
sftp_broken(const struct sftp *s)
{
	return s->broken;
}

void
sftp_patience(struct sftp *s, int64_t ms)
{
	s->silence_ms = ms;
}

size_t
sftp_pending(const struct sftp *s)
{
	return s->pending;
}

/* --- Requests ----------------------------------------------------------- */

static uint32_t
free_id(struct sftp *s)
{
	size_t i;

	for (i = 0; i < s->wait_count; i++) {
		if (s->waits[i].done == NULL)
			return (uint32_t)i;
	}
	s->wait_count = s->wait_count * 2 + 64;
	s->waits = xreallocarray(s->waits, s->wait_count, sizeof(*s->waits));
	memset(s->waits + i, 0, (s->wait_count - i) * sizeof(*s->waits));
	return (uint32_t)i;
}

struct buf *
sftp_begin(struct sftp *s, enum sftp_type type)
{
	s->packet_id = free_id(s);
	s->packet = sftp_packet_begin(&s->out, (uint8_t)type, s->packet_id);
	return &s->out;
}

/* The reply that nobody sent. */
static void
answer_lost(sftp_done *done, void *data)
{
	static const char code[4] = { 0, 0, 0, SFTP_CONNECTION_LOST };
	struct sftp_packet p = {
		.type = SFTP_STATUS,
		.body = { .at = code, .left = sizeof(code) },
	};

	done(data, &p);
}

/* All who wait get their reply, and so do those who ask from now on. */
void
sftp_break(struct sftp *s)
{
	size_t i;

	s->broken = true;
	buf_reset(&s->out);
	s->out_at = 0;
	for (i = 0; i < s->wait_count; i++) {
		struct wait w = s->waits[i];

		if (w.done == NULL)
			continue;
		s->waits[i].done = NULL;
		s->pending--;
		answer_lost(w.done, w.data);
	}
}

/* Whatever it says; false at its end. */
static bool
drop_some(int fd)
{
	char chunk[4096];
	ssize_t n = read(fd, chunk, sizeof(chunk));

	return n > 0 || (n == -1 && (errno == EAGAIN || errno == EINTR));
}

void
sftp_finish(struct sftp *s, const struct until *until)
{
	struct pollfd p = { .fd = s->ch.out, .events = POLLIN };
	struct mux_msg msg = { 0 };
	struct err err;

	sftp_break(s);
	channel_close_in(&s->ch);
	while (until_poll(until, &p, 1, &err) == 0 && drop_some(s->ch.out))
		;
	/* Its output may end before it does. */
	while (msg.type != MUX_EXIT &&
	    mux_read(&s->ch.mux, &msg, until, &err) == 0)
		;
}

void
sftp_end(struct sftp *s, sftp_done *done, void *data)
{
	if (s->broken) {
		buf_reset(&s->out);
		answer_lost(done, data);
		return;
	}
	sftp_packet_end(&s->out, s->packet);
	if (s->pending == 0)
		s->moved = clock_ms();
	s->waits[s->packet_id] = (struct wait){ done, data };
	s->pending++;
}

void
sftp_path(struct sftp *s, enum sftp_type type, const char *path,
    sftp_done *done, void *data)
{
	sftp_put_string(sftp_begin(s, type), path);
	sftp_end(s, done, data);
}

void
sftp_handle(struct sftp *s, enum sftp_type type, const struct buf *handle,
    sftp_done *done, void *data)
{
	sftp_put_bytes(sftp_begin(s, type), handle->data, handle->len);
	sftp_end(s, done, data);
}

void
sftp_open_file(struct sftp *s, const char *path, uint32_t flags,
    sftp_done *done, void *data)
{
	struct sftp_attrs a = { .has_mode = true, .mode = 0600 };
	struct buf *b = sftp_begin(s, SFTP_OPEN);

	sftp_put_string(b, path);
	sftp_put_u32(b, flags);
	sftp_put_attrs(b, &a);
	sftp_end(s, done, data);
}

void
sftp_rename(struct sftp *s, const char *from, const char *to, sftp_done *done,
    void *data)
{
	struct buf *b;

	if (sftp_can(s, SFTP_POSIX_RENAME)) {
		b = sftp_begin(s, SFTP_EXTENDED);
		sftp_put_string(b, "posix-rename@openssh.com");
	} else {
		b = sftp_begin(s, SFTP_RENAME);
	}
	sftp_put_string(b, from);
	sftp_put_string(b, to);
	sftp_end(s, done, data);
}

/* --- Replies ------------------------------------------------------------ */

uint32_t
sftp_code_of(const struct sftp_packet *reply)
{
	struct sftp_in in = reply->body;
	uint32_t code = sftp_get_u32(&in);

	return reply->type == SFTP_STATUS && !in.bad ? code : SFTP_FAILURE;
}

static int
lost(struct err *err)
{
	return err_set(err, ERR_IO, "the connection was lost");
}

/* The words of the host, where they say more than the code. */
static void
words(const struct sftp_packet *reply, struct buf *out)
{
	struct sftp_in in = reply->body;
	const char *s;
	size_t len;

	sftp_get_u32(&in);
	s = sftp_get_bytes(&in, &len);
	clean_text(out, s, len < 200 ? len : 200);
}

int
sftp_why(const struct sftp_packet *reply, struct err *err)
{
	struct buf said;

	if (reply->type != SFTP_STATUS)
		return err_set(err, ERR_IO,
		    "the host's SFTP server gave an answer that makes no "
		    "sense");
	switch (sftp_code_of(reply)) {
	case SFTP_EOF:
		return err_set(err, ERR_IO, "it ended");
	case SFTP_NO_SUCH_FILE:
		return err_set(err, ERR_NOT_FOUND, "No such file or directory");
	case SFTP_PERMISSION_DENIED:
		return err_set(err, ERR_DENIED, "Permission denied");
	case SFTP_CONNECTION_LOST:
		return lost(err);
	case SFTP_UNSUPPORTED:
		return err_set(err, ERR_IO,
		    "the host's SFTP server cannot do this");
	default:
		break;
	}
	buf_init(&said, 300);
	words(reply, &said);
	err_set(err, ERR_IO, "the host's SFTP server said: %s",
	    said.len > 0 ? said.data : "Failure");
	buf_free(&said);
	return -1;
}

int
sftp_take_handle(const struct sftp_packet *reply, struct buf *out,
    struct err *err)
{
	struct sftp_in in = reply->body;
	const char *h;
	size_t len;

	if (reply->type != SFTP_HANDLE)
		return sftp_why(reply, err);
	h = sftp_get_bytes(&in, &len);
	if (in.bad || len > SFTP_HANDLE_MAX)
		return err_set(err, ERR_IO,
		    "the host's SFTP server gave a handle that makes no "
		    "sense");
	buf_reset(out);
	buf_add(out, h, len);
	return 0;
}

int
sftp_no_sense(struct err *err)
{
	return err_set(err, ERR_IO,
	    "what the host's SFTP server sent makes no sense; it may print "
	    "something at login");
}

/* Hand out the packets that are whole. */
static int
hand_out(struct sftp *s, struct err *err)
{
	struct sftp_packet p;
	struct wait w;
	size_t at = 0;
	ssize_t n;

	while ((n = sftp_get_packet(s->in.data + at, s->in.len - at, &p)) > 0) {
		at += (size_t)n;
		if (p.id >= s->wait_count || s->waits[p.id].done == NULL)
			return sftp_no_sense(err);
		w = s->waits[p.id];
		s->waits[p.id].done = NULL;
		s->pending--;
		w.done(w.data, &p);
	}
	buf_drop(&s->in, at);
	return n == -1 ? sftp_no_sense(err) : 0;
}

static int
write_some(struct sftp *s, struct err *err)
{
	ssize_t n =
	    write(s->ch.in, s->out.data + s->out_at, s->out.len - s->out_at);

	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? 0 : lost(err);
	s->out_at += (size_t)n;
	s->moved = clock_ms();
	if (s->out_at == s->out.len) {
		buf_reset(&s->out);
		s->out_at = 0;
	} else if (s->out_at > OUT_MAX) {
		buf_drop(&s->out, s->out_at);
		s->out_at = 0;
	}
	return 0;
}

static int
read_some(struct sftp *s, struct err *err)
{
	size_t room;
	char *space = buf_space(&s->in, READ_SIZE, &room);
	ssize_t n;

	if (room == 0)
		return sftp_no_sense(err);
	n = read(s->ch.out, space, room);
	if (n == 0)
		return lost(err);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? 0 : lost(err);
	buf_grew(&s->in, (size_t)n);
	s->moved = clock_ms();
	return 0;
}

/* What the server complains about on stderr is for its own log. */
static void
drop_words(struct sftp *s)
{
	char text[1024];

	if (read(s->ch.err, text, sizeof(text)) == 0) {
		close(s->ch.err);
		s->ch.err = -1;
	}
}

/*
 * until_poll(), within our patience.  What it complains about does not count as
 * an answer; if we were busy ourselves, there is a second to look.
 */
static int
wait_for(struct sftp *s, struct pollfd *p, nfds_t n, const struct until *until,
    struct err *err)
{
	int64_t now = clock_ms(), end = s->moved + s->silence_ms;
	struct until patience = *until;
	int rc;

	if (s->silence_ms > 0 && patience.deadline > end)
		patience.deadline = end > now + LOOK_MS ? end : now + LOOK_MS;
	rc = until_poll(&patience, p, n, err);
	if (s->silence_ms == 0 || patience.deadline == until->deadline)
		return rc;
	if (rc == -1 ? err->code == ERR_TIMEOUT
	             : p[IN].revents == 0 && p[OUT].revents == 0 && now >= end)
		return err_set(err, ERR_TIMEOUT,
		    "the host's SFTP server said nothing for %d s, and was "
		    "given up",
		    (int)(s->silence_ms / 1000));
	return rc;
}

/* Wait; send and receive, but hand out nothing. */
static int
exchange(struct sftp *s, const struct until *until, struct err *err)
{
	bool writing = s->out_at < s->out.len;
	struct pollfd p[COUNT] = {
		[IN] = { writing ? s->ch.in : -1, POLLOUT, 0 },
		[OUT] = { s->ch.out, POLLIN, 0 },
		[ERR] = { s->ch.err, POLLIN, 0 },
	};

	if (wait_for(s, p, COUNT, until, err) == -1)
		return -1;
	if (p[ERR].revents != 0)
		drop_words(s);
	if (p[OUT].revents != 0 && read_some(s, err) == -1)
		return -1;
	if (p[IN].revents != 0 && write_some(s, err) == -1)
		return -1;
	return 0;
}

int
sftp_turn(struct sftp *s, const struct until *until, struct err *err)
{
	if (s->broken)
		return lost(err);
	if (exchange(s, until, err) == 0 && hand_out(s, err) == 0)
		return 0;
	sftp_break(s);
	return -1;
}

int
sftp_drain(struct sftp *s, const struct until *until, struct err *err)
{
	while (s->pending > 0) {
		if (sftp_turn(s, until, err) == -1)
			return -1;
	}
	return 0;
}

/* --- Beginning and end -------------------------------------------------- */

static bool
is(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(s, word, len) == 0;
}

static void
take_extras(struct sftp *s, struct sftp_in in)
{
	while (in.left > 0 && !in.bad) {
		size_t n, m;
		const char *name = sftp_get_bytes(&in, &n);

		sftp_get_bytes(&in, &m);
		if (is(name, n, "posix-rename@openssh.com"))
			s->extras |= SFTP_POSIX_RENAME;
		else if (is(name, n, "statvfs@openssh.com"))
			s->extras |= SFTP_STATVFS;
		else if (is(name, n, "lsetstat@openssh.com"))
			s->extras |= SFTP_LSETSTAT;
	}
}

/* The greeting has no id; the number in its place is the version. */
static int
greet(struct sftp *s, const struct until *until, struct err *err)
{
	struct sftp_packet p;
	size_t at = sftp_packet_begin(&s->out, SFTP_INIT, VERSION);
	ssize_t n;

	sftp_packet_end(&s->out, at);
	s->moved = clock_ms();
	sftp_patience(s, GREETING_MS);
	while ((n = sftp_get_packet(s->in.data, s->in.len, &p)) == 0) {
		if (exchange(s, until, err) == -1)
			return -1;
	}
	if (n == -1 || p.type != SFTP_VERSION || p.id < VERSION)
		return sftp_no_sense(err);
	take_extras(s, p.body);
	buf_drop(&s->in, (size_t)n);
	sftp_patience(s, 0);
	return 0;
}

struct sftp *
sftp_open(const char *socket, const struct until *until, struct err *err)
{
	struct sftp *s = xcalloc(1, sizeof(*s));

	buf_init(&s->in, SFTP_PACKET_MAX + READ_SIZE);
	buf_init(&s->out, SIZE_MAX);
	if (channel_open_subsystem(&s->ch, socket, "sftp", until, err) == 0 &&
	    greet(s, until, err) == 0)
		return s;
	sftp_free(s);
	return NULL;
}

void
sftp_free(struct sftp *s)
{
	if (s == NULL)
		return;
	sftp_break(s);
	channel_close(&s->ch);
	buf_free(&s->in);
	buf_free(&s->out);
	free(s->waits);
	free(s);
}
