/* Editing JSON as text. */
#include "config/jsonc.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "config/jsoncscan.h"

json_t *
jsonc_decode(const char *text, size_t len, struct err *err)
{
	struct jsonc_doc d;
	json_t *value = NULL;

	if (jsonc_doc_init(&d, text, len, "{}", err) == 0)
		value = json_incref(d.value);
	jsonc_doc_free(&d);
	return value;
}

/* --- form ------------------------------------------------------------------
 */

static size_t
line_start(const struct jsonc_doc *d, size_t i)
{
	while (i > 0 && d->text.data[i - 1] != '\n')
		i--;
	return i;
}

/* How many blanks the line of "i" begins with. */
static size_t
indent_len(const struct jsonc_doc *d, size_t i)
{
	return strspn(d->text.data + line_start(d, i), " \t");
}

/* Does nothing but white space stand before it on its line? */
static bool
first_on_line(const struct jsonc_doc *d, size_t i)
{
	return line_start(d, i) + indent_len(d, i) >= i;
}

static const char *
newline(const struct jsonc_doc *d)
{
	const char *nl = strchr(d->text.data, '\n');

	return nl != NULL && nl > d->text.data && nl[-1] == '\r' ? "\r\n"
	                                                         : "\n";
}

/* What one step of indentation is in this text: as its first line has it that
 * is indented. */
static char *
indent_unit(const struct jsonc_doc *d)
{
	const char *line = d->text.data;
	size_t n;

	for (; line != NULL; line = strchr(line, '\n')) {
		line += *line == '\n';
		n = strspn(line, " \t");
		if (n > 0 && strchr("\"[{", line[n]) != NULL && line[n] != '\0')
			return xstrndup(line,
			    line[0] == '\t' ? 1
			        : n < 8     ? n
			                    : 8);
	}
	return xstrdup("  ");
}

/* The indentation of what is in the container at "open". */
static char *
inner_indent(const struct jsonc_doc *d, size_t open)
{
	size_t at = open + 1;
	struct jsonc_item it;
	char *unit, *whole;

	if (jsonc_next(d, open, &at, &it) && first_on_line(d, it.start))
		return xstrndup(d->text.data + line_start(d, it.start),
		    indent_len(d, it.start));
	unit = indent_unit(d);
	whole = xasprintf("%.*s%s", (int)indent_len(d, open),
	    d->text.data + line_start(d, open), unit);
	free(unit);
	return whole;
}

/* A value on lines of its own, behind "indent". */
static void
add_value(struct buf *out, const struct jsonc_doc *d, const json_t *value,
    const char *indent)
{
	char *dump = json_dumps(value,
	    JSON_INDENT(1) | JSON_ENCODE_ANY | JSON_SHORT_REALS);
	char *unit = indent_unit(d), *at = dump, *line;
	size_t n;

	if (dump == NULL)
		out_of_memory();
	while ((line = strsep(&at, "\n")) != NULL) {
		if (line != dump)
			buf_addf(out, "%s%s", newline(d), indent);
		for (n = strspn(line, " "); n > 0; n--, line++)
			buf_adds(out, unit);
		buf_adds(out, line);
	}
	free(unit);
	free(dump);
}

static void
add_short(struct buf *out, const json_t *value)
{
	char *dump = json_dumps(value, JSON_ENCODE_ANY | JSON_SHORT_REALS);

	if (dump == NULL)
		out_of_memory();
	buf_adds(out, dump);
	free(dump);
}

static void
add_key(struct buf *out, const char *key)
{
	json_t *s;

	if (key == NULL)
		return;
	s = json_string(key);
	add_short(out, s);
	buf_adds(out, ": ");
	json_decref(s);
}

/* --- changing --------------------------------------------------------------
 */

static void
add_text(struct buf *out, const struct jsonc_doc *d, size_t from, size_t to)
{
	buf_add(out, d->text.data + from, to - from);
}

/* On the line of the last item, as in {"a": 1}. */
static void
insert_short(struct buf *out, const struct jsonc_doc *d, size_t last_end,
    const char *comma, const char *key, const json_t *value)
{
	size_t at = comma == NULL ? last_end : (size_t)(comma - d->bare) + 1;

	add_text(out, d, 0, at);
	buf_adds(out, comma == NULL ? ", " : " ");
	add_key(out, key);
	add_short(out, value);
	buf_adds(out, comma == NULL ? "" : ",");
	add_text(out, d, at, d->text.len);
}

