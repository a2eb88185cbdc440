/*
 * Nothing outside the root is reached, whichever way a path is resolved: all
 * tests run twice, the second time with a kernel that refuses openat2().
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "sync/beneath.h"
#include "trees.h"

/* Each test has a directory with "root" and "outside" in it, and a link to the
 * latter in the former. */
static char *top;
static int top_fd, root;
static struct err err;
static struct tree list;
static const struct entry plain = { .path = "plain",
	.mode = 0640,
	.mtime = INT64_C(1500000000987654321) };

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	top_fd = open_root(top);
	put_dir(top_fd, "root");
	put_dir(top_fd, "outside");
	put_file(top_fd, "outside/secret", BYTES("secret"));
	root = openat(top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(symlinkat("../outside", root, "way"), 0);
	assert_int_equal(symlinkat("../outside/secret", root, "link"), 0);
	tree_init(&list);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	/* Whatever the test did. */
	holds(top_fd, "outside/secret", "secret");
	assert_int_equal(names_in(top_fd, "outside"), 1);
	tree_free(&list);
	close(root);
	close(top_fd);
	remove_tree(top);
	return 0;
}

/* Every function with this path fails like that. */
static void
refused(const char *path, enum err_code code)
{
	struct entry e = { .path = path, .mode = 0644 };
	struct beneath_last last = BENEATH_NO_LAST;
	struct beneath_file f;
	const char *name;

	e.type = ENTRY_FILE;
#define REFUSED(call)                             \
	do {                                      \
		err.code = ERR_NONE;              \
		assert_int_equal(call, -1);       \
		assert_int_equal(err.code, code); \
		says(err.msg, path);              \
	} while (0)
	REFUSED(beneath_parent(root, path, false, &name, &err));
	REFUSED(beneath_parent(root, path, true, &name, &err));
	REFUSED(beneath_dir(root, path, &err));
	REFUSED(beneath_open(root, path, &e, &err));
	REFUSED(beneath_mkdir(root, path, &err));
	REFUSED(beneath_symlink(root, path, "x", &err));
	REFUSED(beneath_delete(root, path, false, &err));
	REFUSED(beneath_delete(root, path, true, &err));
	REFUSED(beneath_meta(root, &e, &err));
	REFUSED(beneath_create(root, path, &f, &err));
	REFUSED(beneath_create_next(root, &last, path, &f, &err));
	beneath_last_free(&last);
}

static void
paths_that_lead_outside_are_refused(void **state)
{
	static const char *const paths[] = { "", "/", "/etc", ".", "..",
		"../outside", "a/..", "a/../../outside/new", "./a", "a/./b",
		"a//b", "a/", "/..", "a/b/.." };
	size_t i;

	(void)state;
	put_dir(root, "a");
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		refused(paths[i], ERR_DENIED);
}

static void
no_link_is_followed_on_the_way(void **state)
{
	(void)state;
	refused("way/secret", ERR_DENIED);
	refused("way/new", ERR_DENIED);
	refused("way/new/deeper", ERR_DENIED);
	says(err.msg, "'way' in it is a symbolic link");
	/* Nor one that stays inside. */
	put_dir(root, "real");
	put_dir(root, "real/sub");
	assert_int_equal(symlinkat("real", root, "alias"), 0);
	refused("alias/sub/x", ERR_DENIED);
	assert_int_equal(names_in(root, "real/sub"), 0);
}

static void
one_file_after_the_other(void **state)
{
	static const char *const names[] = { "a/b/1", "a/b/2", "a/3", "4",
		"a/b/5", "a/bb/6", "7" };
	struct beneath_last last = BENEATH_NO_LAST;
	struct beneath_file f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(beneath_create_next(root, &last, names[i], &f,
		                     &err),
		    0);
		assert_int_equal(beneath_commit(&f, &plain, &err), 0);
		holds(root, names[i], "");
	}
	assert_int_equal(beneath_create_next(root, &last, "8", &f, &err), 0);
	beneath_abort(&f);
	assert_int_equal(names_in(root, "a/b"), 3);
	beneath_last_free(&last);
}

