#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/str.h"
#include "help.h"
#include "sync/glob.h"
#include "sync/rules.h"
#include "sync/wild.h"

/* Is it excluded by the defaults and these patterns? */
static bool
excluded(const char *const *patterns, const char *path, bool is_dir)
{
	struct rules *r = rules_new();
	bool yes;

	for (; *patterns != NULL; patterns++)
		rules_add(r, *patterns);
	yes = rules_cover(r, path, is_dir);
	rules_free(r);
	return yes;
}

#define YES(path, dir, ...) \
	assert_true(        \
	    excluded((const char *const[]){ __VA_ARGS__, NULL }, path, dir))
#define NO(path, dir, ...) \
	assert_false(      \
	    excluded((const char *const[]){ __VA_ARGS__, NULL }, path, dir))

static void
defaults_hold_at_any_depth(void **state)
{
	static const char *const names[] = { ".git", ".idea", ".vscode",
		"__pycache__", "node_modules" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *deep = xasprintf("a/b/%s", names[i]);
		char *below = xasprintf("a/%s/c/d", names[i]);

		YES(names[i], true, "");
		YES(deep, true, "");
		YES(below, false, "");
		free(deep);
		free(below);
	}
	YES("x.pyc", false, "");
	YES("a/b.pyc", false, "");
	NO("git", true, "");
	NO(".github", true, "");
	NO(".gitignore", false, "");
	NO("a/node_modules2/x", false, "");
	NO("pyc", false, "");
}

/* As the seed did it. */
static void
patterns_mean_what_they_always_did(void **state)
{
	(void)state;
	YES("a/build", true, "build");
	YES("build", false, "build");
	YES("build", true, "build/");
	YES("build/x/y", false, "build/");
	NO("build", false, "build/");
	YES("a/b/c", false, "a/*");
	YES("a/b", true, "a/b");
	YES("a/foo", false, "**/foo");
	NO("foo/bar", false, "foo/**/bar");
	NO("a/keep.log", false, "*.log", "!keep.log");
	YES("a/other.log", false, "*.log", "!keep.log");
	NO(".git", true, "!.git/");
	NO(".git/config", false, "!.git/");
	YES("a/b", false, "  ./a\\b  ");
	YES("a/b", false, ".///a/b");
	YES("x/a/y/b", false, "**/a*b");
	YES("a/x/b/c", false, "a*b/");
	NO("A", false, "a");
	NO("a", false, "", "  ", "!", "/", "./", "//", "././/");
}

static void
a_slash_in_front_means_the_top(void **state)
{
	(void)state;
	YES("build", true, "/build");
	YES("build", false, "/build");
	YES("build/x", false, "/build");
	NO("a/build", true, "/build");
	NO("a/build/x", false, "/build");
	YES("build", true, "./build");
	NO("a/build", true, "./build");
	YES("x.log", false, "/*.log");
	NO("a/x.log", false, "/*.log");
	YES("bXd", false, "/b[X]d");
	NO("b/d", false, "/b?d", "/b*d");
	YES("build/x", false, "/build/");
	NO("build", false, "/build/");
	NO("a/build", true, "/build/", "./build/");
	YES("a/b", true, "/a/b");
	NO("x/a/b", true, "/a/b", "/a/b/", "a/b/");
	NO("build", true, "build", "!/build");
	YES("a/build", true, "build", "!/build");
}

static void
a_slash_behind_means_directories_at_any_depth(void **state)
{
	(void)state;
	YES("a/build", true, "build/");
	YES("a/b/build/x", false, "build/");
	NO("a/build", false, "build/");
	NO("a/rebuild", true, "build/");
	YES("a/cmake-build-1", true, "cmake-build-*/");
	NO("a/cmake-build-1", false, "cmake-build-*/");
	YES("a/b.d", true, "*.d/");
	NO("a/b.d", false, "*.d/");
	YES("a", true, "build//", "*/");
	NO("a/.git", true, "!.git/");
}

