/* Long texts, cut. */
#include "tools/fit.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

#define SHORT 200 /* what is shorter stays */

/* What the texts take if none is longer than "each". */
static size_t
sum_texts(const json_t *v, size_t each)
{
	json_t *part, *any = (json_t *)(uintptr_t)v;
	const char *name;
	size_t i, n = 0;

	if (json_is_string(v)) {
		n = json_string_length(v);
		return n < each ? n : each;
	}
	json_array_foreach (any, i, part)
		n += sum_texts(part, each);
	json_object_foreach (any, name, part)
		n += sum_texts(part, each);
	return n;
}

static json_t *
cut_text(const json_t *v, size_t each, bool tail)
{
	const char *s = json_string_value(v);
	size_t len = json_string_length(v), at;
	json_t *less;
	char *text;

	if (tail) {
		at = len - each;
		while (at < len && ((unsigned char)s[at] & 0xc0) == 0x80)
			at++;
		text = xasprintf("...<truncated> %zu bytes left out here ...\n"
		                 "%s",
		    at, s + at);
	} else {
		at = utf8_cut(s, len, each);
		text = xasprintf("%.*s\n...<truncated> %zu bytes left out "
		                 "here ...",
		    (int)at, s, len - at);
	}
	less = utf8_json(text, strlen(text));
	free(text);
	return less;
}

static bool
is_log(const char *name)
{
	const char *end = strstr(name, "log_tail");

	return end != NULL && strcmp(end, "log_tail") == 0;
}

static size_t
cut_texts(json_t *v, size_t each)
{
	size_t i, n = 0;
	json_t *part;
	void *at;

	json_array_foreach (v, i, part)
		n += cut_texts(part, each);
	for (at = json_object_iter(v); at != NULL;
	     at = json_object_iter_next(v, at)) {
		part = json_object_iter_value(at);
		if (!json_is_string(part)) {
			n += cut_texts(part, each);
		} else if (json_string_length(part) > each) {
			json_object_iter_set_new(v, at,
			    cut_text(part, each,
			        is_log(json_object_iter_key(at))));
			n++;
		}
	}
	return n;
}

size_t
fit_texts(json_t *v, size_t max)
{
	size_t whole = json_dumpb(v, NULL, 0, JSON_COMPACT | JSON_ENCODE_ANY);
	size_t rest = whole - sum_texts(v, SIZE_MAX); /* all but the texts */
	size_t each = max;

	if (whole <= max)
		return 0;
	while (each > SHORT && rest + sum_texts(v, each) > max)
		each -= each / 8 + 1;
	return cut_texts(v, each < SHORT ? SHORT : each);
}
