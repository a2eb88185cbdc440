/* Pre-started shells. */
#include "ssh/shell.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "ssh/script.h"
#include "ssh/tame.h"

/* Noise of rc files before we come to speak; more is not an rc file. */
#define NOISE_MAX ((size_t)4 << 20)
#define LINE_MAX_BYTES 512
#define TIME_MAX_S (INT64_MAX / 10000) /* such a clock can be reckoned with */

void
shell_free(struct shell *s)
{
	if (s == NULL)
		return;
	channel_close(&s->ch);
	buf_free(&s->out.seen);
	buf_free(&s->err.seen);
	free(s);
}

void
shell_prepare(struct shell *s, struct buf *out, const char *mark)
{
	random_hex(s->nonce, NONCE_LEN / 2);
	snprintf(s->mark, sizeof(s->mark), "%s", mark);
	buf_addf(out, "%s %s %d\n", s->nonce, s->mark, 1);
}

static bool
ascii(const char *text)
{
	for (; *text != '\0'; text++) {
		if ((unsigned char)*text >= 0x80)
			return false;
	}
	return true;
}

void
shell_command(const struct shell *s, struct buf *out, int64_t not_after,
    const char *cwd, const char *command, enum shell_use use)
{
	size_t n = cwd != NULL ? strlen(cwd) : 0, m = strlen(command);
	bool plain = s->tier != SHELL_BASH;
	const char *last = use == SHELL_STREAM ? "s" : "";
	size_t begin = out->len;

	/* With longer texts the nonce would not fit into the header. */
	if (use != SHELL_STREAM && s->loops && s->clean && n + m < 1000000 &&
	    (use == SHELL_TAME || tame_command(command)))
		last = s->nonce;
	buf_addf(out, "%" PRId64 " %zu %zu", not_after, n, m);
	if (plain)
		buf_addf(out, " %s\n", last);
	else
		buf_addf(out, " %c %s",
		    ascii(command) && (n == 0 || ascii(cwd)) ? 'a' : 'b', last);
	while (!plain && out->len - begin < SCRIPT_HEADER)
		buf_addc(out, ' ');
	if (n > 0)
		buf_add(out, cwd, n);
	if (plain && n > 0)
		buf_addc(out, '\n');
	buf_add(out, command, m);
	if (plain && use == SHELL_STREAM)
		buf_addc(out, '\n');
}

/* A pipe holds 64 kB, so these few go at once. */
static int
write_start(struct shell *s, const char *mark, struct err *err)
{
	struct buf text;
	int rc = 0;

	buf_init(&text, 32768);
	random_hex(s->token, NONCE_LEN / 2);
	script_shell(&text, s->token, mark);
	shell_prepare(s, &text, mark);
	/* A far side that is gone already has said why; that is read later. */
	if (fs_write_all(s->ch.in, text.data, text.len) == -1 && errno != EPIPE)
		rc = err_sys(err, "cannot write to the new channel");
	buf_free(&text);
	return rc;
}

struct shell *
shell_open(const char *socket, const char *mark, const struct until *until,
    struct err *err)
{
	struct shell *s = xcalloc(1, sizeof(*s));

	buf_init(&s->out.seen, NOISE_MAX);
	buf_init(&s->err.seen, NOISE_MAX);
	s->opened = clock_ms();
	if (channel_open(&s->ch, socket, script_boot, until, err) == 0 &&
	    write_start(s, mark, err) == 0)
		return s;
	shell_free(s);
	return NULL;
}

/* "bash 0 0 MACHINE /proc/1/task/1/children" */
static void
take_greeting(struct shell *s, const char *text)
{
	bool children;
	char tier[16] = "";
	int reaper = -1, clean = -1, n = 0;

	/* NOLINTNEXTLINE(cert-err34-c): a bad number reads as "no" */
	sscanf(text, "%15s %d %d %119s %n", tier, &reaper, &clean, s->machine,
	    &n);
	children = n > 0 && text[n] == '/';
	s->subreaper = reaper == 0 && children;
	s->clean = clean == 0;
	if (strcmp(tier, "bash") == 0)
		s->tier = SHELL_BASH;
	else if (strcmp(tier, "plain") == 0)
		s->tier = SHELL_PLAIN;
	else
		s->tier = SHELL_SH;
	s->loops = s->tier == SHELL_BASH && s->subreaper;
}

