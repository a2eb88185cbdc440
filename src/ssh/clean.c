/* Cleaning output. */
#include "ssh/clean.h"

#include <stdbool.h>
#include <string.h>

#include "base/utf8.h"

#define ESC 0x1b
#define BEL 0x07

/* Behind ESC [: parameters, intermediates, one final byte.  A byte that fits
 * nowhere ends the sequence and is kept. */
static size_t
skip_csi(const unsigned char *s, size_t len)
{
	size_t i = 0;

	while (i < len && s[i] >= 0x20 && s[i] <= 0x3f)
		i++;
	if (i < len && s[i] >= 0x40 && s[i] <= 0x7e)
		i++;
	return i;
}

/* Behind ESC ] and the like: a string up to BEL or ESC \.  One that does not
 * end within its line was none. */
static size_t
skip_string(const unsigned char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len && s[i] != '\n'; i++) {
		if (s[i] == BEL)
			return i + 1;
		if (s[i] == ESC)
			return i + 1 < len && s[i + 1] == '\\' ? i + 2 : i;
	}
	return i;
}

/* An escape sequence at "s" (which is the ESC): its length. */
static size_t
skip_escape(const unsigned char *s, size_t len)
{
	size_t i = 1;

	if (i == len)
		return i;
	if (s[i] == '[')
		return 2 + skip_csi(s + 2, len - 2);
	if (strchr("]PX^_", s[i]) != NULL && s[i] != '\0')
		return 2 + skip_string(s + 2, len - 2);
	while (i < len && s[i] >= 0x20 && s[i] <= 0x2f)
		i++;
	if (i < len && s[i] >= 0x30 && s[i] <= 0x7e)
		i++;
	return i;
}

static bool
plain(unsigned char c)
{
	return (c >= 0x20 && c != 0x7f) || c == '\n' || c == '\t';
}

/* U+0080 to U+009F, the control characters of eight-bit terminals. */
static bool
c1(const unsigned char *s, size_t len)
{
	return len >= 2 && s[0] == 0xc2 && s[1] >= 0x80 && s[1] <= 0x9f;
}

/* How many bytes from "s" on are to be kept as they are. */
static size_t
plain_run(const unsigned char *s, size_t len)
{
	size_t i = 0;

	while (i < len && plain(s[i]) && !c1(s + i, len - i))
		i++;
	return i;
}

void
clean_text(struct buf *out, const char *data, size_t len)
{
	const unsigned char *s = (const unsigned char *)data;
	size_t i = 0, n;

	/* Behind something that was dropped nothing may follow. */
	while (i < len && !out->full) {
		/* Each run by itself: what stood apart shall not join. */
		n = plain_run(s + i, len - i);
		utf8_fix(out, data + i, n);
		i += n;
		if (i == len || out->full)
			break;
		if (s[i] == ESC)
			i += skip_escape(s + i, len - i);
		else if (c1(s + i, len - i))
			i += 2;
		else {
			if (s[i] == '\r' && i + 1 < len && s[i + 1] != '\n' &&
			    !out->full)
				buf_addc(out, '\n');
			i++;
		}
	}
}
