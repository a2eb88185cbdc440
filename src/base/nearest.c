#include "base/nearest.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/str.h"

/* Names that are longer are like no other. */
#define LEN_MAX 64

/* One letter of a shorter name makes another word of it: "cmd" and "cwd". */
#define LEN_MIN 4

/* What a difference costs. */
#define LETTER 2
#define UNIT 3 /* more than one letter, less than two */
#define LETTERS_MAX 3

static bool
joins(char c)
{
	return c == '-' || c == '_';
}

/* Without case, '-' and '_'.  -1 if it is too long. */
static int
fold(char *out, const char *name)
{
	size_t len = 0;

	if (strlen(name) > LEN_MAX)
		return -1;
	for (; *name != '\0'; name++) {
		if (!joins(*name))
			out[len++] = str_lower(*name);
	}
	out[len] = '\0';
	return 0;
}

bool
nearest_same(const char *a, const char *b)
{
	char x[LEN_MAX + 1], y[LEN_MAX + 1];

	return fold(x, a) == 0 && fold(y, b) == 0 && strcmp(x, y) == 0;
}

/* Does the known name go on with another word, where the given one ends? */
static bool
goes_on(const char *known, const char *given)
{
	for (; *known != '\0'; known++) {
		if (joins(*known) && *given == '\0')
			return true;
		if (joins(*known))
			continue;
		if (str_lower(*known) != *given++)
			return false;
	}
	return false;
}

/* Less than "limit", or "limit". */
static unsigned
cost_of(const char *given, const char *known, unsigned limit)
{
	char g[LEN_MAX + 1], k[LEN_MAX + 1];
	unsigned cost;

	if (fold(g, given) == -1 || fold(k, known) == -1)
		return limit;
	if (strcmp(g, k) == 0)
		return 0;
	if (strlen(k) < LEN_MIN)
		return limit;
	cost = LETTER * str_distance(g, k, LETTERS_MAX);
	if (cost > UNIT && strlen(g) >= LEN_MIN && goes_on(known, g))
		cost = UNIT;
	return cost < limit ? cost : limit;
}

void
nearest_init(struct nearest *n, const char *given, enum nearest_most most)
{
	n->best = NULL;
	n->given = given;
	n->cost = 1 + (most == NEAREST_SLIP ? UNIT : LETTERS_MAX * LETTER);
}

void
nearest_try(struct nearest *n, const char *known)
{
	unsigned cost = cost_of(n->given, known, n->cost);

	if (cost < n->cost) {
		n->cost = cost;
		n->best = known;
	}
}
