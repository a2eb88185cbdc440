#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/str.h"
#include "test.h"

/* Every test runs in an empty directory of its own. */

static char home[PATH_MAX];
static char dir[PATH_MAX];

static int
enter_dir(void **state)
{
	const char *tmp = getenv("TMPDIR");

	(void)state;
	assert_non_null(getcwd(home, sizeof(home)));
	snprintf(dir, sizeof(dir), "%s/test_fs.XXXXXX", tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	return 0;
}

static void
remove_tree(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *entry;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL) {
		char name[PATH_MAX];
		struct stat st;

		if (str_same(entry->d_name, ".") ||
		    str_same(entry->d_name, ".."))
			continue;
		snprintf(name, sizeof(name), "%.2000s/%.255s", path,
		    entry->d_name);
		assert_int_equal(lstat(name, &st), 0);
		if (S_ISDIR(st.st_mode))
			remove_tree(name);
		else
			assert_int_equal(unlink(name), 0);
	}
	closedir(d);
	assert_int_equal(rmdir(path), 0);
}

static int
leave_dir(void **state)
{
	(void)state;
	assert_int_equal(chdir(home), 0);
	remove_tree(dir);
	return 0;
}

static int
entries(void)
{
	DIR *d = opendir(".");
	int n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2; /* "." and ".." */
}

static void
make_file(const char *path, const char *data, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fs_write_all(fd, data, len), 0);
	close(fd);
}

static void
check_file(const char *path, const char *want, size_t len)
{
	struct err err = ERR_INIT;
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(path, &b, &err), 0);
	assert_int_equal(b.len, len);
	assert_memory_equal(b.data, want, len);
	buf_free(&b);
}

static void
reads_a_whole_file_behind_what_is_there(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	make_file("f", "a\0b", 3);
	buf_init(&b, 100);
	buf_adds(&b, ">");
	assert_int_equal(fs_read("f", &b, &err), 0);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, ">a\0b", 5);
	assert_int_equal(err.code, ERR_NONE);
	buf_free(&b);
}

