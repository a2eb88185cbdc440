/*
 * Whatever a program prints, cleaning makes text of it that has no control
 * characters, and that cleaning leaves as it is.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ssh/clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_text(const struct buf *b)
{
	size_t i;

	must(utf8_valid(b->data, b->len));
	for (i = 0; i < b->len; i++) {
		unsigned char c = (unsigned char)b->data[i];

		must(c >= ' ' || c == '\n' || c == '\t');
		must(c != 0x7f);
		/* U+0080 to U+009F */
		must(c != 0xc2 || (unsigned char)b->data[i + 1] >= 0xa0);
	}
}

static void
clean(struct buf *out, const char *s, size_t len, size_t max)
{
	buf_init(out, max);
	clean_text(out, s, len);
	check_text(out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = size > 0 ? (const char *)data : "";
	struct buf once, twice, cut;

	clean(&once, s, size, SIZE_MAX);
	must(!once.full);
	must(once.len <= 3 * size); /* U+FFFD for each byte */
	clean(&twice, once.data, once.len, SIZE_MAX);
	must(twice.len == once.len);
	must(memcmp(twice.data, once.data, once.len) == 0);

	/* With too little room, the beginning of the same. */
	clean(&cut, s, size, once.len / 2);
	must(cut.len <= once.len);
	must(memcmp(cut.data, once.data, cut.len) == 0);
	buf_free(&once);
	buf_free(&twice);
	buf_free(&cut);
	return 0;
}
