#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config/dirs.h"
#include "help.h"

/* Each test has a directory of its own and an empty environment. */
static char *top, *inner;
static struct err err;

static int
begin(void **state)
{
	static const char *const names[] = { "HOME", "XDG_RUNTIME_DIR",
		"XDG_STATE_HOME", "REMOTE_SANDBOX_MCP_HOME" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	top = make_dir();
	inner = NULL;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	if (inner != NULL)
		rmdir(inner);
	free(inner);
	remove_dir(top);
	return 0;
}

/* "inner" is top/name from now on. */
static const char *
below(const char *name)
{
	free(inner);
	inner = path_join(top, name);
	return inner;
}

static void
is_private(const char *path)
{
	struct stat st;

	assert_int_equal(lstat(path, &st), 0);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0700);
}

static void
sockets_go_to_the_runtime_directory(void **state)
{
	char *path;

	(void)state;
	setenv("XDG_RUNTIME_DIR", top, 1);
	path = dirs_runtime(&err);
	assert_non_null(path);
	assert_string_equal(path, below("rsmcp"));
	is_private(path);
	free(path);
	/* Once more: it is there already. */
	path = dirs_runtime(&err);
	assert_string_equal(path, inner);
	free(path);
}

static void
a_runtime_directory_that_others_may_enter_is_refused(void **state)
{
	static const mode_t shared[] = { 0755, 0710, 0770, 0701, 0777 };
	size_t i;

	(void)state;
	setenv("XDG_RUNTIME_DIR", top, 1);
	assert_int_equal(mkdir(below("rsmcp"), 0700), 0);
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		assert_int_equal(chmod(inner, shared[i]), 0);
		assert_null(dirs_runtime(&err));
		assert_int_equal(err.code, ERR_DENIED);
		says(err.msg, inner);
		says(err.msg, "chmod 700");
	}
}

static void
a_runtime_directory_that_is_none_is_refused(void **state)
{
	(void)state;
	setenv("XDG_RUNTIME_DIR", top, 1);
	assert_int_equal(fs_replace(below("rsmcp"), "", 0, 0600, &err), 0);
	assert_null(dirs_runtime(&err));
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(unlink(inner), 0);
	/* A link to a directory that would be fine. */
	assert_int_equal(symlink(top, inner), 0);
	assert_null(dirs_runtime(&err));
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(unlink(inner), 0);
}

static void
a_runtime_directory_of_somebody_else_is_refused(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	setenv("XDG_RUNTIME_DIR", top, 1);
	assert_int_equal(mkdir(below("rsmcp"), 0700), 0);
	assert_int_equal(chown(inner, 12345, 12345), 0);
	assert_null(dirs_runtime(&err));
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, inner);
}

/* As the earlier server made them; but a place that the user chose may be used
 * for more. */
static void
open_directories_of_ours_are_closed(void **state)
{
	struct stat st;
	char *path;

	(void)state;
	setenv("HOME", "/dev/null", 1);
	setenv("XDG_STATE_HOME", top, 1);
	assert_int_equal(mkdir(below("remote-sandbox-mcp"), 0755), 0);
	path = dirs_state(&err);
	assert_non_null(path);
	is_private(path);
	free(path);
	setenv("REMOTE_SANDBOX_MCP_HOME", top, 1);
	assert_int_equal(chmod(top, 0755), 0);
	path = dirs_state_sub("remote-sandbox-mcp", &err);
	assert_non_null(path);
	is_private(path);
	free(path);
	assert_int_equal(stat(top, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0755);
}

/* REMOTE_SANDBOX_MCP_HOME, then XDG_STATE_HOME, then HOME. */
static void
state_goes_where_the_user_says(void **state)
{
	char *path;

	(void)state;
	setenv("HOME", "/dev/null", 1);
	setenv("XDG_STATE_HOME", "/dev/null", 1);
	setenv("REMOTE_SANDBOX_MCP_HOME", below("mine"), 1);
	path = dirs_state(&err);
	assert_non_null(path);
	assert_string_equal(path, inner);
	is_private(path);
	free(path);

	/* A tilde is the home directory. */
	setenv("HOME", top, 1);
	setenv("REMOTE_SANDBOX_MCP_HOME", "~/mine", 1);
	path = dirs_state(&err);
	assert_string_equal(path, inner);
	free(path);
}

#ifndef __APPLE__
static void
state_goes_where_the_system_keeps_it(void **state)
{
	char *path;

	(void)state;
	setenv("HOME", "/dev/null", 1);
	setenv("XDG_STATE_HOME", top, 1);
	setenv("REMOTE_SANDBOX_MCP_HOME", " ", 1);
	path = dirs_state(&err);
	assert_non_null(path);
	assert_string_equal(path, below("remote-sandbox-mcp"));
	is_private(path);
	free(path);
	/* A relative one does not count, says its standard. */
	setenv("XDG_STATE_HOME", "relative", 1);
	assert_null(dirs_state(&err));
	says(err.msg, "/dev/null");
}
#endif

static void
state_needs_a_place(void **state)
{
	(void)state;
	assert_null(dirs_state(&err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "REMOTE_SANDBOX_MCP_HOME");
	assert_null(dirs_state_sub("outputs", &err));
	/* Something is in its place. */
	assert_int_equal(fs_replace(below("file"), "", 0, 0600, &err), 0);
	setenv("REMOTE_SANDBOX_MCP_HOME", inner, 1);
	assert_null(dirs_state(&err));
	says(err.msg, inner);
	assert_null(dirs_state_sub("outputs", &err));
	assert_int_equal(unlink(inner), 0);
}

static void
there_may_be_directories_below_it(void **state)
{
	char *path;

	(void)state;
	setenv("REMOTE_SANDBOX_MCP_HOME", top, 1);
	path = dirs_state_sub("outputs", &err);
	assert_non_null(path);
	assert_string_equal(path, below("outputs"));
	is_private(path);
	free(path);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(sockets_go_to_the_runtime_directory),
		TEST(a_runtime_directory_that_others_may_enter_is_refused),
		TEST(a_runtime_directory_that_is_none_is_refused),
		TEST(a_runtime_directory_of_somebody_else_is_refused),
		TEST(open_directories_of_ours_are_closed),
		TEST(state_goes_where_the_user_says),
#ifndef __APPLE__
		TEST(state_goes_where_the_system_keeps_it),
#endif
		TEST(state_needs_a_place),
		TEST(there_may_be_directories_below_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
