#include <stdlib.h>
#include <string.h>

#include "every.h"
#include "test.h"
#include "tools/tool.h"

/* Takes over "made". */
static void
makes(json_t *made, const char *expected)
{
	is_json(made, expected);
	json_decref(made);
}

static void
no_arguments_make_an_object_without_properties(void **state)
{
	static const struct arg none[] = { { 0 } };

	(void)state;
	makes(args_schema(NULL, true),
	    "{\"type\":\"object\",\"properties\":{}}");
	makes(args_schema(none, true),
	    "{\"type\":\"object\",\"properties\":{}}");
}

/* clang-format off */
static const char every_schema[] =
"{"
"  \"type\": \"object\","
"  \"properties\": {"
"    \"text\": {"
"      \"type\": \"string\","
"      \"description\": \"Some text.\""
"    },"
"    \"greeting\": {"
"      \"type\": \"string\","
"      \"description\": \"Text with a default.\","
"      \"default\": \"hello\""
"    },"
"    \"count\": {"
"      \"type\": \"integer\","
"      \"description\": \"Any integer.\","
"      \"default\": -7"
"    },"
"    \"port\": {"
"      \"type\": \"integer\","
"      \"minimum\": 1,"
"      \"maximum\": 65535,"
"      \"description\": \"Integer in a range.\","
"      \"default\": 22"
"    },"
"    \"size\": {"
"      \"type\": \"integer\","
"      \"minimum\": 10,"
"      \"description\": \"Integer with a lower bound.\","
"      \"default\": 10"
"    },"
"    \"ratio\": {"
"      \"type\": \"number\","
"      \"minimum\": 0,"
"      \"maximum\": 1,"
"      \"description\": \"Number in a range.\","
"      \"default\": 0.25"
"    },"
"    \"any\": {"
"      \"type\": \"number\","
"      \"description\": \"Any number.\","
"      \"default\": 0.0"
"    },"
"    \"off\": {"
"      \"type\": \"boolean\","
"      \"description\": \"False by default.\","
"      \"default\": false"
"    },"
"    \"on\": {"
"      \"type\": \"boolean\","
"      \"description\": \"True by default.\","
"      \"default\": true"
"    },"
"    \"mode\": {"
"      \"type\": \"string\","
"      \"enum\": [\"fast\", \"slow\"],"
"      \"description\": \"Choice with a default.\","
"      \"default\": \"slow\""
"    },"
"    \"level\": {"
"      \"type\": \"string\","
"      \"enum\": [\"low\", \"mid\", \"high\"],"
"      \"description\": \"Choice without a default.\""
"    },"
"    \"tags\": {"
"      \"type\": \"array\","
"      \"items\": {\"type\": \"string\"},"
"      \"description\": \"List of strings.\""
"    },"
"    \"env\": {"
"      \"type\": \"object\","
"      \"additionalProperties\": {\"type\": \"string\"},"
"      \"description\": \"Map of strings.\""
"    },"
"    \"slurm\": {"
"      \"type\": \"object\","
"      \"description\": \"Object with fields.\","
"      \"properties\": {"
"        \"partition\": {"
"          \"type\": \"string\","
"          \"description\": \"Partition to use.\""
"        },"
"        \"nodes\": {"
"          \"type\": \"integer\","
"          \"minimum\": 1,"
"          \"maximum\": 4,"
"          \"description\": \"How many nodes.\","
"          \"default\": 1"
"        },"
"        \"hours\": {"
"          \"type\": \"number\","
"          \"minimum\": 0,"
"          \"maximum\": 48,"
"          \"description\": \"How long.\","
"          \"default\": 1.5"
"        },"
"        \"qos\": {"
"          \"type\": \"string\","
"          \"enum\": [\"low\", \"mid\", \"high\"],"
"          \"description\": \"How urgent.\","
"          \"default\": \"mid\""
"        },"
"        \"exclusive\": {"
"          \"type\": \"boolean\","
"          \"description\": \"Nobody else on the nodes.\","
"          \"default\": true"
"        },"
"        \"password\": {"
"          \"type\": \"string\","
"          \"description\": \"Password.\""
"        },"
"        \"modules\": {"
"          \"type\": \"array\","
"          \"items\": {\"type\": \"string\"},"
"          \"description\": \"Modules to load.\""
"        },"
"        \"license\": {"
"          \"type\": \"object\","
"          \"description\": \"License to use.\","
"          \"properties\": {"
"            \"key\": {"
"              \"type\": \"string\","
"              \"description\": \"Key of the license.\""
"            }"
"          }"
"        }"
"      },"
"      \"required\": [\"partition\"]"
"    },"
"    \"extra_json\": {"
"      \"type\": \"object\","
"      \"description\": \"Any object.\""
"    },"
"    \"passphrase\": {"
"      \"type\": \"string\","
"      \"description\": \"Secret text.\""
"    },"
"    \"pin\": {"
"      \"type\": \"integer\","
"      \"minimum\": 0,"
"      \"maximum\": 9999,"
"      \"description\": \"Secret integer.\","
"      \"default\": 0"
"    },"
"    \"tokens\": {"
"      \"type\": \"array\","
"      \"items\": {\"type\": \"string\"},"
"      \"description\": \"Secret list.\""
"    }"
"  }"
"}";
/* clang-format on */

