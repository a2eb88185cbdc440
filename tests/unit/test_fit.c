#include "help.h"
#include "tools/fit.h"

static char *
long_text(size_t len)
{
	char *s = xmalloc(len + 1);

	memset(s, 'x', len);
	memcpy(s, "begin", 5);
	memcpy(s + len - 3, "end", 4);
	return s;
}

static size_t
length(const json_t *v)
{
	return json_dumpb(v, NULL, 0, JSON_COMPACT);
}

static const char *
text(const json_t *v, const char *name)
{
	return json_string_value(json_object_get(v, name));
}

static void
what_fits_stays_as_it_is(void **state)
{
	char *s = long_text(900);
	json_t *v = json_pack("{s:s, s:[s, i]}", "a", s, "b", s, 5);
	json_t *same = json_deep_copy(v);

	(void)state;
	assert_int_equal(fit_texts(v, 2000), 0);
	assert_true(json_equal(v, same));
	json_decref(v);
	json_decref(same);
	free(s);
}

static void
long_texts_are_cut_and_short_ones_are_not(void **state)
{
	char *s = long_text(20000);
	json_t *v = json_pack("{s:s, s:[{s:s, s:s}], s:i}", "short", "word",
	    "list", "last_log_tail", s, "checkpoint_text", s, "n", 5);
	json_t *in = json_array_get(json_object_get(v, "list"), 0);
	const char *log, *other;

	(void)state;
	assert_int_equal(fit_texts(v, 10000), 2);
	assert_in_range(length(v), 8000, 10200);
	assert_string_equal(text(v, "short"), "word");
	log = text(in, "last_log_tail");
	assert_int_equal(strncmp(log, "...<truncated> ", 15), 0);
	assert_string_equal(log + strlen(log) - 3, "end");
	other = text(in, "checkpoint_text");
	assert_int_equal(strncmp(other, "begin", 5), 0);
	says(other, "bytes left out here ...");
	json_decref(v);
	free(s);
}

static void
no_character_is_split(void **state)
{
	json_t *v;
	char *s = xmalloc(9001);
	size_t i;

	(void)state;
	for (i = 0; i < 3000; i++)
		memcpy(s + 3 * i, "\xe2\x82\xac", 3);
	s[9000] = '\0';
	for (i = 1000; i < 1012; i++) {
		v = json_pack("{s:s, s:s}", "a", s, "log_tail", s);
		assert_int_equal(fit_texts(v, i), 2);
		assert_null(strstr(text(v, "a"), "\xef\xbf\xbd"));
		assert_null(strstr(text(v, "log_tail"), "\xef\xbf\xbd"));
		json_decref(v);
	}
	free(s);
}

static void
something_is_left_of_each(void **state)
{
	json_t *v = json_array(), *last;
	char *s = long_text(1000);
	int i;

	(void)state;
	for (i = 0; i < 100; i++)
		json_array_append_new(v, json_pack("{s:s}", "a", s));
	assert_int_equal(fit_texts(v, 1000), 100);
	last = json_array_get(v, 99);
	assert_in_range(strlen(text(last, "a")), 200, 300);
	json_decref(v);
	free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits_stays_as_it_is),
		cmocka_unit_test(long_texts_are_cut_and_short_ones_are_not),
		cmocka_unit_test(no_character_is_split),
		cmocka_unit_test(something_is_left_of_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
