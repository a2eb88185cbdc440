#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "sync/tree.h"

static void
fill(struct tree *t, const char *const *paths)
{
	tree_init(t);
	for (; *paths != NULL; paths++)
		tree_add(t, *paths, NULL);
}

static void
check(const struct tree *t, const char *const *want)
{
	size_t i;

	for (i = 0; i < t->count && want[i] != NULL; i++)
		assert_string_equal(t->entries[i].path, want[i]);
	assert_int_equal(i, t->count);
	assert_null(want[i]);
}

static void
puts_what_is_below_a_directory_behind_it(void **state)
{
	static const char *const paths[] = { "b", "a.c", "a/z", "a b", "a",
		"a\x01", "a/z/y", "a-", "a/\xff", "a/b", NULL };
	static const char *const want[] = { "a", "a/b", "a/z", "a/z/y",
		"a/\xff", "a\x01", "a b", "a-", "a.c", "b", NULL };
	struct tree t;

	(void)state;
	fill(&t, paths);
	tree_sort(&t);
	check(&t, want);
	tree_free(&t);
}

static void
compares_bytes_as_unsigned(void **state)
{
	(void)state;
	assert_true(tree_compare("a", "\xc3\xa4") < 0);
	assert_true(tree_compare("\xc3\xa4", "z") > 0);
	assert_true(tree_compare("", "a") < 0);
	assert_true(tree_compare("a/b", "a\x01") < 0);
	assert_true(tree_compare("a", "a/b") < 0);
	assert_int_equal(tree_compare("a/b", "a/b"), 0);
}

static void
keeps_the_first_of_several(void **state)
{
	struct tree t;
	int i;

	(void)state;
	tree_init(&t);
	for (i = 0; i < 300; i++)
		tree_add(&t,
		    i % 3 == 0       ? "same"
		        : i % 3 == 1 ? "b"
		                     : "a",
		    NULL)
		    ->size = i;
	tree_sort(&t);
	assert_int_equal(t.count, 3);
	assert_int_equal(tree_find(&t, "same")->size, 0);
	assert_int_equal(tree_find(&t, "b")->size, 1);
	assert_int_equal(tree_find(&t, "a")->size, 2);
	tree_free(&t);
}

static void
finds_what_is_there_alone(void **state)
{
	static const char *const paths[] = { "d", "d/e", "d.e", "f", NULL };
	struct tree t;
	size_t i;

	(void)state;
	fill(&t, paths);
	tree_sort(&t);
	for (i = 0; paths[i] != NULL; i++)
		assert_string_equal(tree_find(&t, paths[i])->path, paths[i]);
	assert_null(tree_find(&t, ""));
	assert_null(tree_find(&t, "d/"));
	assert_null(tree_find(&t, "d/e/f"));
	assert_null(tree_find(&t, "z"));
	tree_free(&t);
	assert_null(tree_find(&t, "d"));
}

/* Short ones, and some that no block has room for. */
static void
keeps_texts_of_any_length(void **state)
{
	char *long_text = repeated("0123456789", 20000);
	struct tree t;
	size_t i;

	(void)state;
	tree_init(&t);
	for (i = 0; i < 5000; i++) {
		char name[32];

		snprintf(name, sizeof(name), "name-%05zu", i);
		tree_add(&t, name, i % 7 == 0 ? "target" : NULL)->size =
		    (int64_t)i;
		if (i % 1000 == 0)
			tree_add(&t, long_text, long_text);
	}
	tree_sort(&t);
	assert_int_equal(t.count, 5001);
	for (i = 0; i < 5000; i++) {
		char name[32];
		const struct entry *e;

		snprintf(name, sizeof(name), "name-%05zu", i);
		e = tree_find(&t, name);
		assert_non_null(e);
		assert_int_equal(e->size, i);
		if (i % 7 == 0)
			assert_string_equal(e->target, "target");
		else
			assert_null(e->target);
	}
	assert_string_equal(tree_find(&t, long_text)->target, long_text);
	tree_free(&t);
	free(long_text);
}

static void
knows_what_is_below(void **state)
{
	(void)state;
	assert_true(tree_below("a/b", "a"));
	assert_true(tree_below("a/b/c", "a"));
	assert_true(tree_below("a", ""));
	assert_false(tree_below("a", "a"));
	assert_false(tree_below("ab", "a"));
	assert_false(tree_below("a.b/c", "a"));
	assert_false(tree_below("", ""));
}

static void
sorts_nothing_and_one(void **state)
{
	struct tree t;

	(void)state;
	tree_init(&t);
	tree_sort(&t);
	assert_int_equal(t.count, 0);
	tree_add(&t, "x", NULL);
	tree_sort(&t);
	assert_int_equal(t.count, 1);
	tree_free(&t);
	tree_free(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_what_is_below_a_directory_behind_it),
		cmocka_unit_test(compares_bytes_as_unsigned),
		cmocka_unit_test(keeps_the_first_of_several),
		cmocka_unit_test(finds_what_is_there_alone),
		cmocka_unit_test(keeps_texts_of_any_length),
		cmocka_unit_test(knows_what_is_below),
		cmocka_unit_test(sorts_nothing_and_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