static void
stars_in_front_mean_any_depth(void **state)
{
	(void)state;
	YES("build", true, "**/build");
	YES("a/b/build", false, "**/build");
	NO("a/rebuild", false, "**/build");
	YES("build", true, "/**/build");
	YES("build", true, "**/build/");
	YES("a/build/x", false, "**/build/");
	NO("a/build", false, "**/build/");
	YES("foo/bar", false, "**/foo/bar");
	YES("a/foo/bar", false, "**/**/foo/bar");
	NO("afoo/bar", false, "**/foo/bar");
	YES("a", true, "**/");
	NO("a", false, "**/");
	YES("a/b", false, "**");
}

static void
a_pattern_of_a_directory_covers_what_is_below(void **state)
{
	(void)state;
	YES("runs/exp1/out/x", false, "runs/exp1");
	YES("runs/exp1", true, "runs/exp1");
	NO("runs/exp2/x", false, "runs/exp1");
	NO("runs/exp10", false, "runs/exp1");
	/* What is below an excluded directory does not come back. */
	YES("a/keep", false, "a", "!a/keep");
}

static void
the_last_match_counts(void **state)
{
	(void)state;
	YES("a", false, "a", "!a", "a");
	NO("a", false, "a", "a", "!a");
	NO("node_modules/x", false, "!node_modules");
}

static void
staging_places_are_always_excluded(void **state)
{
	(void)state;
	YES(".rsmcp-x", true, "!.rsmcp-x", "!*");
	YES("a/.rsmcp-x/b", false, "!*");
	NO(".rsmcp", true, "");
	NO("a.rsmcp-x", true, "");
	assert_true(rules_staging("a/b/.rsmcp-1"));
	assert_false(rules_staging("a/rsmcp-1"));
}

static void
matches_characters(void **state)
{
	(void)state;
	assert_true(glob_match("?", "\xc3\xa4"));
	assert_true(glob_match("?", "\xff"));
	assert_false(glob_match("?", "\xff\xff"));
	assert_true(glob_match("[\xc3\xa4-\xc3\xbc]", "\xc3\xb6"));
	assert_true(glob_match("a[]]b", "a]b"));
	assert_true(glob_match("a[!]]b", "axb"));
	assert_true(glob_match("a[b", "a[b"));
	assert_false(glob_match("[z-a]", "m"));
	assert_true(glob_match("*a*b*", "xxaxxbxx"));
	assert_true(glob_match("", ""));
	assert_false(glob_match("", "a"));
}

static void
many_stars_take_no_time(void **state)
{
	char *pattern = repeated("*a", 200), *text = repeated("a", 4000);
	struct rules *r = rules_new();

	(void)state;
	rules_add(r, pattern);
	text[3999] = 'b';
	assert_false(rules_match(r, text, false));
	free(pattern);
	pattern = repeated("**/a*", 200);
	rules_add_gitignore(r, "", pattern, strlen(pattern));
	assert_false(rules_match(r, text, false));
	rules_free(r);
	free(pattern);
	free(text);
}

/* As a host may send it, to a thread with little stack. */
static void
long_patterns_need_no_stack(void **state)
{
	char *pattern = repeated("**/", 349525), *long_one;
	struct wild *w = wild_new(pattern);
	struct rules *r = rules_new();

	(void)state;
	assert_non_null(w);
	assert_false(wild_match(w, "a"));
	assert_true(wild_match(w, ""));
	wild_free(w);
	free(pattern);
	/* Those that no path could match are not kept at all. */
	long_one = repeated("*", 4097);
	rules_add_gitignore(r, "", long_one, 4097);
	assert_false(rules_match(r, "a", false));
	rules_add_gitignore(r, "", long_one, 4096);
	assert_true(rules_match(r, "a", false));
	rules_free(r);
	free(long_one);
}

static void
count_name(void *data, const char *pattern)
{
	(void)pattern;
	++*(size_t *)data;
}