static void
names_may_begin_with_dots(void **state)
{
	static const char *const names[] = { "...", "..a", ".a", "a..", "..." };
	struct beneath_file f;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_int_equal(beneath_create(root, names[i], &f, &err), 0);
		assert_int_equal(beneath_commit(&f, &plain, &err), 0);
		holds(root, names[i], "");
	}
}

static void
a_link_at_the_end_is_not_followed(void **state)
{
	struct entry e;

	(void)state;
	assert_int_equal(beneath_open(root, "link", &e, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(beneath_dir(root, "way", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	/* There is something, and it is no directory. */
	assert_int_equal(beneath_mkdir(root, "way", &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	assert_int_equal(beneath_delete(root, "way", true, &err), -1);
	assert_int_equal(beneath_delete(root, "way", false, &err), 0);
	assert_false(is_there(root, "way"));
}

static void
a_file_is_there_whole_or_not_at_all(void **state)
{
	struct beneath_file f;
	struct entry e;
	struct stat st;
	int fd;

	(void)state;
	put_file(root, "plain", BYTES("old"));
	assert_int_equal(beneath_create(root, "plain", &f, &err), 0);
	assert_true(strncmp(f.temp, ".rsmcp-", 7) == 0);
	assert_int_equal(write(f.fd, "new", 3), 3);
	/* Nobody else reads it before it has its mode. */
	assert_int_equal(fstatat(root, f.temp, &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	holds(root, "plain", "old");
	assert_int_equal(beneath_commit(&f, &plain, &err), 0);
	holds(root, "plain", "new");
	assert_int_equal(names_in(top_fd, "root"), 3);

	fd = beneath_open(root, "plain", &e, &err);
	assert_int_not_equal(fd, -1);
	close(fd);
	assert_int_equal(e.size, 3);
	assert_int_equal(e.mode, plain.mode);
	assert_int_equal(e.mtime, plain.mtime);

	assert_int_equal(beneath_create(root, "plain", &f, &err), 0);
	assert_int_equal(write(f.fd, "no", 2), 2);
	beneath_abort(&f);
	beneath_abort(&f);
	holds(root, "plain", "new");
	assert_int_equal(names_in(top_fd, "root"), 3);
}

static void
a_link_is_replaced_and_not_written_through(void **state)
{
	struct beneath_file f;

	(void)state;
	assert_int_equal(beneath_create(root, "link", &f, &err), 0);
	assert_int_equal(write(f.fd, "mine", 4), 4);
	assert_int_equal(beneath_commit(&f, &plain, &err), 0);
	holds(root, "link", "mine");

	assert_int_equal(beneath_symlink(root, "way", "elsewhere", &err), 0);
	assert_int_equal(names_in(top_fd, "root"), 2);
}

static void
nothing_takes_the_place_of_a_directory(void **state)
{
	struct beneath_file f;
	int full;

	(void)state;
	put_dir(root, "dir");
	for (full = 0; full < 2; full++) {
		assert_int_equal(beneath_create(root, "dir", &f, &err), 0);
		assert_int_equal(beneath_commit(&f, &plain, &err), -1);
		says(err.msg, "directory");
		assert_int_equal(beneath_symlink(root, "dir", "elsewhere",
		                     &err),
		    -1);
		says(err.msg, "directory");
		assert_int_equal(names_in(top_fd, "root"), 3);
		if (!full)
			put_file(root, "dir/file", BYTES("x"));
	}
	assert_int_equal(beneath_delete(root, "dir", false, &err), -1);
	assert_int_equal(beneath_delete(root, "dir", true, &err), -1);
	assert_int_equal(beneath_delete(root, "dir/file", false, &err), 0);
	assert_int_equal(beneath_delete(root, "dir", true, &err), 0);
	/* What is gone is gone. */
	assert_int_equal(beneath_delete(root, "dir", true, &err), 0);
	assert_int_equal(beneath_delete(root, "dir/file", false, &err), 0);
}

static void
directories_are_made_on_the_way(void **state)
{
	struct beneath_file f;
	const char *name;
	struct stat st;
	int fd;

	(void)state;
	assert_int_equal(beneath_parent(root, "a/b/c", false, &name, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_false(is_there(root, "a"));
	fd = beneath_parent(root, "a/b/c", true, &name, &err);
	assert_int_not_equal(fd, -1);
	assert_string_equal(name, "c");
	close(fd);
	assert_true(is_there(root, "a/b"));
	assert_false(is_there(root, "a/b/c"));

	assert_int_equal(beneath_mkdir(root, "d/e", &err), 0);
	assert_int_equal(beneath_mkdir(root, "d/e", &err), 0);
	assert_int_equal(fstatat(root, "d/e", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(beneath_symlink(root, "l/l", "t", &err), 0);
	assert_int_equal(beneath_create(root, "x/y/z", &f, &err), 0);
	assert_int_equal(beneath_commit(&f, &plain, &err), 0);
	holds(root, "x/y/z", "");

	/* A file on the way. */
	assert_int_equal(beneath_create(root, "x/y/z/more", &f, &err), -1);
	assert_int_equal(err.code, ERR_INVALID);
	says(err.msg, "'z' in it is not a directory");
}

static void
long_paths_and_names_work(void **state)
{
	char *part = repeated("n", 250), *path = xstrdup(part), *longer;
	struct beneath_file f;
	struct entry e;
	int i, fd;

	(void)state;
	for (i = 0; i < 12; i++) {
		longer = path_join(path, part);
		free(path);
		path = longer;
	}
	assert_int_equal(beneath_create(root, path, &f, &err), 0);
	assert_int_equal(beneath_commit(&f, &plain, &err), 0);
	fd = beneath_open(root, path, &e, &err);
	assert_int_not_equal(fd, -1);
	close(fd);
	free(path);
	free(part);
	part = repeated("n", 256);
	assert_int_equal(beneath_mkdir(root, part, &err), -1);
	says(err.msg, "too long");
	free(part);
}

static void
mode_and_time_are_set_without_following(void **state)
{
	struct entry e = { .path = "dir",
		.type = ENTRY_DIR,
		.mode = 0750,
		.mtime = INT64_C(-1) };
	struct stat st;

	(void)state;
	put_dir(root, "dir");
	assert_int_equal(beneath_meta(root, &e, &err), 0);
	assert_int_equal(fstatat(root, "dir", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0750);
	assert_int_equal(st.st_mtim.tv_sec, -1);
	assert_int_equal(st.st_mtim.tv_nsec, 999999999);

	e = (struct entry){ .path = "link",
		.type = ENTRY_LINK,
		.mode = 0777,
		.mtime = INT64_C(1234567890) };
	assert_int_equal(beneath_meta(root, &e, &err), 0);
	assert_int_equal(fstatat(root, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_int_equal(st.st_mtim.tv_nsec, 234567890);
	assert_int_equal(fstatat(top_fd, "outside/secret", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1600000000);

	/* A link where a file was said to be. */
	e.type = ENTRY_FILE;
	assert_int_equal(beneath_meta(root, &e, &err), -1);
	assert_int_equal(fstatat(top_fd, "outside/secret", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0644);

	/* Not more than permissions. */
	put_file(root, "file", BYTES("x"));
	e.path = "file";
	e.mode = 07755;
	assert_int_equal(beneath_meta(root, &e, &err), 0);
	assert_int_equal(fstatat(root, "file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0755);
}

static void
put_part(const char *name, int days_old)
{
	struct timespec t = { .tv_sec =
		                  time(NULL) - (time_t)days_old * 24 * 3600 };
	struct timespec times[2] = { t, t };

	put_file(root, name, BYTES("x"));
	assert_int_equal(utimensat(root, name, times, 0), 0);
}

static void
what_was_left_behind_is_swept(void **state)
{
	struct beneath_file f;

	(void)state;
	put_dir(root, "dir");
	put_dir(root, "not listed");
	put_file(root, ".rsmcp-0123456789abcdef", BYTES("x"));
	put_file(root, "dir/.rsmcp-0123456789abcdef", BYTES("x"));
	put_file(root, "not listed/.rsmcp-0123456789abcdef", BYTES("x"));
	assert_int_equal(symlinkat("../outside/secret", root,
	                     "dir/.rsmcp-00000000000000ff"),
	    0);
	put_file(root, "dir/.rsmcp-part", BYTES("x"));
	put_file(root, "dir/.rsmcp-0123456789abcdefg", BYTES("x"));
	put_part("dir/.rsmcp-p0123456789abcdef", 6);
	put_part("dir/.rsmcp-p0123456789abcdef.done", 6);
	put_part("dir/.rsmcp-p0123456789abcdee", 8);
	put_part("dir/.rsmcp-p0123456789abcdee.done", 8);
	put_part("dir/.rsmcp-p0123456789abcdee.other", 8);
	put_part("dir/.rsmcp-p0123456789abcdeeffffffff", 8);
	put_file(root, "dir/file", BYTES("x"));
	put_dir(root, ".rsmcp-0123456789abcdee");
	assert_int_equal(beneath_create(root, "dir/new", &f, &err), 0);
	want(&list, "dir", ENTRY_DIR, 0);
	want(&list, "way", ENTRY_DIR, 0);
	want(&list, "gone", ENTRY_DIR, 0);
	beneath_sweep(root, &list);
	assert_int_equal(names_in(root, "dir"), 7);
	assert_false(is_there(root, "dir/.rsmcp-p0123456789abcdee"));
	assert_false(is_there(root, "dir/.rsmcp-p0123456789abcdee.done"));
	assert_true(is_there(root, "dir/.rsmcp-p0123456789abcdee.other"));
	assert_false(is_there(root, ".rsmcp-0123456789abcdef"));
	assert_true(is_there(root, ".rsmcp-0123456789abcdee"));
	assert_true(is_there(root, "not listed/.rsmcp-0123456789abcdef"));
	/* The one in the making was spared. */
	assert_int_equal(beneath_commit(&f, &plain, &err), 0);
	holds(root, "dir/new", "");
}

/* The caller tells a full disk by errno. */
static void
a_failure_keeps_its_errno(void **state)
{
	struct beneath_file f;

	(void)state;
	assert_int_equal(beneath_create(root, "file", &f, &err), 0);
	/* As if somebody had taken it away. */
	assert_int_equal(unlinkat(root, f.temp, 0), 0);
	assert_int_equal(beneath_commit(&f, &plain, &err), -1);
	assert_int_equal(errno, ENOENT);
	put_dir(root, "dir");
	assert_int_equal(beneath_create(root, "dir", &f, &err), 0);
	assert_int_equal(beneath_commit(&f, &plain, &err), -1);
	assert_int_equal(errno, EISDIR);
	assert_int_equal(beneath_create(root, "way/x", &f, &err), -1);
	assert_true(errno == ELOOP || errno == ENOTDIR);
}

/* From now on the kernel knows no openat2(). */
static bool
forbid_openat2(unsigned why)
{
#ifdef __linux__
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
		    offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | why),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
	    syscall(SYS_openat2, -1, "", NULL, 0) == -1 && errno == (int)why;
#else
	(void)why;
	return false;
#endif
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(paths_that_lead_outside_are_refused),
		TEST(no_link_is_followed_on_the_way),
		TEST(one_file_after_the_other),
		TEST(names_may_begin_with_dots),
		TEST(a_link_at_the_end_is_not_followed),
		TEST(a_file_is_there_whole_or_not_at_all),
		TEST(a_link_is_replaced_and_not_written_through),
		TEST(nothing_takes_the_place_of_a_directory),
		TEST(directories_are_made_on_the_way),
		TEST(long_paths_and_names_work),
		TEST(mode_and_time_are_set_without_following),
		TEST(what_was_left_behind_is_swept),
		TEST(a_failure_keeps_its_errno),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	if (forbid_openat2(EPERM))
		failed += cmocka_run_group_tests_name("without openat2", tests,
		    NULL, NULL);
	return failed;
}