/* The line with the token, if it is there; noise before it goes. */
static int
find_greeting(struct shell *s)
{
	struct buf *seen = &s->out.seen;
	char *at = memmem(seen->data, seen->len, s->token, NONCE_LEN);
	char *nl;

	if (at == NULL)
		return 1;
	buf_drop(seen, (size_t)(at - seen->data));
	nl = memchr(seen->data, '\n', seen->len);
	if (nl == NULL)
		return seen->len > LINE_MAX_BYTES ? -1 : 1;
	*nl = '\0';
	take_greeting(s, seen->data + NONCE_LEN);
	buf_drop(seen, (size_t)(nl - seen->data) + 1);
	return 0;
}

int
shell_parse_ready(struct buf *seen, const char *mark, long *pid, long *waiter,
    int64_t *time)
{
	char *at = memmem(seen->data, seen->len, mark, strlen(mark));
	char *nl;
	int rc;

	if (at == NULL)
		return 1;
	if (at[strlen(mark)] != ' ' && at[strlen(mark)] != '\0')
		return -1;
	nl = memchr(at, '\n', seen->len - (size_t)(at - seen->data));
	if (nl == NULL)
		return seen->len > NOISE_MAX / 2 ? -1 : 1;
	*nl = '\0';
	/* NOLINTNEXTLINE(cert-err34-c): checked by the count */
	rc = sscanf(at + strlen(mark), " %ld %ld %" SCNd64, pid, waiter, time);
	buf_drop(seen, (size_t)(nl - seen->data) + 1);
	if (rc != 3 || *pid <= 1 || *waiter <= 1)
		return -1;
	return *time >= 0 && *time <= TIME_MAX_S ? 0 : -1;
}

static int
look_at(struct shell *s, struct shell_stream *st, struct err *err)
{
	long pid, waiter;
	int64_t time;
	int rc;

	if (s->tier == SHELL_UNKNOWN && st == &s->out) {
		rc = find_greeting(s);
		if (rc == -1)
			return err_set(err, ERR_IO,
			    "the far side's greeting "
			    "makes no sense");
		if (rc == 1)
			return 0;
	}
	rc = shell_parse_ready(&st->seen, s->mark, &pid, &waiter, &time);
	if (rc == -1)
		return err_set(err, ERR_IO,
		    "the far side's ready line makes no sense");
	if (rc == 1)
		return 0;
	st->ready = true;
	s->pid = pid;
	s->waiter = waiter;
	s->ahead = time * 1000 - clock_ms();
	return 0;
}

/* What stands in "seen" when nothing will come: the reason, if any. */
static int
ended_early(struct shell *s, struct err *err)
{
	struct buf *b = s->err.seen.len > 0 ? &s->err.seen : &s->out.seen;

	if (b->len == 0)
		return err_set(err, ERR_IO,
		    "the connection or the far side's shell ended before it "
		    "was ready");
	return err_set(err, ERR_IO,
	    "the far side ended before its shell was ready; it said: %.200s",
	    b->data);
}

static int
read_stream(struct shell *s, struct shell_stream *st, int fd, struct err *err)
{
	size_t room;
	char *space = buf_space(&st->seen, 4096, &room);
	ssize_t n;

	if (room == 0)
		return err_set(err, ERR_LIMIT,
		    "the far side prints without end before its shell is "
		    "ready; look at its rc files");
	n = read(fd, space, room);
	if (n == 0)
		return ended_early(s, err);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR
		    ? 0
		    : err_sys(err, "cannot read from the channel");
	buf_grew(&st->seen, (size_t)n);
	return look_at(s, st, err);
}

int
shell_ready(struct shell *s, const struct until *until, struct err *err)
{
	struct pollfd p[2];

	/* Part of it may have come together with the last command's end. */
	if (s->tier != SHELL_UNKNOWN && !s->out.ready &&
	    look_at(s, &s->out, err) == -1)
		return -1;
	if (!s->err.ready && look_at(s, &s->err, err) == -1)
		return -1;
	while (!s->out.ready || !s->err.ready) {
		p[0] = (struct pollfd){ .fd = s->out.ready ? -1 : s->ch.out,
			.events = POLLIN };
		p[1] = (struct pollfd){ .fd = s->err.ready ? -1 : s->ch.err,
			.events = POLLIN };
		if (until_poll(until, p, 2, err) == -1)
			return -1;
		if (p[0].revents != 0 &&
		    read_stream(s, &s->out, s->ch.out, err) == -1)
			return -1;
		if (p[1].revents != 0 &&
		    read_stream(s, &s->err, s->ch.err, err) == -1)
			return -1;
	}
	return 0;
}
