#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/utf8.h"
#include "mcp/rpc.h"
#include "test.h"

static struct rpc_msg msg;
static struct rpc_fault fault;

static int
forget(void **state)
{
	(void)state;
	rpc_msg_free(&msg);
	json_decref(fault.data);
	fault.data = NULL;
	return 0;
}

static int
parse_bytes(const char *line, size_t len)
{
	forget(NULL);
	memset(&fault, 0, sizeof(fault));
	memset(&msg, 0x55, sizeof(msg)); /* it must not matter */
	return rpc_parse(line, len, &msg, &fault);
}

static void
parsed(const char *line)
{
	if (parse_bytes(line, strlen(line)) == -1)
		fail_msg("%.100s: %s", line, fault.msg);
}

static void
refused_bytes(const char *line, size_t len, int code)
{
	if (parse_bytes(line, len) == 0)
		fail_msg("accepted: %.100s", line);
	if (fault.code != code)
		fail_msg("%.100s: code %d, not %d", line, fault.code, code);
	assert_true(strlen(fault.msg) > 0);
	assert_true(utf8_valid(fault.msg, strlen(fault.msg)));
}

static void
refused(const char *line, int code)
{
	refused_bytes(line, strlen(line), code);
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
a_request_has_an_id_and_a_method(void **state)
{
	(void)state;
	parsed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	assert_int_equal(msg.kind, RPC_REQUEST);
	assert_string_equal(msg.method, "ping");
	is_json(json_object_get(msg.root, "id"), "1");
	assert_ptr_equal(msg.id, json_object_get(msg.root, "id"));
	assert_null(msg.params);

	parsed(" {\"params\":{\"a\":1},\"method\":\"x/y\",\"id\":\"one\","
	       "\"jsonrpc\":\"2.0\",\"more\":[]} ");
	assert_int_equal(msg.kind, RPC_REQUEST);
	assert_string_equal(json_string_value(msg.id), "one");
	is_json(msg.params, "{\"a\":1}");
}

static void
a_notification_has_no_id(void **state)
{
	(void)state;
	parsed("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\","
	       "\"params\":{}}");
	assert_int_equal(msg.kind, RPC_NOTIFICATION);
	assert_string_equal(msg.method, "notifications/x");
	assert_null(msg.id);
	assert_non_null(msg.params);
}

static void
a_response_has_no_method(void **state)
{
	(void)state;
	parsed("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
	assert_int_equal(msg.kind, RPC_RESPONSE);
	assert_null(msg.method);
	assert_int_equal(json_integer_value(msg.id), 7);
	parsed("{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":1,"
	       "\"message\":\"no\"}}");
	assert_int_equal(msg.kind, RPC_RESPONSE);
	assert_string_equal(json_string_value(msg.id), "a");
	parsed("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}");
	assert_int_equal(msg.kind, RPC_RESPONSE);
}

/* Nobody may answer an answer, or two peers do so for ever. */
static void
an_error_that_could_not_name_its_request_is_still_a_response(void **state)
{
	static const char *const lines[] = {
		"{\"jsonrpc\":\"2.0\",\"error\":{\"code\":-32700,"
		"\"message\":\"no\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
		"\"message\":\"no\"}}",
		"{\"jsonrpc\":\"2.0\",\"id\":1.5,\"error\":{}}",
		"{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}",
		"{\"jsonrpc\":\"2.0\",\"result\":{}}",
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		parsed(lines[i]);
		assert_int_equal(msg.kind, RPC_RESPONSE);
		assert_null(msg.id);
	}
}

static void
ids_are_integers_and_strings_of_any_value(void **state)
{
	static const char *const ids[] = { "0", "-1", "9223372036854775807",
		"-9223372036854775808", "9007199254740993", "\"\"", "\"1\"",
		"\"listen:0\"", "\"\\u00e4\\ud83d\\ude00\"", "\"a\\u0000b\"" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		json_t *id;

		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"m\"}", ids[i]);
		parsed(line);
		assert_int_equal(msg.kind, RPC_REQUEST);
		id = json_loads(ids[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
		assert_true(json_equal(msg.id, id));
		json_decref(id);
	}
}

static void
other_ids_are_refused(void **state)
{
	static const char *const ids[] = { "null", "1.0", "1.5", "1e3", "true",
		"false", "[]", "{}", "[1]" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"m\"}", ids[i]);
		refused(line, RPC_INVALID_REQUEST);
		assert_null(msg.id);
	}
}

static void
huge_ids_are_refused(void **state)
{
	char *line;

	(void)state;
	line = repeated("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"", "x",
	    RPC_ID_MAX, "\"}");
	parsed(line);
	assert_int_equal(json_string_length(msg.id), RPC_ID_MAX);
	free(line);
	line = repeated("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":\"", "x",
	    RPC_ID_MAX + 1, "\"}");
	refused(line, RPC_INVALID_REQUEST);
	assert_null(msg.id);
	free(line);
	line = repeated("{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":", "9",
	    100000, "}");
	refused(line, RPC_PARSE_ERROR);
	free(line);
	refused("{\"jsonrpc\":\"2.0\",\"method\":\"m\","
	        "\"id\":9223372036854775808}",
	    RPC_PARSE_ERROR);
}

static void
what_is_no_json_is_a_parse_error(void **state)
{
	static const char *const lines[] = { "", "x", "{", "}", "[", "{\"a\"",
		"{\"a\":}", "{a:1}", "{'a':1}", "{\"a\":1,}", "[1,]", "{} {}",
		"{}x", "\"abc", "{\"a\":\"\t\"}", "{\"a\":\"\\x\"}",
		"{\"a\":\"\\u12\"}", "{\"a\":\"\\ud800\"}", "{\"a\":1e999}",
		"{\"a\":01}", "{\"a\":+1}", "{\"a\":.5}", "{\"a\":NaN}",
		"{\"a\":nul}", "Content-Length: 20", "\xef\xbb\xbf{}" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		refused(lines[i], RPC_PARSE_ERROR);
		assert_null(msg.id);
		assert_null(msg.method);
	}
}

static void
invalid_utf8_is_a_parse_error(void **state)
{
	static const char *const bad[] = { "\xff", "\xc3", "\xc0\x80",
		"\xed\xa0\x80", "\xf4\x90\x80\x80", "\x80" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a%sb\"}",
		    bad[i]);
		refused(line, RPC_PARSE_ERROR);
	}
	refused("\xff\xfe{\"jsonrpc\":\"2.0\"}", RPC_PARSE_ERROR);
}

static void
a_nul_byte_is_a_parse_error(void **state)
{
	static const char in_string[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\0b\"}";
	static const char behind[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\0";
	static const char alone[] = "\0";

	(void)state;
	refused_bytes(in_string, sizeof(in_string) - 1, RPC_PARSE_ERROR);
	refused_bytes(behind, sizeof(behind) - 1, RPC_PARSE_ERROR);
	refused_bytes(alone, 1, RPC_PARSE_ERROR);
}

static void
duplicate_keys_are_a_parse_error(void **state)
{
	(void)state;
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"m\"}",
	    RPC_PARSE_ERROR);
	refused("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
	        "\"params\":{\"a\":1,\"a\":1}}",
	    RPC_PARSE_ERROR);
}

/* It may hold a secret. */
static void
a_parse_error_repeats_nothing_of_the_line(void **state)
{
	(void)state;
	refused("{\"password\":\"hunter2\" hunter2}", RPC_PARSE_ERROR);
	assert_null(strstr(fault.msg, "hunter2"));
	refused("{\"hunter2\":1,\"hunter2\":2}", RPC_PARSE_ERROR);
	assert_null(strstr(fault.msg, "hunter2"));
	refused("hunter2", RPC_PARSE_ERROR);
	assert_null(strstr(fault.msg, "hunter2"));
}

static void
nesting_bombs_are_refused_before_they_are_parsed(void **state)
{
	static const char *const units[] = { "[", "{\"a\":", "[[{\"a\":" };
	char *line;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		line = repeated("", units[i], 1000000, "");
		refused(line, RPC_PARSE_ERROR);
		assert_non_null(strstr(fault.msg, "nested"));
		free(line);
	}
}

static void
nesting_up_to_the_limit_is_fine(void **state)
{
	char *open, *line;

	(void)state;
	open = repeated("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
	                "\"params\":{\"a\":",
	    "[", DECODE_DEPTH_MAX - 2, "");
	line = repeated(open, "]", DECODE_DEPTH_MAX - 2, "}}");
	parsed(line);
	free(open);
	free(line);
	open = repeated("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
	                "\"params\":{\"a\":",
	    "[", DECODE_DEPTH_MAX - 1, "");
	line = repeated(open, "]", DECODE_DEPTH_MAX - 1, "}}");
	refused(line, RPC_PARSE_ERROR);
	free(open);
	free(line);
}

static void
too_many_values_are_refused_before_they_are_parsed(void **state)
{
	static const char *const units[] = { "[],", "{},", "1,", "\"\"," };
	char *line;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		line = repeated("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
		                "\"m\",\"params\":{\"a\":[",
		    units[i], DECODE_VALUES_MAX, "0]}}");
		refused(line, RPC_PARSE_ERROR);
		assert_non_null(strstr(fault.msg, "values"));
		free(line);
	}
	line = repeated("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
	                "\"params\":{\"a\":[",
	    "1,", DECODE_VALUES_MAX / 2, "0]}}");
	parsed(line);
	free(line);
}

