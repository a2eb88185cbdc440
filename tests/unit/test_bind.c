#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "every.h"
#include "test.h"

/* More than a refusal needs, less than a client would mind. */
#define SHORT 300

/* The depth and the number of values a message may have; JSON text inside
 * one must not go beyond. */
#define DEPTH_MAX 100
#define VALUES_MAX 100000

/* What call threads have. */
#define STACK_SIZE ((size_t)512 * 1024)

/* What is being bound, kept for the assertions and freed after the test. */
static json_t *given;
static struct bound bound;
static struct err err;

static int
forget(void **state)
{
	(void)state;
	bound_free(&bound);
	json_decref(given);
	given = NULL;
	return 0;
}

static int
try_bind(const struct arg *args, size_t size, const char *json)
{
	json_error_t je;

	forget(NULL);
	given = json_loads(json, JSON_ALLOW_NUL, &je);
	if (given == NULL)
		fail_msg("the test's JSON is wrong: %s: %.100s", je.text, json);
	err = (struct err)ERR_INIT;
	return args_bind(args, size, given, &bound, &err);
}

static const struct every *
accepted(const char *json)
{
	if (try_bind(every_args, sizeof(struct every), json) == -1)
		fail_msg("%.100s: %s", json, err.msg);
	assert_int_equal(err.code, ERR_NONE);
	return bound.values;
}

static const char *
refused_by(const struct arg *args, size_t size, const char *json)
{
	if (try_bind(args, size, json) == 0)
		fail_msg("accepted: %.100s", json);
	assert_int_equal(err.code, ERR_INVALID);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	assert_true(strlen(err.msg) < SHORT);
	return err.msg;
}

static const char *
refused(const char *json)
{
	return refused_by(every_args, sizeof(struct every), json);
}

static void
says(const char *message, const char *part)
{
	if (strstr(message, part) == NULL)
		fail_msg("\"%s\" does not say: %s", message, part);
}

static void
says_not(const char *message, const char *part)
{
	if (strstr(message, part) != NULL)
		fail_msg("\"%s\" says: %s", message, part);
}

/* "before", then "unit" n times, then "after"; the caller frees it. */
static char *
repeated(const char *before, const char *unit, size_t n, const char *after)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	buf_adds(&b, before);
	while (n-- > 0)
		buf_adds(&b, unit);
	buf_adds(&b, after);
	return buf_take(&b);
}

static void
absent_arguments_have_their_defaults(void **state)
{
	const struct every *v = accepted("{}");

	(void)state;
	assert_null(v->text);
	assert_string_equal(v->greeting, "hello");
	assert_int_equal(v->count, -7);
	assert_int_equal(v->port, 22);
	assert_int_equal(v->size, 10);
	assert_true(v->ratio == 0.25);
	assert_true(v->any == 0);
	assert_false(v->off);
	assert_true(v->on);
	assert_int_equal(v->mode, 1);
	assert_int_equal(v->level, -1);
	assert_null(v->tags);
	assert_null(v->env);
	assert_null(v->extra_json);
	assert_null(v->passphrase);
	assert_int_equal(v->pin, 0);
	assert_null(v->tokens);
	assert_null(v->slurm.partition);
	assert_int_equal(v->slurm.nodes, 1);
	assert_true(v->slurm.hours == 1.5);
	assert_int_equal(v->slurm.qos, 1);
	assert_true(v->slurm.exclusive);
	assert_null(v->slurm.modules);
}

static void
null_means_absent(void **state)
{
	const struct every *v = accepted(
	    "{\"text\":null,\"greeting\":null,\"count\":null,\"port\":null,"
	    "\"ratio\":null,\"on\":null,\"mode\":null,\"level\":null,"
	    "\"tags\":null,\"env\":null,\"slurm\":null,\"extra_json\":null,"
	    "\"passphrase\":null}");

	(void)state;
	assert_null(v->text);
	assert_string_equal(v->greeting, "hello");
	assert_int_equal(v->count, -7);
	assert_int_equal(v->port, 22);
	assert_true(v->ratio == 0.25);
	assert_true(v->on);
	assert_int_equal(v->mode, 1);
	assert_int_equal(v->level, -1);
	assert_null(v->tags);
	assert_null(v->env);
	assert_int_equal(v->slurm.nodes, 1);
	assert_null(v->extra_json);
}

static void
no_arguments_at_all_are_fine(void **state)
{
	const struct every *v;

	(void)state;
	assert_int_equal(args_bind(every_args, sizeof(struct every), NULL,
	                     &bound, &err),
	    0);
	v = bound.values;
	assert_int_equal(v->port, 22);
	bound_free(&bound);
	assert_int_equal(args_bind(every_args, sizeof(struct every),
	                     json_null(), &bound, &err),
	    0);
	v = bound.values;
	assert_int_equal(v->port, 22);
}

static void
a_tool_without_a_table_takes_anything(void **state)
{
	(void)state;
	assert_int_equal(try_bind(NULL, 0, "{\"a\":1}"), 0);
	assert_non_null(bound.values);
}

