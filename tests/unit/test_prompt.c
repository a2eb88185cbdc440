#include "base/decode.h"
#include "help.h"
#include "tools/prompt.h"

static struct err err;

static const struct prompt_arg args[] = {
	{ "what", "What to do.", NULL },
	{ "where", "Where.", "here" },
	{ 0 },
};

static const struct prompt prompt = { "p", "P", "Does.", args,
	"do {what} {where}{where}, {other} { {what" };

static void
fills(const char *given, const char *expected)
{
	json_t *o =
	    given != NULL ? json_loads(given, JSON_ALLOW_NUL, NULL) : NULL;
	json_t *text = prompt_fill(&prompt, o, &err);

	if (text == NULL)
		fail_msg("%s: %s", given, err.msg);
	assert_string_equal(json_string_value(text), expected);
	json_decref(text);
	json_decref(o);
}

static void
refuses(const char *given, const char *why)
{
	json_t *o = json_loads(given, JSON_ALLOW_NUL, NULL);

	assert_null(prompt_fill(&prompt, o, &err));
	says(err.msg, why);
	json_decref(o);
}

static void
arguments_are_put_in_place_once(void **state)
{
	(void)state;
	fills("{\"what\": \"it\"}", "do it herehere, {other} { {what");
	/* What is in a value is not looked at again. */
	fills("{\"what\": \"{where}\", \"where\": \"{what}\", \"x\": 1}",
	    "do {where} {what}{what}, {other} { {what");
	fills("{\"what\": \"\\u00e9\", \"where\": null}",
	    "do \xc3\xa9 herehere, {other} { {what");
}

static void
what_is_missing_or_wrong_is_named(void **state)
{
	char *big = repeated("x", PROMPT_ARG_MAX + 1);
	char *given = xasprintf("{\"what\": \"%s\"}", big);

	(void)state;
	refuses("{}", "argument what is missing: What to do.");
	refuses("{\"what\": \" \\n\"}", "argument what is missing");
	refuses("{\"what\": \"x\", \"where\": []}",
	    "argument where must be a string");
	refuses("{\"what\": \"a\\u0000b\"}", "argument what must be a string");
	refuses(given, "argument what is longer than");
	free(big);
	free(given);
}

static bool
is_arg(const struct prompt *p, const char *at)
{
	char name[32];
	size_t len = strcspn(at, "}");

	if (len >= sizeof(name) || at[len] == '\0')
		return false;
	memcpy(name, at, len);
	name[len] = '\0';
	return prompt_arg_find(p, name) != NULL;
}

/* A brace in a text of ours is an argument, and each argument is used. */
static void
the_texts_and_their_tables_agree(void **state)
{
	const struct prompt *p;
	const struct prompt_arg *a;
	const char *at;

	(void)state;
	for (p = prompt_table; p->name != NULL; p++) {
		assert_ptr_equal(prompt_find(prompt_table, p->name), p);
		for (at = p->text; (at = strchr(at, '{')) != NULL;) {
			if (!is_arg(p, ++at))
				fail_msg("%s: {%.20s", p->name, at);
		}
		for (a = p->args; a->name != NULL; a++) {
			char *braces = xasprintf("{%s}", a->name);

			says(p->text, braces);
			free(braces);
		}
	}
	assert_null(prompt_find(prompt_table, "nothing"));
}

static void
the_list_is_small(void **state)
{
	const struct prompt *p;
	size_t bytes = 0;

	(void)state;
	for (p = prompt_table; p->name != NULL; p++) {
		json_t *o = prompt_json(p);
		char *text = json_dumps(o, JSON_COMPACT);

		bytes += strlen(text);
		free(text);
		json_decref(o);
	}
	assert_in_range(bytes, 500, 2500);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_put_in_place_once),
		cmocka_unit_test(what_is_missing_or_wrong_is_named),
		cmocka_unit_test(the_texts_and_their_tables_agree),
		cmocka_unit_test(the_list_is_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
