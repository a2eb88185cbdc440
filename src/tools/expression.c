/* What is looked for, as grep reads it. */
#include "tools/expression.h"

#include <ctype.h>
#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define LENGTH_MAX 4000
#define DIGITS "0123456789"

/* \d, \w and \s; within brackets the name of a class stands without its own.
 * Returns false for any other letter. */
static bool
add_class(struct buf *out, char c, bool bracket)
{
	const char *words = c == 'd' ? "0-9"
	    : c == 'w'               ? "[:alnum:]_"
	    : c == 's'               ? "[:space:]"
	                             : NULL;

	if (words != NULL)
		buf_addf(out, bracket ? "%s" : "[%s]", words);
	return words != NULL;
}

/* From "[" to its "]": a "]" that comes first is one of the characters, and so
 * is a backslash, unless it names a class or keeps a sign from being one.
 * Returns what is behind it. */
static const char *
add_bracket(struct buf *out, const char *at)
{
	const char *end, *first;

	buf_addc(out, *at++);
	if (*at == '^')
		buf_addc(out, *at++);
	for (first = at; *at != '\0' && (*at != ']' || at == first); at++) {
		if (at[0] == '[' && at[1] != '\0' &&
		    strchr(".:=", at[1]) != NULL &&
		    (end = strchr(at + 2, at[1])) != NULL && end[1] == ']') {
			buf_add(out, at, (size_t)(end + 2 - at));
			at = end + 1;
		} else if (at[0] == '\\' && add_class(out, at[1], true)) {
			at++;
		} else if (at[0] != '\\' || at[1] == '\0' ||
		    strchr("^-]", at[1]) != NULL ||
		    !ispunct((unsigned char)at[1])) {
			buf_addc(out, *at);
		} else {
			buf_addc(out, *++at);
		}
	}
	if (*at == ']')
		buf_addc(out, *at++);
	return at;
}

/* What is behind "{n}", "{n,}", "{,m}" or "{n,m}"; NULL if it is none. */
static const char *
behind_bound(const char *at)
{
	size_t n = strspn(at + 1, DIGITS), m = 0;
	const char *end = at + 1 + n;

	if (*end == ',') {
		m = strspn(end + 1, DIGITS);
		end += 1 + m;
	}
	return *end == '}' && n + m > 0 ? end + 1 : NULL;
}

/* A "{" that repeats nothing is a sign like any other, which not every grep
 * sees by itself; nor does every one know that "{,m}" begins at 0. */
static const char *
add_brace(struct buf *out, const char *at, bool *repeats)
{
	const char *end = behind_bound(at);

	*repeats = end != NULL;
	if (end == NULL) {
		buf_adds(out, "\\{");
		return at + 1;
	}
	buf_adds(out, at[1] == ',' ? "{0" : "{");
	buf_add(out, at + 1, (size_t)(end - at - 1));
	return end;
}

/* A "?" behind a repetition asks for the shortest match: the same lines.
 * Returns the first "(?" that grep knows nothing of, or NULL. */
static const char *
add_expression(struct buf *out, const char *at)
{
	bool before = false, repeats;

	for (; *at != '\0'; before = repeats) {
		repeats = false;
		if (*at == '[') {
			at = add_bracket(out, at);
		} else if (*at == '{') {
			at = add_brace(out, at, &repeats);
		} else if (*at == '?' && before) {
			at++;
		} else if (at[0] == '\\' && add_class(out, at[1], false)) {
			at += 2;
		} else if (at[0] == '\\' && at[1] != '\0') {
			buf_add(out, at, 2);
			at += 2;
		} else if (str_starts(at, "(?:")) {
			buf_addc(out, *at); /* nobody asks for its groups */
			at += 3;
		} else if (str_starts(at, "(?")) {
			return at;
		} else {
			repeats = strchr("*+?", *at) != NULL;
			buf_addc(out, *at++);
		}
	}
	return NULL;
}

static void
refuse(const char *unknown, struct err *err)
{
	size_t letters = strspn(unknown + 2, "aiLmsux-");

	if (memchr(unknown, 'i', letters + 2) != NULL)
		err_set(err, ERR_INVALID,
		    "'%.*s' is unknown to grep: for a letter of either case "
		    "write both, as in [Ee]rror",
		    (int)letters + 3, unknown);
	else
		err_set(err, ERR_INVALID,
		    "'%.3s' is unknown to grep, which reads extended regular "
		    "expressions: of groups it has ( ) and (?: ) alone",
		    unknown);
}

char *
expression_new(const char *given, struct err *err)
{
	const char *unknown;
	struct buf out;

	if (strlen(given) > LENGTH_MAX) {
		err_set(err, ERR_INVALID, "must not be longer than %d bytes",
		    LENGTH_MAX);
		return NULL;
	}
	if (strchr(given, '\n') != NULL) {
		err_set(err, ERR_INVALID, "must not hold a newline");
		return NULL;
	}
	buf_init(&out, SIZE_MAX);
	unknown = add_expression(&out, given);
	if (unknown == NULL)
		return buf_take(&out);
	buf_free(&out);
	refuse(unknown, err);
	return NULL;
}
