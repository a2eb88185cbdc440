/*
 * Binding: from what a client sent to a tool's argument struct.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tools/arg.h"

/* How much of a bad value an error repeats. */
#define SHOWN_MAX 80

/* How much of a name that is not known, and of how many. */
#define NAME_SHOWN_MAX 40
#define NAMES_SHOWN_MAX 3

/* What is being bound: carries the state one level needs of the others. */
struct binding {
	struct bound *bound;
	const struct arg *args;
	const json_t *given;
	const char *prefix; /* "slurm." inside an object, else "" */
	struct err *err;
};

static int bind_table(struct binding *b, char *base);

const struct arg *
args_find(const struct arg *args, const char *name)
{
	const struct arg *a;

	for (a = args; a != NULL && a->type != ARG_END; a++) {
		if (strcmp(a->name, name) == 0)
			return a;
	}
	return NULL;
}

/* What other programs call what we have by another name.  Left out without a
 * word, these make another call of it: on another machine, say. */
static const struct {
	const char *other, *ours;
} names[] = {
	{ "background", "on_timeout" },
	{ "directory", "cwd" },
	{ "host", "sandbox_name" },
	{ "job_name", "session_name" },
	{ "job_name", "tmux_session" },
	{ "machine", "sandbox_name" },
	{ "name", "session_name" },
	{ "name", "tmux_session" },
	{ "run_in_background", "on_timeout" },
	{ "server", "sandbox_name" },
	{ "session_name", "tmux_session" },
	{ "timeout_ms", "timeout" },
	{ "timeout_s", "timeout" },
	{ "timeout_sec", "timeout_s" },
	{ "timeout_seconds", "timeout" },
	{ "timeout_seconds", "timeout_s" },
	{ "workdir", "cwd" },
	{ "working_dir", "cwd" },
	{ "working_directory", "cwd" },
};

static const struct arg *
find_other(const struct arg *args, const char *name)
{
	const struct arg *a = NULL;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]) && a == NULL; i++) {
		if (nearest_same(names[i].other, name))
			a = args_find(args, names[i].ours);
	}
	return a;
}

const char *
args_nearest(const struct arg *args, const char *name)
{
	const struct arg *a = find_other(args, name);
	struct nearest n;

	if (a != NULL)
		return a->name;
	nearest_init(&n, name, NEAREST_SLIP);
	for (a = args; a != NULL && a->type != ARG_END; a++)
		nearest_try(&n, a->name);
	return n.best;
}

static void
choices_text(const struct arg *a, struct buf *out)
{
	const char *const *c;

	buf_adds(out, "one of ");
	for (c = a->choices; *c != NULL; c++) {
		if (c != a->choices)
			buf_adds(out, ", ");
		buf_addf(out, "\"%s\"", *c);
	}
}

static void
range_text(const struct arg *a, const char *noun, struct buf *out)
{
	buf_adds(out, noun);
	if (a->min == 0 && a->max == 0)
		return;
	if (a->max == INT64_MAX)
		buf_addf(out, " of at least %" PRId64, a->min);
	else
		buf_addf(out, " from %" PRId64 " to %" PRId64, a->min, a->max);
}

void
arg_allowed(const struct arg *a, char *out, size_t size)
{
	struct buf b;

	buf_init(&b, size - 1);
	switch (a->type) {
	case ARG_END:
		break;
	case ARG_STRING:
		buf_adds(&b, "a string");
		break;
	case ARG_INT:
		range_text(a, "an integer", &b);
		break;
	case ARG_NUMBER:
		range_text(a, "a number", &b);
		break;
	case ARG_BOOL:
		buf_adds(&b, "true or false");
		break;
	case ARG_ENUM:
		choices_text(a, &b);
		break;
	case ARG_STRINGS:
		buf_adds(&b, "a list of strings");
		break;
	case ARG_MAP:
		buf_adds(&b, "an object whose values are strings");
		break;
	case ARG_OBJECT:
	case ARG_JSON:
		buf_adds(&b, "an object");
		break;
	}
	snprintf(out, size, "%s", b.data);
	buf_free(&b);
}

