/* Editing TOML as text. */
#include "config/toml.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/tomlscan.h"

#define CHANGES_MAX 64

/* A stretch of the text, and what stands there afterwards. */
struct change {
	size_t from, to;
	char *text;
};

/* A change under way. */
struct edit {
	const char *text;
	size_t len;
	const char *const *table;
	struct toml_scan scan;
	struct change changes[CHANGES_MAX];
	size_t count;
};

static int
edit_init(struct edit *e, const char *text, size_t len,
    const char *const *table, struct err *err)
{
	memset(e, 0, sizeof(*e));
	e->text = text;
	e->len = len;
	e->table = table;
	return toml_scan(&e->scan, text, len, err);
}

static void
edit_free(struct edit *e)
{
	while (e->count > 0)
		free(e->changes[--e->count].text);
	toml_scan_free(&e->scan);
}

/* What it is, seen from the table: -1 elsewhere, else how many names are
 * left of its path. */
static int
below(const struct toml_part *p, const char *const *table)
{
	size_t i, n = json_array_size(p->path);

	for (i = 0; table[i] != NULL; i++) {
		if (i >= n ||
		    strcmp(json_string_value(json_array_get(p->path, i)),
		        table[i]) != 0)
			return -1;
	}
	return (int)(n - i);
}

static bool
is_key(const struct toml_part *p, const char *const *table, const char *key)
{
	size_t n = json_array_size(p->path);

	return p->kind >= TOML_PAIR && below(p, table) == 1 &&
	    strcmp(json_string_value(json_array_get(p->path, n - 1)), key) == 0;
}

/* Is it, by a value of its own, what the table would be in? */
static bool
in_the_way(const struct toml_part *p, const char *const *table)
{
	size_t i, n = json_array_size(p->path);

	/* A pair with the table's own name may hold all of it in braces. */
	if (p->kind == TOML_TABLE ||
	    (p->kind != TOML_LIST && below(p, table) >= 0))
		return false;
	for (i = 0; i < n; i++) {
		if (table[i] == NULL ||
		    strcmp(json_string_value(json_array_get(p->path, i)),
		        table[i]) != 0)
			return false;
	}
	return true;
}

static int
by_hand(struct err *err)
{
	return err_set(err, ERR_INVALID,
	    "the table is written in a way that cannot be changed here; edit "
	    "it by hand");
}

static void
change(struct edit *e, size_t from, size_t to, char *text)
{
	if (e->count == CHANGES_MAX) {
		free(text);
		return; /* the check at the end finds that it is missing */
	}
	e->changes[e->count++] = (struct change){ from, to, text };
}

