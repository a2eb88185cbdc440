#include "base/str.h"
#include "oddtree.h"
#include "sync/lister.h"
#include "sync/listing.h"
#include "sync/scan.h"

static void
take_problem(void *data, const char *path, const char *why)
{
	buf_addf(data, "%s: %s\n", path, why);
}

/* --- The command, in the shells and with the tools of this machine -------- */

struct run {
	const char *shell[3];   /* argv */
	const char *const *env; /* or NULL */
	const char *path;
	struct farlist_options o;
	char known[16]; /* from the last list, if it is to be used */
	struct far_root root;
	struct tree tree;
	struct buf problems;
	struct err err;
};

/* False if there is no such shell. */
static bool
list(struct run *r)
{
	struct proc_request req = { .argv = r->shell,
		.env = r->env,
		.max_output = 1 << 20 };
	struct until until = until_in(60000);
	struct listing *l;
	struct proc_result res;
	struct buf script;
	struct err err = ERR_INIT;
	int rc;

	buf_init(&script, SIZE_MAX);
	buf_init(&r->problems, SIZE_MAX);
	r->o.problem = take_problem;
	r->o.problem_data = &r->problems;
	r->err.code = ERR_NONE;
	r->o.space = true;
	lister_script(&script, r->path, &r->o,
	    r->known[0] != '\0' ? r->known : NULL);
	req.input = script.data;
	req.input_len = script.len;
	rc = proc_run(&req, &res, &until, &err);
	if (rc == -1 && err.code != ERR_NOT_FOUND)
		fail_msg("%s", err.msg);
	buf_free(&script);
	if (rc == -1)
		return false;
	l = listing_new(&r->o, &r->root, &r->tree);
	listing_add(l, res.out.data, res.out.len);
	listing_end(l, &r->err);
	snprintf(r->known, sizeof(r->known), "%s",
	    listing_known(l) != NULL ? listing_known(l) : "");
	listing_free(l);
	proc_result_free(&res);
	return true;
}

static void
done(struct run *r)
{
	tree_free(&r->tree);
	far_root_free(&r->root);
	buf_free(&r->problems);
}

/* What the scan of the same tree sees, in whole seconds if need be, and
 * without names that the host could not tell. */
static void
compare(const struct run *r, const struct tree *want, bool newlines)
{
	size_t i, n = 0;

	for (i = 0; i < want->count; i++) {
		const struct entry *e = &want->entries[i], *f;
		int64_t t = e->mtime;

		if (!newlines && strchr(e->path, '\n') != NULL) {
			assert_null(tree_find(&r->tree, e->path));
			continue;
		}
		n++;
		f = tree_find(&r->tree, e->path);
		if (f == NULL)
			fail_msg("%s: '%s' is not there", r->o.lister, e->path);
		if (r->tree.whole_seconds)
			t -= (t % 1000000000 + 1000000000) % 1000000000;
		assert_int_equal(f->type, e->type);
		assert_int_equal(f->mode, e->mode);
		assert_int_equal(f->size, e->size);
		assert_int_equal(f->mtime, t);
		assert_int_equal(f->target == NULL, e->target == NULL);
		if (f->kept != e->kept)
			fail_msg("%s: '%s' is kept: %d", r->o.lister, e->path,
			    f->kept);
		if (e->target != NULL)
			assert_string_equal(f->target, e->target);
	}
	assert_int_equal(r->tree.count, n);
}

static void
scan(const char *path, struct rules *rules, struct tree *t)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct scan_options o = { .rules = rules };
	struct until until = until_in(30000);
	struct err err = ERR_INIT;

	if (scan_local(fd, &o, t, &until, &err) == -1)
		fail_msg("%s", err.msg);
	close(fd);
}

static const char *const shells[][3] = {
	{ "bash", NULL },
	{ "dash", NULL },
	{ "busybox", "sh", NULL },
};

static void
check_list(struct run *r, const struct tree *want, const char *lister)
{
	bool newlines = strcmp(lister, "stat") != 0;

	assert_string_equal(r->err.msg, "");
	assert_int_equal(r->root.kind, FAR_DIR);
	assert_string_equal(r->root.path, r->path);
	assert_true(r->root.writable);
	assert_true(r->root.free_bytes > 0);
	assert_int_equal(r->tree.whole_seconds,
	    strcmp(lister, "perl") == 0 || strcmp(lister, "stat") == 0);
	compare(r, want, newlines);
	assert_int_equal(r->problems.len == 0, newlines);
	if (!newlines)
		says(r->problems.data, "new\nline: names with a newline");
	assert_int_equal(r->tree.partial, !newlines);
	assert_int_equal(r->known[0] != '\0', newlines);
	if (newlines)
		says(r->known, lister);
}