/* On a line of its own, before the closing bracket. */
static void
insert_line(struct buf *out, const struct jsonc_doc *d, size_t open,
    size_t last_end, size_t close, const struct buf *item, const char *indent)
{
	bool own_line = first_on_line(d, close);
	size_t at = own_line ? line_start(d, close) : close;

	while (!own_line && at > last_end &&
	    strchr(" \t", d->text.data[at - 1]) != NULL)
		at--;
	add_text(out, d, last_end, at);
	if (!own_line)
		buf_adds(out, newline(d));
	buf_adds(out, indent);
	buf_add(out, item->data, item->len);
	buf_adds(out, newline(d));
	if (!own_line)
		add_text(out, d, line_start(d, open),
		    line_start(d, open) + indent_len(d, open));
	add_text(out, d, own_line ? at : close, d->text.len);
}

/* At the end of the container at "open". */
static void
insert(struct buf *out, const struct jsonc_doc *d, size_t open, const char *key,
    const json_t *value)
{
	size_t at = open + 1, last_end = at;
	const char *comma; /* behind the last one, if there is one */
	struct jsonc_item it;
	struct buf item;
	bool empty = true;
	char *indent;

	while (jsonc_next(d, open, &at, &it)) {
		last_end = it.end;
		empty = false;
	}
	comma = memchr(d->bare + last_end, ',', at - last_end);
	if (!empty && memchr(d->text.data + open, '\n', at - open) == NULL) {
		insert_short(out, d, last_end, comma, key, value);
		return;
	}
	add_text(out, d, 0, last_end);
	if (!empty && comma == NULL)
		buf_addc(out, ',');
	indent = inner_indent(d, open);
	buf_init(&item, SIZE_MAX);
	add_key(&item, key);
	add_value(&item, d, value, indent);
	if (comma != NULL)
		buf_addc(&item, ',');
	insert_line(out, d, open, last_end, at, &item, indent);
	buf_free(&item);
	free(indent);
}

static void
replace(struct buf *out, const struct jsonc_doc *d, const struct jsonc_item *it,
    const json_t *value)
{
	char *indent = xstrndup(d->text.data + line_start(d, it->start),
	    indent_len(d, it->start));

	add_text(out, d, 0, it->value);
	if (first_on_line(d, it->start))
		add_value(out, d, value, indent);
	else
		add_short(out, value);
	add_text(out, d, it->end, d->text.len);
	free(indent);
}

/* An item that another one follows, with the comma behind it. */
static void
cut_with_next(struct buf *out, const struct jsonc_doc *d,
    const struct jsonc_item *it, size_t comma)
{
	const char *t = d->text.data;
	size_t from = it->start, to = comma + 1, rest;

	if (!jsonc_blank(t + it->end, comma - it->end)) {
		/* A comment stands in between, and stays. */
		add_text(out, d, 0, from);
		add_text(out, d, it->end, comma);
		add_text(out, d, to, d->text.len);
		return;
	}
	rest = to + strspn(t + to, " \t\r");
	if (first_on_line(d, from) && t[rest] == '\n') {
		from = line_start(d, from);
		to = rest + 1;
	} else if (t[rest] == ']' || t[rest] == '}') {
		while (strchr(" \t", t[from - 1]) != NULL)
			from--;
	} else if (t[rest] != '\n') {
		to = rest;
	}
	add_text(out, d, 0, from);
	add_text(out, d, to, d->text.len);
}

/* The last item, or the only one. */
static void
cut_last(struct buf *out, const struct jsonc_doc *d,
    const struct jsonc_item *it)
{
	const char *t = d->text.data;
	size_t before = it->start, from = it->start, to = it->end, rest;

	while (jsonc_space(d->bare[before - 1]))
		before--;
	rest = to + strspn(t + to, " \t\r");
	if (first_on_line(d, from) && t[rest] == '\n') {
		from = line_start(d, from);
		to = rest + 1;
	} else {
		while (from > before && strchr(" \t", t[from - 1]) != NULL)
			from--;
	}
	if (d->bare[before - 1] == ',') {
		add_text(out, d, 0, before - 1);
		add_text(out, d, before < from ? before : from, from);
	} else {
		add_text(out, d, 0, from);
	}
	add_text(out, d, to, d->text.len);
}

static void
cut(struct buf *out, const struct jsonc_doc *d, const struct jsonc_item *it)
{
	size_t next = it->end;

	while (jsonc_space(d->bare[next]))
		next++;
	if (d->bare[next] == ',')
		cut_with_next(out, d, it, next);
	else
		cut_last(out, d, it);
}

/* --- the whole of a change ------------------------------------------------
 */

/* What the text says, behind a path. */
static json_t *
value_at(json_t *root, const char *const *path)
{
	for (; *path != NULL && root != NULL; path++)
		root = json_object_get(root, *path);
	return root;
}

/* Does the new text say what it should?  Takes the document apart. */
static int
finish(struct jsonc_doc *d, struct buf *made, struct buf *out, struct err *err)
{
	json_t *now =
	    made->full ? NULL : jsonc_decode(made->data, made->len, err);
	int rc = 0;

	if (now == NULL || !json_equal(now, d->value))
		rc = err_set(err, ERR_INVALID,
		    "it is written in a way that cannot be changed here; edit "
		    "it by hand");
	else
		buf_add(out, made->data, made->len);
	json_decref(now);
	buf_free(made);
	jsonc_doc_free(d);
	return rc;
}

