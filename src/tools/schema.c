/*
 * JSON Schema from the tables of a tool.  Kept small: every byte of it is
 * read by a model in every session.
 */
#include <stdlib.h>

#include "tools/arg.h"

static json_t *
typed(const char *type)
{
	json_t *o = json_object();

	json_object_set_new(o, "type", json_string(type));
	return o;
}

static json_t *
list_of(json_t *items)
{
	json_t *o = typed("array");

	json_object_set_new(o, "items", items);
	return o;
}

static json_t *
map_of(json_t *values)
{
	json_t *o = typed("object");

	json_object_set_new(o, "additionalProperties", values);
	return o;
}

static json_t *
ranged(const struct arg *a, const char *type)
{
	json_t *o = typed(type);

	if (a->min == 0 && a->max == 0)
		return o;
	json_object_set_new(o, "minimum", json_integer(a->min));
	if (a->max != INT64_MAX)
		json_object_set_new(o, "maximum", json_integer(a->max));
	return o;
}

static json_t *
choices(const struct arg *a)
{
	json_t *o = typed("string");
	json_t *list = json_array();
	const char *const *c;

	for (c = a->choices; *c != NULL; c++)
		json_array_append_new(list, json_string(*c));
	json_object_set_new(o, "enum", list);
	return o;
}

static json_t *
arg_shape(const struct arg *a)
{
	switch (a->type) {
	case ARG_INT:
		return ranged(a, "integer");
	case ARG_NUMBER:
		return ranged(a, "number");
	case ARG_BOOL:
		return typed("boolean");
	case ARG_ENUM:
		return choices(a);
	case ARG_STRINGS:
		return list_of(typed("string"));
	case ARG_MAP:
		return map_of(typed("string"));
	case ARG_OBJECT:
		return args_schema(a->fields, LIST_ALL);
	case ARG_JSON:
		return typed("object");
	case ARG_STRING:
	case ARG_END:
		break;
	}
	return typed("string");
}

json_t *
arg_default(const struct arg *a)
{
	if (a->required || a->unsaid)
		return NULL;
	switch (a->type) {
	case ARG_STRING:
	case ARG_ENUM:
		return a->dflt_str != NULL ? json_string(a->dflt_str) : NULL;
	case ARG_INT:
		return json_integer(a->dflt);
	case ARG_NUMBER:
		return json_real(a->dflt_num);
	case ARG_BOOL:
		return json_boolean(a->dflt != 0);
	case ARG_STRINGS:
	case ARG_MAP:
	case ARG_OBJECT:
	case ARG_JSON:
	case ARG_END:
		break;
	}
	return NULL;
}

static bool
listed(bool advanced, bool cluster, unsigned listing)
{
	if (listing & LIST_ALL)
		return true;
	return !advanced && (!cluster || listing & LIST_CLUSTER);
}

/* An object schema; "required" is left out when nothing is. */
static json_t *
object_schema(json_t *properties, json_t *required)
{
	json_t *o = typed("object");

	json_object_set_new(o, "properties", properties);
	if (json_array_size(required) > 0)
		json_object_set(o, "required", required);
	json_decref(required);
	return o;
}

json_t *
args_schema(const struct arg *args, unsigned listing)
{
	json_t *properties = json_object();
	json_t *required = json_array();
	const struct arg *a;

	for (a = args; a != NULL && a->type != ARG_END; a++) {
		json_t *o, *dflt;

		if (!listed(a->advanced, a->cluster, listing))
			continue;
		o = arg_shape(a);
		dflt = arg_default(a);
		json_object_set_new(o, "description", json_string(a->help));
		if (dflt != NULL)
			json_object_set_new(o, "default", dflt);
		json_object_set_new(properties, a->name, o);
		if (a->required)
			json_array_append_new(required, json_string(a->name));
	}
	return object_schema(properties, required);
}

/* "anyOf" rather than a list of types: more clients understand it. */
static json_t *
either(json_t *a, json_t *b)
{
	json_t *o = json_object();
	json_t *any = json_array();

	json_array_append_new(any, a);
	json_array_append_new(any, b);
	json_object_set_new(o, "anyOf", any);
	return o;
}

static json_t *
out_shape(const struct out *f, unsigned listing)
{
	switch (f->type) {
	case OUT_INT:
		return typed("integer");
	case OUT_NUMBER:
		return typed("number");
	case OUT_BOOL:
		return typed("boolean");
	case OUT_OBJECT:
		return f->fields != NULL ? outs_schema(f->fields, listing)
		                         : typed("object");
	case OUT_OBJECTS:
		return list_of(outs_schema(f->fields, listing));
	case OUT_STRINGS:
		return list_of(typed("string"));
	case OUT_INTS:
		return list_of(typed("integer"));
	case OUT_BOOL_OR_STRING:
		return either(typed("boolean"), typed("string"));
	case OUT_STRING:
	case OUT_END:
		break;
	}
	return typed("string");
}

/* Without descriptions, which are for the manual: clients check results by
 * this and show it to nobody, and the list of tools has to stay small. */
json_t *
outs_schema(const struct out *outs, unsigned listing)
{
	json_t *properties = json_object();
	json_t *required = json_array();
	const struct out *f;

	for (f = outs; f != NULL && f->type != OUT_END; f++) {
		json_t *o;

		if (!listed(false, f->cluster, listing))
			continue;
		o = out_shape(f, listing);
		if (f->nullable)
			o = either(o, typed("null"));
		json_object_set_new(properties, f->name, o);
		if (f->always)
			json_array_append_new(required, json_string(f->name));
	}
	return object_schema(properties, required);
}
