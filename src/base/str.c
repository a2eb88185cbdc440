#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

#define SPACE " \t\n\v\f\r"
#define NAME_MAX_LEN 64 /* what str_distance() compares */

int
str_to_int(const char *s, int64_t min, int64_t max, int64_t *out)
{
	long long value;
	char *end;

	if (s == NULL)
		return -1;
	errno = 0;
	value = strtoll(s, &end, 10);
	if (end == s || errno != 0 || !str_blank(end))
		return -1;
	if (value < min || value > max)
		return -1;
	*out = value;
	return 0;
}

int
str_to_num(const char *s, double *out)
{
	double value;
	char *end;

	if (s == NULL)
		return -1;
	s += strspn(s, SPACE);
	/* strtod() also reads hexadecimal, "inf" and "nan". */
	if (!str_blank(s + strspn(s, "+-.0123456789eE")))
		return -1;
	value = strtod(s, &end);
	if (end == s || !str_blank(end) || !isfinite(value))
		return -1;
	*out = value;
	return 0;
}

int
str_to_bool(const char *s, bool *out)
{
	static const char *const yes[] = { "true", "yes", "on", "1", "y", "t" };
	static const char *const no[] = { "false", "no", "off", "0", "n", "f" };
	size_t i;

	for (i = 0; s != NULL && i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (str_same(s, yes[i]) || str_same(s, no[i])) {
			*out = str_same(s, yes[i]);
			return 0;
		}
	}
	return -1;
}

bool
str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool
str_ends(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	return n <= len && strcmp(s + len - n, suffix) == 0;
}

char
str_lower(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (char)(c - 'A' + 'a');
	return c;
}

bool
str_same(const char *a, const char *b)
{
	while (*a != '\0' && str_lower(*a) == str_lower(*b)) {
		a++;
		b++;
	}
	return str_lower(*a) == str_lower(*b);
}

const char *
str_plural(int64_t n, const char *one, const char *more)
{
	return n == 1 ? one : more;
}

bool
str_blank(const char *s)
{
	return s == NULL || s[strspn(s, SPACE)] == '\0';
}

static unsigned
least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned
str_distance(const char *a, const char *b, unsigned max)
{
	/* From a[0..i) to each b[0..j); two rows back for a swap. */
	unsigned rows[3][NAME_MAX_LEN + 1] = { 0 };
	unsigned far = max < UINT_MAX ? max + 1 : max;
	size_t a_len = strlen(a), b_len = strlen(b), i, j;

	if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN ||
	    (a_len > b_len ? a_len - b_len : b_len - a_len) > max)
		return far;
	for (j = 0; j <= b_len; j++)
		rows[0][j] = (unsigned)j;
	for (i = 1; i <= a_len; i++) {
		unsigned *row = rows[i % 3], *above = rows[(i + 2) % 3];
		const unsigned *back = rows[(i + 1) % 3];

		row[0] = (unsigned)i;
		for (j = 1; j <= b_len; j++) {
			unsigned replace =
			    above[j - 1] + (a[i - 1] != b[j - 1]);

			row[j] =
			    least(least(above[j], row[j - 1]) + 1, replace);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				row[j] = least(row[j], back[j - 2] + 1);
		}
	}
	return least(rows[a_len % 3][b_len], far);
}