static int
by_place(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

/* The whole text with its changes. */
static void
apply(struct edit *e, struct buf *out)
{
	size_t at = 0, i;

	qsort(e->changes, e->count, sizeof(e->changes[0]), by_place);
	for (i = 0; i < e->count; i++) {
		struct change *c = &e->changes[i];

		buf_add(out, e->text + at, c->from - at);
		buf_adds(out, c->text != NULL ? c->text : "");
		at = c->to;
	}
	buf_add(out, e->text + at, e->len - at);
}

static const char *
newline(const struct edit *e)
{
	const char *nl = e->len > 0 ? memchr(e->text, '\n', e->len) : NULL;

	return nl != NULL && nl > e->text && nl[-1] == '\r' ? "\r\n" : "\n";
}

/* JSON's strings, and lists of them, are TOML's as well. */
static char *
value_text(const json_t *value)
{
	char *text = json_dumps(value, JSON_ENCODE_ANY);

	if (text == NULL)
		out_of_memory();
	return text;
}

static void
add_name(struct buf *out, const char *name)
{
	json_t *s = json_string(name);
	char *quoted = value_text(s);
	size_t n = strspn(name,
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	    "0123456789_-");

	buf_adds(out, n > 0 && name[n] == '\0' ? name : quoted);
	free(quoted);
	json_decref(s);
}

static void
add_pair(struct buf *out, const char *key, const json_t *value, const char *nl)
{
	char *text = value_text(value);

	add_name(out, key);
	buf_addf(out, " = %s%s", text, nl);
	free(text);
}

/* --- checking -------------------------------------------------------------
 */

/* The next part from "*i" on that has nothing to do with the table. */
static const struct toml_part *
next_other(const struct toml_scan *s, size_t *i, const char *const *table)
{
	while (*i < s->count && below(&s->parts[*i], table) >= 0)
		(*i)++;
	return *i < s->count ? &s->parts[(*i)++] : NULL;
}

/* Is all the rest as it was? */
static bool
others_stayed(const struct edit *e, const struct toml_scan *s, const char *text)
{
	const struct toml_part *a, *b;
	size_t i = 0, k = 0;

	for (;;) {
		a = next_other(&e->scan, &i, e->table);
		b = next_other(s, &k, e->table);
		if (a == NULL || b == NULL)
			return a == b;
		if (a->kind != b->kind || !json_equal(a->path, b->path) ||
		    a->value_end - a->value != b->value_end - b->value ||
		    memcmp(e->text + a->value, text + b->value,
		        a->value_end - a->value) != 0)
			return false;
	}
}

/* Has the table these values now, once each?  NULL: is it gone? */
static bool
table_is(const struct toml_scan *s, const char *text, const char *const *table,
    const json_t *values)
{
	const char *key;
	size_t i, seen;
	json_t *v;
	char *want;

	if (values == NULL) {
		for (i = 0; i < s->count; i++) {
			if (below(&s->parts[i], table) >= 0)
				return false;
		}
		return true;
	}
	json_object_foreach ((json_t *)(uintptr_t)values, key, v) {
		want = value_text(v);
		for (i = seen = 0; i < s->count; i++) {
			const struct toml_part *p = &s->parts[i];

			if (is_key(p, table, key) &&
			    p->value_end - p->value == strlen(want) &&
			    memcmp(text + p->value, want, strlen(want)) == 0)
				seen++;
		}
		free(want);
		if (seen != 1)
			return false;
	}
	return true;
}

static int
finish(struct edit *e, const json_t *values, struct buf *out, struct err *err)
{
	struct toml_scan after = { 0 };
	struct err why;
	struct buf made;
	int rc = 0;

	buf_init(&made, SIZE_MAX);
	apply(e, &made);
	if (toml_scan(&after, made.data, made.len, &why) == -1 ||
	    !others_stayed(e, &after, made.data) ||
	    !table_is(&after, made.data, e->table, values))
		rc = by_hand(err);
	else
		buf_add(out, made.data, made.len);
	toml_scan_free(&after);
	buf_free(&made);
	return rc;
}

/* --- setting --------------------------------------------------------------
 */

/* A new table at the end, after an empty line. */
static int
append_table(struct edit *e, const json_t *values)
{
	const char *nl = newline(e), *key, *const * name;
	struct buf b;
	json_t *v;

	buf_init(&b, SIZE_MAX);
	if (e->len > 0 && e->text[e->len - 1] != '\n')
		buf_adds(&b, nl);
	if (e->len > 0)
		buf_adds(&b, nl);
	buf_addc(&b, '[');
	for (name = e->table; *name != NULL; name++) {
		if (name != e->table)
			buf_addc(&b, '.');
		add_name(&b, *name);
	}
	buf_addf(&b, "]%s", nl);
	json_object_foreach ((json_t *)(uintptr_t)values, key, v) {
		add_pair(&b, key, v, nl);
	}
	change(e, e->len, e->len, buf_take(&b));
	return 0;
}

/* One key of a table that is there. */
static int
set_key(struct edit *e, const struct toml_part *header, const char *key,
    const json_t *value, struct err *err)
{
	const char *nl = newline(e);
	struct buf b;
	size_t i;

	for (i = 0; i < e->scan.count; i++) {
		const struct toml_part *p = &e->scan.parts[i];

		if (!is_key(p, e->table, key))
			continue;
		change(e, p->value, p->value_end, value_text(value));
		return 0;
	}
	if (header == NULL)
		return by_hand(err);
	buf_init(&b, SIZE_MAX);
	if (e->text[header->end - 1] != '\n')
		buf_adds(&b, nl);
	add_pair(&b, key, value, nl);
	change(e, header->end, header->end, buf_take(&b));
	return 0;
}

static int
set_keys(struct edit *e, const struct toml_part *header, const json_t *values,
    struct err *err)
{
	const char *key;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)values, key, v) {
		if (set_key(e, header, key, v, err) == -1)
			return -1;
	}
	return 0;
}

