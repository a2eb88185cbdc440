/* Reading TOML (version 1.0), as far as its parts are concerned. */
#include "config/tomlscan.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"

#define DEPTH_MAX 64
#define PARTS_MAX 100000

struct reader {
	const char *text;
	size_t len, at;
	struct toml_scan *scan;
	json_t *table; /* path of the header that holds now */
	struct err *err;
};

static int read_value(struct reader *r, json_t *path, int depth);

static int
wrong(struct reader *r, const char *what)
{
	size_t line = 1, i;

	for (i = 0; i < r->at && i < r->len; i++)
		line += r->text[i] == '\n';
	return err_set(r->err, ERR_INVALID, "not valid TOML: %s (line %zu)",
	    what, line);
}

/* The character at hand; NUL at the end, which the text does not hold. */
static char
now(const struct reader *r)
{
	if (r->at < r->len)
		return r->text[r->at];
	return '\0';
}

static bool
looking_at(const struct reader *r, const char *s)
{
	size_t n = strlen(s);

	return r->len - r->at >= n && memcmp(r->text + r->at, s, n) == 0;
}

static void
skip_blanks(struct reader *r)
{
	while (now(r) == ' ' || now(r) == '\t')
		r->at++;
}

static void
skip_comment(struct reader *r)
{
	if (now(r) != '#')
		return;
	while (r->at < r->len && r->text[r->at] != '\n')
		r->at++;
}

static bool
take_newline(struct reader *r)
{
	if (looking_at(r, "\r\n"))
		r->at += 2;
	else if (now(r) == '\n')
		r->at++;
	else
		return false;
	return true;
}

/* White space, comments and line ends, as between the items of a list. */
static void
skip_lines(struct reader *r)
{
	do {
		skip_blanks(r);
		skip_comment(r);
	} while (take_newline(r));
}

/* A part that begins here. */
static int
add_part(struct reader *r, enum toml_kind kind, const json_t *path,
    size_t start, size_t *index)
{
	struct toml_scan *s = r->scan;

	if (s->count == PARTS_MAX)
		return wrong(r, "it is too long");
	s->parts = xreallocarray(s->parts, s->count + 1, sizeof(*s->parts));
	s->parts[s->count] = (struct toml_part){
		.kind = kind,
		.path = json_deep_copy(path),
		.start = start,
	};
	*index = s->count++;
	return 0;
}

/* --- strings and keys -----------------------------------------------------
 */