/* Twice: the second time with what the first one learned. */
static void
check_all(const char *dir, const char *lister, struct rules *rules)
{
	struct tree want;
	size_t i;
	int times;

	scan(dir, rules, &want);
	for (i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
		struct run r = { .path = dir,
			.o = { .rules = rules,
			    .recursive = true,
			    .lister = lister } };

		memcpy(r.shell, shells[i], sizeof(r.shell));
		for (times = 0; times < 2 && list(&r); times++) {
			check_list(&r, &want, lister);
			done(&r);
		}
	}
	tree_free(&want);
}

static void
lists_the_same_in_every_way(void **state)
{
	static const char *const listers[] = { "find", "perl", "python",
		"stat" };
	struct rules *strict = rules_new(), *lax = rules_new();
	char *dir = odd_make();
	size_t i;

	(void)state;
	rules_add(strict, "a/b");
	rules_add(lax, "!node_modules");
	rules_add(lax, "!.git");
	for (i = 0; i < sizeof(listers) / sizeof(listers[0]); i++) {
		check_all(dir, listers[i], strict);
		check_all(dir, listers[i], lax);
	}
	rules_free(strict);
	rules_free(lax);
	odd_remove(dir);
}

/* PATH has nothing but busybox. */
static void
lists_with_busybox_alone(void **state)
{
	char *dir = odd_make(), *bin = make_dir();
	char *path = xasprintf("PATH=%s", bin), *sh = path_join(bin, "sh");
	const char *const env[] = { path, NULL };
	const char *const install[] = { "busybox", "--install", "-s", bin,
		NULL };
	struct proc_request req = { .argv = install };
	struct until until = until_in(30000);
	struct run r = { .shell = { sh, NULL },
		.env = env,
		.path = dir,
		.o = { .rules = rules_new(), .recursive = true } };
	struct proc_result res;
	struct tree want;
	struct err err;

	(void)state;
	if (proc_run(&req, &res, &until, &err) == -1)
		skip();
	proc_result_free(&res);
	assert_true(list(&r));
	assert_string_equal(r.err.msg, "");
	assert_true(r.tree.whole_seconds);
	assert_false(r.root.gnu_tar || r.root.perl || r.root.python);
	scan(dir, r.o.rules, &want);
	compare(&r, &want, false);
	tree_free(&want);
	done(&r);
	rules_free(r.o.rules);
	odd_remove(dir);
	odd_remove(bin);
	free(path);
	free(sh);
}

static void
check_kind(const char *path, const char *lister, enum far_kind kind,
    const char *want)
{
	struct run r = { .shell = { "sh", NULL },
		.path = path,
		.o = { .recursive = true, .lister = lister } };

	assert_true(list(&r));
	assert_string_equal(r.err.msg, "");
	assert_int_equal(r.root.kind, kind);
	assert_string_equal(r.root.path, want);
	if (kind == FAR_FILE) {
		assert_int_equal(r.root.file.size, 2);
		assert_int_equal(r.root.file.mode, 0600);
		assert_int_equal(r.root.file.type, ENTRY_FILE);
		assert_string_equal(r.root.file.path, "end\n");
	}
	assert_true(kind == FAR_DIR || r.tree.count == 0);
	done(&r);
}

static void
says_what_a_path_is(void **state)
{
	static const char *const listers[] = { "find", "perl", "python",
		"stat" };
	char *dir = odd_make(), *here = getcwd(NULL, 0);
	char *sub = path_join(dir, "sub"), *gone = path_join(dir, "x/y"),
	     *file = path_join(dir, "end\n"), *link = path_join(dir, "link"),
	     *fifo = path_join(dir, "fifo"), *odd = path_join(dir, "-d"),
	     *up = path_join(dir, "sub/../a"), *a = path_join(dir, "a"),
	     *messy = path_join(dir, ".//sub/."),
	     *dangling = path_join(dir, "dangling"),
	     *newline = path_join(dir, "new\nline");
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		check_kind(sub, listers[i], FAR_DIR, sub);
		check_kind(file, listers[i], FAR_FILE, file);
		check_kind(newline, listers[i], FAR_DIR, newline);
	}
	check_kind(gone, NULL, FAR_MISSING, gone);
	check_kind(link, NULL, FAR_DIR, link);
	check_kind(dangling, NULL, FAR_OTHER, dangling);
	check_kind(fifo, NULL, FAR_OTHER, fifo);
	check_kind(odd, NULL, FAR_DIR, odd);
	check_kind(up, NULL, FAR_DIR, a);
	check_kind(messy, NULL, FAR_DIR, sub);
	assert_int_equal(chdir(dir), 0);
	check_kind("sub", NULL, FAR_DIR, sub);
	check_kind("-d", NULL, FAR_DIR, odd);
	check_kind("end\n", NULL, FAR_FILE, file);
	check_kind("", NULL, FAR_DIR, dir);
	check_kind(".", NULL, FAR_DIR, dir);
	assert_int_equal(setenv("HOME", dir, 1), 0);
	assert_int_equal(chdir(here), 0);
	check_kind("~", NULL, FAR_DIR, dir);
	check_kind("~/sub/", NULL, FAR_DIR, sub);
	check_kind("~/x/y", NULL, FAR_MISSING, gone);
	free(here);
	free(sub);
	free(gone);
	free(file);
	free(link);
	free(fifo);
	free(odd);
	free(up);
	free(a);
	free(messy);
	free(dangling);
	free(newline);
	odd_remove(dir);
}

