/*
 * Finding one's way in JSON with comments.
 *
 * A copy of the text in which comments and superfluous commas are blanks is
 * plain JSON with every byte at its place.  It is parsed to know that the
 * text is sound, and walked to find where things are.
 */
#include "config/jsoncscan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"

/* --- reading --------------------------------------------------------------
 */

bool
jsonc_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Behind the string that begins at "i". */
static size_t
string_end(const char *t, size_t len, size_t i)
{
	for (i++; i < len && t[i] != '"'; i++)
		i += t[i] == '\\';
	return i < len ? i + 1 : len;
}

/* Behind the comment that begins at "i", or "i" if there is none. */
static size_t
comment_end(const char *t, size_t len, size_t i)
{
	const char *end;

	if (len - i < 2 || t[i] != '/')
		return i;
	if (t[i + 1] == '/') {
		end = memchr(t + i, '\n', len - i);
		return end == NULL ? len : (size_t)(end - t);
	}
	if (t[i + 1] != '*')
		return i;
	end = memmem(t + i + 2, len - i - 2, "*/", 2);
	return end == NULL ? i : (size_t)(end - t) + 2;
}

static void
blank_comments(char *t, size_t len)
{
	size_t i = 0, end;

	if (len >= 3 && memcmp(t, "\xef\xbb\xbf", 3) == 0)
		memset(t, ' ', 3);
	while (i < len) {
		end = comment_end(t, len, i);
		if (end == i) /* else another may begin where it ends */
			i = t[i] == '"' ? string_end(t, len, i) : i + 1;
		for (; i < end; i++)
			t[i] = t[i] == '\n' ? '\n' : ' ';
	}
}

/* A comma behind a value and before a closing bracket. */
static void
blank_commas(char *t, size_t len)
{
	size_t i = 0, comma = SIZE_MAX;
	char before = '['; /* the last character that is no space */

	while (i < len) {
		char c = t[i];

		if (jsonc_space(c)) {
			i++;
			continue;
		}
		if (comma != SIZE_MAX && (c == ']' || c == '}'))
			t[comma] = ' ';
		comma =
		    c == ',' && strchr("[{,:", before) == NULL ? i : SIZE_MAX;
		before = c;
		i = c == '"' ? string_end(t, len, i) : i + 1;
	}
}

bool
jsonc_blank(const char *t, size_t len)
{
	size_t i;

	for (i = 0; i < len && jsonc_space(t[i]); i++)
		;
	return i == len;
}

void
jsonc_doc_free(struct jsonc_doc *d)
{
	buf_free(&d->text);
	free(d->bare);
	free(d->plain);
	json_decref(d->value);
	memset(d, 0, sizeof(*d));
}

static char *
copy(const struct buf *b)
{
	char *t = xmalloc(b->len + 1);

	memcpy(t, b->data, b->len + 1);
	return t;
}

int
jsonc_doc_init(struct jsonc_doc *d, const char *text, size_t len,
    const char *empty, struct err *err)
{
	memset(d, 0, sizeof(*d));
	buf_init(&d->text, SIZE_MAX);
	buf_add(&d->text, text, len);
	d->bare = copy(&d->text);
	blank_comments(d->bare, len);
	if (jsonc_blank(d->bare, len)) {
		if (len > 0 && text[len - 1] != '\n')
			buf_addc(&d->text, '\n');
		buf_addf(&d->text, "%s\n", empty);
		free(d->bare);
		d->bare = copy(&d->text);
		blank_comments(d->bare, d->text.len);
	}
	d->plain = xmalloc(d->text.len + 1);
	memcpy(d->plain, d->bare, d->text.len + 1);
	blank_commas(d->plain, d->text.len);
	d->value = decode_json(d->plain, d->text.len, err);
	return d->value == NULL ? -1 : 0;
}

/* --- finding; from here on the plain text is known to be JSON -------------
 */

static size_t
skip_space(const struct jsonc_doc *d, size_t i)
{
	while (jsonc_space(d->plain[i]))
		i++;
	return i;
}

static size_t
value_end(const struct jsonc_doc *d, size_t i)
{
	const char *t = d->plain;
	size_t depth = 0;

	do {
		if (t[i] == '"') {
			i = string_end(t, d->text.len, i);
			continue;
		}
		if (t[i] == '{' || t[i] == '[')
			depth++;
		else if (t[i] == '}' || t[i] == ']')
			depth--;
		else if (depth == 0)
			return i + strcspn(t + i, " \t\r\n,]}");
		i++;
	} while (depth > 0);
	return i;
}

bool
jsonc_next(const struct jsonc_doc *d, size_t open, size_t *at,
    struct jsonc_item *out)
{
	size_t i = skip_space(d, *at);

	if (d->plain[i] == ',')
		i = skip_space(d, i + 1);
	*at = i;
	if (d->plain[i] == ']' || d->plain[i] == '}')
		return false;
	out->start = out->value = i;
	if (d->plain[open] == '{') {
		i = skip_space(d, string_end(d->plain, d->text.len, i));
		out->value = skip_space(d, i + 1);
	}
	out->end = *at = value_end(d, out->value);
	return true;
}

static bool
is_named(const struct jsonc_doc *d, const struct jsonc_item *it,
    const char *name)
{
	size_t end = string_end(d->plain, d->text.len, it->start);
	json_t *key = json_loadb(d->plain + it->start, end - it->start,
	    JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	const char *s = decode_text(key);
	bool same = s != NULL && strcmp(s, name) == 0;

	json_decref(key);
	return same;
}

int
jsonc_follow(const struct jsonc_doc *d, const char *const **path,
    struct jsonc_item *found, struct err *err)
{
	size_t at;
	bool there = true;

	found->start = found->value = skip_space(d, 0);
	found->end = value_end(d, found->value);
	while (there && **path != NULL) {
		size_t open = found->value;
		struct jsonc_item it;

		if (d->plain[open] != '{')
			return err_set(err, ERR_INVALID,
			    "what should hold \"%s\" is not an object", **path);
		at = open + 1;
		do {
			there = jsonc_next(d, open, &at, &it);
		} while (there && !is_named(d, &it, **path));
		if (there) {
			*found = it;
			(*path)++;
		}
	}
	return 0;
}
