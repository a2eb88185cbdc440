/* What is looked for, as grep reads it. */
#include "tools/expression.h"

#include <ctype.h>
#include <regex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"

#define SIZE_LIMIT 500
#define DEPTH_MAX 10

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

static void
add_expression(struct buf *out, const char *at)
{
	while (*at != '\0') {
		if (*at == '[') {
			at = add_bracket(out, at);
		} else if (at[0] == '\\' && add_class(out, at[1], false)) {
			at += 2;
		} else if (at[0] == '\\' && at[1] != '\0') {
			buf_add(out, at, 2);
			at += 2;
		} else if (str_starts(at, "(?:")) {
			buf_addc(out, *at); /* nobody asks for its groups */
			at += 3;
		} else {
			buf_addc(out, *at++);
		}
	}
}

/* What is behind the bracket expression that begins here. */
static const char *
skip_bracket(const char *at)
{
	const char *first, *end;

	at += at[1] == '^' ? 2 : 1;
	for (first = at; *at != '\0' && (*at != ']' || at == first); at++) {
		if (at[0] == '[' && at[1] != '\0' &&
		    strchr(".:=", at[1]) != NULL &&
		    (end = strchr(at + 2, at[1])) != NULL && end[1] == ']')
			at = end + 1;
	}
	return at + (*at == ']');
}

/* "{n,m}": the larger one.  Returns what is behind it. */
static const char *
take_bound(const char *at, int64_t *times)
{
	char *end;
	long n = strtol(at + 1, &end, 10), m = n;

	if (*end == ',')
		m = strtol(end + 1, &end, 10);
	*times = n > m ? n : m;
	return end > at ? end : at + 1;
}

/*
 * Libraries make a copy of what is repeated, for each repetition, and those of
 * repetitions multiply; brackets take of their stack.  "size" of a group is
 * how much has been copied in it, "last" of that is what a sign may repeat.
 * What refers back (\1) is in no extended expression, and takes for ever.
 */
static bool
too_much(const char *at)
{
	int64_t size[DEPTH_MAX + 1] = { 0 }, last = 0, times;
	int depth = 0;

	while (*at != '\0') {
		times = 1;
		if (at[0] == '\\' && isdigit((unsigned char)at[1]))
			return true;
		if (*at == '(') {
			size[depth] += last;
			last = 0;
			if (++depth > DEPTH_MAX)
				return true;
			size[depth] = 0;
			at++;
			continue;
		}
		if (*at == ')' && depth > 0) {
			last += size[depth--];
			at++;
			continue;
		}
		if (*at == '{') {
			at = take_bound(at, &times);
		} else if (strchr("+*?}", *at) != NULL) {
			times = *at++ == '+' ? 2 : 1;
		} else {
			size[depth] += last;
			last = 1;
			at = *at == '[' ? skip_bracket(at)
			                : at + 1 + (at[0] == '\\' && at[1]);
		}
		if (times > SIZE_LIMIT)
			return true;
		last *= times > 1 ? times : 1;
		if (size[depth] + last > SIZE_LIMIT)
			return true;
	}
	return false;
}

char *
expression_new(const char *given, struct err *err)
{
	struct buf out;
	regex_t re;
	char why[128];
	int rc;

	buf_init(&out, SIZE_MAX);
	add_expression(&out, given);
	if (too_much(out.data)) {
		buf_free(&out);
		err_set(err, ERR_INVALID,
		    "too long, or too many repetitions: %.100s", given);
		return NULL;
	}
	rc = regcomp(&re, out.data, REG_EXTENDED | REG_NOSUB);
	if (rc != 0) {
		regerror(rc, &re, why, sizeof(why));
		buf_free(&out);
		err_set(err, ERR_INVALID,
		    "'%.200s' is no extended regular expression: %s", given,
		    why);
		return NULL;
	}
	regfree(&re);
	if (strchr(out.data, '\n') == NULL)
		return buf_take(&out);
	buf_free(&out);
	err_set(err, ERR_INVALID, "must not hold a newline");
	return NULL;
}
