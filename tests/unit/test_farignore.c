/*
 * The .gitignore files of a host: what is too much of them.  What reads them is
 * compiled into this file.
 */
#include "sync/farignore.c"

#include "help.h"

static struct tree tree;
static struct ignores g;
static struct err err;

static int
begin(void **state)
{
	static const char *const dirs[] = { "a", "b", "c", "d", "e", "f" };
	size_t i;

	(void)state;
	tree_init(&tree);
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char *path = xasprintf("%s/.gitignore", dirs[i]);

		tree_add(&tree, dirs[i], NULL)->type = ENTRY_DIR;
		tree_add(&tree, path, NULL)->type = ENTRY_FILE;
		free(path);
	}
	tree_sort(&tree);
	memset(&g, 0, sizeof(g));
	g.tree = &tree;
	g.rules = rules_new();
	buf_init(&g.text, IGNORE_MAX);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	rules_free(g.rules);
	buf_free(&g.text);
	tree_free(&tree);
	return 0;
}

/* One file of so many lines; false if no more is wanted. */
static bool
give_file(const char *line, size_t n)
{
	char *text = repeated(line, n);
	bool more = ignore_sink(&g, text, strlen(text) + 1);

	free(text);
	return more;
}

static void
what_is_excluded_is_dropped(void **state)
{
	struct until never = until_never();

	(void)state;
	assert_true(give_file(".gitignore\n", 1));
	assert_true(
	    give_file("", 0) && give_file("", 0) && give_file("\n", 100000));
	assert_true(give_file("*\n", 1));
	assert_true(give_file("*\n!.gitignore\n", 1));
	assert_true(ignore_sink(&g, "E", 2));
	assert_int_equal(check_ignores(&g, "/r", &err), 0);
	assert_int_equal(drop_excluded(&tree, &g, &never, &err), 0);
	assert_int_equal(tree.count, 10);
	assert_null(tree_find(&tree, "a/.gitignore"));
	assert_null(tree_find(&tree, "e/.gitignore"));
	assert_non_null(tree_find(&tree, "f/.gitignore"));
}

static void
lines_have_a_limit(void **state)
{
	(void)state;
	assert_true(give_file("*\n", 50000));
	assert_true(give_file("*\n", 50000));
	assert_int_equal(check_ignores(&g, "/r", &err), -1);
	says(err.msg, "could not be read");
	assert_false(give_file("*\n", 1));
	assert_int_equal(check_ignores(&g, "/r", &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "without use_gitignore");
	says(err.msg, "excludes");
}

static void
bytes_have_a_limit(void **state)
{
	char *line = repeated("x", 1023);
	int n = 0;

	(void)state;
	line[1022] = '\n';
	while (give_file(line, 1024))
		assert_true(++n < 6);
	assert_int_equal(n, 4);
	assert_int_equal(check_ignores(&g, "/r", &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	free(line);
}

static void
dropping_can_be_cancelled(void **state)
{
	struct until now = until_in(0);

	(void)state;
	assert_true(give_file("*\n", 1));
	assert_int_equal(drop_excluded(&tree, &g, &now, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_is_excluded_is_dropped),
		TEST(lines_have_a_limit),
		TEST(bytes_have_a_limit),
		TEST(dropping_can_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