/* {"b": {"c": value}} for what is left of a path, less its first name. */
static json_t *
wrap(const char *const *path, const json_t *value)
{
	json_t *v = json_deep_copy(value), *outer;
	size_t n = 0;

	while (path[n] != NULL)
		n++;
	for (; n > 0; n--) {
		outer = json_object();
		json_object_set_new(outer, path[n - 1], v);
		v = outer;
	}
	return v;
}

/* The same in what the document says. */
static void
set_in(json_t *root, const char *const *path, json_t *value)
{
	json_t *inner;

	for (; path[1] != NULL; path++) {
		inner = json_object_get(root, path[0]);
		if (inner == NULL)
			json_object_set_new(root, path[0],
			    inner = json_object());
		root = inner;
	}
	json_object_set_new(root, path[0], value);
}

/* Take the member out of what the document says. */
static void
remove_in(json_t *root, const char *const *path)
{
	for (; path[1] != NULL; path++)
		root = json_object_get(root, path[0]);
	json_object_del(root, path[0]);
}

/* Give a member its value; NULL: remove it. */
static int
change_member(struct buf *out, const char *text, size_t len,
    const char *const *path, const json_t *value, struct err *err)
{
	const char *const *left = path;
	struct jsonc_item found;
	struct jsonc_doc d;
	struct buf made;
	json_t *inner;

	if (jsonc_doc_init(&d, text, len, "{}", err) == -1 ||
	    jsonc_follow(&d, &left, &found, err) == -1) {
		jsonc_doc_free(&d);
		return -1;
	}
	buf_init(&made, SIZE_MAX);
	if (*left == NULL && value != NULL) {
		replace(&made, &d, &found, value);
	} else if (*left == NULL) {
		cut(&made, &d, &found);
		remove_in(d.value, path);
	} else if (value != NULL) {
		inner = wrap(left + 1, value);
		insert(&made, &d, found.value, *left, inner);
		json_decref(inner);
	} else {
		add_text(&made, &d, 0, d.text.len);
	}
	if (value != NULL)
		set_in(d.value, path, json_deep_copy(value));
	return finish(&d, &made, out, err);
}

int
jsonc_set(struct buf *out, const char *text, size_t len,
    const char *const *path, const json_t *value, struct err *err)
{
	return change_member(out, text, len, path, value, err);
}

int
jsonc_remove(struct buf *out, const char *text, size_t len,
    const char *const *path, struct err *err)
{
	return change_member(out, text, len, path, NULL, err);
}

/* The list at the path; both what it says and where it is. */
static json_t *
find_list(struct jsonc_doc *d, const char *const *path,
    struct jsonc_item *found, struct err *err)
{
	const char *const *left = path;
	json_t *list = value_at(d->value, path);

	if (jsonc_follow(d, &left, found, err) == -1)
		return NULL;
	if (*left == NULL && json_is_array(list))
		return list;
	err_set(err, ERR_INVALID, "there is no list %s%s in it",
	    path[0] != NULL ? "named " : "", path[0] != NULL ? path[0] : "");
	return NULL;
}

int
jsonc_append(struct buf *out, const char *text, size_t len,
    const char *const *path, const json_t *value, struct err *err)
{
	struct jsonc_item found;
	struct buf made;
	json_t *list;
	struct jsonc_doc d;

	if (jsonc_doc_init(&d, text, len, "[]", err) == -1 ||
	    (list = find_list(&d, path, &found, err)) == NULL) {
		jsonc_doc_free(&d);
		return -1;
	}
	buf_init(&made, SIZE_MAX);
	insert(&made, &d, found.value, NULL, value);
	json_array_append_new(list, json_deep_copy(value));
	return finish(&d, &made, out, err);
}

int
jsonc_remove_item(struct buf *out, const char *text, size_t len,
    const char *const *path, size_t index, struct err *err)
{
	struct jsonc_item found, it;
	struct buf made;
	json_t *list;
	struct jsonc_doc d;
	size_t at, i;

	if (jsonc_doc_init(&d, text, len, "[]", err) == -1 ||
	    (list = find_list(&d, path, &found, err)) == NULL) {
		jsonc_doc_free(&d);
		return -1;
	}
	if (index >= json_array_size(list)) {
		jsonc_doc_free(&d);
		return err_set(err, ERR_NOT_FOUND,
		    "the list has no item number %zu", index + 1);
	}
	at = found.value + 1;
	for (i = 0; i <= index; i++)
		jsonc_next(&d, found.value, &at, &it);
	buf_init(&made, SIZE_MAX);
	cut(&made, &d, &it);
	json_array_remove(list, index);
	return finish(&d, &made, out, err);
}
