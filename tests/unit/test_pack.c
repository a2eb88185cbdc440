/*
 * Streams of pack, extracted by the tars that are in use, and the trees
 * compared.
 */
#include <stdlib.h>
#include <string.h>

#include "sync/pack.h"
#include "sync/tarhead.h"
#include "trees.h"

#define LONG_NAME 250
#define SECOND INT64_C(1000000000)

/* Each test has a tree "from" with its list, a tree "to", and a stream. */
static char *top;
static int top_fd, from, to;
static struct tree list;
static struct buf stream;
static struct err err;

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	top_fd = open_root(top);
	put_dir(top_fd, "from");
	put_dir(top_fd, "to");
	from = openat(top_fd, "from", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	to = openat(top_fd, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_init(&list);
	buf_init(&stream, (size_t)64 << 20);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	close(from);
	close(to);
	close(top_fd);
	tree_free(&list);
	buf_free(&stream);
	remove_tree(top);
	return 0;
}

static int
keep(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	(void)why;
	buf_add(&stream, bytes, len);
	return 0;
}

/* The entry for something that is there. */
static struct entry *
entry_of(const char *path)
{
	char target[4096];
	struct stat st;
	struct entry *e;
	ssize_t n = 0;

	assert_int_equal(fstatat(from, path, &st, AT_SYMLINK_NOFOLLOW), 0);
	if (S_ISLNK(st.st_mode))
		n = readlinkat(from, path, target, sizeof(target) - 1);
	assert_true(n >= 0);
	target[n] = '\0';
	e = tree_add(&list, path, S_ISLNK(st.st_mode) ? target : NULL);
	e->type = S_ISDIR(st.st_mode) ? ENTRY_DIR
	    : S_ISLNK(st.st_mode)     ? ENTRY_LINK
	    : S_ISREG(st.st_mode)     ? ENTRY_FILE
	                              : ENTRY_OTHER;
	e->size = e->type == ENTRY_FILE ? st.st_size : 0;
	e->mtime = (int64_t)st.st_mtim.tv_sec * SECOND + st.st_mtim.tv_nsec;
	e->mode = st.st_mode & 0777;
	return e;
}

/* All of the list, and an end. */
static void
pack_list(void)
{
	struct pack *p = pack_new(from, keep, NULL);
	size_t i;

	for (i = 0; i < list.count; i++) {
		if (pack_entry(p, &list.entries[i], NULL, &err) != 0)
			fail_msg("%s", err.msg);
	}
	assert_int_equal(pack_end(p, &err), 0);
	pack_free(p);
	assert_false(stream.full);
	assert_int_equal(stream.len % TAR_BLOCK, 0);
}

/* Let a tar read the stream; false if this machine has none. */
static bool
extract(const char *program, const char *applet)
{
	char *dir = path_join(top, "to");
	const char *with[] = { program, applet, "-xpf", "-", "-C", dir, NULL };
	const char *without[] = { program, "-xpf", "-", "-C", dir, NULL };
	struct proc_request req = {
		.argv = applet != NULL ? with : without,
		.input = stream.data,
		.input_len = stream.len,
		.max_output = 4096,
	};
	struct until until = until_in(60000);
	struct proc_result res;
	int ran = proc_run(&req, &res, &until, &err);

	free(dir);
	if (ran == -1) {
		assert_int_equal(err.code, ERR_NOT_FOUND);
		return false;
	}
	if (res.exit_code != 0 || res.err.len > 0)
		fail_msg("%s: exit %d: %s", program, res.exit_code,
		    res.err.data);
	proc_result_free(&res);
	return true;
}

static void
same_bytes(const char *path)
{
	int a = openat(from, path, O_RDONLY | O_CLOEXEC);
	int b = openat(to, path, O_RDONLY | O_CLOEXEC);
	char one[65536], two[65536];
	ssize_t n;

	assert_int_not_equal(a, -1);
	assert_int_not_equal(b, -1);
	do {
		n = read(a, one, sizeof(one));
		assert_int_equal(read(b, two, sizeof(two)), n);
		assert_memory_equal(one, two, (size_t)n);
	} while (n > 0);
	close(a);
	close(b);
}

static void
same_entry(const struct entry *e, bool seconds)
{
	char target[4096];
	struct stat st;
	ssize_t n;

	if (fstatat(to, e->path, &st, AT_SYMLINK_NOFOLLOW) == -1)
		fail_msg("%s did not arrive", e->path);
	if (e->type == ENTRY_LINK) {
		assert_true(S_ISLNK(st.st_mode));
		n = readlinkat(to, e->path, target, sizeof(target) - 1);
		assert_true(n >= 0);
		target[n] = '\0';
		assert_string_equal(target, e->target);
		return;
	}
	assert_int_equal(S_ISDIR(st.st_mode), e->type == ENTRY_DIR);
	assert_int_equal(st.st_mode & 07777, e->mode);
	if (e->type == ENTRY_DIR)
		return;
	assert_int_equal(st.st_size, e->size);
	assert_int_equal(st.st_mtim.tv_sec, e->mtime / SECOND);
	if (!seconds)
		assert_int_equal(st.st_mtim.tv_nsec, e->mtime % SECOND);
	same_bytes(e->path);
}

static size_t seen;

static int
count_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)path;
	(void)st;
	(void)type;
	(void)at;
	seen++;
	return 0;
}

