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

/* Behind ESC ] and the like: a string up to BEL or ESC \, or what there is of
 * it up to another sequence or the end of its line. */
static size_t
skip_string(const unsigned char *s, size_t len)
{
	size_t i = 0;

	while (i < len && s[i] != '\n' && s[i] != BEL && s[i] != ESC)
		i++;
	if (i < len && s[i] == BEL)
		return i + 1;
	if (i + 1 < len && s[i] == ESC && s[i + 1] == '\\')
		return i + 2;
	return i;
}

/* Colours, "erase what is right of here", and modes such as a hidden cursor say
 * nothing; a cursor that moves may, and so may a string. */
static bool
only_looks(const unsigned char *s, size_t len)
{
	if (s[len - 1] == 'h' || s[len - 1] == 'l')
		return s[2] == '?';
	return s[len - 1] == 'm' || s[len - 1] == 'K';
}

/* An escape sequence at "s" (which is the ESC): its length, and whether it is
 * whole, and nobody misses it. */
static size_t
skip_escape(const unsigned char *s, size_t len, bool *harmless)
{
	size_t i = 1;
	bool whole;

	*harmless = false;
	if (i < len && s[i] == '[') {
		i = 2 + skip_csi(s + 2, len - 2);
		*harmless = i > 2 && only_looks(s, i);
		return i;
	}
	if (i < len && s[i] != '\0' && strchr("]PX^_", s[i]) != NULL)
		return 2 + skip_string(s + 2, len - 2);
	while (i < len && s[i] >= 0x20 && s[i] <= 0x2f)
		i++;
	whole = i < len && s[i] >= 0x30 && s[i] <= 0x7e;
	*harmless = whole && strchr("(=>", s[1]) != NULL;
	return i + whole;
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

bool
clean_text(struct buf *out, const char *data, size_t len)
{
	const unsigned char *s = (const unsigned char *)data;
	bool same = true, harmless;
	size_t i = 0, n;

	/* Behind something that was dropped nothing may follow. */
	while (i < len && !out->full) {
		/* Each run by itself: what stood apart shall not join. */
		n = plain_run(s + i, len - i);
		utf8_fix(out, data + i, n);
		same = same && utf8_valid(data + i, n);
		i += n;
		if (i == len || out->full)
			break;
		harmless = false;
		if (s[i] == ESC)
			i += skip_escape(s + i, len - i, &harmless);
		else if (c1(s + i, len - i))
			i += 2;
		else {
			if (s[i] == '\r' && i + 1 < len && s[i + 1] != '\n' &&
			    !out->full)
				buf_addc(out, '\n');
			i++;
		}
		same = same && harmless;
	}
	return same && i == len && !out->full;
}
