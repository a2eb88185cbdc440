/* Cutting bytes to size. */
#include "ssh/cut.h"

#include <string.h>

#include "base/utf8.h"

static bool
is_text(const char *s, size_t len)
{
	return memchr(s, '\0', len) == NULL && utf8_valid(s, len);
}

/* What a byte of text adds to a JSON string, in characters. */
static size_t
cost(char c)
{
	unsigned char b = (unsigned char)c;

	if (b >= 0x80 && b < 0xc0)
		return 0; /* counted with the first of its character */
	if (strchr("\"\\\n\r\t\b\f", c) != NULL)
		return 2;
	return b < 0x20 ? 6 : 1;
}

/* Is there a cut at "n" that splits no character? */
static bool
between(const char *s, size_t len, size_t n)
{
	return utf8_cut(s, len, n) == n;
}

/* The end of what fits from c->at up to "end". */
static void
fit_front(const char *s, size_t len, struct cut *c,
    const struct cut_limit *limit)
{
	size_t n = c->end - c->at, sum = 0, i;

	if (n > limit->bytes)
		n = limit->bytes;
	while (n < c->end - c->at && n > 0 && !between(s, len, c->at + n))
		n--;
	c->binary = !is_text(s + c->at, n);
	if (limit->chars > 0 && c->binary && n > limit->chars / 4 * 3)
		n = limit->chars / 4 * 3;
	if (limit->chars > 0 && !c->binary) {
		for (i = 0; i < n && sum <= limit->chars; i++)
			sum += cost(s[c->at + i]);
		if (sum > limit->chars)
			n = utf8_cut(s + c->at, n, i - 1);
	}
	/* Whoever asks for the rest next has to get on. */
	if (n == 0 && c->at < c->end) {
		for (n = 1; !between(s, len, c->at + n); n++)
			;
		c->binary = !is_text(s + c->at, n);
	}
	c->less = c->at + n < c->end;
	c->end = c->at + n;
}

struct cut
cut_bytes(const char *s, size_t len, size_t at, const struct cut_limit *limit)
{
	struct cut c = { .at = at, .end = len };

	fit_front(s, len, &c, limit);
	return c;
}

struct cut
cut_lines(const char *s, size_t len, size_t at, int64_t lines,
    const struct cut_limit *limit)
{
	struct cut c = { .at = at, .end = lines > 0 ? at : len };
	const char *nl;
	int64_t k;

	for (k = 0; k < lines && c.end < len; k++) {
		nl = memchr(s + c.end, '\n', len - c.end);
		c.end = nl != NULL ? (size_t)(nl + 1 - s) : len;
	}
	fit_front(s, len, &c, limit);
	if (c.less) {
		nl = memrchr(s + c.at, '\n', c.end - c.at);
		if (nl != NULL)
			c.end = (size_t)(nl + 1 - s);
	}
	return c;
}

/* Where the last lines begin; *found is false if that is not among them. */
static size_t
tail_at(const char *s, size_t len, int64_t lines, bool *found)
{
	size_t at = len;

	*found = true;
	if (at > 0 && s[at - 1] == '\n')
		at--;
	for (;; at--) {
		const char *nl = memrchr(s, '\n', at);

		if (nl == NULL)
			break;
		at = (size_t)(nl + 1 - s);
		if (--lines == 0)
			return at;
	}
	*found = false;
	return 0;
}

/* The beginning of what fits, up to the end of it all. */
static size_t
fit_back(const char *s, size_t len, struct cut *c,
    const struct cut_limit *limit)
{
	size_t n = len - c->at, sum = 0, at;

	if (n > limit->bytes)
		n = limit->bytes;
	at = len - n;
	while (at < len && !between(s, len, at))
		at++;
	if (at == len && c->at < len)
		at = utf8_cut(s, len, len - 1);
	c->binary = !is_text(s + at, len - at);
	if (limit->chars == 0)
		return at;
	if (c->binary) {
		n = limit->chars / 4 * 3;
		return len - at > n ? len - n : at;
	}
	for (n = len; n > at && sum <= limit->chars; n--)
		sum += cost(s[n - 1]);
	if (sum > limit->chars)
		n++;
	while (n < len && !between(s, len, n))
		n++;
	return n;
}

struct cut
cut_tail(const char *s, size_t len, int64_t lines, bool whole,
    const struct cut_limit *limit)
{
	struct cut c = { .end = len };
	const char *nl;
	size_t at;
	bool found;

	c.at = tail_at(s, len, lines, &found);
	at = fit_back(s, len, &c, limit);
	c.less = at > c.at || (!found && !whole);
	if (at == c.at && (at > 0 || whole))
		return c;
	/* It begins within a line; leave that out if there are more. */
	if (at == 0 || s[at - 1] != '\n') {
		nl = memchr(s + at, '\n', len - at);
		if (nl != NULL && nl + 1 < s + len)
			at = (size_t)(nl + 1 - s);
	}
	c.at = at;
	return c;
}

int64_t
cut_count(const char *s, size_t len)
{
	const char *at = s, *end = s + len, *nl;
	int64_t n = 0;

	while (
	    at < end && (nl = memchr(at, '\n', (size_t)(end - at))) != NULL) {
		n++;
		at = nl + 1;
	}
	return n + (at < end);
}