static void
add_character(struct buf *out, uint32_t c)
{
	if (c < 0x80) {
		buf_addc(out, (char)c);
	} else if (c < 0x800) {
		buf_addc(out, (char)(0xc0 | c >> 6));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else if (c < 0x10000) {
		buf_addc(out, (char)(0xe0 | c >> 12));
		buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	} else {
		buf_addc(out, (char)(0xf0 | c >> 18));
		buf_addc(out, (char)(0x80 | (c >> 12 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c >> 6 & 0x3f)));
		buf_addc(out, (char)(0x80 | (c & 0x3f)));
	}
}

/* \u1234 or \U12345678, behind the letter. */
static int
read_code(struct reader *r, struct buf *out, int digits)
{
	static const char hex[] = "0123456789abcdefABCDEF";
	uint32_t c = 0;
	const char *d;

	for (; digits > 0; digits--, r->at++) {
		d = now(r) == '\0' ? NULL : strchr(hex, now(r));
		if (d == NULL || c > 0xfffffff)
			return wrong(r, "a broken escape");
		c = c << 4 | (uint32_t)(d - hex < 16 ? d - hex : d - hex - 6);
	}
	if (c == 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
		return wrong(r, "an escape that is no character");
	add_character(out, c);
	return 0;
}

/* Behind the backslash. */
static int
read_escape(struct reader *r, struct buf *out, bool several_lines)
{
	static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
	char c = now(r);
	const char *at = c == '\0' ? NULL : strchr(from, c);

	if (several_lines &&
	    (c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
		skip_blanks(r);
		return take_newline(r) ? 0 : wrong(r, "a broken escape");
	}
	r->at++;
	if (c == 'u' || c == 'U')
		return read_code(r, out, c == 'u' ? 4 : 8);
	if (at == NULL)
		return wrong(r, "a broken escape");
	buf_addc(out, to[at - from]);
	return 0;
}

/*
 * A string of any of the four kinds, its content into "out".  "quote" is what
 * it begins and ends with.
 */
static int
read_string(struct reader *r, const char *quote, struct buf *out)
{
	bool several_lines = quote[1] != '\0', basic = quote[0] == '"';
	int more;

	r->at += strlen(quote);
	for (;;) {
		char c = now(r);

		if (looking_at(r, quote)) {
			r->at += strlen(quote);
			/* Up to two more belong to the content. */
			for (more = 0;
			     several_lines && more < 2 && now(r) == quote[0];
			     more++)
				r->at++;
			return 0;
		}
		if (r->at >= r->len || (c == '\n' && !several_lines))
			return wrong(r, "a string does not end");
		if ((unsigned char)c < ' ' &&
		    !(c == '\t' || (several_lines && (c == '\n' || c == '\r'))))
			return wrong(r, "a control character in a string");
		r->at++;
		if (c == '\\' && basic) {
			if (read_escape(r, out, several_lines) == -1)
				return -1;
		} else {
			buf_addc(out, c);
		}
	}
}

/* What a string begins with here, or NULL. */
static const char *
quote_here(const struct reader *r, bool key)
{
	if (!key && looking_at(r, "\"\"\""))
		return "\"\"\"";
	if (!key && looking_at(r, "'''"))
		return "'''";
	if (now(r) == '"')
		return "\"";
	return now(r) == '\'' ? "'" : NULL;
}

static bool
bare_character(char c)
{
	return c != '\0' &&
	    strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	           "0123456789_-",
	        c) != NULL;
}

static int
read_name(struct reader *r, json_t *path)
{
	const char *quote = quote_here(r, true);
	struct buf name;
	int rc = 0;

	buf_init(&name, SIZE_MAX);
	if (quote != NULL) {
		rc = read_string(r, quote, &name);
	} else {
		while (bare_character(now(r)))
			buf_addc(&name, r->text[r->at++]);
		if (name.len == 0)
			rc = wrong(r, "a key was expected");
	}
	if (rc == 0)
		json_array_append_new(path, json_stringn(name.data, name.len));
	buf_free(&name);
	return rc;
}

/* "a . 'b' . c", appended to the path. */
static int
read_key(struct reader *r, json_t *path)
{
	for (;;) {
		skip_blanks(r);
		if (read_name(r, path) == -1)
			return -1;
		skip_blanks(r);
		if (now(r) != '.')
			return 0;
		r->at++;
		if (json_array_size(path) > DEPTH_MAX)
			return wrong(r, "a key has too many parts");
	}
}

/* --- values ---------------------------------------------------------------
 */

static int
read_list(struct reader *r, json_t *path, int depth)
{
	r->at++;
	for (;;) {
		skip_lines(r);
		if (now(r) == ']')
			break;
		if (read_value(r, path, depth + 1) == -1)
			return -1;
		skip_lines(r);
		if (now(r) == ']')
			break;
		if (now(r) != ',')
			return wrong(r, "a list does not end");
		r->at++;
	}
	r->at++;
	return 0;
}

/* key = value, on a line or in braces. */
static int
read_pair(struct reader *r, const json_t *outer, enum toml_kind kind, int depth)
{
	json_t *path = json_copy((json_t *)(uintptr_t)outer);
	size_t start = r->at, index = 0, value;
	int rc = read_key(r, path);

	if (rc == 0 && now(r) != '=')
		rc = wrong(r, "\"=\" was expected");
	if (rc == 0) {
		r->at++;
		skip_blanks(r);
		value = r->at;
		rc = add_part(r, kind, path, start, &index);
		if (rc == 0)
			rc = read_value(r, path, depth);
		if (rc == 0) {
			r->scan->parts[index].value = value;
			r->scan->parts[index].value_end = r->at;
			r->scan->parts[index].end = r->at;
		}
	}
	json_decref(path);
	return rc;
}

static int
read_braces(struct reader *r, json_t *path, int depth)
{
	r->at++;
	skip_lines(r);
	while (now(r) != '}') {
		if (read_pair(r, path, TOML_INNER, depth + 1) == -1)
			return -1;
		skip_lines(r);
		if (now(r) == '}')
			break;
		if (now(r) != ',')
			return wrong(r, "an inline table does not end");
		r->at++;
		skip_lines(r);
	}
	r->at++;
	return 0;
}

/* Numbers, dates, true and false. */
static int
read_scalar(struct reader *r)
{
	size_t start = r->at, n;
	const char *t = r->text + start;

	while (bare_character(now(r)) ||
	    (now(r) != '\0' && strchr("+.:", now(r)) != NULL))
		r->at++;
	n = r->at - start;
	/* A blank may stand between a day and its time. */
	if (n == 10 && t[4] == '-' && t[7] == '-' && r->len - r->at > 2 &&
	    t[10] == ' ' && strchr("012", t[11]) != NULL && t[11] != '\0') {
		r->at++;
		while (bare_character(now(r)) ||
		    (now(r) != '\0' && strchr("+.:", now(r)) != NULL))
			r->at++;
		return 0;
	}
	if ((n == 4 && memcmp(t, "true", 4) == 0) ||
	    (n == 5 && memcmp(t, "false", 5) == 0) ||
	    (n == 3 && (memcmp(t, "inf", 3) == 0 || memcmp(t, "nan", 3) == 0)))
		return 0;
	if (n == 0 || strchr("0123456789+-", t[0]) == NULL)
		return wrong(r, "a value was expected");
	return 0;
}

static int
read_value(struct reader *r, json_t *path, int depth)
{
	const char *quote = quote_here(r, false);
	struct buf ignored;
	int rc;

	if (depth > DEPTH_MAX)
		return wrong(r, "it is nested too deeply");
	if (quote != NULL) {
		buf_init(&ignored, 0);
		rc = read_string(r, quote, &ignored);
		buf_free(&ignored);
		return rc;
	}
	if (now(r) == '[')
		return read_list(r, path, depth);
	if (now(r) == '{')
		return read_braces(r, path, depth);
	return read_scalar(r);
}

/* --- statements -----------------------------------------------------------
 */

static int
read_header(struct reader *r)
{
	bool list = looking_at(r, "[[");
	size_t start = r->at, index;
	json_t *path = json_array();

	r->at += list ? 2 : 1;
	if (read_key(r, path) == -1 ||
	    add_part(r, list ? TOML_LIST : TOML_TABLE, path, start, &index) ==
	        -1) {
		json_decref(path);
		return -1;
	}
	json_decref(r->table);
	r->table = path;
	if (!looking_at(r, list ? "]]" : "]"))
		return wrong(r, "a header does not end");
	r->at += list ? 2 : 1;
	return 0;
}

/* A line that says something; its part covers it from its beginning to behind
 * its line end. */
static int
read_statement(struct reader *r)
{
	size_t line = r->at, index = r->scan->count;
	int rc;

	skip_blanks(r);
	if (now(r) != '#' && now(r) != '\n' && now(r) != '\r' &&
	    r->at < r->len) {
		rc = now(r) == '[' ? read_header(r)
		                   : read_pair(r, r->table, TOML_PAIR, 0);
		if (rc == -1)
			return -1;
	}
	skip_blanks(r);
	skip_comment(r);
	if (!take_newline(r) && r->at < r->len)
		return wrong(r, "the end of the line was expected");
	if (index < r->scan->count) {
		r->scan->parts[index].start = line;
		r->scan->parts[index].end = r->at;
	}
	return 0;
}

int
toml_scan(struct toml_scan *s, const char *text, size_t len, struct err *err)
{
	struct reader r = { .text = text, .len = len, .scan = s, .err = err };
	int rc = 0;

	memset(s, 0, sizeof(*s));
	if (!utf8_valid(text, len) || memchr(text, '\0', len) != NULL)
		return err_set(err, ERR_INVALID, "not valid TOML: no UTF-8");
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		r.at = 3;
	r.table = json_array();
	while (rc == 0 && r.at < len)
		rc = read_statement(&r);
	json_decref(r.table);
	return rc;
}

void
toml_scan_free(struct toml_scan *s)
{
	size_t i;

	for (i = 0; i < s->count; i++)
		json_decref(s->parts[i].path);
	free(s->parts);
	memset(s, 0, sizeof(*s));
}