static void
unknown_arguments_are_ignored(void **state)
{
	const struct every *v;

	(void)state;
	v = accepted(
	    "{\"nonsense\":[1,{}],\"Post1\":\"x\",\"\":0,\"port\":80}");
	assert_int_equal(v->port, 80);
}

/* A client adds none there. */
static void
unknown_arguments_in_objects_are_refused(void **state)
{
	char *json, *shown;

	(void)state;
	assert_string_equal(
	    refused("{\"slurm\":{\"partition\":\"p\",\"queue\":5}}"),
	    "unknown argument 'slurm.queue'; there are partition, nodes, hours, "
	    "qos, exclusive, password, modules, license. Nothing was done");
	accepted("{\"slurm\":{\"partition\":\"p\",\"queue\":null}}");
	/* However long it is. */
	json = repeated("{\"slurm\":{\"", "\xc3\xa4", 100000, "\":1}}");
	shown = repeated("'slurm.", "\xc3\xa4", 20, "'; there are");
	says(refused(json), shown);
	free(json);
	free(shown);
}

static void
slips_are_refused(void **state)
{
	(void)state;
	assert_string_equal(refused("{\"ext\":\"a\"}"),
	    "unknown argument 'ext'; did you mean 'text'? Nothing was done");
	says(refused("{\"port\":22,\"Port\":22}"), "mean 'port'?");
	says(refused("{\"extra\":{}}"), "mean 'extra_json'?");
	says(refused("{\"extra-json\":{}}"), "mean 'extra_json'?");
	says(refused("{\"psasphrase\":\"geheim\"}"), "mean 'passphrase'?");
	says_not(err.msg, "geheim");
	accepted("{\"porty2\":1,\"piny\":2,\"pi\":3,\"of\":4}");
}

static void
slips_in_objects_are_refused(void **state)
{
	static const char sentence[] = "unknown argument 'slurm.partitoin'; "
	                               "did you mean 'slurm.partition'? "
	                               "Nothing was done";

	(void)state;
	assert_string_equal(refused("{\"slurm\":{\"partitoin\":\"p\"}}"),
	    sentence);
	assert_string_equal(
	    refused("{\"slurm\":\"{\\\"partitoin\\\":\\\"p\\\"}\"}"), sentence);
	/* One of another table is not meant. */
	says(refused("{\"slurm\":{\"partition\":\"p\",\"greetin\":1}}"),
	    "'slurm.greetin'; there are");
}

static void
a_slip_comes_before_what_is_wrong_or_missing(void **state)
{
	(void)state;
	says(refused("{\"port\":\"x\",\"txt\":\"a\"}"), "'txt'");
	says(refused("{\"slurm\":{\"nodes\":0,\"partitions\":\"p\"}}"),
	    "'slurm.partitions'");
}

static void
a_slip_that_is_null_is_absent(void **state)
{
	(void)state;
	accepted("{\"txt\":null,\"slurm\":{\"partition\":\"p\","
	         "\"node\":null}}");
}

static void
what_is_not_known_is_named_beside_what_is_missing(void **state)
{
	struct needed {
		const char *place;
	};
	static const struct arg args[] = {
		{ .name = "place",
		    .offset = offsetof(struct needed, place),
		    .type = ARG_STRING,
		    .required = true,
		    .help = "Where." },
		{ 0 },
	};
	size_t size = sizeof(struct needed);
	char *json, *shown;

	(void)state;
	assert_string_equal(refused_by(args, size, "{\"queue\":\"p\"}"),
	    "argument 'place' is missing; it must be a string: Where. 'queue' "
	    "is not known to this tool");
	says(refused_by(args, size, "{\"a\":1,\"b\":2,\"c\":null}"),
	    " Where. 'a', 'b' are not known to this tool");
	says(refused_by(args, size,
	         "{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5}"),
	    "'a', 'b', 'c' and 2 more are not known");
	says_not(refused("{\"queue\":\"p\",\"slurm\":{}}"), "not known");
	/* However long it is. */
	json = repeated("{\"", "\xc3\xa4", 100000, "\":1}");
	shown = repeated("Where. '", "\xc3\xa4", 20, "' is not known");
	says(refused_by(args, size, json), shown);
	free(json);
	free(shown);
}

static void
strings_are_taken_as_they_are(void **state)
{
	const struct every *v;

	(void)state;
	v = accepted("{\"text\":\"a b\\n\\u00e4\",\"greeting\":\"\"}");
	assert_string_equal(v->text, "a b\n\xc3\xa4");
	assert_string_equal(v->greeting, "");
	v = accepted("{\"text\":\" null \"}");
	assert_string_equal(v->text, " null ");
}

static void
strings_are_borrowed_from_what_was_given(void **state)
{
	const struct every *v = accepted("{\"text\":\"abc\"}");

	(void)state;
	assert_ptr_equal(v->text,
	    json_string_value(json_object_get(given, "text")));
}

