#include <stdlib.h>
#include <string.h>

#include "config/roots.h"
#include "trees.h"

/* Each test has a directory with "in" and "out" in it. */
static char *top;
static int top_fd;
static struct err err;

static int
begin(void **state)
{
	char *made = make_dir();

	(void)state;
	unsetenv("REMOTE_SANDBOX_LOCAL_ROOTS");
	/* /tmp is a link on a Mac. */
	top = realpath(made, NULL);
	assert_non_null(top);
	free(made);
	top_fd = open_root(top);
	put_dir(top_fd, "in");
	put_dir(top_fd, "in/sub");
	put_dir(top_fd, "out");
	put_file(top_fd, "in/file", BYTES("x"));
	put_file(top_fd, "out/file", BYTES("x"));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	close(top_fd);
	remove_tree(top);
	return 0;
}

/* What roots_allow() says of top/path with top/root as the only root. */
static int
ask(const char *root, const char *path)
{
	char *list = path_join(top, root), *full = path_join(top, path);
	int ret = roots_allow(list, "/nonexistent", full, &err);

	free(list);
	free(full);
	return ret;
}

static void
denied(const char *root, const char *path)
{
	err.code = ERR_NONE;
	if (ask(root, path) == 0)
		fail_msg("%s is in %s", path, root);
	assert_int_equal(err.code, ERR_DENIED);
}

static void
without_the_variable_every_path_may_be_used(void **state)
{
	(void)state;
	assert_int_equal(roots_check("/etc/passwd", &err), 0);
	setenv("REMOTE_SANDBOX_LOCAL_ROOTS", " ", 1);
	assert_int_equal(roots_check("/etc/passwd", &err), 0);
	setenv("REMOTE_SANDBOX_LOCAL_ROOTS", "/nonexistent", 1);
	assert_int_equal(roots_check("/etc/passwd", &err), -1);
	says(err.msg, "REMOTE_SANDBOX_LOCAL_ROOTS");
	says(err.msg, "/etc/passwd");
	says(err.msg, "/nonexistent");
}

static void
what_is_inside_may_be_used(void **state)
{
	static const char *const paths[] = { "in", "in/", "in/.", "in/file",
		"in/sub", "in/sub/..", "in/new", "in/new/newer", "in/new/",
		"out/../in/file", "in//file" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (ask("in", paths[i]) == -1)
			fail_msg("%s", err.msg);
		assert_int_equal(ask("in/", paths[i]), 0);
	}
}

static void
what_is_outside_may_not(void **state)
{
	static const char *const paths[] = { "", "out", "out/file", "out/new",
		"in/..", "in/../out/file", "in2", "inn/x", "i", "in/new/../x",
		"in/new/../../out/file", "new/../in/file" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		denied("in", paths[i]);
	denied("nowhere", "nowhere");
	denied("nowhere", "in");
}

static void
links_count_by_where_they_lead(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("../out", top_fd, "in/way"), 0);
	assert_int_equal(symlinkat("../out/file", top_fd, "in/link"), 0);
	assert_int_equal(symlinkat("in", top_fd, "alias"), 0);
	denied("in", "in/way");
	denied("in", "in/way/file");
	denied("in", "in/way/new");
	denied("in", "in/link");
	assert_int_equal(ask("in", "alias/file"), 0);
	assert_int_equal(ask("in", "alias/new"), 0);
	/* A root may be a link itself. */
	assert_int_equal(ask("alias", "in/file"), 0);
	denied("alias", "out/file");
	/* To nowhere: writing there would make a file outside. */
	assert_int_equal(symlinkat("../out/new", top_fd, "in/dangling"), 0);
	assert_int_equal(ask("in", "in/dangling"), -1);
	assert_int_equal(ask("in", "in/dangling/x"), -1);
}

/* Between the check of a path and its use it may become a link. */
static void
what_was_opened_counts_by_where_it_is(void **state)
{
	char *in = path_join(top, "in"), *way = path_join(top, "in/late");
	int fd;

	(void)state;
	assert_int_equal(setenv("REMOTE_SANDBOX_LOCAL_ROOTS", in, 1), 0);
	assert_int_equal(roots_check(way, &err), 0);
	assert_int_equal(symlinkat("../out", top_fd, "in/late"), 0);
	fd = open(way, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	/* And it may be another one again: what was opened is outside. */
	assert_int_equal(unlinkat(top_fd, "in/late", 0), 0);
	assert_int_equal(mkdirat(top_fd, "in/late", 0700), 0);
	assert_int_equal(roots_check_fd(fd, way, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	close(fd);
	fd = open(way, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(roots_check_fd(fd, way, &err), 0);
	close(fd);
	unsetenv("REMOTE_SANDBOX_LOCAL_ROOTS");
	free(in);
	free(way);
}

static int
with(const char *list, const char *path)
{
	return roots_allow(list, top, path, &err);
}

static void
there_may_be_several_roots(void **state)
{
	char *in = path_join(top, "in/file"), *out = path_join(top, "out/new");
	char *list = xasprintf("/nonexistent::%s/in:%s/out:", top, top);

	(void)state;
	assert_int_equal(with(list, in), 0);
	assert_int_equal(with(list, out), 0);
	assert_int_equal(with(list, top), -1);
	free(list);
	list = xasprintf(" [\"%s/in\", \"%s/out\"]", top, top);
	assert_int_equal(with(list, in), 0);
	assert_int_equal(with(list, out), 0);
	assert_int_equal(with(list, top), -1);
	free(list);
	/* The home directory, the whole disk, and none. */
	assert_int_equal(with("~/in", in), 0);
	assert_int_equal(with("~/in", out), -1);
	assert_int_equal(with("~", out), 0);
	assert_int_equal(with("/", out), 0);
	assert_int_equal(with("[]", out), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(with(":", out), -1);
	assert_int_equal(err.code, ERR_DENIED);
	free(in);
	free(out);
}

static void
a_slip_in_the_list_opens_nothing(void **state)
{
	static const char *const lists[] = { "relative", "/:relative", "[",
		"[1]", "[\"relative\"]", "[\"/\", null]", "[\"/\\u0000\"]",
		"~ann/x" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		if (with(lists[i], top) == 0)
			fail_msg("%s opens it", lists[i]);
		assert_int_equal(err.code, ERR_INVALID);
		says(err.msg, "REMOTE_SANDBOX_LOCAL_ROOTS");
	}
}

static void
relative_paths_begin_where_we_are(void **state)
{
	(void)state;
	assert_int_equal(fchdir(top_fd), 0);
	assert_int_equal(with("~/in", "in/file"), 0);
	assert_int_equal(with("~/in", "./in/new"), 0);
	assert_int_equal(with("~/in", "out"), -1);
	assert_int_equal(with("~/in", "new"), -1);
	assert_int_equal(with("~", "new"), 0);
	assert_int_equal(with("~", ""), 0);
	assert_int_equal(chdir("/"), 0);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(without_the_variable_every_path_may_be_used),
		TEST(what_is_inside_may_be_used),
		TEST(what_is_outside_may_not),
		TEST(links_count_by_where_they_lead),
		TEST(what_was_opened_counts_by_where_it_is),
		TEST(there_may_be_several_roots),
		TEST(a_slip_in_the_list_opens_nothing),
		TEST(relative_paths_begin_where_we_are),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