static void
lists_one_level_and_the_first_names(void **state)
{
	static const char *const listers[] = { "find", "perl", "python",
		"stat" };
	char *dir = odd_make();
	size_t i;

	(void)state;
	for (i = 0; i < 4; i++) {
		struct run r = { .shell = { "sh", NULL },
			.path = dir,
			.o = { .lister = listers[i] } };
		bool all = strcmp(listers[i], "stat") != 0;

		assert_true(list(&r));
		assert_string_equal(r.err.msg, "");
		assert_int_equal(r.tree.count, all ? 18 : 16);
		assert_false(r.tree.cut);
		assert_null(tree_find(&r.tree, "a/b"));
		done(&r);
		r.o.max_entries = 3;
		r.o.recursive = true;
		assert_true(list(&r));
		assert_int_equal(r.tree.count, 3);
		assert_true(r.tree.cut);
		assert_string_equal(r.tree.entries[0].path, " lead and trail ");
		assert_string_equal(r.tree.entries[1].path, "*");
		assert_string_equal(r.tree.entries[2].path, "-d");
		done(&r);
	}
	odd_remove(dir);
}

/* --- The reader ----------------------------------------------------------- */

#define HEADER "RSMCP1\0d\0/r\0rw\0gp\0find\0=/dev/x 9 5 4 56% /my disk 7%\0"

static struct farlist_options reading = { .recursive = true };

/* Read these bytes, one at a time. */
static void
read_bytes(struct run *r, const char *bytes, size_t len)
{
	struct listing *l;
	size_t i;

	memset(r, 0, sizeof(*r));
	buf_init(&r->problems, SIZE_MAX);
	r->o = reading;
	r->o.problem = take_problem;
	r->o.problem_data = &r->problems;
	l = listing_new(&r->o, &r->root, &r->tree);
	for (i = 0; i < len; i++)
		listing_add(l, bytes + i, 1);
	listing_end(l, &r->err);
	listing_free(l);
}

static void
refuses(const char *bytes, size_t len, const char *why)
{
	struct run r;

	read_bytes(&r, bytes, len);
	assert_int_not_equal(r.err.code, ERR_NONE);
	says(r.err.msg, why);
	done(&r);
}

static void
reads_a_list(void **state)
{
	struct run r;

	(void)state;
	read_bytes(&r,
	    BYTES(HEADER "f644 1 2.5 b\0f644 9 1 b\0d755 4096 3 a\0"
	                 "l777 1 4.000000001 a/l\0t t\0E0\0"));
	assert_string_equal(r.err.msg, "");
	assert_string_equal(r.root.path, "/r");
	assert_int_equal(r.root.free_bytes, 4096);
	assert_true(r.root.gnu_tar && r.root.perl && !r.root.python);
	assert_int_equal(r.tree.count, 3);
	assert_string_equal(r.tree.entries[1].target, "t t");
	assert_int_equal(r.tree.entries[1].mtime, 4000000001);
	assert_int_equal(r.tree.entries[2].mtime, 2500000000);
	assert_int_equal(r.tree.entries[2].size, 1);
	assert_false(r.tree.partial);
	done(&r);
}

static void
takes_no_list_without_its_end(void **state)
{
	(void)state;
	refuses(BYTES(""), "broke off");
	refuses(BYTES("RSMCP1\0d\0"), "broke off");
	refuses(BYTES(HEADER "f644 1 2.5 b\0"), "broke off");
	refuses(BYTES(HEADER "f644 1 2.5 b\0E0"), "broke off");
	refuses(BYTES(HEADER "E0\0x"), "broke off");
	refuses(BYTES(HEADER "E0\0x\0"), "makes no sense");
}

