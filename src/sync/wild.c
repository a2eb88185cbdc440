/*
 * Patterns as git reads them.
 *
 * A pattern becomes a row of tokens, and a match keeps the set of all places in
 * it that the text so far may have led to: no pattern, however many stars it
 * has, takes long.
 */
#include "sync/wild.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum kind {
	TOKEN_CHAR,
	TOKEN_ANY,  /* ?: one byte other than a slash */
	TOKEN_SET,  /* [...], the same */
	TOKEN_STAR, /* *: any but slashes */
	TOKEN_DEEP, /* **: any at all */
	TOKEN_DIRS, /* before the DEEP and "/" of "**" "/": or nothing */
};

struct token {
	uint8_t kind;
	uint8_t c;
	uint8_t *set; /* 256 bits */
};

struct wild {
	struct token *tokens;
	size_t count, room;
};

static struct token *
add(struct wild *w, enum kind kind, uint8_t c)
{
	if (w->count == w->room) {
		w->room = w->room * 2 + 8;
		w->tokens =
		    xreallocarray(w->tokens, w->room, sizeof(*w->tokens));
	}
	w->tokens[w->count] = (struct token){ (uint8_t)kind, c, NULL };
	return &w->tokens[w->count++];
}

static void
set_range(uint8_t *set, unsigned low, unsigned high)
{
	for (; low <= high; low++)
		set[low / 8] |= (uint8_t)(1U << low % 8);
}

/* [:name:] */
static int
set_class(uint8_t *set, const char *name, size_t len)
{
	static const struct {
		const char *name;
		int (*is)(int c);
	} classes[] = {
		{ "alnum", isalnum },
		{ "alpha", isalpha },
		{ "blank", isblank },
		{ "cntrl", iscntrl },
		{ "digit", isdigit },
		{ "graph", isgraph },
		{ "lower", islower },
		{ "print", isprint },
		{ "punct", ispunct },
		{ "space", isspace },
		{ "upper", isupper },
		{ "xdigit", isxdigit },
	};
	size_t i;
	unsigned c;

	for (i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		if (strlen(classes[i].name) != len ||
		    memcmp(classes[i].name, name, len) != 0)
			continue;
		for (c = 0; c < 128; c++) {
			if (classes[i].is((int)c))
				set_range(set, c, c);
		}
		return 0;
	}
	return -1;
}

/*
 * One member of a set at *p, which moves behind it; *before is the byte that a
 * range may begin with, or 0.  -1 if the set makes no sense.
 */
static int
set_member(uint8_t *set, const uint8_t **p, uint8_t *before)
{
	const uint8_t *s = *p;
	const char *close;

	if (s[0] == '-' && *before != 0 && s[1] != '\0' && s[1] != ']') {
		s += s[1] == '\\' ? 2 : 1;
		if (*s == '\0')
			return -1;
		set_range(set, *before, *s);
		*before = 0;
	} else if (s[0] == '[' && s[1] == ':' &&
	    (close = strchr((const char *)s + 2, ']')) != NULL &&
	    close > (const char *)s + 2 && close[-1] == ':') {
		if (set_class(set, (const char *)s + 2,
		        (size_t)(close - (const char *)s) - 3) == -1)
			return -1;
		s = (const uint8_t *)close;
		*before = 0;
	} else {
		/* A "[:" that nothing closes leaves the set open, too. */
		if (s[0] == '\\')
			s++;
		if (*s == '\0')
			return -1;
		set_range(set, *s, *s);
		*before = *s;
	}
	*p = s + 1;
	return 0;
}

/* *p is behind "["; it moves behind "]". */
static int
add_set(struct wild *w, const uint8_t **p)
{
	uint8_t *set = xcalloc(1, 32), before = 0;
	bool not = **p == '!' || **p == '^';
	int i, rc;

	add(w, TOKEN_SET, 0)->set = set;
	if (not )
		(*p)++;
	do {
		rc = set_member(set, p, &before);
	} while (rc == 0 && **p != ']');
	if (rc == -1)
		return -1;
	(*p)++;
	for (i = 0; not &&i < 32; i++)
		set[i] = (uint8_t)~set[i];
	return 0;
}

/* Stars at *p, which moves behind them.  Two or more are more than one only
 * between slashes or ends. */