static void
same_trees(bool seconds)
{
	char *dir = path_join(top, "to");
	size_t i;

	for (i = 0; i < list.count; i++)
		same_entry(&list.entries[i], seconds);
	seen = 0;
	assert_int_equal(nftw(dir, count_one, 16, FTW_PHYS), 0);
	assert_int_equal(seen, list.count + 1);
	free(dir);
}

static void
put(const char *path, const char *text, mode_t mode)
{
	put_file(from, path, text, strlen(text));
	assert_int_equal(fchmodat(from, path, mode, 0), 0);
	entry_of(path);
}

static void
put_link(const char *path, const char *target)
{
	assert_int_equal(symlinkat(target, from, path), 0);
	entry_of(path);
}

static void
put_empty_dir(const char *path, mode_t mode)
{
	put_dir(from, path);
	assert_int_equal(fchmodat(from, path, mode, 0), 0);
	entry_of(path);
}

/* Names around each limit of the headers, as files, links and targets. */
static void
put_long_names(void)
{
	static const size_t lengths[] = { 98, 99, 100, 101, 154, 155, 156,
		LONG_NAME };
	char name[LONG_NAME + 1], path[3 * LONG_NAME];
	size_t i;

	put_empty_dir("long", 0755);
	for (i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(name, 'a' + (int)i, sizeof(name));
		name[lengths[i] - strlen("long/")] = '\0';
		snprintf(path, sizeof(path), "long/%s", name);
		put(path, path, 0644);
		snprintf(path, sizeof(path), "long/to%zu", lengths[i]);
		put_link(path, name);
		/* Not "name" itself, but as long as the path of the file. */
		memset(name, 'x', lengths[i]);
		name[lengths[i]] = '\0';
		snprintf(path, sizeof(path), "long/at%zu", lengths[i]);
		put_link(path, name);
	}
	memset(name, 'd', LONG_NAME);
	name[LONG_NAME] = '\0';
	put_empty_dir(name, 0750);
	snprintf(path, sizeof(path), "%s/%s", name, name);
	put_empty_dir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/file", name, name);
	put(path, "deep", 0600);
}

static void
put_odd_names(void)
{
	char name[] = "?byte", latin[] = "?";
	int byte;

	put_empty_dir("odd", 0755);
	for (byte = 1; byte < 256; byte++) {
		char path[32];

		if (byte == '/')
			continue;
		name[0] = (char)byte;
		snprintf(path, sizeof(path), "odd/%s", name);
		put(path, name, 0644);
	}
	latin[0] = (char)0xe9;
	put_link("odd/link", latin);
	put("odd/-rf", "dash", 0644);
	put("odd/\xc3\xa9\xcc\x81", "two ways", 0644);
	put("odd/a\nb", "newline", 0644);
}

static void
put_everything(void)
{
	char *large = repeated("0123456789abcdef", 40000);

	put("empty", "", 0644);
	put("one", "1", 0600);
	put("program", "#!/bin/sh\n", 0755);
	put("locked", "no", 0400);
	put("large", large, 0644);
	free(large);
	large = repeated("x", TAR_BLOCK);
	put("block", large, 0644);
	free(large);
	put_empty_dir("sub", 0755);
	put_empty_dir("sub/none", 0700);
	put_link("sub/up", "../one");
	put_link("sub/outside", "/etc/passwd");
	put_link("nowhere", "not there");
	put_long_names();
	put_odd_names();
}

static void
gnu_tar_reads_it(void **state)
{
	(void)state;
	setenv("LC_ALL", "C", 1);
	put_everything();
	pack_list();
	if (!extract("tar", NULL))
		skip();
	same_trees(false);
}

static void
busybox_reads_it(void **state)
{
	(void)state;
	put_everything();
	pack_list();
	if (!extract("busybox", "tar"))
		skip();
	same_trees(true);
}

static void
bsdtar_reads_it(void **state)
{
	(void)state;
	setenv("LC_ALL", "C", 1);
	put_everything();
	pack_list();
	if (!extract("bsdtar", NULL))
		skip();
	same_trees(false);
}

