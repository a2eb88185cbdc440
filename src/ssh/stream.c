/* Commands with streams. */
#include "ssh/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define CHUNK ((size_t)256 << 10)
#define WORDS_MAX ((size_t)1 << 20)

/* What it may print while we write, before we read it. */
#define PENDING_MAX ((size_t)4 << 20)

#define TRAVEL_MS 10000
#define KILL_MS 3000
#define GRACE_MS 200
#define TELL_MS 500 /* between words to the link */

struct stream {
	struct link *link;
	struct shell *shell;
	char mark[MARK_MAX];
	long waiter, pid;
	struct capture out, err;
	bool out_open, err_open;
	const char *feed; /* what is still to be written */
	size_t feed_len;
	struct buf pending; /* its output that nobody has read yet */
	struct buf chunk;
	int64_t silence_ms; /* how long nothing may move; 0: for ever */
	int64_t moved;      /* when something did that was waited for */
	int64_t told;       /* when the link last heard that bytes move */
	char *dest;         /* whoever reads has this much room */
	size_t room;
};

static bool
take(void *data, const char *bytes, size_t len)
{
	struct stream *s = data;
	size_t n = len < s->room ? len : s->room;

	if (n > 0) {
		if (bytes != s->dest) /* else it was read to there */
			memcpy(s->dest, bytes, n);
		s->dest += n;
		s->room -= n;
	}
	buf_add(&s->pending, bytes + n, len - n);
	return true;
}

static bool
over(const struct stream *s)
{
	return (s->out.ended || !s->out_open) && (s->err.ended || !s->err_open);
}

/* Bytes move; the link hears of it now and then. */
static void
tell_moved(struct stream *s)
{
	int64_t now = clock_ms();

	if (now - s->told < TELL_MS)
		return;
	s->told = now;
	link_moved(s->link, s->shell);
}

/* Bytes were taken, as was waited for. */
static void
has_moved(struct stream *s)
{
	s->moved = clock_ms();
	tell_moved(s);
}

/* Output goes where it is wanted, if it is. */
static void
read_stream(struct stream *s, struct capture *c, int fd, bool *open)
{
	bool direct = c == &s->out && s->room > 0;
	char *to = direct ? s->dest : s->chunk.data;
	ssize_t n = read(fd, to, direct ? s->room : CHUNK);

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		*open = false;
	if (n > 0) {
		tell_moved(s);
		capture_add(c, to, (size_t)n);
	}
}

static void
write_feed(struct stream *s)
{
	ssize_t n = write(s->shell->ch.in, s->feed, s->feed_len);

	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1)
		n = (ssize_t)s->feed_len; /* its end will show */
	else
		has_moved(s);
	s->feed += n;
	s->feed_len -= (size_t)n;
	if (s->feed_len == 0)
		stream_close_in(s);
}

/* until_poll(), within our patience. */
static int
wait_for(struct stream *s, struct pollfd *p, nfds_t n,
    const struct until *until, struct err *err)
{
	struct until patience = *until;
	int64_t end = s->moved + s->silence_ms;
	int rc;

	if (s->silence_ms > 0 && patience.deadline > end)
		patience.deadline = end;
	rc = until_poll(&patience, p, n, err);
	if (rc == -1 && err->code == ERR_TIMEOUT &&
	    patience.deadline != until->deadline)
		err_set(err, ERR_TIMEOUT,
		    "%s said nothing for %d s, and was given up",
		    link_sandbox(s->link)->name, (int)(s->silence_ms / 1000));
	return rc;
}

/*
 * Wait until something can be done: write ("writing", or what is to be fed) or
 * read.  Reads what there is.  Returns whether it can be written to, or -1.
 */
static int
turn(struct stream *s, bool writing, const struct until *until, struct err *err)
{
	enum { IN, OUT, ERR, COUNT };
	struct channel *ch = &s->shell->ch;
	bool out = s->out_open && !s->out.ended && s->pending.len < PENDING_MAX;
	bool errs = s->err_open && !s->err.ended;
	struct pollfd p[COUNT] = {
		[IN] = { writing || s->feed_len > 0 ? ch->in : -1, POLLOUT, 0 },
		[OUT] = { out ? ch->out : -1, POLLIN, 0 },
		[ERR] = { errs ? ch->err : -1, POLLIN, 0 },
	};

	if (wait_for(s, p, COUNT, until, err) == -1)
		return -1;
	if (p[OUT].revents != 0)
		read_stream(s, &s->out, ch->out, &s->out_open);
	if (p[ERR].revents != 0)
		read_stream(s, &s->err, ch->err, &s->err_open);
	if (p[IN].revents != 0 && s->feed_len > 0)
		write_feed(s);
	return p[IN].revents != 0;
}

static int
lost(const struct stream *s, struct err *err)
{
	link_lost(s->link, s->shell);
	return err_set(err, ERR_IO, "the connection to %s was lost",
	    link_sandbox(s->link)->name);
}

/* Larger pipes make for fewer turns; more is a favour of the system. */
static void
widen(int fd)
{
#ifdef F_SETPIPE_SZ
	(void)fcntl(fd, F_SETPIPE_SZ, (int)CHUNK);
#else
	(void)fd;
#endif
}

