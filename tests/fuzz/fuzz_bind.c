/*
 * Any arguments are bound to what their table says, or refused with a
 * message that is text and holds no secret; a name with a slip in it is always
 * refused.
 *
 * The first byte chooses where the rest, as JSON, goes: as the arguments, or
 * as the value of one of them, as it is or as JSON text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "every.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Put in place of every string that a secret argument holds. */
#define SECRET "hunter2-hunter2"

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* Make each string inside "v" the secret.  Takes over "v". */
static json_t *
with_secrets(json_t *v)
{
	const char *key;
	json_t *item;
	size_t i;

	if (json_is_string(v)) {
		json_decref(v);
		return json_string(SECRET);
	}
	json_object_foreach (v, key, item) {
		json_object_set_new(v, key, with_secrets(json_incref(item)));
	}
	for (i = 0; i < json_array_size(v); i++) {
		item = json_incref(json_array_get(v, i));
		json_array_set_new(v, i, with_secrets(item));
	}
	return v;
}

static void hide(const struct arg *args, json_t *given);

/* What is meant to be an object with secret fields.  Takes over "v". */
static json_t *
hide_object(const struct arg *fields, json_t *v)
{
	json_t *o = NULL;
	char *text;

	if (json_is_object(v)) {
		hide(fields, v);
		return v;
	}
	if (json_is_string(v))
		o = json_loadb(json_string_value(v), json_string_length(v), 0,
		    NULL);
	if (!json_is_object(o)) {
		/* Anything in it may be meant for a secret field. */
		json_decref(o);
		return with_secrets(v);
	}
	hide(fields, o);
	text = json_dumps(o, 0);
	json_decref(v);
	v = json_string(text);
	free(text);
	json_decref(o);
	return v;
}

/* Make every string that a secret argument holds the secret. */
static void
hide(const struct arg *args, json_t *given)
{
	const struct arg *a;
	json_t *v;

	for (a = args; a->type != ARG_END; a++) {
		v = json_incref(json_object_get(given, a->name));
		if (v == NULL)
			continue;
		if (a->secret)
			v = with_secrets(v);
		else if (a->type == ARG_OBJECT)
			v = hide_object(a->fields, v);
		json_object_set_new(given, a->name, v);
	}
}

/* Is the secret there already, where it would be shown rightly? */
static bool
has_secret(const json_t *given)
{
	char *text = json_dumps(given, 0);
	bool has = text == NULL || strstr(text, SECRET) != NULL;

	free(text);
	return has;
}

static void
check_text(const char *s)
{
	must(s == NULL || utf8_valid(s, strlen(s)));
}

static void
check_strings(const json_t *list)
{
	const json_t *v;
	size_t i;

	must(list == NULL || json_is_array(list));
	json_array_foreach (list, i, v) {
		must(json_is_string(v));
		must(strlen(json_string_value(v)) == json_string_length(v));
	}
}

static void
check_map(const json_t *map)
{
	const char *key;
	json_t *v;

	must(map == NULL || json_is_object(map));
	json_object_foreach ((json_t *)(uintptr_t)map, key, v) {
		must(json_is_string(v));
		must(strlen(json_string_value(v)) == json_string_length(v));
	}
}

/* Is there a name that stands for another? */
static bool
has_slip(const json_t *given)
{
	const char *name;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)given, name, v) {
		if (!json_is_null(v) && args_find(every_args, name) == NULL &&
		    args_nearest(every_args, name) != NULL)
			return true;
	}
	return false;
}

static void
check_bound(const struct every *v, const json_t *given)
{
	const json_t *slurm = json_object_get(given, "slurm");

	must(!has_slip(given));
	check_text(v->text);
	check_text(v->greeting);
	must(v->greeting != NULL);
	must(v->port >= 1 && v->port <= 65535);
	must(v->size >= 10);
	must(v->ratio >= 0 && v->ratio <= 1);
	must(v->any == v->any && v->any - v->any == 0); /* finite */
	must(v->mode == 0 || v->mode == 1);
	must(v->level >= -1 && v->level <= 2);
	check_strings(v->tags);
	check_map(v->env);
	must(v->extra_json == NULL || json_is_object(v->extra_json));
	must(v->pin >= 0 && v->pin <= 9999);
	check_strings(v->tokens);
	must(
	    v->slurm.partition != NULL || slurm == NULL || json_is_null(slurm));
	must(v->slurm.nodes >= 1 && v->slurm.nodes <= 4);
	must(v->slurm.hours >= 0 && v->slurm.hours <= 48);
	must(v->slurm.qos >= 0 && v->slurm.qos <= 2);
	check_strings(v->slurm.modules);
}

static void
check_refused(const struct err *err, const json_t *given)
{
	size_t len = strlen(err->msg);

	must(err->code == ERR_INVALID);
	must(str_starts(err->msg, "argument '") ||
	    str_starts(err->msg, "unknown argument '"));
	must(!has_slip(given) || str_starts(err->msg, "unknown argument '"));
	must(len < ERR_MSG_SIZE / 2);
	must(utf8_valid(err->msg, len));
	must(strstr(err->msg, SECRET) == NULL);
}

/* The JSON as the arguments, or as one of them. */
static json_t *
arguments(unsigned where, const char *json, size_t len)
{
	json_t *v =
	    json_loadb(json, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
	size_t count = sizeof(every_args) / sizeof(every_args[0]) - 1;
	json_t *given;
	char *text;

	if (where == 0 || v == NULL)
		return v;
	if (where / count % 2 == 1) {
		text = json_dumps(v, JSON_ENCODE_ANY);
		json_decref(v);
		v = json_string(text);
		free(text);
	}
	given = json_object();
	json_object_set_new(given, every_args[where % count].name, v);
	return given;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	struct bound bound;
	json_t *given;

	if (size < 1)
		return 0;
	given = arguments(data[0], (const char *)data + 1, size - 1);
	if (!json_is_object(given) || has_secret(given)) {
		json_decref(given);
		return 0;
	}
	hide(every_args, given);
	if (args_bind(every_args, sizeof(struct every), given, &bound, &err) ==
	    0)
		check_bound(bound.values, given);
	else
		check_refused(&err, given);
	bound_free(&bound);
	json_decref(given);
	return 0;
}