/* setuid, setgid and sticky are not packed. */
static void
only_permissions_are_kept(void **state)
{
	struct entry *e;

	(void)state;
	put("file", "x", 0644);
	assert_int_equal(fchmodat(from, "file", 06755, 0), 0);
	put_empty_dir("dir", 0755);
	e = &list.entries[list.count - 1];
	e->mode = 07777;
	pack_list();
	if (!extract("tar", NULL))
		skip();
	list.entries[0].mode = 0755;
	e->mode = 0777;
	same_trees(false);
}

/* The number in a header, both ways of writing it. */
static int64_t
field(const unsigned char *at, size_t size)
{
	int64_t n = 0;
	size_t i;

	for (i = 0; i < size && at[i] != '\0'; i++)
		n = n * 8 + at[i] - '0';
	if (at[0] < 0x80)
		return n;
	for (i = 1, n = 0; i < size; i++)
		n = n * 256 + at[i];
	return n;
}

static void
headers_hold_every_size(void **state)
{
	static const int64_t sizes[] = { 0, 1, 511, 077777777777, 0100000000000,
		INT64_C(1) << 40, INT64_MAX };
	unsigned char block[TAR_BLOCK];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct tar_head h = { .type = TAR_FILE,
			.name = "n",
			.size = sizes[i] };

		tar_head(block, &h);
		assert_int_equal(field(block + 124, 12), sizes[i]);
	}
}

static void
pax_headers_hold_every_mtime(void **state)
{
	static const struct {
		int64_t mtime;
		const char *text;
	} cases[] = {
		{ INT64_C(1600000000123456789),
		    "30 mtime=1600000000.123456789\n" },
		{ 1, "21 mtime=0.000000001\n" },
		{ -1, "22 mtime=-0.000000001\n" },
		{ -SECOND, "22 mtime=-1.000000000\n" },
		{ INT64_MAX, "30 mtime=9223372036.854775807\n" },
		{ INT64_MIN, "31 mtime=-9223372036.854775808\n" },
	};
	size_t i, len;
	char out[64];

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		len = tar_pax(out, cases[i].mtime);
		assert_int_equal(len, strlen(cases[i].text));
		assert_memory_equal(out, cases[i].text, len);
		assert_true(tar_needs_pax(cases[i].mtime));
	}
	assert_false(tar_needs_pax(0));
	assert_false(tar_needs_pax(1600000000 * SECOND));
	assert_false(tar_needs_pax(INT64_C(8589934591) * SECOND));
	assert_true(tar_needs_pax(INT64_C(8589934592) * SECOND));
}

static void
times_before_1970_arrive(void **state)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = -100000 } };
	struct stat st;

	(void)state;
	put("old", "x", 0644);
	assert_int_equal(utimensat(from, "old", times, 0), 0);
	pack_list();
	/* GNU tar wonders aloud. */
	if (!extract("bsdtar", NULL))
		skip();
	assert_int_equal(fstatat(to, "old", &st, 0), 0);
	assert_int_equal(st.st_mtim.tv_sec, -100000);
	assert_int_equal(st.st_mtim.tv_nsec, 0);
}

/* What a tar lists of the stream, though that ends before its time. */
static void
lists_size(const char *program, const char *applet, const char *size)
{
	const char *with[] = { program, applet, "-tvf", "-", NULL };
	const char *without[] = { program, "-tvf", "-", NULL };
	struct proc_request req = {
		.argv = applet != NULL ? with : without,
		.input = stream.data,
		.input_len = stream.len,
		.max_output = 4096,
	};
	struct until until = until_in(60000);
	struct proc_result res;

	if (proc_run(&req, &res, &until, &err) == -1) {
		assert_int_equal(err.code, ERR_NOT_FOUND);
		return;
	}
	says(res.out.data, size);
	proc_result_free(&res);
}

static int
only_the_beginning(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	keep(NULL, bytes, len, why);
	return err_set(why, ERR_IO, "enough");
}