static void
brackets_inside_strings_do_not_count(void **state)
{
	char *line;

	(void)state;
	line = repeated("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"m\","
	                "\"params\":{\"a\":\"",
	    "[{\\\",", 200000, "\\\\\"}}");
	parsed(line);
	free(line);
}

static void
batches_are_refused(void **state)
{
	(void)state;
	refused("[]", RPC_INVALID_REQUEST);
	assert_non_null(strstr(fault.msg, "batch"));
	refused("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
	    RPC_INVALID_REQUEST);
	assert_null(msg.id);
	refused("[1,2]", RPC_INVALID_REQUEST);
}

static void
other_json_is_an_invalid_request(void **state)
{
	static const char *const lines[] = { "42", "\"ping\"", "true", "null",
		"1.5", "{}" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		refused(lines[i], RPC_INVALID_REQUEST);
		assert_null(msg.id);
	}
}

static void
jsonrpc_must_be_two(void **state)
{
	static const char *const versions[] = { "\"1.0\"", "2", "2.0", "null",
		"\"\"", "\"2.0\\u0000\"", "[\"2.0\"]" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":%s,\"id\":5,\"method\":\"m\"}", versions[i]);
		refused(line, RPC_INVALID_REQUEST);
		assert_non_null(strstr(fault.msg, "jsonrpc"));
		assert_int_equal(json_integer_value(msg.id), 5);
	}
	refused("{\"id\":\"x\",\"method\":\"m\"}", RPC_INVALID_REQUEST);
	assert_string_equal(json_string_value(msg.id), "x");
}