static void
init_captures(struct stream *s)
{
	capture_init(&s->out, s->shell->nonce, 0, NULL, 0);
	capture_init(&s->err, s->shell->nonce, WORDS_MAX, NULL, 0);
	s->out.sink = take;
	s->out.sink_data = s;
	s->out_open = s->err_open = true;
	buf_init(&s->pending, SIZE_MAX);
	buf_init(&s->chunk, CHUNK);
	buf_space(&s->chunk, CHUNK, &(size_t){ 0 });
}

struct stream *
stream_open(struct link *link, const char *script, const struct until *until,
    struct err *err)
{
	struct shell *shell = link_take(link, false, until, err);
	struct stream *s;
	struct buf input;
	int rc;

	if (shell == NULL)
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->link = link;
	s->shell = shell;
	memcpy(s->mark, shell->mark, sizeof(s->mark));
	s->waiter = shell->waiter;
	s->pid = shell->pid;
	init_captures(s);
	widen(shell->ch.in);
	widen(shell->ch.out);
	buf_init(&input, SIZE_MAX);
	shell_command(shell, &input,
	    (link_far_clock(link) + TRAVEL_MS) / 1000 + 2,
	    link_sandbox(link)->workdir, script, SHELL_STREAM);
	rc = stream_write(s, input.data, input.len, until, err);
	buf_free(&input);
	if (rc == 0)
		return s;
	stream_free(s);
	return NULL;
}

void
stream_patience(struct stream *s, int64_t ms)
{
	s->silence_ms = ms;
}

int
stream_write(struct stream *s, const void *data, size_t len,
    const struct until *until, struct err *err)
{
	const char *at = data;
	ssize_t n;
	int ready;

	s->moved = clock_ms();
	while (len > 0) {
		if (over(s) || s->shell->ch.in == -1)
			return err_set(err, ERR_IO,
			    "the far side's command ended early");
		/* It would wait for us, and we for it. */
		if (s->pending.len >= PENDING_MAX)
			return err_set(err, ERR_LIMIT,
			    "the far side prints without end");
		ready = turn(s, true, until, err);
		if (ready == -1)
			return -1;
		if (!ready)
			continue;
		n = write(s->shell->ch.in, at, len);
		if (n == -1 && errno != EAGAIN && errno != EINTR)
			return lost(s, err);
		if (n > 0) {
			at += n;
			len -= (size_t)n;
			has_moved(s);
		}
	}
	return 0;
}

void
stream_feed(struct stream *s, const void *data, size_t len)
{
	s->feed = data;
	s->feed_len = len;
	if (len == 0)
		stream_close_in(s);
}

void
stream_close_in(struct stream *s)
{
	channel_close_in(&s->shell->ch);
}

/* Read until something is there.  How much went straight to "dest", or -1. */
static ssize_t
fill(struct stream *s, void *data, size_t size, const struct until *until,
    struct err *err)
{
	ssize_t n = 0;

	s->dest = data;
	s->room = size;
	s->moved = clock_ms();
	while (s->room == size && !s->out.ended) {
		if (!s->out_open) {
			n = lost(s, err);
			break;
		}
		if (turn(s, false, until, err) == -1) {
			n = -1;
			break;
		}
	}
	if (n == 0)
		n = (ssize_t)(size - s->room);
	s->room = 0;
	return n;
}

ssize_t
stream_read(struct stream *s, void *data, size_t size,
    const struct until *until, struct err *err)
{
	if (s->pending.len == 0)
		return fill(s, data, size, until, err);
	if (size > s->pending.len)
		size = s->pending.len;
	memcpy(data, s->pending.data, size);
	buf_drop(&s->pending, size);
	return (ssize_t)size;
}

int
stream_end(struct stream *s, const struct until *until, struct err *err)
{
	struct trailer t;

	if (s->feed_len == 0)
		stream_close_in(s);
	s->moved = clock_ms();
	while (!over(s)) {
		buf_reset(&s->pending);
		if (turn(s, false, until, err) == -1)
			return -1;
	}
	if (!s->out.ended || s->out.bad ||
	    trailer_parse(s->out.trailer.data, &t) == -1)
		return lost(s, err);
	link_proven(s->link);
	if (strcmp(t.flag, "stale") == 0)
		return err_set(err, ERR_TIMEOUT,
		    "the command reached %s too late and was not run",
		    link_sandbox(s->link)->name);
	if (strcmp(t.flag, "cwd") == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "the directory '%.300s' (workdir) does not exist on %s, "
		    "or may not be entered. Make it there (mkdir -p, "
		    "in exec_bash with cwd '~'), or correct \"workdir\" of its entry",
		    link_sandbox(s->link)->workdir,
		    link_sandbox(s->link)->name);
	return t.status;
}

const char *
stream_words(const struct stream *s)
{
	return s->err.head.data;
}

bool
stream_words_cut(const struct stream *s)
{
	return s->err.total > s->err.head.len;
}

static void
end_command(struct stream *s)
{
	struct until limit = until_in(KILL_MS);
	struct lease_kill kill = {
		.mark = s->mark,
		.waiter = s->waiter,
		.shell = s->pid,
		.grace_ms = GRACE_MS,
	};
	struct buf left;
	struct err err;

	buf_init(&left, 4096);
	link_end(s->link, s->shell, &kill, &left, &limit, &err);
	buf_free(&left);
}

void
stream_free(struct stream *s)
{
	if (s == NULL)
		return;
	if (!over(s))
		end_command(s);
	link_give(s->link, s->shell, false);
	capture_free(&s->out);
	capture_free(&s->err);
	buf_free(&s->pending);
	buf_free(&s->chunk);
	free(s);
}
