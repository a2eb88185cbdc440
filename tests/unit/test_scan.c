#include "base/str.h"
#include "oddtree.h"
#include "sync/scan.h"

static void
take_problem(void *data, const char *path, const char *why)
{
	buf_addf(data, "%s: %s\n", path, why);
}

static void
scan(const char *path, const struct scan_options *o, struct tree *t)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct until until = until_in(30000);
	struct err err = ERR_INIT;

	if (scan_local(fd, o, t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	close(fd);
}

static const struct entry *
find(const struct tree *t, const char *path)
{
	const struct entry *e = tree_find(t, path);

	if (e == NULL)
		fail_msg("%s is not there", path);
	return e;
}

static void
sees_what_is_there(void **state)
{
	char *dir = odd_make();
	struct scan_options o = { 0 };
	struct tree t;

	(void)state;
	scan(dir, &o, &t);
	assert_int_equal(t.count, 32);
	assert_int_equal(find(&t, "a")->type, ENTRY_DIR);
	assert_int_equal(find(&t, "a")->size, 0);
	assert_int_equal(find(&t, "a")->mtime, 1000000002999999999);
	assert_int_equal(find(&t, "a/zero")->mtime, -1750000000);
	assert_int_equal(find(&t, "a/b/c/f")->size, 5);
	assert_int_equal(find(&t, "a/b/c/f")->mode, 0640);
	assert_int_equal(find(&t, "a b")->mode, 0755);
	assert_int_equal(find(&t, "fifo")->type, ENTRY_OTHER);
	assert_int_equal(find(&t, "link")->type, ENTRY_LINK);
	assert_string_equal(find(&t, "link")->target, "a/b");
	assert_int_equal(find(&t, "link")->mtime, 1000000001000000005);
	assert_string_equal(find(&t, "dangling")->target, "/no\nwhere ");
	find(&t, "new\nline/in");
	find(&t, "\xff\xfe");
	assert_null(tree_find(&t, "link/c"));
	assert_false(t.whole_seconds);
	tree_free(&t);
	odd_remove(dir);
}

static void
enters_nothing_that_is_excluded(void **state)
{
	char *dir = odd_make();
	struct scan_options o = { .rules = rules_new() };
	struct tree t;

	(void)state;
	rules_add(o.rules, "a/b");
	scan(dir, &o, &t);
	assert_int_equal(t.count, 21);
	assert_null(tree_find(&t, ".git"));
	assert_null(tree_find(&t, "a/b"));
	assert_null(tree_find(&t, "a/b/c/f"));
	assert_null(tree_find(&t, ".rsmcp-1"));
	assert_null(tree_find(&t, "sub/node_modules"));
	assert_null(tree_find(&t, "sub/x.pyc"));
	find(&t, "a/zero");
	tree_free(&t);
	rules_free(o.rules);
	odd_remove(dir);
}

static void
honours_ignore_files(void **state)
{
	char *dir = make_dir();
	int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scan_options o = { .rules = rules_new(), .gitignore = true };
	struct tree t;

	(void)state;
	assert_int_equal(mkdirat(root, "in", 0755), 0);
	assert_int_equal(mkdirat(root, "out", 0755), 0);
	odd_file(root, ".gitignore", "*.o\nout/\n", 0644);
	odd_file(root, "in/.gitignore", "!b.o\n", 0644);
	odd_file(root, "a.o", "", 0644);
	odd_file(root, "in/a.o", "", 0644);
	odd_file(root, "in/b.o", "", 0644);
	odd_file(root, "out/x", "", 0644);
	close(root);
	scan(dir, &o, &t);
	assert_int_equal(t.count, 4);
	find(&t, ".gitignore");
	find(&t, "in/.gitignore");
	find(&t, "in/b.o");
	tree_free(&t);
	rules_free(o.rules);
	odd_remove(dir);
}

/* Root may read everything. */
static void
goes_on_behind_what_cannot_be_read(void **state)
{
	char *dir = odd_make();
	int root = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct buf problems;
	struct scan_options o = { .problem = take_problem,
		.problem_data = &problems };
	struct tree t;

	(void)state;
	buf_init(&problems, SIZE_MAX);
	assert_int_equal(fchmodat(root, "a/b", 0, 0), 0);
	scan(dir, &o, &t);
	if (geteuid() != 0) {
		says(problems.data, "a/b: the directory cannot be read");
		assert_true(find(&t, "a/b")->unread);
		assert_null(tree_find(&t, "a/b/c"));
	}
	find(&t, "sub");
	assert_false(find(&t, "a")->unread);
	assert_int_equal(fchmodat(root, "a/b", 0755, 0), 0);
	close(root);
	tree_free(&t);
	buf_free(&problems);
	odd_remove(dir);
}

/* It reports where it ends and goes on. */
static void
ends_at_a_depth(void **state)
{
	enum { DEPTH = 600 };
	char *dir = make_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct buf problems;
	struct scan_options o = { .problem = take_problem,
		.problem_data = &problems };
	struct tree t;
	int i, in;

	(void)state;
	buf_init(&problems, SIZE_MAX);
	for (i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, "d", 0755), 0);
		in = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(in != -1);
		close(fd);
		fd = in;
	}
	close(fd);
	scan(dir, &o, &t);
	assert_in_range(t.count, 100, DEPTH);
	says(problems.data, "too deep");
	assert_true(t.entries[t.count - 1].unread);
	tree_free(&t);
	buf_free(&problems);
	odd_remove(dir);
}

static void
ends_with_the_until(void **state)
{
	char *dir = make_dir();
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scan_options o = { 0 };
	struct until until = until_in(-1);
	struct err err = ERR_INIT;
	struct tree t;

	(void)state;
	assert_int_equal(scan_local(fd, &o, &t, &until, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(t.count, 0);
	close(fd);
	remove_dir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sees_what_is_there),
		cmocka_unit_test(enters_nothing_that_is_excluded),
		cmocka_unit_test(honours_ignore_files),
		cmocka_unit_test(goes_on_behind_what_cannot_be_read),
		cmocka_unit_test(ends_at_a_depth),
		cmocka_unit_test(ends_with_the_until),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