static void
takes_no_names_that_lead_outside(void **state)
{
	(void)state;
	refuses(BYTES(HEADER "f644 1 2.5 ../b\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 a/../b\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 /etc/x\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 a//b\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 a/./b\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 a/\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.5 \0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "-../x\0E0\0"), "makes no sense");
}

static void
takes_no_nonsense(void **state)
{
	(void)state;
	refuses(BYTES("Welcome!\nRSMCP1\0"), "makes no sense");
	refuses(BYTES("RSMCP1\0q\0"), "makes no sense");
	refuses(BYTES("RSMCP1\0d\0relative\0"), "makes no sense");
	refuses(BYTES(HEADER "\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f9 1 2 a\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 -1 2 a\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 1 2.x a\0E0\0"), "makes no sense");
	refuses(BYTES(HEADER "f644 99999999999999999999 2 a\0E0\0"),
	    "makes no sense");
}

static void
drops_what_has_no_directory(void **state)
{
	struct run r;

	(void)state;
	read_bytes(&r,
	    BYTES(HEADER "f644 1 2 a/x\0f644 1 2 b\0f644 1 2 b/x\0"
	                 "d755 0 1 c\0f644 1 2 c/x\0E0\0"));
	assert_string_equal(r.err.msg, "");
	assert_int_equal(r.tree.count, 3);
	says(r.problems.data, "a/x: its directory vanished");
	says(r.problems.data, "b/x: its directory vanished");
	assert_true(r.tree.partial);
	done(&r);
}

static void
marks_what_could_not_be_read(void **state)
{
	struct run r;

	(void)state;
	read_bytes(&r, BYTES(HEADER "d755 0 1 c\0-c\0d755 0 1 d\0E0\0"));
	assert_string_equal(r.err.msg, "");
	assert_true(tree_find(&r.tree, "c")->unread);
	assert_false(tree_find(&r.tree, "d")->unread);
	says(r.problems.data, "c: the directory cannot be read");
	assert_false(r.tree.partial);
	done(&r);
	read_bytes(&r, BYTES(HEADER "d755 0 1 c\0!c/x\0E0\0"));
	assert_true(r.tree.partial);
	done(&r);
	read_bytes(&r, BYTES(HEADER "E1\0"));
	assert_true(r.tree.partial);
	done(&r);
	/* In a list of one level nobody asked for what is in it. */
	reading.recursive = false;
	read_bytes(&r, BYTES(HEADER "d755 0 1 c\0-c\0E0\0"));
	reading.recursive = true;
	assert_int_equal(r.problems.len, 0);
	assert_false(tree_find(&r.tree, "c")->unread);
	done(&r);
}

static void
says_what_it_may_not(void **state)
{
	(void)state;
	refuses(BYTES("RSMCP1\0x\0/r/s\0\0\0find\0E0\0"), "may not be entered");
	refuses(BYTES("RSMCP1\0d\0/r/s\0w\0\0find\0E0\0"), "cannot be read");
	refuses(BYTES("RSMCP1\0d\0/r/s\0rw\0\0\0E0\0"), "no program");
	refuses(BYTES("RSMCP1\0f\0/r/s\0rw\0\0find\0E1\0"), "vanished");
}

static void
lets_long_names_go_by(void **state)
{
	char *name = repeated("n/", 40000);
	struct buf b;
	struct run r;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_add(&b, BYTES(HEADER "f644 1 2 "));
	buf_adds(&b, name);
	buf_add(&b, BYTES("x\0f644 1 2 b\0E0\0"));
	read_bytes(&r, b.data, b.len);
	assert_string_equal(r.err.msg, "");
	assert_int_equal(r.tree.count, 1);
	says(r.problems.data, "too long");
	assert_true(r.tree.partial);
	done(&r);
	buf_free(&b);
	free(name);
}

/* Give it the same bytes for as long as it wants them, up to "most" times;
 * how often it did. */
static size_t
feed(struct run *r, const char *head, size_t head_len, const char *bytes,
    size_t len, size_t most)
{
	struct listing *l;
	size_t n = 0;

	memset(r, 0, sizeof(*r));
	r->o = reading;
	l = listing_new(&r->o, &r->root, &r->tree);
	assert_true(listing_add(l, head, head_len));
	while (n < most && listing_add(l, bytes, len))
		n++;
	listing_end(l, &r->err);
	listing_free(l);
	return n;
}

static void
wants_no_more_of_a_list_that_makes_no_sense(void **state)
{
	static const char *const nonsense[] = { "f9 1 2 a", "f644 1 2 ../a" };
	struct run r;
	size_t i;

	(void)state;
	for (i = 0; i < 2; i++) {
		assert_int_equal(feed(&r, BYTES(HEADER), nonsense[i],
		                     strlen(nonsense[i]) + 1, 10),
		    0);
		says(r.err.msg, "makes no sense");
		done(&r);
	}
}

/* As of "yes": there is no NUL in it. */
static void
wants_no_more_of_a_text_without_end(void **state)
{
	struct run r;

	(void)state;
	assert_in_range(feed(&r, BYTES("RSMCP1\0d\0"), "y\n", 2, 10000000), 1,
	    1 << 20);
	says(r.err.msg, "makes no sense");
	done(&r);
	assert_in_range(feed(&r, BYTES(HEADER), "y\n", 2, 10000000), 1,
	    1 << 20);
	says(r.err.msg, "makes no sense");
	done(&r);
}

/* Records that leave nothing in the tree end it as well. */
static void
wants_no_more_than_a_host_can_have(void **state)
{
	struct run r;

	(void)state;
	assert_in_range(feed(&r, BYTES(HEADER), BYTES("=x\0"), 20000000),
	    1000000, 19000000);
	assert_int_equal(r.err.code, ERR_LIMIT);
	done(&r);
}

/* What more there is than that is not known by name: nothing is extra. */
static void
keeps_the_first_directories_that_cannot_be_read(void **state)
{
	struct run r;
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_add(&b, BYTES(HEADER));
	for (i = 0; i < 10001; i++) {
		buf_addf(&b, "d755 0 1 %d", i);
		buf_addc(&b, '\0');
		buf_addf(&b, "-%d", i);
		buf_addc(&b, '\0');
		if (i == 9999) {
			struct buf whole;

			buf_init(&whole, SIZE_MAX);
			buf_add(&whole, b.data, b.len);
			buf_add(&whole, BYTES("E0\0"));
			read_bytes(&r, whole.data, whole.len);
			assert_false(r.tree.partial);
			assert_true(tree_find(&r.tree, "9999")->unread);
			buf_free(&whole);
			done(&r);
		}
	}
	buf_add(&b, BYTES("E0\0"));
	read_bytes(&r, b.data, b.len);
	assert_true(r.tree.partial);
	assert_true(tree_find(&r.tree, "9999")->unread);
	assert_int_equal(r.tree.count, 10001);
	buf_free(&b);
	done(&r);
}

/* Long names of which only the first are wanted fill no memory either. */
static void
names_have_a_limit_in_bytes(void **state)
{
	char *dir = repeated("0123456789012345678901234567890123456789/", 1200);
	struct buf b;
	struct run r;
	int i;

	(void)state;
	reading.max_entries = 20000;
	buf_init(&b, SIZE_MAX);
	for (i = 0; i < 1000; i++) {
		buf_addf(&b, "f644 1 2 %s%d", dir, i);
		buf_addc(&b, '\0');
	}
	assert_int_equal(feed(&r, BYTES(HEADER), b.data, b.len, 10), 0);
	assert_int_equal(r.err.code, ERR_LIMIT);
	assert_true(r.tree.count < 1000);
	reading.max_entries = 0;
	buf_free(&b);
	free(dir);
	done(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_the_same_in_every_way),
		cmocka_unit_test(lists_with_busybox_alone),
		cmocka_unit_test(says_what_a_path_is),
		cmocka_unit_test(lists_one_level_and_the_first_names),
		cmocka_unit_test(reads_a_list),
		cmocka_unit_test(takes_no_list_without_its_end),
		cmocka_unit_test(takes_no_names_that_lead_outside),
		cmocka_unit_test(takes_no_nonsense),
		cmocka_unit_test(drops_what_has_no_directory),
		cmocka_unit_test(marks_what_could_not_be_read),
		cmocka_unit_test(says_what_it_may_not),
		cmocka_unit_test(lets_long_names_go_by),
		cmocka_unit_test(wants_no_more_of_a_list_that_makes_no_sense),
		cmocka_unit_test(wants_no_more_of_a_text_without_end),
		cmocka_unit_test(wants_no_more_than_a_host_can_have),
		cmocka_unit_test(
		    keeps_the_first_directories_that_cannot_be_read),
		cmocka_unit_test(names_have_a_limit_in_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
