/* Output as it comes. */
#include "ssh/capture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ssh/clean.h"
#include "ssh/outputs.h"

#define TRAILER_MAX 2048 /* kept */
#define TRAILER_LEN_MAX ((size_t)1 << 20)

void
capture_init(struct capture *c, const char *nonce, size_t keep,
    const char *file, uint64_t file_max)
{
	memset(c, 0, sizeof(*c));
	memcpy(c->nonce, nonce, NONCE_LEN);
	buf_init(&c->held, SIZE_MAX);
	buf_init(&c->trailer, TRAILER_MAX);
	buf_init(&c->head, keep);
	buf_init(&c->tail, keep);
	c->file = file != NULL ? xstrdup(file) : NULL;
	c->file_fd = -1;
	c->file_max = file_max;
}

void
capture_free(struct capture *c)
{
	buf_free(&c->held);
	buf_free(&c->trailer);
	buf_free(&c->head);
	buf_free(&c->tail);
	if (c->file_fd != -1)
		close(c->file_fd);
	free(c->file);
	c->file = NULL;
	c->file_fd = -1;
}

static void
to_file(struct capture *c, const char *data, size_t len)
{
	if (c->file_fd == -1)
		return;
	if (len > c->file_max - c->file_len)
		len = (size_t)(c->file_max - c->file_len);
	if (fs_write_all(c->file_fd, data, len) == 0)
		c->file_len += len;
	else
		c->file_max = c->file_len; /* a full disk: no more of it */
}