static void
what_is_no_string_is_refused_where_one_is_wanted(void **state)
{
	static const char *const values[] = { "5", "true", "1.5", "[]", "{}",
		"[\"a\"]" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"text\":%s}", values[i]);
		says(refused(json), "'text'");
		says(err.msg, "a string");
		says(err.msg, values[i]);
	}
}

static void
nul_is_refused_in_every_kind_of_string(void **state)
{
	static const char *const given_nul[] = {
		"{\"text\":\"a\\u0000b\"}",
		"{\"text\":\"\\u0000\"}",
		"{\"count\":\"5\\u0000\"}",
		"{\"count\":\"5\\u0000 and more\"}",
		"{\"ratio\":\"0.5\\u0000x\"}",
		"{\"on\":\"yes\\u0000x\"}",
		"{\"mode\":\"fast\\u0000x\"}",
		"{\"tags\":[\"a\",\"b\\u0000c\"]}",
		"{\"tags\":\"[\\\"a\\\"]\\u0000\"}",
		"{\"tags\":\"[\\\"a\\\\u0000\\\"]\"}",
		"{\"env\":{\"A\":\"b\\u0000c\"}}",
		"{\"extra_json\":\"\\u0000{}\"}",
		"{\"extra_json\":\"{}\\u0000\"}",
		"{\"slurm\":{\"partition\":\"p\\u0000q\"}}",
		"{\"slurm\":\"{\\\"partition\\\":\\\"p\\\"}\\u0000\"}",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(given_nul) / sizeof(given_nul[0]); i++)
		says(refused(given_nul[i]), "argument '");
	says(refused("{\"text\":\"a\\u0000b\"}"), "NUL");
	says(refused("{\"slurm\":{\"partition\":\"p\\u0000\"}}"),
	    "'slurm.partition'");
}

static void
integers_come_in_many_forms(void **state)
{
	static const struct {
		const char *json;
		int64_t value;
	} cases[] = {
		{ "5", 5 },
		{ "-5", -5 },
		{ "0", 0 },
		{ "5.0", 5 },
		{ "-0.0", 0 },
		{ "1e3", 1000 },
		{ "\"5\"", 5 },
		{ "\" 5 \"", 5 },
		{ "\"\\t-5\\n\"", -5 },
		{ "\"007\"", 7 },
		{ "9007199254740991.0", 9007199254740991 },
		{ "-9007199254740991.0", -9007199254740991 },
		{ "9007199254740993", 9007199254740993 },
		{ "9223372036854775807", INT64_MAX },
		{ "-9223372036854775808", INT64_MIN },
		{ "\"9223372036854775807\"", INT64_MAX },
		{ "\"-9223372036854775808\"", INT64_MIN },
	};
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(json, sizeof(json), "{\"count\":%s}", cases[i].json);
		assert_true(accepted(json)->count == cases[i].value);
	}
}

static void
what_is_no_integer_is_refused(void **state)
{
	static const char *const values[] = { "5.5", "\"5.5\"", "\"five\"",
		"\"\"", "\" \"", "\"5 6\"", "\"5x\"", "\"0x10\"", "true", "[]",
		"[5]", "{}", "1e300", "-1e300", "1e18", "9223372036854775808.0",
		"-9223372036854775809.0", "\"9223372036854775808\"",
		"\"-9223372036854775809\"", "\"99999999999999999999999999\"",
		"\"inf\"", "\"nan\"", "\"1e300\"" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"count\":%s}", values[i]);
		says(refused(json), "'count'");
		says(err.msg, "an integer");
	}
	says(refused("{\"count\":\"five\"}"), "not \"five\"");
}

static void
integers_stay_in_their_range(void **state)
{
	(void)state;
	assert_int_equal(accepted("{\"port\":1}")->port, 1);
	assert_int_equal(accepted("{\"port\":65535}")->port, 65535);
	assert_int_equal(accepted("{\"port\":65535.0}")->port, 65535);
	says(refused("{\"port\":0}"), "'port'");
	says(err.msg, "from 1 to 65535");
	says(err.msg, "not 0");
	says(refused("{\"port\":65536}"), "not 65536");
	says(refused("{\"port\":\"65536\"}"), "not \"65536\"");
	says(refused("{\"port\":65536.0}"), "65536");
	says(refused("{\"port\":-9223372036854775808}"),
	    "-9223372036854775808");

	assert_true(
	    accepted("{\"size\":9223372036854775807}")->size == INT64_MAX);
	says(refused("{\"size\":9}"), "of at least 10");
	says_not(err.msg, "9223372036854775807");
}

static void
numbers_come_in_many_forms(void **state)
{
	(void)state;
	assert_true(accepted("{\"any\":5}")->any == 5);
	assert_true(accepted("{\"any\":-1.5e10}")->any == -1.5e10);
	assert_true(accepted("{\"any\":\"0.5\"}")->any == 0.5);
	assert_true(accepted("{\"any\":\" -3 \"}")->any == -3);
	assert_true(accepted("{\"any\":\"1e3\"}")->any == 1000);
	assert_true(accepted("{\"any\":1e300}")->any == 1e300);
	assert_true(accepted("{\"any\":9223372036854775807}")->any ==
	    9223372036854775807.0);
	assert_true(accepted("{\"ratio\":0}")->ratio == 0);
	assert_true(accepted("{\"ratio\":1.0}")->ratio == 1);
}

