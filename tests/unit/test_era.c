#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mcp/era.h"
#include "test.h"

#define VERSION "\"io.modelcontextprotocol/protocolVersion\""
#define CAPS "\"io.modelcontextprotocol/clientCapabilities\""
#define MODERN "{\"_meta\":{" VERSION ":\"2026-07-28\"," CAPS ":{}}}"

struct row {
	const char *method;
	const char *params; /* JSON; NULL: none */
	enum version session;
	enum version expected; /* V_NONE: refused */
	int code;
};

static const struct row rows[] = {
	/* The handshake is legacy. */
	{ "initialize", NULL, V_NONE, V_LEGACY_LAST, 0 },
	{ "initialize", "{\"protocolVersion\":\"2025-06-18\"}", V_NONE,
	    V_LEGACY_LAST, 0 },
	{ "initialize", "{}", V_2025_06_18, V_LEGACY_LAST, 0 },

	/* Modern: said by the request, nothing is remembered. */
	{ "server/discover", MODERN, V_NONE, V_2026_07_28, 0 },
	{ "tools/call", MODERN, V_NONE, V_2026_07_28, 0 },
	{ "tools/call", MODERN, V_2025_06_18, V_2026_07_28, 0 },
	{ "ping", MODERN, V_NONE, V_2026_07_28, 0 },
	{ "initialize", MODERN, V_NONE, V_2026_07_28, 0 }, /* has no such */
	{ "anything/else", MODERN, V_2024_11_05, V_2026_07_28, 0 },
	{ "tools/list",
	    "{\"_meta\":{" VERSION ":\"2026-07-28\"," CAPS
	    ":{\"elicitation\":{}},\"progressToken\":0,\"x/y\":1}}",
	    V_NONE, V_2026_07_28, 0 },

	/* One of the two keys is enough to be modern, both must be right. */
	{ "tools/list", "{\"_meta\":{" VERSION ":\"2026-07-28\"}}", V_NONE,
	    V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{" CAPS ":{}}}", V_NONE, V_NONE,
	    RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{" CAPS ":{}}}", V_2025_11_25, V_NONE,
	    RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{" VERSION ":null," CAPS ":{}}}", V_NONE,
	    V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{" VERSION ":5," CAPS ":{}}}", V_NONE,
	    V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list",
	    "{\"_meta\":{" VERSION ":\"2026-07-28\\u0000\"," CAPS ":{}}}",
	    V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{" VERSION ":\"2026-07-28\"," CAPS ":[]}}",
	    V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list",
	    "{\"_meta\":{" VERSION ":\"2026-07-28\"," CAPS ":null}}", V_NONE,
	    V_NONE, RPC_INVALID_PARAMS },

	/* Versions that are not modern, or not known. */
	{ "tools/list", "{\"_meta\":{" VERSION ":\"2025-11-25\"," CAPS ":{}}}",
	    V_NONE, V_NONE, RPC_UNSUPPORTED_VERSION },
	{ "tools/list", "{\"_meta\":{" VERSION ":\"2025-11-25\"," CAPS ":{}}}",
	    V_2025_11_25, V_NONE, RPC_UNSUPPORTED_VERSION },
	{ "server/discover",
	    "{\"_meta\":{" VERSION ":\"2099-01-01\"," CAPS ":{}}}", V_NONE,
	    V_NONE, RPC_UNSUPPORTED_VERSION },
	{ "tools/list", "{\"_meta\":{" VERSION ":\"\"," CAPS ":{}}}", V_NONE,
	    V_NONE, RPC_UNSUPPORTED_VERSION },
	{ "tools/list", "{\"_meta\":{" VERSION ":\"2099-01-01\"}}", V_NONE,
	    V_NONE, RPC_UNSUPPORTED_VERSION },

	/* Legacy, after the handshake. */
	{ "tools/list", NULL, V_2024_11_05, V_2024_11_05, 0 },
	{ "tools/list", "{}", V_2025_03_26, V_2025_03_26, 0 },
	{ "tools/call", "{\"_meta\":{\"progressToken\":1}}", V_2025_06_18,
	    V_2025_06_18, 0 },
	{ "ping", NULL, V_2025_11_25, V_2025_11_25, 0 },
	{ "server/discover", NULL, V_2025_11_25, V_2025_11_25, 0 },

	/* Before it: only ping. */
	{ "ping", NULL, V_NONE, V_LEGACY_LAST, 0 },
	{ "ping", "{\"_meta\":{\"progressToken\":1}}", V_NONE, V_LEGACY_LAST,
	    0 },
	{ "tools/list", NULL, V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{}", V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{}}", V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":{\"progressToken\":1}}", V_NONE, V_NONE,
	    RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":5}", V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "tools/list", "{\"_meta\":null}", V_NONE, V_NONE,
	    RPC_INVALID_PARAMS },
	{ "server/discover", NULL, V_NONE, V_NONE, RPC_INVALID_PARAMS },
	{ "no/such/method", NULL, V_NONE, V_NONE, RPC_INVALID_PARAMS },
};