int
toml_set(struct buf *out, const char *text, size_t len,
    const char *const *table, const json_t *values, struct err *err)
{
	const struct toml_part *header = NULL;
	bool there = false;
	struct edit e;
	size_t i;
	int rc = edit_init(&e, text, len, table, err);

	for (i = 0; rc == 0 && i < e.scan.count; i++) {
		const struct toml_part *p = &e.scan.parts[i];

		if (p->kind == TOML_TABLE && below(p, table) == 0)
			header = p;
		there = there || below(p, table) >= 0;
		if (in_the_way(p, table))
			rc = by_hand(err);
	}
	if (rc == 0)
		rc = there ? set_keys(&e, header, values, err)
		           : append_table(&e, values);
	if (rc == 0)
		rc = finish(&e, values, out, err);
	edit_free(&e);
	return rc;
}

/* --- removing -------------------------------------------------------------
 */

/* The line before "at", if it is empty: where it begins; else "at". */
static size_t
empty_line_before(const struct edit *e, size_t at)
{
	size_t i = at;

	if (i == 0 || e->text[i - 1] != '\n')
		return at;
	i--;
	if (i > 0 && e->text[i - 1] == '\r')
		i--;
	return i > 0 && e->text[i - 1] == '\n' ? i : at;
}

static bool
empty_line_at(const struct edit *e, size_t at)
{
	return at == e->len || e->text[at] == '\n' ||
	    (e->text[at] == '\r' && e->len - at > 1 && e->text[at + 1] == '\n');
}

/* Lines that go, with the empty one before them if nothing follows directly.
 */
static void
cut_lines(struct edit *e, size_t from, size_t to)
{
	if (empty_line_at(e, to))
		from = empty_line_before(e, from);
	if (e->count > 0 && e->changes[e->count - 1].to > from)
		from = e->changes[e->count - 1].to;
	change(e, from, to, NULL);
}

int
toml_remove(struct buf *out, const char *text, size_t len,
    const char *const *table, struct err *err)
{
	bool inside = false; /* below a header that goes */
	size_t i, from = 0, to = 0;
	struct edit e;
	int rc = edit_init(&e, text, len, table, err);

	for (i = 0; rc == 0 && i < e.scan.count; i++) {
		const struct toml_part *p = &e.scan.parts[i];
		bool ours = below(p, table) >= 0;

		if (p->kind == TOML_INNER)
			continue;
		if (inside && ours) {
			to = p->end;
			continue;
		}
		if (inside)
			cut_lines(&e, from, to);
		inside = ours && p->kind != TOML_PAIR;
		from = p->start;
		to = p->end;
		if (ours && !inside)
			cut_lines(&e, from, to);
	}
	if (inside)
		cut_lines(&e, from, to);
	if (rc == 0)
		rc = finish(&e, NULL, out, err);
	edit_free(&e);
	return rc;
}

int
toml_has(const char *text, size_t len, const char *const *table, bool *has,
    struct err *err)
{
	struct edit e;
	size_t i;
	int rc = edit_init(&e, text, len, table, err);

	*has = false;
	for (i = 0; i < e.scan.count; i++)
		*has = *has || below(&e.scan.parts[i], table) >= 0;
	edit_free(&e);
	return rc;
}