static void
what_is_no_number_is_refused(void **state)
{
	static const char *const values[] = { "\"half\"", "\"\"", "\"1,5\"",
		"\"1e999\"", "\"inf\"", "\"-infinity\"", "\"nan\"", "\"0x1p3\"",
		"\"1 2\"", "true", "[1]", "{}" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"any\":%s}", values[i]);
		says(refused(json), "'any'");
		says(err.msg, "a number");
		says(err.msg, values[i]);
	}
}

static void
numbers_stay_in_their_range(void **state)
{
	(void)state;
	says(refused("{\"ratio\":1.0000001}"), "from 0 to 1");
	says(refused("{\"ratio\":-0.1}"), "'ratio'");
	says(refused("{\"ratio\":\"2\"}"), "not \"2\"");
	says(refused("{\"ratio\":1e300}"), "'ratio'");
}

static void
booleans_come_in_many_forms(void **state)
{
	static const char *const yes[] = { "true", "1", "\"true\"", "\"TRUE\"",
		"\"True\"", "\"yes\"", "\"Yes\"", "\"1\"", "\"on\"", "\"ON\"" };
	static const char *const no[] = { "false", "0", "\"false\"",
		"\"FALSE\"", "\"no\"", "\"No\"", "\"0\"", "\"off\"",
		"\"Off\"" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		snprintf(json, sizeof(json), "{\"off\":%s}", yes[i]);
		assert_true(accepted(json)->off);
	}
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		snprintf(json, sizeof(json), "{\"on\":%s}", no[i]);
		assert_false(accepted(json)->on);
	}
}

static void
what_is_no_boolean_is_refused(void **state)
{
	static const char *const values[] = { "2", "-1", "0.5", "\"maybe\"",
		"\"\"", "\"2\"", "[]", "{}", "[true]" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"on\":%s}", values[i]);
		says(refused(json), "'on'");
		says(err.msg, "true or false");
		says(err.msg, values[i]);
	}
}

static void
a_choice_is_its_place_in_the_list(void **state)
{
	(void)state;
	assert_int_equal(accepted("{\"mode\":\"fast\"}")->mode, 0);
	assert_int_equal(accepted("{\"mode\":\"slow\"}")->mode, 1);
	assert_int_equal(accepted("{\"level\":\"high\"}")->level, 2);
}

static void
other_choices_are_refused_with_the_list(void **state)
{
	static const char *const values[] = { "\"fastest\"", "\"\"", "0", "1",
		"true", "[\"fast\"]", "{}" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"mode\":%s}", values[i]);
		says(refused(json), "'mode'");
		says(err.msg, "one of \"fast\", \"slow\"");
		says(err.msg, values[i]);
	}
}

static void
same_json(const json_t *v, const char *text)
{
	json_t *expected = json_loads(text, 0, NULL);

	assert_non_null(expected);
	assert_true(json_equal(v, expected));
	json_decref(expected);
}

static void
lists_may_come_as_json_text(void **state)
{
	(void)state;
	same_json(accepted("{\"tags\":[\"a\",\"b\"]}")->tags, "[\"a\",\"b\"]");
	same_json(accepted("{\"tags\":[]}")->tags, "[]");
	same_json(accepted("{\"tags\":\"[\\\"a\\\",\\\"b\\\"]\"}")->tags,
	    "[\"a\",\"b\"]");
	same_json(accepted("{\"tags\":\" [ ] \"}")->tags, "[]");
}

static void
a_string_is_a_list_of_one(void **state)
{
	(void)state;
	same_json(accepted("{\"tags\":\"*.c\"}")->tags, "[\"*.c\"]");
	same_json(accepted("{\"tags\":\"a,b c\"}")->tags, "[\"a,b c\"]");
	same_json(accepted("{\"tags\":\"{}\"}")->tags, "[\"{}\"]");
	same_json(accepted("{\"tags\":\"5\"}")->tags, "[\"5\"]");
	same_json(accepted("{\"tags\":\"a[1]\"}")->tags, "[\"a[1]\"]");
	same_json(accepted("{\"slurm\":{\"partition\":\"p\","
	                   "\"modules\":\"m\"}}")
	              ->slurm.modules,
	    "[\"m\"]");
	assert_null(accepted("{\"tags\":\" \"}")->tags);
}

static void
several_values_may_come_as_json_text_at_once(void **state)
{
	const struct every *v = accepted(
	    "{\"tags\":\"[\\\"a\\\"]\",\"env\":\"{\\\"B\\\":\\\"c\\\"}\","
	    "\"slurm\":\"{\\\"partition\\\":\\\"p\\\","
	    "\\\"modules\\\":\\\"[\\\\\\\"m\\\\\\\"]\\\"}\","
	    "\"extra_json\":\"{\\\"d\\\":[1]}\"}");

	(void)state;
	same_json(v->tags, "[\"a\"]");
	same_json(v->env, "{\"B\":\"c\"}");
	assert_string_equal(v->slurm.partition, "p");
	same_json(v->slurm.modules, "[\"m\"]");
	same_json(v->extra_json, "{\"d\":[1]}");
}

