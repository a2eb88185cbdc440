/* Finding, describing and filling prompts. */
#include "tools/prompt.h"

#include <string.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/str.h"
#include "base/utf8.h"

const struct prompt *
prompt_find(const struct prompt *table, const char *name)
{
	const struct prompt *p;

	for (p = table; p->name != NULL; p++) {
		if (strcmp(p->name, name) == 0)
			return p;
	}
	return NULL;
}

static const struct prompt_arg *
find_arg(const struct prompt *p, const char *name, size_t len)
{
	const struct prompt_arg *a;

	for (a = p->args; a->name != NULL; a++) {
		if (strlen(a->name) == len && memcmp(a->name, name, len) == 0)
			return a;
	}
	return NULL;
}

const struct prompt_arg *
prompt_arg_find(const struct prompt *p, const char *name)
{
	return find_arg(p, name, strlen(name));
}

json_t *
prompt_json(const struct prompt *p)
{
	json_t *o = json_object(), *args = json_array();
	const struct prompt_arg *a;

	for (a = p->args; a->name != NULL; a++) {
		json_t *arg = json_object();

		json_object_set_new(arg, "name", json_string(a->name));
		json_object_set_new(arg, "description", json_string(a->help));
		json_object_set_new(arg, "required",
		    json_boolean(a->absent == NULL));
		json_array_append_new(args, arg);
	}
	json_object_set_new(o, "name", json_string(p->name));
	json_object_set_new(o, "title", json_string(p->title));
	json_object_set_new(o, "description", json_string(p->description));
	json_object_set_new(o, "arguments", args);
	return o;
}

/* What stands for an argument, or NULL. */
static const char *
value_of(const struct prompt_arg *a, const json_t *given, struct err *err)
{
	const json_t *v = json_object_get(given, a->name);
	const char *text = decode_text(v);

	if (v != NULL && !json_is_null(v) && text == NULL) {
		err_set(err, ERR_INVALID, "argument %s must be a string",
		    a->name);
		return NULL;
	}
	if (text != NULL && strlen(text) > PROMPT_ARG_MAX) {
		err_set(err, ERR_LIMIT, "argument %s is longer than %d bytes",
		    a->name, PROMPT_ARG_MAX);
		return NULL;
	}
	if (!str_blank(text))
		return text;
	if (a->absent == NULL)
		err_set(err, ERR_INVALID, "argument %s is missing: %s", a->name,
		    a->help);
	return a->absent;
}

/* All that are needed are there, and all are of the right kind. */
static int
check(const struct prompt *p, const json_t *given, struct err *err)
{
	const struct prompt_arg *a;

	for (a = p->args; a->name != NULL; a++) {
		if (value_of(a, given, err) == NULL)
			return -1;
	}
	return 0;
}

json_t *
prompt_fill(const struct prompt *p, const json_t *given, struct err *err)
{
	const struct prompt_arg *a;
	const char *at = p->text;
	struct buf out;
	json_t *text;
	size_t len;

	if (check(p, given, err) == -1)
		return NULL;
	buf_init(&out, SIZE_MAX);
	while (*at != '\0') {
		len = strcspn(at, "{");
		buf_add(&out, at, len);
		at += len;
		if (*at == '\0')
			break;
		len = strcspn(at, "}");
		a = at[len] == '}' ? find_arg(p, at + 1, len - 1) : NULL;
		if (a == NULL) {
			buf_addc(&out, *at++);
			continue;
		}
		buf_adds(&out, value_of(a, given, err));
		at += len + 1;
	}
	text = utf8_json(out.data, out.len);
	buf_free(&out);
	return text;
}
