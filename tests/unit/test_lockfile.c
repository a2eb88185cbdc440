#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/lockfile.h"
#include "help.h"

static char *dir, *path;
static struct err err;
static char holder[LOCKFILE_TEXT];

static int
begin(void **state)
{
	(void)state;
	dir = make_dir();
	path = path_join(dir, "lock");
	return 0;
}

static int
end(void **state)
{
	(void)state;
	free(path);
	remove_dir(dir);
	return 0;
}

static int
take(const char *text, int64_t ms)
{
	struct until until = until_in(ms);

	return lockfile_take(path, text, holder, &until, &err);
}

static void
one_has_it_and_says_who(void **state)
{
	int fd = take("task 1\n", 0);

	(void)state;
	assert_true(fd != -1);
	assert_string_equal(holder, "");
	assert_true(lockfile_held(path, holder));
	assert_string_equal(holder, "task 1");
	assert_int_equal(take("task 2\n", 30), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_string_equal(holder, "task 1");
	lockfile_give(path, fd);
	assert_false(lockfile_held(path, holder));
	assert_int_equal(access(path, F_OK), -1);
	fd = take("2", 0);
	assert_true(fd != -1);
	lockfile_give(path, fd);
}

/* What a dead one left is nobody's, whatever stands in it. */
static void
a_file_alone_is_no_lock(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(fs_replace(path, BYTES("a long line of somebody"),
	                     0600, &err),
	    0);
	assert_false(lockfile_held(path, holder));
	assert_string_equal(holder, "");
	fd = take("me", 0);
	assert_true(fd != -1);
	assert_true(lockfile_held(path, holder));
	assert_string_equal(holder, "me");
	lockfile_give(path, fd);
}

static void
it_ends_with_its_process(void **state)
{
	int pair[2];
	pid_t pid;
	int fd;
	char c;

	(void)state;
	assert_int_equal(fs_pipe(pair, &err), 0);
	pid = fork();
	if (pid == 0) {
		if (take("child", 0) != -1)
			(void)!write(pair[1], "t", 1);
		pause();
	}
	assert_int_equal(read(pair[0], &c, 1), 1);
	assert_true(lockfile_held(path, holder));
	assert_string_equal(holder, "child");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(lockfile_held(path, holder));
	fd = take("me", 0);
	assert_true(fd != -1);
	lockfile_give(path, fd);
	close(pair[0]);
	close(pair[1]);
}

/* Everybody takes and removes it; nobody may have it together with another. */
static void
many_take_turns(void **state)
{
	enum { PROCESSES = 4, TURNS = 60 };
	char *count = path_join(dir, "count");
	pid_t pids[PROCESSES];
	int i, k, status;

	(void)state;
	for (i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		if (pids[i] != 0)
			continue;
		for (k = 0; k < TURNS; k++) {
			int fd = take("turn", 20000);

			/* Made by one, gone before the next. */
			if (fd == -1 || mkdir(count, 0700) == -1 ||
			    rmdir(count) == -1)
				_exit(1);
			lockfile_give(path, fd);
		}
		_exit(0);
	}
	for (i = 0; i < PROCESSES; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	free(count);
}

static void
where_nothing_can_be_written_is_said(void **state)
{
	(void)state;
	free(path);
	path = path_join(dir, "no/such/place");
	assert_int_equal(take("x", 0), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "cannot lock");
	assert_false(lockfile_held(path, holder));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_has_it_and_says_who),
		TEST(a_file_alone_is_no_lock),
		TEST(it_ends_with_its_process),
		TEST(many_take_turns),
		TEST(where_nothing_can_be_written_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