static void
what_is_no_list_of_strings_is_refused(void **state)
{
	static const char *const values[] = { "\"[1]\"", "\"[\"", "\" [a]*.c\"",
		"[1]", "[null]", "[\"a\",[]]", "{}", "{\"0\":\"a\"}", "5",
		"true", "\"[],[]\"" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"tags\":%s}", values[i]);
		says(refused(json), "'tags'");
		says(err.msg, "a list of strings");
		says(err.msg, values[i]);
	}
}

static void
maps_hold_strings(void **state)
{
	static const char *const values[] = { "{\"A\":1}", "{\"A\":null}",
		"{\"A\":{}}", "[]", "[\"A\"]", "\"A=1\"", "\"{\"", "\"[]\"",
		"5" };
	char json[100];
	size_t i;

	(void)state;
	same_json(accepted("{\"env\":{\"A\":\"1\",\"B\":\"\"}}")->env,
	    "{\"B\":\"\",\"A\":\"1\"}");
	same_json(accepted("{\"env\":{}}")->env, "{}");
	same_json(accepted("{\"env\":\"{\\\"A\\\":\\\"1\\\"}\"}")->env,
	    "{\"A\":\"1\"}");
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"env\":%s}", values[i]);
		says(refused(json), "'env'");
		says(err.msg, "an object whose values are strings");
		says(err.msg, values[i]);
	}
}

static void
json_may_be_an_object_or_its_text(void **state)
{
	(void)state;
	same_json(accepted("{\"extra_json\":{\"a\":[1,null]}}")->extra_json,
	    "{\"a\":[1,null]}");
	same_json(accepted("{\"extra_json\":\"{\\\"a\\\":1}\"}")->extra_json,
	    "{\"a\":1}");
	same_json(accepted("{\"extra_json\":{}}")->extra_json, "{}");
}

static void
empty_json_text_is_absent(void **state)
{
	(void)state;
	assert_null(accepted("{\"extra_json\":\"\"}")->extra_json);
	assert_null(accepted("{\"extra_json\":\" \\n\"}")->extra_json);
}

static void
json_that_is_no_object_is_refused(void **state)
{
	static const char *const values[] = { "\"nope\"", "\"{\"", "\"[1]\"",
		"[1]", "5", "true", "\"null\"", "\"{} {}\"" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"extra_json\":%s}", values[i]);
		says(refused(json), "'extra_json'");
		says(err.msg, "an object");
		says(err.msg, values[i]);
	}
}

static void
objects_fill_their_fields(void **state)
{
	const struct every *v = accepted(
	    "{\"slurm\":{\"partition\":\"gpu\",\"nodes\":\"4\",\"hours\":12,"
	    "\"qos\":\"high\",\"exclusive\":\"off\",\"password\":\"x\","
	    "\"modules\":[\"cuda\"],\"license\":{\"key\":\"k\"}}}");

	(void)state;
	assert_string_equal(v->slurm.partition, "gpu");
	assert_int_equal(v->slurm.nodes, 4);
	assert_true(v->slurm.hours == 12);
	assert_int_equal(v->slurm.qos, 2);
	assert_false(v->slurm.exclusive);
	assert_string_equal(v->slurm.password, "x");
	same_json(v->slurm.modules, "[\"cuda\"]");
	assert_string_equal(v->slurm.license.key, "k");
}

static void
fields_of_an_object_have_defaults_too(void **state)
{
	const struct every *v;

	(void)state;
	v = accepted("{\"slurm\":{\"partition\":\"p\",\"nodes\":null}}");
	assert_int_equal(v->slurm.nodes, 1);
	assert_true(v->slurm.hours == 1.5);
	assert_int_equal(v->slurm.qos, 1);
	assert_true(v->slurm.exclusive);
}

static void
errors_name_the_field_inside_the_object(void **state)
{
	(void)state;
	says(refused("{\"slurm\":{\"partition\":5}}"), "'slurm.partition'");
	says(refused("{\"slurm\":{\"partition\":\"p\",\"nodes\":5}}"),
	    "'slurm.nodes' must be an integer from 1 to 4, not 5");
	says(refused("{\"slurm\":\"{\\\"partition\\\":5}\"}"),
	    "'slurm.partition'");
	says(refused("{\"slurm\":{\"partition\":\"p\",\"license\":5}}"),
	    "'slurm.license'");
	says(refused("{\"slurm\":{\"partition\":\"p\","
	             "\"license\":{\"key\":5}}}"),
	    "'slurm.license.key'");
}