static void
names_for_elsewhere_are_sure(void **state)
{
	struct rules *r = rules_new();
	size_t n = 0;

	(void)state;
	rules_each_name(r, count_name, &n);
	assert_int_equal(n, 6);
	rules_add(r, "a/b");
	rules_add(r, "x?");
	rules_add(r, "[ab]");
	rules_add(r, "/top");
	rules_add(r, "dir/");
	rules_add(r, "out");
	rules_add(r, "**/deep");
	n = 0;
	rules_each_name(r, count_name, &n);
	assert_int_equal(n, 8);
	rules_add(r, "!x");
	n = 0;
	rules_each_name(r, count_name, &n);
	assert_int_equal(n, 0);
	rules_free(r);
}

static void
reads_a_file(void **state)
{
	char *dir = make_dir(), *path = path_join(dir, "rules");
	static const char text[] = "# comment\n\n  # also\n*.log\r\n!keep.log\n"
	                           "data/\nlast";
	struct rules *r = rules_new();
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(fs_replace(path, BYTES(text), 0600, &err), 0);
	assert_int_equal(rules_add_file(r, path, &err), 0);
	assert_true(rules_match(r, "a.log", false));
	assert_false(rules_match(r, "keep.log", false));
	assert_true(rules_match(r, "data", true));
	assert_true(rules_match(r, "x/last", false));
	assert_false(rules_match(r, "comment", false));
	assert_int_equal(rules_add_file(r, "/nowhere/at/all", &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "exclude file");
	rules_free(r);
	remove_dir(dir);
	free(path);
}

static void
ignores(struct rules *r, const char *dir, const char *text)
{
	rules_add_gitignore(r, dir, text, strlen(text));
}

static void
inner_ignore_files_count_more(void **state)
{
	struct rules *r = rules_new();

	(void)state;
	ignores(r, "a/b", "!x.o\n");
	ignores(r, "", "*.o\n/top\n");
	ignores(r, "a", "deep/**/z\n");
	assert_true(rules_cover(r, "x.o", false));
	assert_true(rules_cover(r, "a/x.o", false));
	assert_false(rules_cover(r, "a/b/x.o", false));
	assert_false(rules_cover(r, "a/b/c/x.o", false));
	assert_true(rules_cover(r, "top", false));
	assert_false(rules_cover(r, "a/top", false));
	assert_true(rules_cover(r, "a/deep/1/2/z", false));
	assert_true(rules_cover(r, "a/deep/z/w", false));
	assert_false(rules_cover(r, "deep/z", false));
	rules_free(r);
}

/* Patterns of the caller are asked first. */
static void
ignore_files_do_not_overrule_patterns(void **state)
{
	struct rules *r = rules_new();

	(void)state;
	ignores(r, "", "*.txt\n!node_modules\n!b\n");
	rules_add(r, "!keep.txt");
	rules_add(r, "b");
	assert_true(rules_match(r, "a.txt", false));
	assert_false(rules_match(r, "keep.txt", false));
	assert_true(rules_match(r, "b", false));
	assert_true(rules_match(r, "node_modules", true));
	rules_free(r);
}

/* --- Against the originals ------------------------------------------------ */

static uint32_t seed;

static uint32_t
rnd(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

/* A few of the fragments, one behind the other. */
static void
random_text(struct buf *b, const char *const *parts, size_t count, uint32_t max)
{
	uint32_t n = 1 + rnd(max);

	while (n-- > 0)
		buf_adds(b, parts[rnd((uint32_t)count)]);
}

#define PARTS(list) (list), sizeof(list) / sizeof((list)[0])

/* Run it with this input; false if there is no such program. */
static bool
run(const char *const *argv, const struct buf *input, struct proc_result *res)
{
	struct until until = until_in(30000);
	struct err err = ERR_INIT;
	struct proc_request req = { .argv = argv,
		.input = input->data,
		.input_len = input->len,
		.max_output = 1 << 20 };

	if (proc_run(&req, res, &until, &err) == 0)
		return true;
	if (err.code != ERR_NOT_FOUND)
		fail_msg("%s", err.msg);
	return false;
}

static void
matches_as_python_does(void **state)
{
	static const char *const parts[] = { "a", "b", "c", "*", "*", "?", "/",
		"[ab]", "[!a]", "[^a]", "[a-b]", "[]", "]", "-", "[!", "[",
		"\xc3\xa4", "[\xc3\xa4]", "[c-a]", ".", "\xff" };
	static const char *const texts[] = { "a", "b", "c", "/", "]", "[", "-",
		"\xc3\xa4", "^", "!", ".", "\xff" };
	static const char *const argv[] = { "python3", "-c",
		"import fnmatch, os, sys\n"
		"d = os.fsdecode(sys.stdin.buffer.read()).split('\\0')[:-1]\n"
		"print(''.join('ny'[fnmatch.fnmatchcase(d[i + 1], d[i])]\n"
		"    for i in range(0, len(d), 2)))\n",
		NULL };
	enum { COUNT = 20000 };
	struct proc_result res;
	struct buf input;
	size_t i, at = 0, matches = 0;

	(void)state;
	seed = 1;
	buf_init(&input, SIZE_MAX);
	for (i = 0; i < COUNT; i++) {
		random_text(&input, PARTS(parts), 5);
		buf_addc(&input, '\0');
		random_text(&input, PARTS(texts), 4);
		buf_addc(&input, '\0');
	}
	if (!run(argv, &input, &res))
		skip();
	assert_int_equal(res.out.len, COUNT + 1);
	for (i = 0; i < COUNT; i++) {
		const char *pattern = input.data + at;
		const char *text = pattern + strlen(pattern) + 1;

		/* Python drops the empty range of "[a-[!b]", and what is left
		 * is then "not b" by accident. */
		if (strstr(pattern, "-[!") == NULL &&
		    glob_match(pattern, text) != (res.out.data[i] == 'y'))
			fail_msg("'%s' on '%s': Python says %c", pattern, text,
			    res.out.data[i]);
		matches += res.out.data[i] == 'y';
		at += strlen(pattern) + 1 + strlen(text) + 1;
	}
	assert_true(matches > COUNT / 50);
	proc_result_free(&res);
	buf_free(&input);
}

static const char *const dirs[] = { "", "a", "b", "a/b", "a/a", "a/b/a",
	"a/b/b", "b/a", "ab", "ab/a" };
static const char *const files[] = { "c", "ac", "a.c", "a c", "c ", "#c", "!c",
	"[ab]", "c\\", "\xc3\xa4", "bc", "-" };

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static void
make_file(const char *root, const char *dir, const char *name, const char *text)
{
	char *d = path_join(root, dir), *path = path_join(d, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd != -1);
	assert_int_equal(fs_write_all(fd, text, strlen(text)), 0);
	close(fd);
	free(d);
	free(path);
}

/* A tree of git's own, and the list of what is in it. */
static void
make_tree(const char *root, struct buf *list)
{
	size_t i, k;

	for (i = 0; i < COUNT_OF(dirs); i++) {
		char *d = path_join(root, dirs[i]);

		if (dirs[i][0] != '\0') {
			assert_int_equal(mkdir(d, 0700), 0);
			buf_add(list, dirs[i], strlen(dirs[i]) + 1);
		}
		for (k = 0; k < COUNT_OF(files); k++) {
			char *path = path_join(dirs[i], files[k]);

			make_file(root, dirs[i], files[k], "");
			buf_add(list, path, strlen(path) + 1);
			free(path);
		}
		free(d);
	}
}

static bool
is_dir_path(const char *path)
{
	size_t i;

	for (i = 0; i < COUNT_OF(dirs); i++) {
		if (strcmp(dirs[i], path) == 0)
			return true;
	}
	return false;
}

/* Write ignore files into some of the directories, and into rules. */
static struct rules *
random_ignores(const char *root, struct buf *all)
{
	static const char *const parts[] = { "a", "b", "c", "ab", "*", "**",
		"**/", "/", "/", "?", "!", "\\", " ", "#", "a.c", "[ab]",
		"[!b]", "[^a]", "[a-c]", "[[:alpha:]]", "[[:x:]]", "[", "]",
		"[\\]]", "\xc3\xa4", "*.c", "/**", "\r" };
	static const char *const places[] = { "", "a", "a/b" };
	struct rules *r = rules_new();
	size_t i, n;

	buf_reset(all);
	for (i = 0; i < COUNT_OF(places); i++) {
		struct buf text;

		buf_init(&text, SIZE_MAX);
		for (n = rnd(i == 0 ? 5 : 3); n > 0; n--) {
			if (rnd(4) == 0)
				buf_adds(&text, "!");
			random_text(&text, PARTS(parts), 5);
			buf_adds(&text, "\n");
		}
		make_file(root, places[i], ".gitignore", text.data);
		rules_add_gitignore(r, places[i], text.data, text.len);
		buf_addf(all, "in '%s':\n%s", places[i], text.data);
		buf_free(&text);
	}
	return r;
}

/* What git printed, as a set. */
static bool
listed(const struct proc_result *res, const char *path)
{
	size_t at = 0;

	while (at < res->out.len) {
		if (strcmp(res->out.data + at, path) == 0)
			return true;
		at += strlen(res->out.data + at) + 1;
	}
	return false;
}

static void
ignores_as_git_does(void **state)
{
	char *root = make_dir();
	const char *const init[] = { "git", "init", "-q", root, NULL };
	const char *const check[] = { "git", "-C", root, "check-ignore", "-z",
		"--stdin", "--no-index", NULL };
	const char *const clean[] = { "rm", "-rf", root, NULL };
	struct proc_result res;
	struct buf list, nothing, text;
	size_t at, found = 0;
	int round;

	(void)state;
	seed = 2;
	buf_init(&list, SIZE_MAX);
	buf_init(&nothing, 0);
	buf_init(&text, SIZE_MAX);
	if (!run(init, &nothing, &res))
		skip();
	assert_int_equal(res.exit_code, 0);
	proc_result_free(&res);
	make_tree(root, &list);
	for (round = 0; round < 400; round++) {
		struct rules *r = random_ignores(root, &text);

		assert_true(run(check, &list, &res));
		for (at = 0; at < list.len; at += strlen(list.data + at) + 1) {
			const char *path = list.data + at;
			bool ours = rules_cover(r, path, is_dir_path(path));

			found += ours;
			if (ours != listed(&res, path))
				fail_msg(
				    "'%s': we say %d, git says %d with\n%s",
				    path, ours, !ours, text.data);
		}
		proc_result_free(&res);
		rules_free(r);
	}
	assert_true(found > 1000);
	assert_true(run(clean, &nothing, &res));
	proc_result_free(&res);
	buf_free(&list);
	buf_free(&text);
	free(root);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults_hold_at_any_depth),
		cmocka_unit_test(patterns_mean_what_they_always_did),
		cmocka_unit_test(a_slash_in_front_means_the_top),
		cmocka_unit_test(a_slash_behind_means_directories_at_any_depth),
		cmocka_unit_test(stars_in_front_mean_any_depth),
		cmocka_unit_test(a_pattern_of_a_directory_covers_what_is_below),
		cmocka_unit_test(the_last_match_counts),
		cmocka_unit_test(staging_places_are_always_excluded),
		cmocka_unit_test(matches_characters),
		cmocka_unit_test(many_stars_take_no_time),
		cmocka_unit_test(long_patterns_need_no_stack),
		cmocka_unit_test(names_for_elsewhere_are_sure),
		cmocka_unit_test(reads_a_file),
		cmocka_unit_test(inner_ignore_files_count_more),
		cmocka_unit_test(ignore_files_do_not_overrule_patterns),
		cmocka_unit_test(matches_as_python_does),
		cmocka_unit_test(ignores_as_git_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