/* From the moment that memory does not hold all of it. */
static void
open_file(struct capture *c)
{
	if (c->file_fd != -1)
		return;
	if (c->file != NULL || c->stream != NULL)
		c->file_wanted = true;
	if (c->file == NULL && c->stream != NULL)
		c->file = outputs_path(c->stream);
	c->stream = NULL;
	if (c->file == NULL)
		return;
	c->file_fd = open(c->file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (c->file_fd == -1) {
		/* Not later either: it would lack what came before. */
		free(c->file);
		c->file = NULL;
		return;
	}
	(void)flock(c->file_fd, LOCK_SH | LOCK_NB); /* see outputs.h */
	to_file(c, c->head.data, c->head.len);
}

/* The last bytes, in a ring as large as the buffer's limit. */
static void
to_tail(struct capture *c, const char *data, size_t len)
{
	size_t size = c->tail.max, n;

	if (len >= size) {
		buf_reset(&c->tail);
		c->tail_at = 0;
		data += len - size;
		len = size;
	}
	n = size - c->tail.len < len ? size - c->tail.len : len;
	buf_add(&c->tail, data, n);
	data += n;
	len -= n;
	while (len > 0) {
		n = size - c->tail_at < len ? size - c->tail_at : len;
		memcpy(c->tail.data + c->tail_at, data, n);
		c->tail_at = (c->tail_at + n) % size;
		data += n;
		len -= n;
	}
}

static void
take_output(struct capture *c, const char *data, size_t len)
{
	size_t n = c->head.max - c->head.len;

	c->total += len;
	if (c->sink != NULL) {
		if (!c->refused && len > 0)
			c->refused = !c->sink(c->sink_data, data, len);
		return;
	}
	if (n > len)
		n = len;
	buf_add(&c->head, data, n);
	if (n == len)
		return;
	open_file(c);
	to_file(c, data + n, len - n);
	to_tail(c, data + n, len - n);
}

/* How many bytes at the end of "data" may be the beginning of the nonce. */
static size_t
may_begin(const struct capture *c, const char *data, size_t len)
{
	size_t n = len < NONCE_LEN - 1 ? len : NONCE_LEN - 1;

	while (n > 0 && memcmp(data + len - n, c->nonce, n) != 0)
		n--;
	return n;
}

/*
 * Bytes of the trailer; returns how many were its.  A list of children that
 * is too long is cut, between two of them.
 */
static size_t
take_trailer(struct capture *c, const char *data, size_t len)
{
	const char *nl = memchr(data, '\n', len);
	size_t n = nl != NULL ? (size_t)(nl - data) : len;

	buf_add(&c->trailer, data, n);
	c->trailer_len += n;
	if (c->trailer_len > TRAILER_LEN_MAX)
		c->bad = c->ended = true;
	if (nl == NULL)
		return n;
	while (c->trailer.full && c->trailer.len > 0 &&
	    c->trailer.data[c->trailer.len - 1] != ' ')
		c->trailer.data[--c->trailer.len] = '\0';
	c->ended = true;
	return n + 1;
}

/* "data" begins where nothing is held back. */
static size_t
scan(struct capture *c, const char *data, size_t len)
{
	const char *at = memmem(data, len, c->nonce, NONCE_LEN);
	size_t n;

	if (at == NULL) {
		n = len - may_begin(c, data, len);
		take_output(c, data, n);
		buf_add(&c->held, data + n, len - n);
		return len;
	}
	n = (size_t)(at - data);
	take_output(c, data, n);
	c->in_trailer = true;
	n += NONCE_LEN;
	return n + take_trailer(c, data + n, len - n);
}

size_t
capture_add(struct capture *c, const char *data, size_t len)
{
	struct buf joined;
	size_t held = c->held.len, used;

	if (c->ended)
		return 0;
	if (c->in_trailer)
		return take_trailer(c, data, len);
	if (held == 0)
		return scan(c, data, len);
	joined = c->held;
	buf_init(&c->held, SIZE_MAX);
	buf_add(&joined, data, len);
	used = scan(c, joined.data, joined.len);
	buf_free(&joined);
	return used - held;
}

int
trailer_parse(const char *text, struct trailer *t)
{
	char *copy = xstrdup(text), *at = copy, *word;
	int64_t n;
	int rc = -1;

	memset(t, 0, sizeof(*t));
	word = strsep(&at, " ");
	if (word == NULL || word[0] != '\0' || at == NULL) /* leading blank */
		goto out;
	word = strsep(&at, " ");
	if (str_to_int(word, 0, 255, &n) == -1 || at == NULL)
		goto out;
	t->status = (int)n;
	word = strsep(&at, " ");
	if (word[0] == '\0' || strlen(word) >= sizeof(t->flag))
		goto out;
	memcpy(t->flag, word, strlen(word) + 1);
	while ((word = strsep(&at, " ")) != NULL) {
		if (word[0] == '\0')
			continue;
		if (str_to_int(word, 1, INT32_MAX, &n) == -1)
			goto out;
		if (t->count < sizeof(t->pids) / sizeof(t->pids[0]))
			t->pids[t->count++] = n;
	}
	rc = 0;
out:
	free(copy);
	return rc;
}

/* The tail in one piece. */
static void
straighten(struct capture *c, struct buf *out)
{
	buf_add(out, c->tail.data + c->tail_at, c->tail.len - c->tail_at);
	buf_add(out, c->tail.data, c->tail_at);
}

static bool
starts_character(char c)
{
	return ((unsigned char)c & 0xc0) != 0x80;
}

static size_t
count_characters(const char *s, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += starts_character(s[i]);
	return n;
}

/* Where the character number "n" begins. */
static size_t
offset_of(const char *s, size_t len, size_t n)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (starts_character(s[i]) && n-- == 0)
			return i;
	}
	return len;
}

/* The first or the last "n" characters. */
static void
add_first(struct buf *out, const struct buf *text, size_t n)
{
	buf_add(out, text->data, offset_of(text->data, text->len, n));
}

static void
add_last(struct buf *out, const struct buf *text, size_t n)
{
	size_t chars = count_characters(text->data, text->len);
	size_t from =
	    offset_of(text->data, text->len, chars > n ? chars - n : 0);

	buf_add(out, text->data + from, text->len - from);
}