static void
reads_an_empty_file(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	make_file("f", "", 0);
	buf_init(&b, 0);
	assert_int_equal(fs_read("f", &b, &err), 0);
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void
reads_a_file_that_just_fits(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	make_file("f", "12345", 5);
	buf_init(&b, 7);
	buf_adds(&b, "ab");
	assert_int_equal(fs_read("f", &b, &err), 0);
	assert_string_equal(b.data, "ab12345");
	assert_false(b.full);
	buf_free(&b);
}

static void
refuses_a_file_that_does_not_fit(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	make_file("f", "123456", 6);
	buf_init(&b, 7);
	buf_adds(&b, "ab");
	assert_int_equal(fs_read("f", &b, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_string_equal(err.msg, "f is larger than 5 bytes");
	assert_string_equal(b.data, "ab");
	assert_int_equal(b.len, 2);
	assert_false(b.full);
	buf_free(&b);
}

static void
refuses_a_file_without_end(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read("/dev/zero", &b, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void
names_the_file_it_cannot_read(void **state)
{
	struct err err = ERR_INIT;
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	assert_int_equal(fs_read("missing", &b, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.msg,
	    "cannot open missing: No such file or directory");
	assert_int_equal(fs_read(".", &b, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	assert_string_equal(err.msg, "cannot read .: Is a directory");
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void *
count_bytes(void *arg)
{
	char chunk[1000];
	size_t total = 0;
	ssize_t n;

	while ((n = read(*(int *)arg, chunk, sizeof(chunk))) > 0)
		total += (size_t)n;
	*(int *)arg = (int)total;
	return NULL;
}

static void
writes_more_than_a_pipe_holds(void **state)
{
	static char data[1 << 20];
	struct err err = ERR_INIT;
	pthread_t thread;
	int fds[2], reader;

	(void)state;
	assert_int_equal(fs_pipe(fds, &err), 0);
	reader = fds[0];
	assert_int_equal(pthread_create(&thread, NULL, count_bytes, &reader),
	    0);
	assert_int_equal(fs_write_all(fds[1], data, sizeof(data)), 0);
	close(fds[1]);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_int_equal(reader, sizeof(data));
	close(fds[0]);
}

static void
says_why_it_cannot_write(void **state)
{
	(void)state;
	assert_int_equal(fs_write_all(-1, "x", 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(fs_write_all(-1, "", 0), 0);
}

static void
makes_a_file_with_exactly_this_mode(void **state)
{
	mode_t before = umask(077);
	struct err err = ERR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(fs_replace("f", "a\0b", 3, 0644, &err), 0);
	umask(before);
	check_file("f", "a\0b", 3);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(fs_replace("f", "", 0, 0600, &err), 0);
	check_file("f", "", 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(entries(), 1);
}

static void
leaves_the_old_content_to_who_reads_it(void **state)
{
	struct err err = ERR_INIT;
	char old[4] = "";
	int fd;

	(void)state;
	make_file("f", "old", 3);
	fd = open("f", O_RDONLY | O_CLOEXEC);
	assert_int_equal(fs_replace("f", "new content", 11, 0600, &err), 0);
	assert_int_equal(read(fd, old, 3), 3);
	close(fd);
	assert_string_equal(old, "old");
	check_file("f", "new content", 11);
}

static void
replaces_a_file_elsewhere(void **state)
{
	struct err err = ERR_INIT;
	char path[PATH_MAX];

	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(fs_replace("d/f", "1", 1, 0600, &err), 0);
	check_file("d/f", "1", 1);
	snprintf(path, sizeof(path), "%.2000s/g", dir);
	assert_int_equal(fs_replace(path, "2", 1, 0600, &err), 0);
	check_file("g", "2", 1);
	assert_int_equal(entries(), 2);
}

/* "sudo ... setup" with the user's HOME. */
static void
a_replaced_file_stays_its_owners(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;

	(void)state;
	if (geteuid() != 0) {
		print_message("SKIPPED: needs root\n");
		skip();
	}
	assert_int_equal(fs_replace("f", "a", 1, 0600, &err), 0);
	assert_int_equal(chown("f", 65534, 65533), 0);
	assert_int_equal(fs_replace("f", "b", 1, 0640, &err), 0);
	assert_int_equal(stat("f", &st), 0);
	assert_int_equal(st.st_uid, 65534);
	assert_int_equal(st.st_gid, 65533);
	assert_int_equal(st.st_mode & 0777, 0640);
}

static void
replaces_a_file_with_the_longest_name(void **state)
{
	struct err err = ERR_INIT;
	char name[NAME_MAX + 1];

	(void)state;
	memset(name, 'n', sizeof(name));
	name[NAME_MAX] = '\0';
	assert_int_equal(fs_replace(name, "x", 1, 0600, &err), 0);
	check_file(name, "x", 1);
}

static void
replaces_a_symlink_and_not_what_it_points_to(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;

	(void)state;
	make_file("target", "t", 1);
	assert_int_equal(symlink("target", "link"), 0);
	assert_int_equal(fs_replace("link", "new", 3, 0600, &err), 0);
	check_file("target", "t", 1);
	assert_int_equal(lstat("link", &st), 0);
	assert_true(S_ISREG(st.st_mode));
}

static void
leaves_nothing_behind_when_it_cannot_replace(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir("d", 0700), 0);
	assert_int_equal(fs_replace("d", "x", 1, 0600, &err), -1);
	assert_string_equal(err.msg, "cannot replace d: Is a directory");
	assert_int_equal(entries(), 1);
	assert_int_equal(fs_replace("no/f", "x", 1, 0600, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_string_equal(err.msg,
	    "cannot make a file beside no/f: No such file or directory");
	assert_int_equal(entries(), 1);
}

/* A file size limit stands in for a full disk. */
static void
leaves_the_old_file_when_it_cannot_write(void **state)
{
	static char data[8192];
	struct rlimit before, small;
	struct err err = ERR_INIT;
	int ret;

	(void)state;
	make_file("f", "old", 3);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	small = before;
	small.rlim_cur = 4096;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	ret = fs_replace("f", data, sizeof(data), 0600, &err);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(ret, -1);
	assert_string_equal(err.msg, "cannot write f: File too large");
	check_file("f", "old", 3);
	assert_int_equal(entries(), 1);
}

static bool
is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void
makes_missing_parents(void **state)
{
	struct err err = ERR_INIT;
	struct stat st;

	(void)state;
	assert_int_equal(fs_mkdirs("a/b/c", 0700, &err), 0);
	assert_true(is_dir("a/b/c"));
	assert_int_equal(stat("a", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(fs_mkdirs("a/b/c", 0700, &err), 0);
	assert_int_equal(fs_mkdirs("a//d/./e//", 0700, &err), 0);
	assert_true(is_dir("a/d/e"));
	assert_int_equal(fs_mkdirs("x", 0700, &err), 0);
	assert_true(is_dir("x"));
	assert_int_equal(err.code, ERR_NONE);
}

static void
makes_absolute_ones(void **state)
{
	struct err err = ERR_INIT;
	char path[PATH_MAX];

	(void)state;
	snprintf(path, sizeof(path), "%.2000s/p/q", dir);
	assert_int_equal(fs_mkdirs(path, 0700, &err), 0);
	assert_true(is_dir("p/q"));
	assert_int_equal(fs_mkdirs("/", 0700, &err), 0);
}

static void
follows_symlinks_to_directories(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(mkdir("real", 0700), 0);
	assert_int_equal(symlink("real", "link"), 0);
	assert_int_equal(fs_mkdirs("link/sub", 0700, &err), 0);
	assert_true(is_dir("real/sub"));
}

static void
refuses_what_is_in_the_way(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	make_file("f", "", 0);
	assert_int_equal(fs_mkdirs("f", 0700, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.msg, "f is not a directory");
	assert_int_equal(fs_mkdirs("f/g/h", 0700, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.msg, "f is not a directory");
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(fs_mkdirs("dangling", 0700, &err), -1);
	assert_string_equal(err.msg,
	    "cannot make the directory dangling: File exists");
	assert_int_equal(fs_mkdirs("", 0700, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void *
make_dirs(void *arg)
{
	struct err err = ERR_INIT;

	*(int *)arg = fs_mkdirs("a/b/c/d/e/f/g/h", 0700, &err);
	return NULL;
}

static void
lets_several_make_the_same(void **state)
{
	pthread_t threads[4];
	int results[4], i;

	(void)state;
	for (i = 0; i < 4; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, make_dirs,
		                     &results[i]),
		    0);
	}
	for (i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(results[i], 0);
	}
	assert_true(is_dir("a/b/c/d/e/f/g/h"));
}

static void
makes_pipes_that_children_do_not_inherit(void **state)
{
	struct err err = ERR_INIT;
	int fds[2];
	char c;

	(void)state;
	assert_int_equal(fs_pipe(fds, &err), 0);
	assert_int_equal(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	assert_int_equal(fcntl(fds[1], F_GETFD), FD_CLOEXEC);
	assert_int_equal(write(fds[1], "x", 1), 1);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	close(fds[1]);
}

static void
says_when_there_are_no_more_descriptors(void **state)
{
	struct rlimit before, small;
	struct err err = ERR_INIT;
	int fds[2] = { 77, 88 };
	int ret;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	small = before;
	small.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &small), 0);
	ret = fs_pipe(fds, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(ret, -1);
	assert_string_equal(err.msg, "cannot make a pipe: Too many open files");
	assert_int_equal(fds[0], 77);
	assert_int_equal(fds[1], 88);
}

/* In a child, as it takes our own descriptors away.  Its exit status has a bit
 * for each thing that is wrong. */
static int
open_std_fds(bool close_0, bool close_1, bool close_2)
{
	int wrong = 0, fd;
	struct stat null, st;

	if (close_0)
		close(0);
	if (close_1)
		close(1);
	if (close_2)
		close(2);
	fs_std_fds();
	stat("/dev/null", &null);
	for (fd = 0; fd <= 2; fd++) {
		bool closed = fd == 0 ? close_0 : fd == 1 ? close_1 : close_2;

		if (fcntl(fd, F_GETFD) != 0)
			wrong |= 1 << fd;
		if (closed &&
		    (fstat(fd, &st) != 0 || st.st_rdev != null.st_rdev))
			wrong |= 8 << fd;
	}
	return wrong;
}

static void
opens_the_standard_descriptors_that_are_missing(void **state)
{
	int which, status;
	pid_t pid;

	(void)state;
	for (which = 0; which < 8; which++) {
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0)
			_exit(open_std_fds(which & 1, which & 2, which & 4));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
}

int
main(void)
{
#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, enter_dir, leave_dir)
	const struct CMUnitTest tests[] = {
		IN_DIR(reads_a_whole_file_behind_what_is_there),
		IN_DIR(reads_an_empty_file),
		IN_DIR(reads_a_file_that_just_fits),
		IN_DIR(refuses_a_file_that_does_not_fit),
		IN_DIR(refuses_a_file_without_end),
		IN_DIR(names_the_file_it_cannot_read),
		IN_DIR(writes_more_than_a_pipe_holds),
		IN_DIR(says_why_it_cannot_write),
		IN_DIR(makes_a_file_with_exactly_this_mode),
		IN_DIR(leaves_the_old_content_to_who_reads_it),
		IN_DIR(replaces_a_file_elsewhere),
		IN_DIR(a_replaced_file_stays_its_owners),
		IN_DIR(replaces_a_file_with_the_longest_name),
		IN_DIR(replaces_a_symlink_and_not_what_it_points_to),
		IN_DIR(leaves_nothing_behind_when_it_cannot_replace),
		IN_DIR(leaves_the_old_file_when_it_cannot_write),
		IN_DIR(makes_missing_parents),
		IN_DIR(makes_absolute_ones),
		IN_DIR(follows_symlinks_to_directories),
		IN_DIR(refuses_what_is_in_the_way),
		IN_DIR(lets_several_make_the_same),
		cmocka_unit_test(makes_pipes_that_children_do_not_inherit),
		cmocka_unit_test(says_when_there_are_no_more_descriptors),
		cmocka_unit_test(
		    opens_the_standard_descriptors_that_are_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