static void
a_required_field_is_required_once_its_object_is_there(void **state)
{
	(void)state;
	says(refused("{\"slurm\":{}}"), "'slurm.partition'");
	says(err.msg, "missing");
	says(refused("{\"slurm\":{\"partition\":null}}"), "'slurm.partition'");
	says(refused("{\"slurm\":\"{}\"}"), "'slurm.partition'");
	accepted("{\"slurm\":null}");
}

static void
what_is_no_object_is_refused_where_one_is_wanted(void **state)
{
	static const char *const values[] = { "\"gpu\"", "5", "true" };
	char json[100];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		snprintf(json, sizeof(json), "{\"slurm\":%s}", values[i]);
		says(refused(json), "'slurm'");
		says(err.msg, "an object");
	}
}

struct needs {
	const char *text;
	int64_t count;
	int mode;
	const json_t *list;
	const json_t *what_json;
	struct every_slurm slurm;
};

#define NEEDS(field)                                             \
	.name = #field, .offset = offsetof(struct needs, field), \
	.required = true

static void
a_missing_argument_is_named_and_explained(void **state)
{
	static const struct arg text[] = {
		{ NEEDS(text), .type = ARG_STRING, .help = "What to say." },
		{ 0 },
	};
	static const struct arg count[] = {
		{ NEEDS(count), .type = ARG_INT, .min = 1, .max = 9,
		    .help = "How often." },
		{ 0 },
	};
	static const struct arg mode[] = {
		{ NEEDS(mode), .type = ARG_ENUM, .choices = every_modes,
		    .help = "How fast." },
		{ 0 },
	};
	size_t size = sizeof(struct needs);

	(void)state;
	says(refused_by(text, size, "{}"), "'text' is missing");
	says(err.msg, "a string");
	says(err.msg, "What to say.");
	says(refused_by(text, size, "{\"text\":null}"), "'text' is missing");
	assert_int_equal(try_bind(text, size, "{\"text\":\"\"}"), 0);
	says(refused_by(count, size, "{\"number\":1}"), "'count' is missing");
	says(err.msg, "an integer from 1 to 9");
	says(err.msg, "'number' is not known to this tool");
	says(refused_by(mode, size, "{}"), "one of \"fast\", \"slow\"");
}

static void
required_lists_and_objects_are_missed_too(void **state)
{
	static const struct arg list[] = {
		{ NEEDS(list), .type = ARG_STRINGS, .help = "Some." },
		{ 0 },
	};
	static const struct arg json[] = {
		{ NEEDS(what_json), .type = ARG_JSON, .help = "Some." },
		{ 0 },
	};
	static const struct arg object[] = {
		{ NEEDS(slurm), .type = ARG_OBJECT, .fields = every_slurm,
		    .help = "Some." },
		{ 0 },
	};
	size_t size = sizeof(struct needs);

	(void)state;
	says(refused_by(list, size, "{}"), "'list' is missing");
	says(refused_by(json, size, "{}"), "'what_json' is missing");
	says(refused_by(object, size, "{}"), "'slurm' is missing");
	assert_int_equal(try_bind(list, size, "{\"list\":[]}"), 0);
}

/* Blank text means absent, so a tool that requires it never sees NULL. */
static void
required_json_may_not_be_blank(void **state)
{
	static const struct arg json[] = {
		{ NEEDS(what_json), .type = ARG_JSON, .help = "Some." },
		{ 0 },
	};

	(void)state;
	says(refused_by(json, sizeof(struct needs), "{\"what_json\":\"\"}"),
	    "'what_json'");
	says(refused_by(json, sizeof(struct needs), "{\"what_json\":\" \"}"),
	    "'what_json'");
}

static void
long_values_are_shortened_between_characters(void **state)
{
	static const char *const units[] = { "x", "\xc3\xa4", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80", "\\u0001", "\\\"" };
	static const char *const pads[] = { "", "a", "ab", "abc" };
	char before[40];
	char *json;
	size_t i, j;

	(void)state;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		for (j = 0; j < 4; j++) {
			snprintf(before, sizeof(before), "{\"port\":\"%s",
			    pads[j]);
			json = repeated(before, units[i], 1000, "\"}");
			says(refused(json), "...");
			says(err.msg, "'port'");
			says(err.msg, "from 1 to 65535");
			assert_true(strlen(err.msg) < 200);
			free(json);
		}
	}
}

static void
a_value_of_megabytes_makes_a_short_message(void **state)
{
	char *json;

	(void)state;
	json = repeated("{\"tags\":[", "\"abc\",", 200000, "5]}");
	says(refused(json), "[\"abc\",\"abc\",");
	assert_true(strlen(err.msg) < 200);
	free(json);
	json = repeated("{\"count\":\"", "9", 2000000, "\"}");
	says(refused(json), "\"9999999999");
	assert_true(strlen(err.msg) < 200);
	free(json);
}