/* No trailer came: what looked like the beginning of one was output. */
static void
end_output(struct capture *c)
{
	struct buf held = c->held;

	if (c->in_trailer || held.len == 0)
		return;
	buf_init(&c->held, SIZE_MAX);
	take_output(c, held.data, held.len);
	buf_free(&held);
}

/* The reader does not get all of it, though memory holds it. */
static void
save_file(struct capture *c)
{
	struct buf tail;

	c->lacking = true;
	if (c->file_fd != -1)
		return;
	open_file(c);
	buf_init(&tail, SIZE_MAX);
	straighten(c, &tail);
	to_file(c, tail.data, tail.len);
	buf_free(&tail);
}

uint64_t
capture_text(struct capture *c, struct buf *out, size_t max)
{
	struct buf raw, head, tail;
	uint64_t chars, left_out = 0;
	bool whole, same;

	end_output(c);
	whole = c->total <= c->head.len + c->tail.len;
	/* If bytes are missing, head and tail are no neighbours and are
	 * cleaned apart; how many characters these were is a guess. */
	buf_init(&raw, SIZE_MAX);
	buf_init(&head, SIZE_MAX);
	buf_init(&tail, SIZE_MAX);
	if (whole)
		buf_add(&raw, c->head.data, c->head.len);
	straighten(c, &raw);
	same = clean_text(&tail, raw.data, raw.len);
	clean_text(&head, whole ? raw.data : c->head.data,
	    whole ? raw.len : c->head.len);
	chars = whole ? count_characters(tail.data, tail.len) : c->total;
	if (whole && chars <= max) {
		/* Colours and the like are left out on purpose; but how lines
		 * end, or a backspace, may be what is asked. */
		if (!same)
			save_file(c);
		buf_add(out, tail.data, tail.len);
	} else {
		left_out = chars > max ? chars - max : 1;
		save_file(c);
		add_first(out, &head, max - max / 2);
		buf_addf(out,
		    "\n...<truncated> %" PRIu64
		    " characters left out here ...\n",
		    left_out);
		add_last(out, &tail, max / 2);
	}
	buf_free(&raw);
	buf_free(&head);
	buf_free(&tail);
	return left_out;
}

uint64_t
capture_missing(const struct capture *c)
{
	if (!c->file_wanted || (c->file_fd == -1 && !c->lacking))
		return 0;
	return c->total - c->file_len;
}

#define LINE_MAX_BYTES ((size_t)400)

/* The last bytes there are, with those held back. */
static void
add_end(struct capture *c, struct buf *out)
{
	if (c->tail.len < 4 * LINE_MAX_BYTES &&
	    c->total <= c->head.len + c->tail.len)
		buf_add(out, c->head.data, c->head.len);
	straighten(c, out);
	if (!c->in_trailer)
		buf_add(out, c->held.data, c->held.len);
	if (out->len > 4 * LINE_MAX_BYTES)
		buf_drop(out, out->len - 4 * LINE_MAX_BYTES);
}

/* The end of the last line that is not blank. */
static size_t
last_end(const struct buf *text)
{
	size_t end = text->len;

	while (end > 0 && strchr(" \t\n", text->data[end - 1]) != NULL)
		end--;
	return end;
}

void
capture_last_line(struct capture *c, struct buf *out)
{
	struct buf raw, text;
	size_t from, end;

	buf_init(&raw, SIZE_MAX);
	buf_init(&text, SIZE_MAX);
	add_end(c, &raw);
	clean_text(&text, raw.data, raw.len);
	end = last_end(&text);
	for (from = end; from > 0 && text.data[from - 1] != '\n'; from--)
		;
	if (end - from > LINE_MAX_BYTES)
		from = end - LINE_MAX_BYTES;
	while (from < end && !starts_character(text.data[from]))
		from++;
	buf_add(out, text.data + from, end - from);
	buf_free(&raw);
	buf_free(&text);
}
