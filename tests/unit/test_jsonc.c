/* Editing JSON as text: only what was meant changes. */
#include <stdlib.h>
#include <string.h>

#include "config/jsonc.h"
#include "test.h"

static const char *const servers[] = { "mcpServers", "box", NULL };
static const char *const one[] = { "a", NULL };
static const char *const none[] = { NULL };
static const char *const sandboxes[] = { "sandboxes", NULL };

static json_t *
entry(void)
{
	return json_pack("{s:s, s:[s]}", "command", "/bin/x", "args", "serve");
}

static void
sets(const char *text, const char *const *path, json_t *value,
    const char *expected)
{
	struct err err = ERR_INIT;
	struct buf out;

	buf_init(&out, 65536);
	if (jsonc_set(&out, text, strlen(text), path, value, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out.data, expected);
	json_decref(value);
	buf_free(&out);
}

static void
removes(const char *text, const char *const *path, const char *expected)
{
	struct err err = ERR_INIT;
	struct buf out;

	buf_init(&out, 65536);
	if (jsonc_remove(&out, text, strlen(text), path, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void
comments_may_stand_side_by_side(void **state)
{
	(void)state;
	sets("{/* a *//* b */\"a\": 1/**///c\n}", one, json_integer(2),
	    "{/* a *//* b */\"a\": 2/**///c\n}");
	removes("{\"b\": 1 /* x *///* y\n}", one, "{\"b\": 1 /* x *///* y\n}");
}

static void
refuses(const char *text, const char *const *path, const char *why)
{
	struct err err = ERR_INIT;
	json_t *value = entry();
	struct buf out;

	buf_init(&out, 65536);
	assert_int_equal(jsonc_set(&out, text, strlen(text), path, value, &err),
	    -1);
	assert_int_equal(err.code, ERR_INVALID);
	if (strstr(err.msg, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
	assert_int_equal(out.len, 0);
	json_decref(value);
	buf_free(&out);
}

static void
begins_a_text_that_says_nothing(void **state)
{
	(void)state;
	sets("", servers, entry(),
	    "{\n  \"mcpServers\": {\n    \"box\": {\n"
	    "      \"command\": \"/bin/x\",\n      \"args\": [\n"
	    "        \"serve\"\n      ]\n    }\n  }\n}\n");
	sets("// mine", one, json_integer(1), "// mine\n{\n  \"a\": 1\n}\n");
	sets("{}", one, json_integer(1), "{\n  \"a\": 1\n}");
	sets("\xef\xbb\xbf{ }\r\n", one, json_integer(1),
	    "\xef\xbb\xbf{\r\n  \"a\": 1\r\n}\r\n");
}

static void
adds_to_an_object_in_its_own_form(void **state)
{
	(void)state;
	sets("{\n\t\"x\": [1, 2],\n\t\"y\": \"}\"\n}\n", one, json_integer(1),
	    "{\n\t\"x\": [1, 2],\n\t\"y\": \"}\",\n\t\"a\": 1\n}\n");
	sets("{\n    \"x\": {\n        \"y\": 1\n    }\n}", one, entry(),
	    "{\n    \"x\": {\n        \"y\": 1\n    },\n    \"a\": {\n"
	    "        \"command\": \"/bin/x\",\n        \"args\": [\n"
	    "            \"serve\"\n        ]\n    }\n}");
	sets("{\"x\": 1}", one, entry(),
	    "{\"x\": 1, \"a\": {\"command\": \"/bin/x\", \"args\": "
	    "[\"serve\"]}}");
	sets("{\"x\": 1,}", one, json_integer(1), "{\"x\": 1, \"a\": 1,}");
	sets("{ \"x\":\n1 }", one, json_integer(1),
	    "{ \"x\":\n1,\n  \"a\": 1\n}");
}

static void
keeps_comments_where_they_are(void **state)
{
	(void)state;
	sets("{\n  // about x\n  \"x\": 1 // one, not {two}\n  /* end */\n}\n",
	    one, json_integer(2),
	    "{\n  // about x\n  \"x\": 1, // one, not {two}\n  /* end */\n"
	    "  \"a\": 2\n}\n");
	sets("{\n  \"x\": \"// no /* comment\", // with a comma\n}\n", one,
	    json_integer(2),
	    "{\n  \"x\": \"// no /* comment\", // with a comma\n"
	    "  \"a\": 2,\n}\n");
	sets("{ /* empty */ }", one, json_integer(2),
	    "{ /* empty */\n  \"a\": 2\n}");
	sets("{\n  \"a\": /* was */ 1, // old\n  \"b\": 2\n}", one,
	    json_integer(3), "{\n  \"a\": /* was */ 3, // old\n  \"b\": 2\n}");
}

static void
knows_a_name_however_it_is_written(void **state)
{
	(void)state;
	sets("{\"\\u0061\": 1}", one, json_integer(2), "{\"\\u0061\": 2}");
	sets("{\"x\": {\"a\": 1}}", one, json_integer(2),
	    "{\"x\": {\"a\": 1}, \"a\": 2}");
}

static void
removes_a_member_and_its_comma(void **state)
{
	(void)state;
	removes("{\n  \"a\": {\n    \"x\": 1\n  },\n  \"b\": 2\n}\n", one,
	    "{\n  \"b\": 2\n}\n");
	removes("{\n  \"b\": 2, // two\n  \"a\": 1\n}\n", one,
	    "{\n  \"b\": 2 // two\n}\n");
	removes("{\"a\": 1, \"b\": 2}", one, "{\"b\": 2}");
	removes("{\"b\": 2, \"a\": 1}", one, "{\"b\": 2}");
	removes("{\"a\": 1}", one, "{}");
	removes("{\n  \"b\": 2,\n  \"a\": 1,\n}\n", one, "{\n  \"b\": 2,\n}\n");
	removes("{\"a\": 1 /* kept */, \"b\": 2}", one,
	    "{ /* kept */ \"b\": 2}");
	removes("{\n  \"a\": 1, // about a\n  \"b\": 2\n}", one,
	    "{\n  // about a\n  \"b\": 2\n}");
	removes("{\"b\": 2}", one, "{\"b\": 2}");
	removes("{\"mcpServers\": {\"other\": 1}}", servers,
	    "{\"mcpServers\": {\"other\": 1}}");
}

static void
adding_and_removing_leaves_no_trace(void **state)
{
	static const char *const texts[] = {
		"{\n  \"mcpServers\": {\n    \"x\": {} // c\n  }\n}\n",
		"{\"mcpServers\":{\"x\":[{},{}]}}",
		"{\"mcpServers\": {\"x\": 1,},}",
		"{\n  \"mcpServers\": {\n    \"x\": {}, // c\n  },\n}\n",
		"{\r\n\t\"mcpServers\": {\r\n\t\t\"x\": 1\r\n\t}\r\n}\r\n",
		NULL,
	};
	struct err err = ERR_INIT;
	struct buf out, back;
	size_t i;

	(void)state;
	for (i = 0; texts[i] != NULL; i++) {
		json_t *value = entry();

		buf_init(&out, 65536);
		buf_init(&back, 65536);
		assert_int_equal(jsonc_set(&out, texts[i], strlen(texts[i]),
		                     servers, value, &err),
		    0);
		assert_int_equal(jsonc_remove(&back, out.data, out.len, servers,
		                     &err),
		    0);
		assert_string_equal(back.data, texts[i]);
		json_decref(value);
		buf_free(&out);
		buf_free(&back);
	}
}

static void
appends(const char *text, const char *const *path, const char *expected)
{
	struct err err = ERR_INIT;
	json_t *value = json_pack("{s:s}", "host", "h");
	struct buf out;

	buf_init(&out, 65536);
	if (jsonc_append(&out, text, strlen(text), path, value, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out.data, expected);
	json_decref(value);
	buf_free(&out);
}

static void
appends_to_a_list(void **state)
{
	(void)state;
	appends("", none, "[\n  {\n    \"host\": \"h\"\n  }\n]\n");
	appends("[{\"host\": \"a\"}]", none,
	    "[{\"host\": \"a\"}, {\"host\": \"h\"}]");
	appends("[\n  { \"host\": \"a\" }\n]\n", none,
	    "[\n  { \"host\": \"a\" },\n  {\n    \"host\": \"h\"\n  }\n]\n");
	appends("{\"sandboxes\": []}", sandboxes,
	    "{\"sandboxes\": [\n  {\n    \"host\": \"h\"\n  }\n]}");
}

static void
removes_an_item_of_a_list(void **state)
{
	static const char text[] = "[\n  {\"host\": \"a\"},\n  {\"host\": "
	                           "\"b\"},\n  {\"host\": \"c\"}\n]\n";
	struct err err = ERR_INIT;
	struct buf out;

	(void)state;
	buf_init(&out, 65536);
	assert_int_equal(jsonc_remove_item(&out, text, strlen(text), none, 1,
	                     &err),
	    0);
	assert_string_equal(out.data,
	    "[\n  {\"host\": \"a\"},\n  {\"host\": \"c\"}\n]\n");
	buf_reset(&out);
	assert_int_equal(jsonc_remove_item(&out, text, strlen(text), none, 3,
	                     &err),
	    -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(jsonc_remove_item(&out, "{}", 2, sandboxes, 0, &err),
	    -1);
	assert_non_null(strstr(err.msg, "no list named sandboxes"));
	assert_int_equal(out.len, 0);
	buf_free(&out);
}

static void
refuses_what_it_does_not_understand(void **state)
{
	(void)state;
	refuses("{\"a\": 1", one, "not valid JSON");
	refuses("{\"a\": 1, \"a\": 2}", one, "not valid JSON");
	refuses("{,}", one, "not valid JSON");
	refuses("{\"a\": 1,,}", one, "not valid JSON");
	refuses("/* no end", one, "not valid JSON");
	refuses("{} {}", one, "not valid JSON");
	refuses("{'a': 1}", one, "not valid JSON");
	refuses("[1]", one, "should hold \"a\" is not an object");
	refuses("{\"mcpServers\": []}", servers, "is not an object");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_may_stand_side_by_side),
		cmocka_unit_test(begins_a_text_that_says_nothing),
		cmocka_unit_test(adds_to_an_object_in_its_own_form),
		cmocka_unit_test(keeps_comments_where_they_are),
		cmocka_unit_test(knows_a_name_however_it_is_written),
		cmocka_unit_test(removes_a_member_and_its_comma),
		cmocka_unit_test(adding_and_removing_leaves_no_trace),
		cmocka_unit_test(appends_to_a_list),
		cmocka_unit_test(removes_an_item_of_a_list),
		cmocka_unit_test(refuses_what_it_does_not_understand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