static void
every_type_of_argument_has_its_schema(void **state)
{
	(void)state;
	makes(args_schema(every_args, true), every_schema);
}

static void
properties_keep_the_order_of_the_table(void **state)
{
	json_t *schema = args_schema(every_args, true);
	json_t *properties = json_object_get(schema, "properties");
	const struct arg *a = every_args;
	const char *name;
	json_t *v;

	(void)state;
	json_object_foreach (properties, name, v) {
		assert_string_equal(name, a->name);
		a++;
	}
	assert_int_equal(a->type, ARG_END);
	json_decref(schema);
}

static void
what_is_required_is_listed_and_has_no_default(void **state)
{
	static const struct arg args[] = {
		{ .name = "a",
		    .type = ARG_STRING,
		    .required = true,
		    .dflt_str = "x",
		    .help = "A." },
		{ .name = "b", .type = ARG_INT, .help = "B." },
		{ .name = "c",
		    .type = ARG_INT,
		    .required = true,
		    .dflt = 3,
		    .help = "C." },
		{ 0 },
	};

	(void)state;
	makes(args_schema(args, true),
	    "{\"type\":\"object\",\"properties\":{"
	    "\"a\":{\"type\":\"string\",\"description\":\"A.\"},"
	    "\"b\":{\"type\":\"integer\",\"description\":\"B.\","
	    "\"default\":0},"
	    "\"c\":{\"type\":\"integer\",\"description\":\"C.\"}},"
	    "\"required\":[\"a\",\"c\"]}");
}

static void
a_range_may_reach_below_zero(void **state)
{
	static const struct arg args[] = {
		{ .name = "a",
		    .type = ARG_INT,
		    .min = -5,
		    .max = 0,
		    .help = "A." },
		{ .name = "b",
		    .type = ARG_NUMBER,
		    .min = -1,
		    .max = INT64_MAX,
		    .dflt_num = 0.5,
		    .help = "B." },
		{ 0 },
	};

	(void)state;
	makes(args_schema(args, true),
	    "{\"type\":\"object\",\"properties\":{"
	    "\"a\":{\"type\":\"integer\",\"minimum\":-5,\"maximum\":0,"
	    "\"description\":\"A.\",\"default\":0},"
	    "\"b\":{\"type\":\"number\",\"minimum\":-1,"
	    "\"description\":\"B.\",\"default\":0.5}}}");
}

static const struct out entry_outputs[] = {
	{ "name", OUT_STRING, "Its name.", .always = true },
	{ "size", OUT_INT, .nullable = true, .always = true },
	{ 0 },
};

static const struct out outputs[] = {
	{ "text", OUT_STRING, "Some text.", .always = true },
	{ "count", OUT_INT, "How many.", .always = true, .nullable = true },
	{ "share", OUT_NUMBER, "How much." },
	{ "done", OUT_BOOL, "It is over." },
	{ "first", OUT_OBJECT, "The first.", .always = true,
	    .fields = entry_outputs },
	{ "any", OUT_OBJECT, "Whatever there is." },
	{ "last", OUT_OBJECT, "The last.", .nullable = true,
	    .fields = entry_outputs },
	{ "entries", OUT_OBJECTS, "All of them.", .always = true,
	    .fields = entry_outputs },
	{ "words", OUT_STRINGS, "Some words." },
	{ 0 },
};

#define ENTRY                                          \
	"\"properties\":{"                             \
	"\"name\":{\"type\":\"string\"},"              \
	"\"size\":{\"anyOf\":[{\"type\":\"integer\"}," \
	"{\"type\":\"null\"}]}},"                      \
	"\"required\":[\"name\",\"size\"]"

