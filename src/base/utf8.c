#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

/*
 * The length of the character at "s", or of the maximal subpart of an
 * ill-formed one (Unicode 3.9, tables 3-7 and 3-8).
 */
static size_t
step(const char *s, size_t len, bool *ok)
{
	unsigned char lead = (unsigned char)s[0];
	unsigned char low = 0x80, high = 0xbf;
	size_t need, n;

	*ok = lead < 0x80;
	if (lead < 0xc2 || lead > 0xf4)
		return 1;

	need = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (lead == 0xe0)
		low = 0xa0; /* below: overlong */
	if (lead == 0xed)
		high = 0x9f; /* above: surrogates */
	if (lead == 0xf0)
		low = 0x90; /* below: overlong */
	if (lead == 0xf4)
		high = 0x8f; /* above: past U+10FFFF */
	for (n = 1; n < need && n < len; n++) {
		unsigned char c = (unsigned char)s[n];

		if (c < low || c > high)
			return n;
		low = 0x80;
		high = 0xbf;
	}
	*ok = n == need;
	return n;
}

/* How many bytes from the start are fine; with_nul: a NUL is, too. */
static size_t
good(const char *s, size_t len, bool with_nul)
{
	size_t n = 0;
	bool ok;

	while (n < len && (s[n] != '\0' || with_nul)) {
		size_t next = step(s + n, len - n, &ok);

		if (!ok)
			break;
		n += next;
	}
	return n;
}

bool
utf8_valid(const char *s, size_t len)
{
	return good(s, len, true) == len;
}

/* Add whole characters only, even at the limit. */
static void
add(struct buf *out, const char *s, size_t len)
{
	size_t n = utf8_cut(s, len, out->max - out->len);

	buf_add(out, s, n);
	if (n < len)
		out->full = true;
}

void
utf8_fix(struct buf *out, const char *s, size_t len)
{
	bool ok;

	while (len > 0 && !out->full) {
		size_t n = good(s, len, false);

		if (n > 0) {
			add(out, s, n);
		} else {
			n = step(s, len, &ok);
			add(out, REPLACEMENT, strlen(REPLACEMENT));
		}
		s += n;
		len -= n;
	}
}

size_t
utf8_cut(const char *s, size_t len, size_t max)
{
	size_t back;
	bool ok;

	if (max >= len)
		return len;
	for (back = 1; back < 4 && back <= max; back++) {
		size_t n = step(s + max - back, len - max + back, &ok);

		if (ok && n > back)
			return max - back;
	}
	return max;
}

json_t *
utf8_json(const char *s, size_t len)
{
	struct buf fixed;
	json_t *json;

	if (good(s, len, false) == len) {
		json = json_stringn_nocheck(len > 0 ? s : "", len);
	} else {
		buf_init(&fixed, SIZE_MAX);
		utf8_fix(&fixed, s, len);
		json = json_stringn_nocheck(fixed.data, fixed.len);
		buf_free(&fixed);
	}
	if (json == NULL)
		out_of_memory();
	return json;
}