/* The value as it came, shortened, for an error message. */
static void
show_value(const json_t *v, struct buf *out)
{
	char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT);
	size_t len, cut;

	if (text == NULL) {
		buf_adds(out, "a value that cannot be shown");
		return;
	}
	len = strlen(text);
	cut = utf8_cut(text, len, SHOWN_MAX);
	buf_add(out, text, cut);
	if (cut < len)
		buf_adds(out, "...");
	free(text);
}

/* A secret, or an object with one inside. */
static bool
hides_secret(const struct arg *a)
{
	const struct arg *f;

	for (f = a->fields; f != NULL && f->type != ARG_END; f++) {
		if (hides_secret(f))
			return true;
	}
	return a->secret;
}

/* Always -1: says what the argument must be and what it was. */
static int
refuse(struct binding *b, const struct arg *a, const json_t *v)
{
	char allowed[256];
	struct buf shown;

	arg_allowed(a, allowed, sizeof(allowed));
	buf_init(&shown, 512);
	if (hides_secret(a))
		buf_adds(&shown, "what was given (not shown)");
	else
		show_value(v, &shown);
	err_set(b->err, ERR_INVALID, "argument '%s%s' must be %s, not %s",
	    b->prefix, a->name, allowed, shown.data);
	buf_free(&shown);
	return -1;
}

/* Was it given, and is there no such argument? */
static bool
unknown(const struct binding *b, const char *name, const json_t *v)
{
	return !json_is_null(v) && args_find(b->args, name) == NULL;
}

/* A sentence to follow; one of them may have been meant for what is missing. */
static void
show_unknown(const struct binding *b, struct buf *out)
{
	unsigned count = 0;
	const char *name;
	json_t *v;

	/* jansson's macro wants a pointer that is not const. */
	json_object_foreach ((json_t *)(uintptr_t)b->given, name, v) {
		if (unknown(b, name, v) && count++ < NAMES_SHOWN_MAX)
			buf_addf(out, "%s'%s%.*s'", count > 1 ? ", " : " ",
			    b->prefix,
			    (int)utf8_cut(name, strlen(name), NAME_SHOWN_MAX),
			    name);
	}
	if (count > NAMES_SHOWN_MAX)
		buf_addf(out, " and %u more", count - NAMES_SHOWN_MAX);
	if (count > 0)
		buf_addf(out, " %s not known to this tool",
		    count > 1 ? "are" : "is");
}

static int
missing(struct binding *b, const struct arg *a)
{
	char allowed[256];
	struct buf others;

	arg_allowed(a, allowed, sizeof(allowed));
	buf_init(&others, 512);
	show_unknown(b, &others);
	err_set(b->err, ERR_INVALID,
	    "argument '%s%s' is missing; it must be %s: %s%s", b->prefix,
	    a->name, allowed, a->help, others.data);
	buf_free(&others);
	return -1;
}

/* Not one of those there are. */
static int
no_such(struct binding *b, const char *name)
{
	const struct arg *a = b->args;
	struct buf known;

	buf_init(&known, 512);
	for (; a->type != ARG_END; a++)
		buf_addf(&known, "%s%s", known.len > 0 ? ", " : "", a->name);
	err_set(b->err, ERR_INVALID,
	    "unknown argument '%s%.*s'; there are %s. Nothing was done",
	    b->prefix, (int)utf8_cut(name, strlen(name), NAME_SHOWN_MAX), name,
	    known.data);
	buf_free(&known);
	return -1;
}

/* An argument with a slip in its name is not taken for one that a client adds
 * for itself: the call would go on without it.  Inside an object they add
 * none. */
static int
check_names(struct binding *b)
{
	const char *name, *meant;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)b->given, name, v) {
		if (!unknown(b, name, v))
			continue;
		meant = args_nearest(b->args, name);
		if (meant != NULL)
			return err_set(b->err, ERR_INVALID,
			    "unknown argument '%s%s'; did you mean '%s%s'? "
			    "Nothing was done",
			    b->prefix, name, b->prefix, meant);
		if (b->prefix[0] != '\0')
			return no_such(b, name);
	}
	return 0;
}

