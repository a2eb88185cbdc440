/*
 * A stream of output is captured the same in whatever pieces it comes, and
 * nothing of the trailer is in what is shown.
 *
 * The first three bytes are the seed of the pieces, how much is kept, and
 * how many characters are shown; in the rest each byte 0x80 to 0x87 stands
 * for a part of the trailer, or no input would ever reach it.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ssh/capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* More would only take longer. */
#define SIZE_LIMIT 1500

#define NONCE "0123456789abcdef00112233445566aa"

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* The stream that the input stands for. */
static void
expand(struct buf *out, const uint8_t *data, size_t size)
{
	static const char *const parts[] = { NONCE, NONCE " 0 - \n",
		NONCE " 137 sig 12 13\n", "0123456789abcdef", "012",
		"0123456789abcdef00112233445566a", "\n", "\x1b[31m" };
	size_t i;

	for (i = 0; i < size; i++) {
		if (data[i] >= 0x80 && data[i] <= 0x87)
			buf_adds(out, parts[data[i] - 0x80]);
		else
			buf_add(out, &data[i], 1);
	}
}

/* Everything one can see of a capture, as text. */
static void
describe(struct capture *c, size_t used, size_t max, struct buf *out)
{
	struct trailer t;
	struct buf line;
	uint64_t left;

	buf_addf(out, "%zu %d %d %d %llu ", used, c->in_trailer, c->ended,
	    c->bad, (unsigned long long)c->total);
	if (c->ended && !c->bad && trailer_parse(c->trailer.data, &t) == 0)
		buf_addf(out, "%d %s %zu ", t.status, t.flag, t.count);
	buf_init(&line, SIZE_MAX);
	capture_last_line(c, &line);
	must(utf8_valid(line.data, line.len));
	must(memchr(line.data, '\n', line.len) == NULL);
	buf_add(out, line.data, line.len);
	buf_addc(out, '\n');

	buf_reset(&line);
	left = capture_text(c, &line, max);
	must(utf8_valid(line.data, line.len));
	must(left > 0 || line.len <= 4 * max);
	buf_addf(out, "%llu ", (unsigned long long)left);
	buf_add(out, line.data, line.len);
	buf_free(&line);
}

static void
at_once(const struct buf *stream, size_t keep, size_t max, struct buf *out)
{
	struct capture c;
	size_t used;

	capture_init(&c, NONCE, keep, NULL, 0);
	used = capture_add(&c, stream->data, stream->len);
	must(used == stream->len || c.ended);
	must(capture_add(&c, "x", c.ended ? 1 : 0) == 0);
	must(c.head.len <= keep && c.tail.len <= keep);
	describe(&c, used, max, out);
	capture_free(&c);
}

static void
in_pieces(const struct buf *stream, uint32_t seed, size_t keep, size_t max,
    struct buf *out)
{
	struct buf line;
	struct capture c;
	size_t used = 0, n, got;

	capture_init(&c, NONCE, keep, NULL, 0);
	while (used < stream->len && !c.ended) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 16) % 40;
		if (n > stream->len - used)
			n = stream->len - used;
		got = capture_add(&c, stream->data + used, n);
		must(got == n || c.ended);
		used += got;
		/* Looking in between changes nothing. */
		if (seed >> 30 == 0) {
			buf_init(&line, SIZE_MAX);
			capture_last_line(&c, &line);
			buf_free(&line);
		}
	}
	describe(&c, used, max, out);
	capture_free(&c);
}

/* What is kept, found without any state: the ends of what stands before the
 * first nonce. */
static void
check_kept(const struct buf *stream, size_t keep)
{
	const char *at =
	    memmem(stream->data, stream->len, NONCE, strlen(NONCE));
	size_t len = at != NULL ? (size_t)(at - stream->data) : stream->len;
	struct buf text;
	struct capture c;
	size_t n, i;

	capture_init(&c, NONCE, keep, NULL, 0);
	capture_add(&c, stream->data, stream->len);
	must(c.in_trailer == (at != NULL));
	buf_init(&text, SIZE_MAX);
	capture_text(&c, &text, 1);
	must(c.total == len);
	must(c.head.len == (len < keep ? len : keep));
	must(memcmp(c.head.data, stream->data, c.head.len) == 0);
	n = len - c.head.len;
	must(c.tail.len == (n < keep ? n : keep));
	for (i = 0; i < c.tail.len; i++)
		must(c.tail.data[(c.tail_at + i) % c.tail.len] ==
		    stream->data[len - c.tail.len + i]);
	buf_free(&text);
	capture_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf stream, whole, pieces;
	size_t keep, max;

	if (size < 3)
		return 0;
	if (size > SIZE_LIMIT)
		size = SIZE_LIMIT;
	keep = data[1];
	max = 1 + data[2];
	buf_init(&stream, SIZE_MAX);
	buf_init(&whole, SIZE_MAX);
	buf_init(&pieces, SIZE_MAX);
	expand(&stream, data + 3, size - 3);
	at_once(&stream, keep, max, &whole);
	in_pieces(&stream, data[0], keep, max, &pieces);
	must(whole.len == pieces.len);
	must(memcmp(whole.data, pieces.data, whole.len) == 0);
	buf_reset(&pieces);
	in_pieces(&stream, data[0] + 256u, keep, max, &pieces);
	must(whole.len == pieces.len);
	must(memcmp(whole.data, pieces.data, whole.len) == 0);
	check_kept(&stream, keep);
	buf_free(&stream);
	buf_free(&whole);
	buf_free(&pieces);
	return 0;
}