static void
many_choices_still_make_a_whole_message(void **state)
{
	static const char *const many[] = { "alpha-alpha-alpha-alpha",
		"beta-beta-beta-beta-beta", "gamma-gamma-gamma-gamma",
		"delta-delta-delta-delta", "epsilon-epsilon-epsilon",
		"zeta-zeta-zeta-zeta-zeta", "eta-eta-eta-eta-eta-eta",
		"theta-theta-theta-theta", "iota-iota-iota-iota-iota",
		"kappa-kappa-kappa-kappa", "lambda-lambda-lambda", NULL };
	struct arg args[] = {
		{ .name = "mode",
		    .type = ARG_ENUM,
		    .choices = many,
		    .help = "One of many." },
		{ 0 },
	};

	(void)state;
	assert_int_equal(try_bind(args, sizeof(int), "{\"mode\":\"omega\"}"),
	    -1);
	says(err.msg, "'mode' must be one of \"alpha");
	says(err.msg, ", not \"omega\"");
	assert_int_equal(try_bind(args, sizeof(int), "{\"mode\":\"iota\"}"),
	    -1);
	assert_true(strlen(err.msg) < ERR_MSG_SIZE - 1);
}

static void
a_secret_is_never_repeated(void **state)
{
	static const char *const leaks[] = {
		"{\"passphrase\":[\"hunter2\"]}",
		"{\"passphrase\":{\"a\":\"hunter2\"}}",
		"{\"passphrase\":\"hunter2\\u0000\"}",
		"{\"pin\":\"hunter2\"}",
		"{\"tokens\":\"[hunter2\"}",
		"{\"tokens\":[\"hunter2\",5]}",
		"{\"tokens\":{\"hunter2\":\"hunter2\"}}",
		"{\"slurm\":{\"partition\":\"p\",\"password\":[\"hunter2\"]}}",
		("{\"slurm\":{\"partition\":\"p\",\"license\":"
		 "{\"key\":[\"hunter2\"]}}}"),
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++)
		says_not(refused(leaks[i]), "hunter2");
	says(refused("{\"pin\":123456}"), "'pin'");
	says(err.msg, "from 0 to 9999");
	says_not(err.msg, "123456");
	says(refused("{\"slurm\":{\"partition\":\"p\",\"password\":5}}"),
	    "'slurm.password'");
}

/* An object that is refused as a whole may hold one of its secret fields. */
static void
a_secret_inside_a_broken_object_is_never_repeated(void **state)
{
	static const char *const leaks[] = {
		"{\"slurm\":\"{\\\"password\\\":\\\"hunter2\\\"\"}",
		"{\"slurm\":[{\"password\":\"hunter2\"}]}",
		"{\"slurm\":\"password=hunter2\"}",
		"{\"slurm\":\"[\\\"hunter2\\\"]\"}",
		"{\"slurm\":{\"partition\":\"p\",\"license\":[\"hunter2\"]}}",
		"{\"slurm\":{\"partition\":\"p\",\"license\":\"hunter2\"}}",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(leaks) / sizeof(leaks[0]); i++)
		says_not(refused(leaks[i]), "hunter2");
}

/* A message of ten megabytes must not become a hundred times that. */
static void
json_text_may_not_hold_more_values_than_a_message(void **state)
{
	char *json;

	(void)state;
	json = repeated("{\"extra_json\":\"{\\\"a\\\":[", "[],", 2 * VALUES_MAX,
	    "0]}\"}");
	says(refused(json), "'extra_json'");
	free(json);
	json = repeated("{\"tags\":\"[", "\\\"\\\",", 2 * VALUES_MAX,
	    "\\\"\\\"]\"}");
	says(refused(json), "'tags'");
	free(json);
	json = repeated("{\"tags\":\"[", "\\\"\\\",", VALUES_MAX / 2,
	    "\\\"\\\"]\"}");
	assert_int_equal(json_array_size(accepted(json)->tags),
	    VALUES_MAX / 2 + 1);
	free(json);
}

static char *
nested(const char *name, size_t depth)
{
	char *opened = repeated("", "[", depth, "");
	char *json = repeated("", "]", depth, "");
	char *whole =
	    xasprintf("{\"%s\":\"{\\\"a\\\":%s%s}\"}", name, opened, json);

	free(opened);
	free(json);
	return whole;
}

static void
json_text_may_not_be_nested_deeper_than_a_message(void **state)
{
	char *json;

	(void)state;
	json = nested("extra_json", 50);
	assert_non_null(accepted(json)->extra_json);
	free(json);
	json = nested("extra_json", DEPTH_MAX + 1);
	says(refused(json), "'extra_json'");
	free(json);
}

/* Binds each of the jobs' texts; what comes out does not matter. */
static void *
bind_in_thread(void *arg)
{
	static const char *const names[] = { "tags", "env", "slurm",
		"extra_json" };
	const size_t *depth = arg;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *json = nested(names[i], *depth);
		json_t *args = json_loads(json, 0, NULL);
		struct bound b;
		struct err e;

		args_bind(every_args, sizeof(struct every), args, &b, &e);
		bound_free(&b);
		json_decref(args);
		free(json);
	}
	return NULL;
}

