#include "cli/diff.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"

#define CONTEXT 3

/* A text as lines; each ends with its newline, but for the last, perhaps. */
struct lines {
	const char **at; /* one more than there are: the end */
	size_t count;
};

static void
split(struct lines *l, const char *text)
{
	l->count = 0;
	l->at = NULL;
	for (;;) {
		l->at = xreallocarray(l->at, l->count + 1, sizeof(l->at[0]));
		l->at[l->count] = text;
		if (*text == '\0')
			return;
		l->count++;
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

static bool
same(const struct lines *a, size_t i, const struct lines *b, size_t k)
{
	size_t n = (size_t)(a->at[i + 1] - a->at[i]);

	return n == (size_t)(b->at[k + 1] - b->at[k]) &&
	    memcmp(a->at[i], b->at[k], n) == 0;
}

/* Does a name of this length tell that its value is secret? */
static bool
is_secret(const char *name, size_t len)
{
	static const char *const words[] = { "password", "passphrase", "secret",
		"token", "credential", NULL };
	char *copy = xstrndup(name, len);
	bool yes = len >= 3 && strcasecmp(copy + len - 3, "key") == 0;
	size_t i;

	for (i = 0; words[i] != NULL; i++)
		yes = yes || strcasestr(copy, words[i]) != NULL;
	free(copy);
	return yes;
}

/* Behind a string in quotes that begins at "s", at most at "end". */
static const char *
string_end(const char *s, const char *end)
{
	char quote = *s++;

	while (s < end && *s != quote)
		s += *s == '\\' && s + 1 < end ? 2 : 1;
	return s < end ? s + 1 : end;
}

/* How long the name is that begins here, quotes included; 0: none. */
static size_t
name_len(const char *s, const char *end)
{
	const char *at = s;

	if (*s == '"' || *s == '\'')
		return (size_t)(string_end(s, end) - s);
	while (at < end &&
	    (isalnum((unsigned char)*at) || *at == '_' || *at == '-'))
		at++;
	return (size_t)(at - s);
}

/* Is it a name, quotes included, that tells of a secret? */
static bool
names_secret(const char *s, size_t len)
{
	bool quoted = len > 0 && (*s == '"' || *s == '\'');

	if (quoted && len < 2)
		return false;
	return len > 0 && is_secret(s + quoted, quoted ? len - 2 : len);
}

/* A line without its secrets: what follows "name": or name = in quotes. */
static void
print_masked(const char *s, const char *end)
{
	while (s < end) {
		size_t n = name_len(s, end);
		const char *value = s + n;

		while (value < end && strchr(" \t:=", *value) != NULL)
			value++;
		if (names_secret(s, n) && value > s + n && value < end &&
		    (*value == '"' || *value == '\'')) {
			printf("%.*s\"***\"", (int)(value - s), s);
			s = string_end(value, end);
			continue;
		}
		n = n > 0 ? n : 1;
		printf("%.*s", (int)n, s);
		s += n;
	}
}

static void
print_line(char mark, const struct lines *l, size_t i)
{
	const char *s = l->at[i], *end = l->at[i + 1];
	bool whole = end > s && end[-1] == '\n';

	putchar(mark);
	print_masked(s, whole ? end - 1 : end);
	printf("\n%s", whole ? "" : "\\ No newline at end of file\n");
}

static void
print_hunk(const struct lines *a, const struct lines *b, size_t head,
    size_t tail)
{
	size_t from = head > CONTEXT ? head - CONTEXT : 0;
	size_t more = tail < CONTEXT ? tail : CONTEXT, i;
	size_t a_count = a->count - tail + more - from;
	size_t b_count = b->count - tail + more - from;

	printf("@@ -%zu,%zu +%zu,%zu @@\n", from + (a_count > 0), a_count,
	    from + (b_count > 0), b_count);
	for (i = from; i < head; i++)
		print_line(' ', a, i);
	for (i = head; i < a->count - tail; i++)
		print_line('-', a, i);
	for (i = head; i < b->count - tail; i++)
		print_line('+', b, i);
	for (i = a->count - tail; i < a->count - tail + more; i++)
		print_line(' ', a, i);
}

void
diff_print(const char *path, const char *before, const char *after)
{
	struct lines a, b;
	size_t head = 0, tail = 0;

	split(&a, before);
	split(&b, after);
	while (head < a.count && head < b.count && same(&a, head, &b, head))
		head++;
	while (tail < a.count - head && tail < b.count - head &&
	    same(&a, a.count - tail - 1, &b, b.count - tail - 1))
		tail++;
	printf("--- %s\n+++ %s\n", path, path);
	print_hunk(&a, &b, head, tail);
	free(a.at);
	free(b.at);
}
