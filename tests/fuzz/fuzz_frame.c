/*
 * The reader gives the same lines however the bytes are cut into pieces, and
 * the same as a plain split at newlines.
 *
 * The first byte seeds the sizes of the pieces; the rest is the stream.  Lines
 * are too long after a few bytes here, or no input would ever reach that; so
 * the reader is compiled into this file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mcp/frame.h"

#undef FRAME_MAX
#define FRAME_MAX ((size_t)24)

#include "mcp/frame_in.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* A line as text that tells what it was. */
static void
note(struct buf *seen, enum frame_got got, const char *line, size_t len)
{
	if (got == FRAME_LINE) {
		must(len <= FRAME_MAX);
		must(memchr(line, '\n', len) == NULL);
		buf_addc(seen, 'L');
		buf_add(seen, line, len);
	} else {
		must(got == FRAME_TOO_LONG);
		buf_addc(seen, 'T');
	}
	buf_addc(seen, '\n');
}

static void
take_lines(struct frame_in *in, struct buf *seen)
{
	enum frame_got got;
	const char *line;
	size_t len;

	while ((got = frame_in_next(in, &line, &len)) != FRAME_NONE)
		note(seen, got, line, len);
	must(in->data.cap <= 2 * FRAME_MAX + 2);
}

static void
take_rest(struct frame_in *in, struct buf *seen)
{
	enum frame_got got;
	const char *line;
	size_t len;

	got = frame_in_rest(in, &line, &len);
	if (got != FRAME_NONE)
		note(seen, got, line, len);
	must(frame_in_rest(in, &line, &len) == FRAME_NONE);
	must(frame_in_next(in, &line, &len) == FRAME_NONE);
}

/* In pieces of the sizes that "seed" makes, at most a frame each. */
static void
in_pieces(const char *data, size_t size, uint32_t seed, struct buf *seen)
{
	struct frame_in in;
	size_t n;

	frame_in_init(&in);
	while (size > 0) {
		seed = seed * 1664525 + 1013904223;
		n = 1 + (seed >> 16) % FRAME_MAX;
		if (n > size)
			n = size;
		frame_in_add(&in, data, n);
		take_lines(&in, seen);
		data += n;
		size -= n;
	}
	take_rest(&in, seen);
	frame_in_free(&in);
}

static void
one_by_one(const char *data, size_t size, struct buf *seen)
{
	struct frame_in in;
	size_t i;

	frame_in_init(&in);
	for (i = 0; i < size; i++) {
		frame_in_add(&in, data + i, 1);
		take_lines(&in, seen);
	}
	take_rest(&in, seen);
	frame_in_free(&in);
}

/* What should come out, without any state. */
static void
plainly(const char *data, size_t size, struct buf *seen)
{
	const char *nl;
	size_t len, next;

	for (; size > 0; data += next, size -= next) {
		nl = memchr(data, '\n', size);
		len = nl != NULL ? (size_t)(nl - data) : size;
		next = nl != NULL ? len + 1 : size;
		if (len > 0 && data[len - 1] == '\r')
			len--;
		note(seen, len > FRAME_MAX ? FRAME_TOO_LONG : FRAME_LINE, data,
		    len);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data + 1;
	struct buf expected, seen;

	if (size < 2)
		return 0;
	buf_init(&expected, SIZE_MAX);
	buf_init(&seen, SIZE_MAX);
	plainly(s, size - 1, &expected);
	one_by_one(s, size - 1, &seen);
	must(seen.len == expected.len);
	must(memcmp(seen.data, expected.data, seen.len) == 0);
	buf_reset(&seen);
	in_pieces(s, size - 1, data[0], &seen);
	must(seen.len == expected.len);
	must(memcmp(seen.data, expected.data, seen.len) == 0);
	buf_free(&expected);
	buf_free(&seen);
	return 0;
}