static void
nesting_bombs_fit_the_stack_of_a_call(void **state)
{
	static size_t depths[] = { 100, 2040, 2047, 2048, 2049, 100000 };
	pthread_attr_t attr;
	pthread_t thread;
	size_t i;

	(void)state;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, STACK_SIZE), 0);
	for (i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		assert_int_equal(pthread_create(&thread, &attr, bind_in_thread,
		                     &depths[i]),
		    0);
		pthread_join(thread, NULL);
	}
	pthread_attr_destroy(&attr);
}

static void
the_first_wrong_argument_of_the_table_is_reported(void **state)
{
	(void)state;
	says(refused("{\"mode\":\"x\",\"port\":0,\"text\":5}"), "'text'");
}

static void
freeing_twice_or_after_a_failure_is_fine(void **state)
{
	(void)state;
	refused("{\"tags\":\"[\\\"a\\\"]\",\"env\":5}");
	bound_free(&bound);
	bound_free(&bound);
	accepted("{\"tags\":\"[\\\"a\\\"]\"}");
	bound_free(&bound);
	bound_free(&bound);
}

static void
what_is_allowed_is_told_in_a_few_words(void **state)
{
	static const struct {
		const char *name;
		const char *allowed;
	} cases[] = {
		{ "text", "a string" },
		{ "count", "an integer" },
		{ "port", "an integer from 1 to 65535" },
		{ "size", "an integer of at least 10" },
		{ "ratio", "a number from 0 to 1" },
		{ "on", "true or false" },
		{ "mode", "one of \"fast\", \"slow\"" },
		{ "tags", "a list of strings" },
		{ "env", "an object whose values are strings" },
		{ "slurm", "an object" },
		{ "extra_json", "an object" },
	};
	char out[256];
	size_t i, found = 0;
	const struct arg *a;

	(void)state;
	for (a = every_args; a->type != ARG_END; a++) {
		for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			if (strcmp(cases[i].name, a->name) != 0)
				continue;
			arg_allowed(a, out, sizeof(out));
			assert_string_equal(out, cases[i].allowed);
			found++;
		}
	}
	assert_int_equal(found, sizeof(cases) / sizeof(cases[0]));
	arg_allowed(every_args, out, 4);
	assert_string_equal(out, "a s");
}

#define TEST(f) cmocka_unit_test_teardown(f, forget)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(absent_arguments_have_their_defaults),
		TEST(null_means_absent),
		TEST(no_arguments_at_all_are_fine),
		TEST(a_tool_without_a_table_takes_anything),
		TEST(unknown_arguments_are_ignored),
		TEST(unknown_arguments_in_objects_are_refused),
		TEST(slips_are_refused),
		TEST(slips_in_objects_are_refused),
		TEST(a_slip_comes_before_what_is_wrong_or_missing),
		TEST(a_slip_that_is_null_is_absent),
		TEST(what_is_not_known_is_named_beside_what_is_missing),
		TEST(strings_are_taken_as_they_are),
		TEST(strings_are_borrowed_from_what_was_given),
		TEST(what_is_no_string_is_refused_where_one_is_wanted),
		TEST(nul_is_refused_in_every_kind_of_string),
		TEST(integers_come_in_many_forms),
		TEST(what_is_no_integer_is_refused),
		TEST(integers_stay_in_their_range),
		TEST(numbers_come_in_many_forms),
		TEST(what_is_no_number_is_refused),
		TEST(numbers_stay_in_their_range),
		TEST(booleans_come_in_many_forms),
		TEST(what_is_no_boolean_is_refused),
		TEST(a_choice_is_its_place_in_the_list),
		TEST(other_choices_are_refused_with_the_list),
		TEST(lists_may_come_as_json_text),
		TEST(a_string_is_a_list_of_one),
		TEST(several_values_may_come_as_json_text_at_once),
		TEST(what_is_no_list_of_strings_is_refused),
		TEST(maps_hold_strings),
		TEST(json_may_be_an_object_or_its_text),
		TEST(empty_json_text_is_absent),
		TEST(json_that_is_no_object_is_refused),
		TEST(objects_fill_their_fields),
		TEST(fields_of_an_object_have_defaults_too),
		TEST(errors_name_the_field_inside_the_object),
		TEST(a_required_field_is_required_once_its_object_is_there),
		TEST(what_is_no_object_is_refused_where_one_is_wanted),
		TEST(a_missing_argument_is_named_and_explained),
		TEST(required_lists_and_objects_are_missed_too),
		TEST(required_json_may_not_be_blank),
		TEST(long_values_are_shortened_between_characters),
		TEST(a_value_of_megabytes_makes_a_short_message),
		TEST(many_choices_still_make_a_whole_message),
		TEST(a_secret_is_never_repeated),
		TEST(a_secret_inside_a_broken_object_is_never_repeated),
		TEST(json_text_may_not_hold_more_values_than_a_message),
		TEST(json_text_may_not_be_nested_deeper_than_a_message),
		TEST(nesting_bombs_fit_the_stack_of_a_call),
		TEST(the_first_wrong_argument_of_the_table_is_reported),
		TEST(freeing_twice_or_after_a_failure_is_fine),
		TEST(what_is_allowed_is_told_in_a_few_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
