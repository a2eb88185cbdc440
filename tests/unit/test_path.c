#include <stdlib.h>

#include "base/path.h"
#include "test.h"

/* Compare and free. */
static void
check(char *got, const char *want)
{
	assert_string_equal(got, want);
	free(got);
}

static void
cleans_relative_paths(void **state)
{
	(void)state;
	check(path_clean(""), ".");
	check(path_clean("."), ".");
	check(path_clean("./"), ".");
	check(path_clean("a"), "a");
	check(path_clean("a/"), "a");
	check(path_clean("a//b/./c/"), "a/b/c");
	check(path_clean("./a"), "a");
	check(path_clean("a/.."), ".");
	check(path_clean("a/../b"), "b");
	check(path_clean("a/b/../../c"), "c");
}

static void
keeps_dot_dot_that_nothing_resolves(void **state)
{
	(void)state;
	check(path_clean(".."), "..");
	check(path_clean("../.."), "../..");
	check(path_clean("../a/.."), "..");
	check(path_clean("a/../.."), "..");
	check(path_clean("a/../../b"), "../b");
	check(path_clean("../../a/../b"), "../../b");
}

static void
cleans_absolute_paths(void **state)
{
	(void)state;
	check(path_clean("/"), "/");
	check(path_clean("//"), "/");
	check(path_clean("///a"), "/a");
	check(path_clean("/a/"), "/a");
	check(path_clean("/a/./b//../c"), "/a/c");
	check(path_clean("/a/.."), "/");
}

static void
lets_dot_dot_above_the_root_vanish(void **state)
{
	(void)state;
	check(path_clean("/.."), "/");
	check(path_clean("/../../a"), "/a");
	check(path_clean("/a/../../b/.."), "/");
}

static void
leaves_names_that_only_look_like_dots(void **state)
{
	(void)state;
	check(path_clean("..."), "...");
	check(path_clean("a/..b/.c/d.."), "a/..b/.c/d..");
	check(path_clean("..a/.."), ".");
	check(path_clean(".../.."), ".");
}

static void
joins(void **state)
{
	(void)state;
	check(path_join("a", "b"), "a/b");
	check(path_join("a/", "b"), "a/b");
	check(path_join("/", "b"), "/b");
	check(path_join("", "b"), "b");
	check(path_join("a", ""), "a");
	check(path_join("", ""), "");
	check(path_join("a", "../b"), "a/../b");
}

static void
lets_an_absolute_name_stand_alone(void **state)
{
	(void)state;
	check(path_join("a", "/b"), "/b");
	check(path_join("/", "/"), "/");
}

static void
puts_the_home_directory_in(void **state)
{
	(void)state;
	check(path_home("~", "/home/u"), "/home/u");
	check(path_home("~/", "/home/u"), "/home/u");
	check(path_home("~/x/y", "/home/u"), "/home/u/x/y");
	check(path_home("~/x", "/"), "/x");
	check(path_home("~//etc", "/home/u"), "/home/u/etc");
}

static void
leaves_other_tildes_alone(void **state)
{
	(void)state;
	check(path_home("~user", "/home/u"), "~user");
	check(path_home("~user/x", "/home/u"), "~user/x");
	check(path_home("a/~", "/home/u"), "a/~");
	check(path_home("/a", "/home/u"), "/a");
	check(path_home("", "/home/u"), "");
}

static void
knows_what_is_strictly_below(void **state)
{
	(void)state;
	assert_true(path_inside("a"));
	assert_true(path_inside("a/b"));
	assert_true(path_inside("./a"));
	assert_true(path_inside("a/."));
	assert_true(path_inside("..a/b.."));
	assert_true(path_inside("..."));
	assert_true(path_inside(" "));
}

static void
knows_what_is_not(void **state)
{
	(void)state;
	assert_false(path_inside(""));
	assert_false(path_inside("."));
	assert_false(path_inside("./"));
	assert_false(path_inside("././."));
	assert_false(path_inside("/"));
	assert_false(path_inside("/a"));
	assert_false(path_inside("//a"));
	assert_false(path_inside(".."));
	assert_false(path_inside("../a"));
	assert_false(path_inside("a/.."));
	assert_false(path_inside("a/../b"));
	assert_false(path_inside("a//..//"));
}

static void
a_path_has_a_last_part_and_one_before_it(void **state)
{
	static const char *const paths[][3] = {
		{ "a", ".", "a" },
		{ "a/b", "a", "b" },
		{ "/a", "/", "a" },
		{ "/a/b/c", "/a/b", "c" },
		{ "a/", "a", "" },
		{ "", ".", "" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		check(path_dir(paths[i][0]), paths[i][1]);
		assert_string_equal(path_base(paths[i][0]), paths[i][2]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_has_a_last_part_and_one_before_it),
		cmocka_unit_test(cleans_relative_paths),
		cmocka_unit_test(keeps_dot_dot_that_nothing_resolves),
		cmocka_unit_test(cleans_absolute_paths),
		cmocka_unit_test(lets_dot_dot_above_the_root_vanish),
		cmocka_unit_test(leaves_names_that_only_look_like_dots),
		cmocka_unit_test(joins),
		cmocka_unit_test(lets_an_absolute_name_stand_alone),
		cmocka_unit_test(puts_the_home_directory_in),
		cmocka_unit_test(leaves_other_tildes_alone),
		cmocka_unit_test(knows_what_is_strictly_below),
		cmocka_unit_test(knows_what_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
