/* Editing TOML as text: only what was meant changes. */
#include <stdio.h>
#include <string.h>

#include "config/toml.h"
#include "test.h"

static const char *const table[] = { "mcp_servers", "box", NULL };

static json_t *
values(void)
{
	return json_pack("{s:s, s:[s,s]}", "command", "/bin/x", "args", "serve",
	    "--local");
}

#define ENTRY                    \
	"[mcp_servers.box]\n"    \
	"command = \"/bin/x\"\n" \
	"args = [\"serve\", \"--local\"]\n"

static void
sets(const char *text, const char *expected)
{
	struct err err = ERR_INIT;
	json_t *v = values();
	struct buf out;

	buf_init(&out, 65536);
	if (toml_set(&out, text, strlen(text), table, v, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out.data, expected);
	json_decref(v);
	buf_free(&out);
}

static void
removes(const char *text, const char *expected)
{
	struct err err = ERR_INIT;
	struct buf out;

	buf_init(&out, 65536);
	if (toml_remove(&out, text, strlen(text), table, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out.data, expected);
	buf_free(&out);
}

static void
refuses(const char *text, const char *why)
{
	struct err err = ERR_INIT;
	json_t *v = values();
	struct buf out;

	buf_init(&out, 65536);
	assert_int_equal(toml_set(&out, text, strlen(text), table, v, &err),
	    -1);
	assert_int_equal(err.code, ERR_INVALID);
	if (strstr(err.msg, why) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.msg, why);
	assert_int_equal(out.len, 0);
	json_decref(v);
	buf_free(&out);
}

static void
adds_a_table_at_the_end(void **state)
{
	(void)state;
	sets("", ENTRY);
	sets("model = \"x\" # mine\n", "model = \"x\" # mine\n\n" ENTRY);
	sets("a = 1", "a = 1\n\n" ENTRY);
	sets("[mcp_servers.other]\ncommand = 'y'\n",
	    "[mcp_servers.other]\ncommand = 'y'\n\n" ENTRY);
	sets("a = 1\r\n",
	    "a = 1\r\n\r\n[mcp_servers.box]\r\ncommand = \"/bin/x\"\r\n"
	    "args = [\"serve\", \"--local\"]\r\n");
}

static void
changes_a_table_that_is_there(void **state)
{
	(void)state;
	sets("[mcp_servers.box] # b\ncommand = 'old' # c\nenv = { A = \"1\" }\n"
	     "[other]\nx = 1\n",
	    "[mcp_servers.box] # b\nargs = [\"serve\", \"--local\"]\n"
	    "command = \"/bin/x\" # c\nenv = { A = \"1\" }\n[other]\nx = 1\n");
	sets("[ mcp_servers . \"b\\u006fx\" ]\nargs = [ # none\n]\n"
	     "command='''\nold'''\n",
	    "[ mcp_servers . \"b\\u006fx\" ]\nargs = [\"serve\", \"--local\"]\n"
	    "command=\"/bin/x\"\n");
	sets("[mcp_servers]\nbox = { command = \"a\", args = [], x = 1 }\n",
	    "[mcp_servers]\nbox = { command = \"/bin/x\", args = [\"serve\", "
	    "\"--local\"], x = 1 }\n");
	sets("mcp_servers.box.command = 'a'\nmcp_servers.box.args = ['b']\n",
	    "mcp_servers.box.command = \"/bin/x\"\nmcp_servers.box.args = "
	    "[\"serve\", \"--local\"]\n");
}

static void
removes_a_table_with_those_below(void **state)
{
	(void)state;
	removes("a = 1\n\n" ENTRY, "a = 1\n");
	removes(ENTRY, "");
	removes("# top\n" ENTRY "\n[mcp_servers.box.env]\nA = \"1\"\n\n"
	        "# about y\n[y]\nz = 1\n",
	    "# top\n\n# about y\n[y]\nz = 1\n");
	removes("[mcp_servers]\nbox = { command = \"a\" }\nother = {}\n",
	    "[mcp_servers]\nother = {}\n");
	removes("[mcp_servers.box2]\ncommand = \"a\"\n",
	    "[mcp_servers.box2]\ncommand = \"a\"\n");
	removes(ENTRY "[x]\n\n[mcp_servers.box.env]\nB = '[y]'\n", "[x]\n");
}

static void
is_not_misled_by_what_strings_hold(void **state)
{
	static const char text[] =
	    "a = \"\"\"\n[mcp_servers.box]\ncommand = \"x\"\n\"\"\"\n"
	    "b = '''\n[mcp_servers.box]\n'''\nc = [\n  \"[\", # ]\n  ']',\n]\n"
	    "d = 1979-05-27 07:32:00Z\ne = { f.g = [1, 2], h = inf }\n"
	    "i = \"\\\"\" # \"\n[[list]]\nj = +1_000.5e-3\n";
	char expected[sizeof(text) + sizeof(ENTRY) + 1];

	(void)state;
	snprintf(expected, sizeof(expected), "%s\n%s", text, ENTRY);
	sets(text, expected);
	removes(expected, text);
	removes(text, text);
}

static void
tells_whether_it_is_there(void **state)
{
	struct err err = ERR_INIT;
	bool has;

	(void)state;
	assert_int_equal(toml_has(ENTRY, strlen(ENTRY), table, &has, &err), 0);
	assert_true(has);
	assert_int_equal(toml_has("a = 1\n", 6, table, &has, &err), 0);
	assert_false(has);
	assert_int_equal(toml_has("a =\n", 4, table, &has, &err), -1);
}

static void
refuses_what_it_does_not_understand(void **state)
{
	(void)state;
	refuses("a = \n", "a value was expected (line 1)");
	refuses("x = 1\na\n", "\"=\" was expected (line 2)");
	refuses("a = \"x\n", "a string does not end");
	refuses("a = [1\n", "a list does not end");
	refuses("[a\n", "a header does not end");
	refuses("a = 1 b = 2\n", "the end of the line was expected");
	refuses("a = \"\\q\"\n", "a broken escape");
	refuses("a = \"\\ud800\"\n", "no character");
	refuses("a = yes\n", "a value was expected");
	refuses("a = 1\n\xff", "no UTF-8");
	refuses("mcp_servers = { other = {} }\n", "by hand");
	refuses("mcp_servers = 1\n", "by hand");
	refuses("[[mcp_servers]]\n", "by hand");
	refuses("[[mcp_servers.box]]\n", "by hand");
	refuses("[mcp_servers]\nbox = {}\n", "by hand");
	refuses("[mcp_servers]\nbox.command = 'x'\n", "by hand");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(adds_a_table_at_the_end),
		cmocka_unit_test(changes_a_table_that_is_there),
		cmocka_unit_test(removes_a_table_with_those_below),
		cmocka_unit_test(is_not_misled_by_what_strings_hold),
		cmocka_unit_test(tells_whether_it_is_there),
		cmocka_unit_test(refuses_what_it_does_not_understand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
