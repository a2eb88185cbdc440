/* Whatever the bytes: utf8_fix() makes them valid, and valid text stays. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
fix(struct buf *out, const char *s, size_t len, size_t max)
{
	buf_init(out, max);
	utf8_fix(out, s, len);
	must(utf8_valid(out->data, out->len));
	must(memchr(out->data, '\0', out->len) == NULL);
}

static void
check_fix(const char *s, size_t len)
{
	struct buf once, twice, cut;

	fix(&once, s, len, SIZE_MAX);
	must(!once.full);
	fix(&twice, once.data, once.len, SIZE_MAX);
	must(twice.len == once.len);
	must(memcmp(twice.data, once.data, once.len) == 0);
	if (utf8_valid(s, len) && memchr(s, '\0', len) == NULL)
		must(once.len == len && memcmp(once.data, s, len) == 0);

	/* With too little room, as much of the same as fits. */
	fix(&cut, s, len, once.len / 2);
	must(cut.full == (once.len > 0));
	must(cut.len == utf8_cut(once.data, once.len, once.len / 2));
	must(memcmp(cut.data, once.data, cut.len) == 0);
	buf_free(&once);
	buf_free(&twice);
	buf_free(&cut);
}

static void
check_cut(const char *s, size_t len)
{
	bool valid = utf8_valid(s, len);
	size_t max;

	for (max = 0; max <= len + 1; max++) {
		size_t n = utf8_cut(s, len, max);

		must(n <= max && n <= len);
		must(max >= len ? n == len : max - n < 4);
		must(!valid || utf8_valid(s, n));
		must(!valid || utf8_valid(s + n, len - n));
		/* The largest: the next character would not have fitted. */
		must(n == max || n == len || !utf8_valid(s + n, max - n));
	}
}

static void
check_json(const char *s, size_t len)
{
	json_t *json = utf8_json(s, len);

	must(json != NULL);
	must(utf8_valid(json_string_value(json), json_string_length(json)));
	json_decref(json);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = size > 0 ? (const char *)data : "";

	check_fix(s, size);
	check_cut(s, size < 2000 ? size : 2000);
	check_json(s, size);
	return 0;
}
