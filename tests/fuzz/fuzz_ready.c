/*
 * What a host says before it runs a command: its greeting and its ready line
 * are found in whatever noise, the same in whatever pieces they come, and the
 * lines of the lease are taken each once.
 *
 * The first byte seeds the sizes of the pieces; in the rest 0x80 stands for the
 * token, 0x81 for the mark, 0x82 for a word of the lease.  What reads them is
 * compiled into this file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ssh/lease.c"
#include "ssh/shell.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define TOKEN "00112233445566778899aabbccddeeff"
#define MARK "0011223344556677.12."
#define WORD "a7 "

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
expand(struct buf *out, const uint8_t *data, size_t size)
{
	static const char *const parts[] = { TOKEN, MARK, WORD };
	size_t i;

	for (i = 0; i < size; i++) {
		if (data[i] >= 0x80 && data[i] <= 0x82)
			buf_adds(out, parts[data[i] - 0x80]);
		else
			buf_add(out, &data[i], 1);
	}
}

/* What is known of the shell when the stream has been read, as text. */
static void
hear(const struct buf *said, uint32_t seed, struct buf *known)
{
	struct shell s = { .token = TOKEN, .mark = MARK };
	struct err err;
	size_t at = 0, n;
	int rc = 0;

	buf_init(&s.out.seen, NOISE_MAX);
	while (rc == 0 && at < said->len && !s.out.ready) {
		seed = seed * 1664525 + 1013904223;
		n = seed == 0 ? said->len : 1 + (seed >> 16) % 64;
		n = n < said->len - at ? n : said->len - at;
		buf_add(&s.out.seen, said->data + at, n);
		at += n;
		rc = look_at(&s, &s.out, &err);
	}
	must(rc == 0 || err.code == ERR_IO);
	must(!s.out.ready || (s.pid > 1 && s.waiter > 1));
	must(!s.loops || (s.tier == SHELL_BASH && s.subreaper));
	buf_addf(known, "%d %d %d %d %ld %ld ", rc, s.out.ready, s.tier,
	    s.loops, s.pid, s.waiter);
	if (s.out.ready) /* and what follows is the command's */
		buf_add(known, said->data + at - s.out.seen.len,
		    said->len - at + s.out.seen.len);
	buf_free(&s.out.seen);
}

/* Lines that begin with the word go one by one, and the others stay. */
static void
take_lines(const struct buf *said, bool standing)
{
	struct lease l = { .standing = standing };
	struct buf rest;
	size_t before;

	buf_init(&l.seen, SIZE_MAX);
	buf_init(&rest, SIZE_MAX);
	buf_add(&l.seen, said->data, said->len);
	do {
		before = l.seen.len;
		buf_reset(&rest);
		if (!take_line(&l, WORD, &rest))
			break;
		must(memchr(rest.data, '\n', rest.len) == NULL);
		must(l.seen.len + rest.len + strlen(WORD) + 1 <= before);
		must(!standing ||
		    l.seen.len + rest.len + strlen(WORD) + 1 == before);
	} while (l.seen.len > 0);
	must(l.seen.data[l.seen.len] == '\0');
	buf_free(&l.seen);
	buf_free(&rest);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf said, whole, pieces;

	if (size < 2)
		return 0;
	buf_init(&said, SIZE_MAX);
	buf_init(&whole, SIZE_MAX);
	buf_init(&pieces, SIZE_MAX);
	expand(&said, data + 1, size - 1);
	hear(&said, data[0], &whole);
	hear(&said, data[0] + 256u, &pieces);
	/* How long a line may be without its end is another matter. */
	if (said.len < LINE_MAX_BYTES) {
		must(whole.len == pieces.len);
		must(memcmp(whole.data, pieces.data, whole.len) == 0);
	}
	take_lines(&said, true);
	take_lines(&said, false);
	buf_free(&said);
	buf_free(&whole);
	buf_free(&pieces);
	return 0;
}