static void
a_file_may_have_more_than_8_gib(void **state)
{
	struct pack *p = pack_new(from, only_the_beginning, NULL);
	int fd = openat(from, "huge", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	(void)state;
	assert_int_equal(ftruncate(fd, (INT64_C(8) << 30) + 3), 0);
	close(fd);
	assert_int_equal(pack_entry(p, entry_of("huge"), NULL, &err), -1);
	pack_free(p);
	lists_size("tar", NULL, "8589934595");
	lists_size("busybox", "tar", "8589934595");
	lists_size("bsdtar", NULL, "8589934595");
}

static void
what_cannot_be_read_is_left_out(void **state)
{
	struct pack *p = pack_new(from, keep, NULL);
	struct entry *e;

	(void)state;
	e = want(&list, "gone", ENTRY_FILE, 3);
	assert_int_equal(pack_entry(p, e, NULL, &err), 1);
	says(err.msg, "'gone'");
	assert_int_equal(err.code, ERR_NOT_FOUND);
	/* A link where a file was: its target is not read. */
	put_link("swapped", "/etc/passwd");
	e = want(&list, "swapped", ENTRY_FILE, 3);
	assert_int_equal(pack_entry(p, e, NULL, &err), 1);
	says(err.msg, "symbolic link");
	/* Nor through a directory that is one. */
	put_link("way", "/etc");
	e = want(&list, "way/passwd", ENTRY_FILE, 3);
	assert_int_equal(pack_entry(p, e, NULL, &err), 1);
	assert_int_equal(err.code, ERR_DENIED);
	/* A FIFO does not hold us up. */
	assert_int_equal(mkfifoat(from, "fifo", 0600), 0);
	e = want(&list, "fifo", ENTRY_FILE, 3);
	assert_int_equal(pack_entry(p, e, NULL, &err), 1);
	says(err.msg, "regular file");
	assert_int_equal(pack_entry(p, entry_of("fifo"), NULL, &err), 1);
	/* The stream is empty and goes on. */
	assert_int_equal(pack_flush(p, &err), 0);
	assert_int_equal(stream.len, 0);
	assert_int_equal(pack_text(p, "list", "a\n", 2, &err), 0);
	assert_int_equal(pack_end(p, &err), 0);
	pack_free(p);
	if (!extract("tar", NULL))
		skip();
	holds(to, "list", "a\n");
	assert_int_equal(names_in(top_fd, "to"), 1);
}

/* Makes the file shorter or longer as soon as its beginning is out. */
static off_t new_size;

static int
meddle(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	if (stream.len == 0)
		assert_int_equal(truncate(((const char *)data), new_size), 0);
	return keep(NULL, bytes, len, why);
}

static void
changes_while(off_t size, const char *sentence)
{
	char *path = path_join(top, "from/large");
	struct pack *p = pack_new(from, meddle, path);
	char *text = repeated("x", 600000);
	size_t whole = TAR_BLOCK * 3 + 600064 + TAR_BLOCK * 2;

	new_size = size;
	put("large", text, 0644);
	assert_int_equal(pack_entry(p, &list.entries[0], NULL, &err), 1);
	says(err.msg, sentence);
	assert_int_equal(pack_end(p, &err), 0);
	assert_int_equal(stream.len, whole);
	pack_free(p);
	free(path);
	free(text);
	/* It is a stream that can be read all the same. */
	assert_true(extract("tar", NULL));
}

static void
a_file_that_shrinks_keeps_its_announced_size(void **state)
{
	(void)state;
	changes_while(300000, "shorter");
}

static void
a_file_that_grows_keeps_its_announced_size(void **state)
{
	(void)state;
	changes_while(900000, "changed");
}

static void
a_file_is_packed_as_it_is_now(void **state)
{
	(void)state;
	put("log", "one\n", 0644);
	put_file(from, "log", "one\ntwo\n", 8);
	pack_list();
	if (!extract("tar", NULL))
		skip();
	holds(to, "log", "one\ntwo\n");
}

static void
an_entry_may_have_another_name(void **state)
{
	struct pack *p = pack_new(from, keep, NULL);

	(void)state;
	put("file", "x", 0644);
	assert_int_equal(pack_entry(p, &list.entries[0], "another", &err), 0);
	assert_int_equal(pack_end(p, &err), 0);
	pack_free(p);
	if (!extract("tar", NULL))
		skip();
	holds(to, "another", "x");
}

static int
no_more(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	(void)bytes;
	(void)len;
	return err_set(why, ERR_IO, "the link is gone");
}

static void
a_stream_that_breaks_is_over(void **state)
{
	struct pack *p = pack_new(from, no_more, NULL);
	char *text = repeated("x", 600000);

	(void)state;
	put("large", text, 0644);
	free(text);
	assert_int_equal(pack_entry(p, &list.entries[0], NULL, &err), -1);
	assert_string_equal(err.msg, "the link is gone");
	pack_free(p);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(gnu_tar_reads_it),
		TEST(busybox_reads_it),
		TEST(bsdtar_reads_it),
		TEST(only_permissions_are_kept),
		TEST(headers_hold_every_size),
		TEST(pax_headers_hold_every_mtime),
		TEST(times_before_1970_arrive),
		TEST(a_file_may_have_more_than_8_gib),
		TEST(what_cannot_be_read_is_left_out),
		TEST(a_file_that_shrinks_keeps_its_announced_size),
		TEST(a_file_that_grows_keeps_its_announced_size),
		TEST(a_file_is_packed_as_it_is_now),
		TEST(an_entry_may_have_another_name),
		TEST(a_stream_that_breaks_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