static void
a_method_must_be_a_string(void **state)
{
	static const char *const methods[] = { "5", "null", "true", "[]", "{}",
		"\"a\\u0000b\"" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":%s}", methods[i]);
		refused(line, RPC_INVALID_REQUEST);
		assert_int_equal(json_integer_value(msg.id), 5);
		assert_null(msg.method);
	}
	refused("{\"jsonrpc\":\"2.0\",\"id\":5}", RPC_INVALID_REQUEST);
	assert_int_equal(json_integer_value(msg.id), 5);
	refused("{\"jsonrpc\":\"2.0\",\"id\":5,\"params\":{}}",
	    RPC_INVALID_REQUEST);
}

static void
params_must_be_an_object(void **state)
{
	static const char *const params[] = { "[]", "[1]", "5", "\"x\"", "true",
		"null" };
	char line[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(params) / sizeof(params[0]); i++) {
		snprintf(line, sizeof(line),
		    "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"m\","
		    "\"params\":%s}",
		    params[i]);
		refused(line, RPC_INVALID_PARAMS);
		assert_int_equal(json_integer_value(msg.id), 5);
	}
}

/* So that whoever replies can tell that there is nobody to reply to. */
static void
a_broken_notification_is_known_as_one(void **state)
{
	(void)state;
	refused("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\","
	        "\"params\":[]}",
	    RPC_INVALID_PARAMS);
	assert_null(msg.id);
	assert_non_null(msg.method);
	refused("{\"jsonrpc\":\"1.0\",\"method\":\"notifications/x\"}",
	    RPC_INVALID_REQUEST);
	assert_null(msg.id);
	assert_non_null(msg.method);
}

static void
a_message_may_be_freed_twice(void **state)
{
	(void)state;
	parsed("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	rpc_msg_free(&msg);
	assert_null(msg.root);
	assert_null(msg.id);
	rpc_msg_free(&msg);
}

static void
a_fault_is_always_minus_one(void **state)
{
	struct rpc_fault f = { .data = json_null() };

	(void)state;
	assert_int_equal(rpc_fail(&f, RPC_INTERNAL_ERROR, "%s %d", "x", 5), -1);
	assert_int_equal(f.code, RPC_INTERNAL_ERROR);
	assert_string_equal(f.msg, "x 5");
	assert_null(f.data);
}

static void
a_long_message_is_cut_between_characters(void **state)
{
	static const char *const units[] = { "x", "\xc3\xa4", "\xe2\x82\xac",
		"\xf0\x9f\x98\x80" };
	static const char *const pads[] = { "", "a", "ab", "abc" };
	char *text;
	size_t i, j;

	(void)state;
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 4; j++) {
			text = repeated(pads[j], units[i], 1000, "");
			rpc_fail(&fault, RPC_INTERNAL_ERROR, "%s", text);
			assert_true(strlen(fault.msg) > 480);
			assert_true(utf8_valid(fault.msg, strlen(fault.msg)));
			free(text);
		}
	}
}