static void
add_stars(struct wild *w, const uint8_t *start, const uint8_t **p)
{
	const uint8_t *s = *p, *end = s;

	while (*end == '*')
		end++;
	*p = end;
	if (end - s == 1 || (s > start && s[-1] != '/') ||
	    (*end != '\0' && *end != '/' && (end[0] != '\\' || end[1] != '/')))
		add(w, TOKEN_STAR, 0);
	else if (*end == '/') {
		add(w, TOKEN_DIRS, 0);
		add(w, TOKEN_DEEP, 0);
	} else
		add(w, TOKEN_DEEP, 0);
}

struct wild *
wild_new(const char *pattern)
{
	const uint8_t *start = (const uint8_t *)pattern, *p = start;
	struct wild *w = xcalloc(1, sizeof(*w));

	while (*p != '\0') {
		if (*p == '*') {
			add_stars(w, start, &p);
		} else if (*p == '?') {
			add(w, TOKEN_ANY, 0);
			p++;
		} else if (*p == '[') {
			p++;
			if (add_set(w, &p) == -1)
				goto bad;
		} else {
			if (*p == '\\' && *++p == '\0')
				goto bad;
			add(w, TOKEN_CHAR, *p++);
		}
	}
	/* Of patterns there may be many. */
	w->tokens = xreallocarray(w->tokens, w->count + 1, sizeof(*w->tokens));
	w->room = w->count + 1;
	return w;
bad:
	wild_free(w);
	return NULL;
}

void
wild_free(struct wild *w)
{
	size_t i;

	if (w == NULL)
		return;
	for (i = 0; i < w->count; i++)
		free(w->tokens[i].set);
	free(w->tokens);
	free(w);
}

/* What led to place "i" led to all that need no further byte, too. */
static void
spread(const struct wild *w, uint8_t *places, size_t i)
{
	switch (w->tokens[i].kind) {
	case TOKEN_DIRS:
		places[i + 3] = 1;
		places[i + 1] = 1;
		break;
	case TOKEN_STAR:
	case TOKEN_DEEP:
		places[i + 1] = 1;
		break;
	default:
		break;
	}
}

/* Places lead to later ones alone: once it was a place's turn, nothing is added
 * to it any more, and one round will do. */
static void
step(const struct wild *w, const uint8_t *from, uint8_t *to, uint8_t c)
{
	size_t i;

	for (i = 0; i < w->count; i++) {
		const struct token *t = &w->tokens[i];

		if (from[i] == 0)
			;
		else if ((t->kind == TOKEN_CHAR && t->c == c) ||
		    (t->kind == TOKEN_ANY && c != '/') ||
		    (t->kind == TOKEN_SET && c != '/' &&
		        (t->set[c / 8] >> c % 8 & 1) != 0))
			to[i + 1] = 1;
		else if (t->kind == TOKEN_DEEP ||
		    (t->kind == TOKEN_STAR && c != '/'))
			to[i] = 1;
		if (to[i] != 0)
			spread(w, to, i);
	}
}

/* Where a match begins: at place "i", before any byte. */
static void
begin(const struct wild *w, uint8_t *places, size_t i)
{
	places[i] = 1;
	for (; i < w->count; i++) {
		if (places[i] != 0)
			spread(w, places, i);
	}
}

bool
wild_match(const struct wild *w, const char *text)
{
	uint8_t small[512], *places = small, *from, *to;
	size_t n = w->count + 1, literal = 0;
	bool yes;

	/* What comes before the first wildcard decides most matches. */
	while (literal < w->count && w->tokens[literal].kind == TOKEN_CHAR) {
		if ((uint8_t)*text++ != w->tokens[literal++].c)
			return false;
	}
	if (n * 2 > sizeof(small))
		places = xmalloc(n * 2);
	memset(places, 0, n * 2);
	from = places;
	to = places + n;
	begin(w, from, literal);
	for (; *text != '\0' && memchr(from, 1, n) != NULL; text++) {
		uint8_t *swap = from;

		memset(to, 0, n);
		step(w, from, to, (uint8_t)*text);
		from = to;
		to = swap;
	}
	yes = *text == '\0' && from[w->count] != 0;
	if (places != small)
		free(places);
	return yes;
}