static bool
in_range(const struct arg *a, double v)
{
	if (a->min == 0 && a->max == 0)
		return true;
	return v >= (double)a->min && v <= (double)a->max;
}

static int
bind_string(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	const char *s = json_string_value(v);

	if (s == NULL)
		return refuse(b, a, v);
	*(const char **)to = s;
	return 0;
}

/* An integral double that an int64_t can hold. */
static bool
integral(double d)
{
	return d == floor(d) && d >= -9007199254740992.0 &&
	    d <= 9007199254740992.0;
}

static int
bind_int(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	int64_t n;

	if (json_is_integer(v))
		n = json_integer_value(v);
	else if (json_is_real(v) && integral(json_real_value(v)))
		n = (int64_t)json_real_value(v);
	else if (!json_is_string(v) ||
	    str_to_int(json_string_value(v), INT64_MIN, INT64_MAX, &n) == -1)
		return refuse(b, a, v);
	if ((a->min != 0 || a->max != 0) && (n < a->min || n > a->max))
		return refuse(b, a, v);
	*(int64_t *)to = n;
	return 0;
}

static int
bind_number(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	double d;

	if (json_is_number(v))
		d = json_number_value(v);
	else if (!json_is_string(v) ||
	    str_to_num(json_string_value(v), &d) == -1)
		return refuse(b, a, v);
	if (!in_range(a, d))
		return refuse(b, a, v);
	*(double *)to = d;
	return 0;
}

static int
bind_bool(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	bool on;

	if (json_is_boolean(v))
		on = json_is_true(v);
	else if (json_is_integer(v) &&
	    (json_integer_value(v) == 0 || json_integer_value(v) == 1))
		on = json_integer_value(v) == 1;
	else if (!json_is_string(v) ||
	    str_to_bool(json_string_value(v), &on) == -1)
		return refuse(b, a, v);
	*(bool *)to = on;
	return 0;
}

static int
bind_enum(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	int i;

	if (!json_is_string(v))
		return refuse(b, a, v);
	for (i = 0; a->choices[i] != NULL; i++) {
		if (strcmp(a->choices[i], json_string_value(v)) == 0) {
			*(int *)to = i;
			return 0;
		}
	}
	return refuse(b, a, v);
}

/* Keep it as long as the binding. */
static const json_t *
keep(struct binding *b, json_t *v)
{
	if (b->bound->keep == NULL)
		b->bound->keep = json_array();
	json_array_append_new(b->bound->keep, v);
	return v;
}

/*
 * A value that may come as JSON text: the decoded value, kept alive by the
 * binding, or "v" itself if it is no string.  NULL if the text is no JSON.
 */
static const json_t *
decoded(struct binding *b, const json_t *v)
{
	struct err err;
	json_t *d;

	if (!json_is_string(v))
		return v;
	d = decode_json(json_string_value(v), json_string_length(v), &err);
	return d != NULL ? keep(b, d) : NULL;
}

/* A string that is no JSON text of a list is a list of one.  What begins like a
 * list was meant for one. */
static const json_t *
string_list(struct binding *b, const json_t *v)
{
	const char *s = json_string_value(v);
	json_t *one;

	if (s == NULL || s[strspn(s, " \t\r\n")] == '[')
		return decoded(b, v);
	one = json_array();
	json_array_append(one, (json_t *)(uintptr_t)v);
	return keep(b, one);
}

static int
bind_strings(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	const json_t *list;
	const json_t *item;
	size_t i;

	if (json_is_string(v) && str_blank(json_string_value(v)))
		return a->required ? missing(b, a) : 0;
	list = string_list(b, v);
	if (!json_is_array(list))
		return refuse(b, a, v);
	json_array_foreach (list, i, item) {
		if (decode_text(item) == NULL)
			return refuse(b, a, v);
	}
	*(const json_t **)to = list;
	return 0;
}

static int
bind_map(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	const json_t *map = decoded(b, v);
	const json_t *item;
	const char *key;

	if (!json_is_object(map))
		return refuse(b, a, v);
	json_object_foreach ((json_t *)(uintptr_t)map, key, item) {
		if (decode_text(item) == NULL)
			return refuse(b, a, v);
	}
	*(const json_t **)to = map;
	return 0;
}