static void
a_result_repeats_the_id(void **state)
{
	json_t *id = json_string("a\xc3\xa4");
	json_t *m;

	(void)state;
	m = rpc_result(id, json_object());
	is_json(m, "{\"jsonrpc\":\"2.0\",\"id\":\"a\\u00e4\",\"result\":{}}");
	json_decref(m);
	json_decref(id);
	id = json_integer(9007199254740993);
	m = rpc_result(id, json_pack("{s:i}", "a", 1));
	is_json(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,"
	    "\"result\":{\"a\":1}}");
	json_decref(m);
	json_decref(id);
}

static void
an_error_has_code_message_and_data(void **state)
{
	json_t *id = json_integer(3);
	json_t *m;

	(void)state;
	rpc_fail(&fault, -32601, "unknown");
	m = rpc_error(id, &fault);
	is_json(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,"
	    "\"error\":{\"code\":-32601,\"message\":\"unknown\"}}");
	json_decref(m);

	rpc_fail(&fault, RPC_UNSUPPORTED_VERSION, "no");
	fault.data = json_pack("{s:s}", "requested", "x");
	m = rpc_error(id, &fault);
	assert_null(fault.data);
	is_json(m,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"error\":{\"code\":-32022,"
	    "\"message\":\"no\",\"data\":{\"requested\":\"x\"}}}");
	json_decref(m);
	json_decref(id);
}

/* "id": null would not be valid under the protocol's schema. */
static void
an_error_without_an_id_leaves_it_out(void **state)
{
	json_t *m;

	(void)state;
	rpc_fail(&fault, RPC_PARSE_ERROR, "no");
	m = rpc_error(NULL, &fault);
	is_json(m,
	    "{\"jsonrpc\":\"2.0\","
	    "\"error\":{\"code\":-32700,\"message\":\"no\"}}");
	json_decref(m);
}

static void
an_error_is_valid_whatever_its_message_holds(void **state)
{
	json_t *m;
	char *text;

	(void)state;
	rpc_fail(&fault, RPC_PARSE_ERROR, "a\xff%s", "\xc3");
	m = rpc_error(NULL, &fault);
	text = json_dumps(m, 0);
	assert_non_null(text);
	assert_true(utf8_valid(text, strlen(text)));
	free(text);
	json_decref(m);
}

static void
a_notification_is_made_without_an_id(void **state)
{
	json_t *m = rpc_notification("notifications/progress",
	    json_pack("{s:i}", "progress", 1));

	(void)state;
	is_json(m,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progress\":1}}");
	json_decref(m);
}

#define TEST(f) cmocka_unit_test_teardown(f, forget)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_request_has_an_id_and_a_method),
		TEST(a_notification_has_no_id),
		TEST(a_response_has_no_method),
		TEST(
		    an_error_that_could_not_name_its_request_is_still_a_response),
		TEST(ids_are_integers_and_strings_of_any_value),
		TEST(other_ids_are_refused),
		TEST(huge_ids_are_refused),
		TEST(what_is_no_json_is_a_parse_error),
		TEST(invalid_utf8_is_a_parse_error),
		TEST(a_nul_byte_is_a_parse_error),
		TEST(duplicate_keys_are_a_parse_error),
		TEST(a_parse_error_repeats_nothing_of_the_line),
		TEST(nesting_bombs_are_refused_before_they_are_parsed),
		TEST(nesting_up_to_the_limit_is_fine),
		TEST(too_many_values_are_refused_before_they_are_parsed),
		TEST(brackets_inside_strings_do_not_count),
		TEST(batches_are_refused),
		TEST(other_json_is_an_invalid_request),
		TEST(jsonrpc_must_be_two),
		TEST(a_method_must_be_a_string),
		TEST(params_must_be_an_object),
		TEST(a_broken_notification_is_known_as_one),
		TEST(a_message_may_be_freed_twice),
		TEST(a_fault_is_always_minus_one),
		TEST(a_long_message_is_cut_between_characters),
		TEST(a_result_repeats_the_id),
		TEST(an_error_has_code_message_and_data),
		TEST(an_error_without_an_id_leaves_it_out),
		TEST(an_error_is_valid_whatever_its_message_holds),
		TEST(a_notification_is_made_without_an_id),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
