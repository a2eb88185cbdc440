/* Patterns as Python reads them. */
#include "sync/glob.h"

#include <stdint.h>
#include <string.h>

/*
 * The character at *s, which moves behind it.  A byte that is part of none
 * becomes a number that no character has.
 */
static uint32_t
next_char(const char **s)
{
	const unsigned char *p = (const unsigned char *)*s;
	int more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc2 ? 1 : 0;
	uint32_t c = p[0];
	int i;

	(*s)++;
	if (p[0] < 0x80)
		return c;
	if (more > 0) {
		c &= 0x3fU >> more;
		for (i = 1; i <= more && (p[i] & 0xc0) == 0x80; i++)
			c = c << 6 | (p[i] & 0x3f);
		if (i > more) {
			*s += more;
			return c;
		}
	}
	return 0x80000000U | p[0];
}

/* Where the set that begins behind "[" ends (its "]"), or NULL. */
static const char *
set_end(const char *p)
{
	if (*p == '!')
		p++;
	if (*p == ']')
		p++;
	return strchr(p, ']');
}

static bool
set_has(const char *p, const char *end, uint32_t c)
{
	bool not = *p == '!', found = false;

	if (not )
		p++;
	while (p < end) {
		uint32_t low = next_char(&p), high = low;

		if (p[0] == '-' && p + 1 < end) {
			p++;
			high = next_char(&p);
		}
		if (c >= low && c <= high)
			found = true;
	}
	return found != not ;
}

/* Match one element of the pattern other than "*"; both move behind it. */
static bool
match_one(const char **pattern, const char **text)
{
	const char *p = *pattern, *end;
	uint32_t c;

	if (**text == '\0' || *p == '\0')
		return false;
	if (*p == '?') {
		next_char(text);
		*pattern = p + 1;
		return true;
	}
	if (*p == '[' && (end = set_end(p + 1)) != NULL) {
		c = next_char(text);
		*pattern = end + 1;
		return set_has(p + 1, end, c);
	}
	if (*p != **text)
		return false;
	(*pattern)++;
	(*text)++;
	return true;
}

/* A later "*" makes it needless to try an earlier one again, so this takes
 * at most the product of both lengths. */
bool
glob_match(const char *pattern, const char *text)
{
	const char *star = NULL, *from = NULL;

	for (;;) {
		if (*pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (*pattern == '\0' && *text == '\0') {
			return true;
		} else if (!match_one(&pattern, &text)) {
			if (star == NULL || *from == '\0')
				return false;
			next_char(&from);
			pattern = star;
			text = from;
		}
	}
}