static int
bind_json(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	const json_t *o;

	if (json_is_string(v) && str_blank(json_string_value(v)))
		return a->required ? missing(b, a) : 0;
	o = decoded(b, v);
	if (!json_is_object(o))
		return refuse(b, a, v);
	*(const json_t **)to = o;
	return 0;
}

static int
bind_object(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	const json_t *o = decoded(b, v);
	struct binding inner = *b;
	char prefix[128];

	if (!json_is_object(o))
		return refuse(b, a, v);
	snprintf(prefix, sizeof(prefix), "%s%s.", b->prefix, a->name);
	inner.prefix = prefix;
	inner.args = a->fields;
	inner.given = o;
	return bind_table(&inner, to);
}

static int
bind_value(struct binding *b, const struct arg *a, const json_t *v, void *to)
{
	if (json_is_string(v) && decode_text(v) == NULL)
		return err_set(b->err, ERR_INVALID,
		    "argument '%s%s' contains a NUL character; take it out",
		    b->prefix, a->name);
	switch (a->type) {
	case ARG_END:
		break;
	case ARG_STRING:
		return bind_string(b, a, v, to);
	case ARG_INT:
		return bind_int(b, a, v, to);
	case ARG_NUMBER:
		return bind_number(b, a, v, to);
	case ARG_BOOL:
		return bind_bool(b, a, v, to);
	case ARG_ENUM:
		return bind_enum(b, a, v, to);
	case ARG_STRINGS:
		return bind_strings(b, a, v, to);
	case ARG_MAP:
		return bind_map(b, a, v, to);
	case ARG_OBJECT:
		return bind_object(b, a, v, to);
	case ARG_JSON:
		return bind_json(b, a, v, to);
	}
	return 0;
}

static int
choice_index(const struct arg *a, const char *name)
{
	int i;

	for (i = 0; name != NULL && a->choices[i] != NULL; i++) {
		if (strcmp(a->choices[i], name) == 0)
			return i;
	}
	return -1;
}

/* The struct starts zeroed, so only what differs from zero is set. */
static void
set_default(const struct arg *a, void *to)
{
	const struct arg *f;

	switch (a->type) {
	case ARG_STRING:
		*(const char **)to = a->dflt_str;
		break;
	case ARG_INT:
		*(int64_t *)to = a->dflt;
		break;
	case ARG_NUMBER:
		*(double *)to = a->dflt_num;
		break;
	case ARG_BOOL:
		*(bool *)to = a->dflt != 0;
		break;
	case ARG_ENUM:
		*(int *)to = choice_index(a, a->dflt_str);
		break;
	case ARG_OBJECT:
		for (f = a->fields; f->type != ARG_END; f++)
			set_default(f, (char *)to + f->offset);
		break;
	case ARG_END:
	case ARG_STRINGS:
	case ARG_MAP:
	case ARG_JSON:
		break;
	}
}

static int
bind_table(struct binding *b, char *base)
{
	const struct arg *a;
	const json_t *v;

	if (check_names(b) == -1)
		return -1;
	for (a = b->args; a->type != ARG_END; a++) {
		void *to = base + a->offset;

		set_default(a, to);
		v = json_object_get(b->given, a->name);
		if (v == NULL || json_is_null(v)) {
			if (a->required)
				return missing(b, a);
			continue;
		}
		if (bind_value(b, a, v, to) == -1)
			return -1;
	}
	return 0;
}

int
args_bind(const struct arg *args, size_t size, const json_t *given,
    struct bound *out, struct err *err)
{
	struct binding b = {
		.bound = out,
		.args = args,
		.given = given,
		.prefix = "",
		.err = err,
	};

	out->keep = NULL;
	out->values = xcalloc(1, size > 0 ? size : 1);
	if (args == NULL)
		return 0;
	return bind_table(&b, out->values);
}

void
bound_free(struct bound *b)
{
	free(b->values);
	json_decref(b->keep);
	b->values = NULL;
	b->keep = NULL;
}