static void
a_request_is_in_the_version_it_should_be(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *r = &rows[i];
		struct rpc_fault fault = { 0 };
		json_t *params = NULL;
		enum version got;

		if (r->params != NULL) {
			params = json_loads(r->params, JSON_ALLOW_NUL, NULL);
			assert_non_null(params);
		}
		got = era_of(r->method, params, r->session, &fault);
		if (got != r->expected)
			fail_msg("row %zu, %s %s: version \"%s\", not \"%s\"",
			    i, r->method, r->params != NULL ? r->params : "",
			    version_name(got), version_name(r->expected));
		if (fault.code != r->code)
			fail_msg("row %zu, %s: code %d, not %d", i, r->method,
			    fault.code, r->code);
		json_decref(fault.data);
		json_decref(params);
	}
}

static void
who_says_too_little_is_told_what_is_missing(void **state)
{
	struct rpc_fault fault;

	(void)state;
	assert_int_equal(era_of("tools/list", NULL, V_NONE, &fault), V_NONE);
	assert_non_null(
	    strstr(fault.msg, "io.modelcontextprotocol/protocolVersion"));
	assert_non_null(
	    strstr(fault.msg, "io.modelcontextprotocol/clientCapabilities"));
	assert_non_null(strstr(fault.msg, "initialize"));
	assert_null(fault.data);
}

static json_t *
data_for(const char *requested)
{
	json_t *params = json_pack("{s:{s:s,s:{}}}", "_meta", META_VERSION,
	    requested, META_CLIENT_CAPS);
	struct rpc_fault fault;

	assert_non_null(params);
	assert_int_equal(era_of("tools/list", params, V_NONE, &fault), V_NONE);
	assert_int_equal(fault.code, RPC_UNSUPPORTED_VERSION);
	json_decref(params);
	return fault.data;
}

static void
an_unknown_version_is_answered_with_the_known_ones(void **state)
{
	json_t *data = data_for("1999-12-31");
	json_t *expected = json_pack("{s:[s],s:s}", "supported", "2026-07-28",
	    "requested", "1999-12-31");

	(void)state;
	assert_true(json_equal(data, expected));
	json_decref(data);
	json_decref(expected);
}

static void
a_huge_version_is_not_repeated_whole(void **state)
{
	char *huge = xmalloc(1000001);
	json_t *data;
	size_t i;

	(void)state;
	for (i = 0; i < 1000000; i += 2)
		memcpy(huge + i, "\xc3\xa4", 2);
	huge[1000000] = '\0';
	data = data_for(huge);
	assert_true(
	    json_string_length(json_object_get(data, "requested")) < 200);
	json_decref(data);
	free(huge);
}

static void
initialize_gets_the_version_it_asks_for_or_the_newest_legacy_one(void **state)
{
	static const struct {
		const char *asked;
		enum version answered;
	} cases[] = {
		{ "2024-11-05", V_2024_11_05 },
		{ "2025-03-26", V_2025_03_26 },
		{ "2025-06-18", V_2025_06_18 },
		{ "2025-11-25", V_2025_11_25 },
		{ "2026-07-28", V_2025_11_25 },
		{ "2024-10-07", V_2025_11_25 },
		{ "2099-01-01", V_2025_11_25 },
		{ "1.0", V_2025_11_25 },
		{ "", V_2025_11_25 },
		{ "2025-06-18 ", V_2025_11_25 },
		{ NULL, V_2025_11_25 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_int_equal(version_for_initialize(cases[i].asked),
		    cases[i].answered);
}

static void
only_the_newest_version_is_modern(void **state)
{
	json_t *list = versions_modern();
	enum version v;

	(void)state;
	for (v = V_LEGACY_FIRST; v <= V_LAST; v++)
		assert_int_equal(version_modern(v), v >= V_2026_07_28);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(json_array_get(list, 0)),
	    "2026-07-28");
	json_decref(list);
}

static void
names_are_in_the_order_of_time(void **state)
{
	enum version v;

	(void)state;
	for (v = V_LEGACY_FIRST; v < V_LAST; v++)
		assert_true(strcmp(version_name(v), version_name(v + 1)) < 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_is_in_the_version_it_should_be),
		cmocka_unit_test(who_says_too_little_is_told_what_is_missing),
		cmocka_unit_test(
		    an_unknown_version_is_answered_with_the_known_ones),
		cmocka_unit_test(a_huge_version_is_not_repeated_whole),
		cmocka_unit_test(
		    initialize_gets_the_version_it_asks_for_or_the_newest_legacy_one),
		cmocka_unit_test(only_the_newest_version_is_modern),
		cmocka_unit_test(names_are_in_the_order_of_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