static const char outputs_schema[] =
    "{\"type\":\"object\",\"properties\":{"
    "\"text\":{\"type\":\"string\"},"
    "\"count\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]},"
    "\"share\":{\"type\":\"number\"},"
    "\"done\":{\"type\":\"boolean\"},"
    "\"first\":{\"type\":\"object\"," ENTRY "},"
    "\"any\":{\"type\":\"object\"},"
    "\"last\":{\"anyOf\":[{\"type\":\"object\"," ENTRY "},"
    "{\"type\":\"null\"}]},"
    "\"entries\":{\"type\":\"array\",\"items\":{\"type\":\"object\"," ENTRY
    "}},"
    "\"words\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},"
    "\"required\":[\"text\",\"count\",\"first\",\"entries\"]}";

static void
every_type_of_output_has_its_schema(void **state)
{
	(void)state;
	makes(outs_schema(outputs, LIST_ALL), outputs_schema);
}

static void
a_list_of_any_objects_needs_no_fields(void **state)
{
	static const struct out any[] = {
		{ "list", OUT_OBJECTS, "Anything." },
		{ 0 },
	};
	json_t *schema = outs_schema(any, LIST_ALL);
	json_t *items;

	(void)state;
	items = json_object_get(json_object_get(json_object_get(schema,
	                                            "properties"),
	                            "list"),
	    "items");
	assert_string_equal(json_string_value(json_object_get(items, "type")),
	    "object");
	json_decref(schema);
}

static void
a_tool_is_described_whole(void **state)
{
	static const struct arg args[] = {
		{ .name = "name",
		    .type = ARG_STRING,
		    .required = true,
		    .help = "Who." },
		{ 0 },
	};
	static const struct out outs[] = {
		{ "done", OUT_BOOL, "It worked.", .always = true },
		{ 0 },
	};
	static const struct tool tool = {
		.name = "greet",
		.title = "Greet",
		.description = "Greets.",
		.args = args,
		.outputs = outs,
		.hints = { .idempotent = true, .open_world = true },
	};

	(void)state;
	makes(tool_json(&tool, true),
	    "{\"name\":\"greet\",\"title\":\"Greet\","
	    "\"description\":\"Greets.\","
	    "\"inputSchema\":{\"type\":\"object\",\"properties\":{"
	    "\"name\":{\"type\":\"string\",\"description\":\"Who.\"}},"
	    "\"required\":[\"name\"]},"
	    "\"outputSchema\":{\"type\":\"object\",\"properties\":{"
	    "\"done\":{\"type\":\"boolean\"}},"
	    "\"required\":[\"done\"]},"
	    "\"annotations\":{\"readOnlyHint\":false,"
	    "\"destructiveHint\":false,\"idempotentHint\":true,"
	    "\"openWorldHint\":true}}");
}

static void
a_text_tool_has_no_output_schema(void **state)
{
	static const struct tool tool = {
		.name = "read",
		.title = "Read",
		.description = "Reads.",
		.flags = TOOL_TEXT,
		.hints = { .read_only = true },
	};

	(void)state;
	makes(tool_json(&tool, true),
	    "{\"name\":\"read\",\"title\":\"Read\","
	    "\"description\":\"Reads.\","
	    "\"inputSchema\":{\"type\":\"object\",\"properties\":{}},"
	    "\"annotations\":{\"readOnlyHint\":true,"
	    "\"destructiveHint\":false,\"idempotentHint\":false,"
	    "\"openWorldHint\":false}}");
}

static void
a_raw_tool_brings_its_own_schema(void **state)
{
	static const struct tool tool = {
		.name = "raw",
		.title = "Raw",
		.description = "Raw.",
		.flags = TOOL_RAW,
		.schema = "{\"type\":\"object\",\"$defs\":{}}",
		.hints = { .destructive = true },
	};

	(void)state;
	makes(tool_json(&tool, true),
	    "{\"name\":\"raw\",\"title\":\"Raw\",\"description\":\"Raw.\","
	    "\"inputSchema\":{\"type\":\"object\",\"$defs\":{}},"
	    "\"annotations\":{\"readOnlyHint\":false,"
	    "\"destructiveHint\":true,\"idempotentHint\":false,"
	    "\"openWorldHint\":false}}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
		    no_arguments_make_an_object_without_properties),
		cmocka_unit_test(every_type_of_argument_has_its_schema),
		cmocka_unit_test(properties_keep_the_order_of_the_table),
		cmocka_unit_test(what_is_required_is_listed_and_has_no_default),
		cmocka_unit_test(a_range_may_reach_below_zero),
		cmocka_unit_test(every_type_of_output_has_its_schema),
		cmocka_unit_test(a_list_of_any_objects_needs_no_fields),
		cmocka_unit_test(a_tool_is_described_whole),
		cmocka_unit_test(a_text_tool_has_no_output_schema),
		cmocka_unit_test(a_raw_tool_brings_its_own_schema),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
