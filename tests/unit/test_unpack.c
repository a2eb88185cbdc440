/*
 * Streams as a host may send them, well-meant ones from real tars and others
 * made by hand: what was asked for arrives, and nothing else happens.
 */
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

#include "sync/distinct.h"
#include "sync/tarhead.h"
#include "sync/unpack.h"
#include "trees.h"

#define MTIME INT64_C(1600000000123456789)

/* Each test has a directory with "root", "outside" and "from" in it, a list
 * and a stream. */
static char *top;
static int top_fd, root;
static struct tree list;
static struct buf stream;
static struct err err;
/* What was told. */
static size_t dones, failures, refusals, bytes;
static char last_failure[ERR_MSG_SIZE], last_refusal[1024];
/* How the stream is read. */
static size_t at, piece, fail_at;

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	top_fd = open_root(top);
	put_dir(top_fd, "root");
	put_dir(top_fd, "outside");
	put_dir(top_fd, "from");
	put_file(top_fd, "outside/secret", BYTES("secret"));
	root = openat(top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	tree_init(&list);
	buf_init(&stream, (size_t)64 << 20);
	dones = failures = refusals = bytes = at = 0;
	last_failure[0] = last_refusal[0] = '\0';
	piece = 65536;
	fail_at = SIZE_MAX;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	/* Whatever the test did. */
	holds(top_fd, "outside/secret", "secret");
	assert_int_equal(names_in(top_fd, "outside"), 1);
	assert_int_equal(names_in(top_fd, "."), 3);
	tree_free(&list);
	buf_free(&stream);
	close(root);
	close(top_fd);
	remove_tree(top);
	return 0;
}

/* --- making streams ------------------------------------------------------- */

static void
pad(void)
{
	static const char zeros[TAR_BLOCK];

	buf_add(&stream, zeros, -stream.len % TAR_BLOCK);
}

static void
member(int type, const char *name, const char *target, const void *content,
    size_t len)
{
	struct tar_head h = { .type = (enum tar_type)type,
		.name = name,
		.target = target,
		.size = (int64_t)len,
		.mode = 0777,
		.mtime = 1 };
	unsigned char block[TAR_BLOCK];

	tar_head(block, &h);
	buf_add(&stream, block, sizeof(block));
	buf_add(&stream, content, len);
	pad();
}

static void
file(const char *name, const char *content)
{
	member('0', name, NULL, content, strlen(content));
}

/* A pax record for the next member. */
static void
pax(const char *key, const char *value)
{
	size_t len = strlen(key) + strlen(value) + 3;
	char *record;

	len += len + 1 > 9 ? 2 : 1;
	len += len > 99 ? 1 : 0;
	record = xasprintf("%zu %s=%s\n", len, key, value);
	assert_int_equal(strlen(record), len);
	member('x', "x", NULL, record, len);
	free(record);
}

static void
long_name(int type, const char *name)
{
	member(type, "././@LongLink", NULL, name, strlen(name) + 1);
}

static void
finish(void)
{
	static const char zeros[2 * TAR_BLOCK];

	buf_add(&stream, zeros, sizeof(zeros));
}

/* Write over a field of the header at "offset", and sum up again. */
static void
patch(size_t offset, size_t field, const void *value, size_t len)
{
	unsigned char *h = (unsigned char *)stream.data + offset;
	unsigned sum = 0;
	size_t i;

	memcpy(h + field, value, len);
	memset(h + 148, ' ', 8);
	for (i = 0; i < TAR_BLOCK; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
}

/* --- taking them ---------------------------------------------------------- */

static ssize_t
read_stream(void *data, void *to, size_t size, struct err *why)
{
	size_t n = stream.len - at;

	(void)data;
	if (at >= fail_at)
		return err_set(why, ERR_CANCELLED, "no longer wanted");
	if (n > size)
		n = size;
	if (n > piece)
		n = piece;
	memcpy(to, stream.data + at, n);
	at += n;
	return (ssize_t)n;
}

static void
done(void *data, const struct entry *e, const struct err *why)
{
	(void)data;
	assert_true(e >= list.entries && e < list.entries + list.count);
	dones++;
	if (why == NULL)
		return;
	failures++;
	snprintf(last_failure, sizeof(last_failure), "%s", why->msg);
}

static void
count_bytes(void *data, const struct entry *e, size_t n)
{
	(void)data;
	(void)e;
	bytes += n;
}

static void
refused(void *data, const char *name, const char *why)
{
	(void)data;
	refusals++;
	snprintf(last_refusal, sizeof(last_refusal), "%s: %s", name, why);
}

static int
unpack(void)
{
	struct unpack_options o = { .wanted = &list,
		.done = done,
		.bytes = count_bytes,
		.refused = refused };

	tree_sort(&list);
	at = 0;
	return unpack_stream(root, read_stream, NULL, &o, &err);
}

static void
unpack_well(void)
{
	if (unpack() == -1)
		fail_msg("%s", err.msg);
}

static struct entry *
want_link(const char *path, const char *target)
{
	struct entry *e = tree_add(&list, path, target);

	e->type = ENTRY_LINK;
	e->mode = 0777;
	e->mtime = MTIME;
	return e;
}

/* Nothing but these many names are in the root. */
static void
root_has(size_t names)
{
	assert_int_equal(names_in(top_fd, "root"), names);
}

/* --- well-meant streams --------------------------------------------------- */

static void
what_was_asked_for_arrives(void **state)
{
	struct stat st;

	(void)state;
	want(&list, "dir", ENTRY_DIR, 0)->mode = 0555;
	want(&list, "dir/file", ENTRY_FILE, 5)->mode = 0640;
	want(&list, "empty", ENTRY_FILE, 0);
	want_link("link", "dir/file");
	member('5', "dir/", NULL, "", 0);
	file("dir/file", "hello");
	file("./empty", "");
	member('2', "link", "dir/file", "", 0);
	finish();
	unpack_well();
	assert_int_equal(dones, 4);
	assert_int_equal(failures, 0);
	assert_int_equal(bytes, 5);
	holds(root, "dir/file", "hello");
	holds(root, "empty", "");
	root_has(3);
	assert_int_equal(fstatat(root, "dir/file", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_mtim.tv_nsec, 123456789);
	assert_int_equal(fstatat(root, "dir", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0555);
	assert_int_equal(st.st_mtim.tv_sec, 1600000000);
	assert_int_equal(fstatat(root, "link", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(st.st_mode));
	assert_int_equal(st.st_mtim.tv_sec, 1600000000);
	fchmodat(root, "dir", 0755, 0);
}

static void
pieces_of_any_size_will_do(void **state)
{
	static const size_t pieces[] = { 1, 7, 511, 512, 513, 1024, 4096 };
	char *text = repeated("0123456789", 300);
	size_t i;

	(void)state;
	want(&list, "a", ENTRY_FILE, 3000);
	want(&list, "b", ENTRY_FILE, 3000);
	file("a", text);
	file("b", text);
	finish();
	for (i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		piece = pieces[i];
		unpack_well();
		holds(root, "a", text);
		holds(root, "b", text);
	}
	free(text);
}

static void
names_may_be_any_bytes(void **state)
{
	static const char *const names[] = { "\xff\xfe", "caf\xe9",
		"caf\xc3\xa9", "a\nb", " ", "-rf", "\x01" };
	char *deep = repeated("long/", 60), *name;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		want(&list, names[i], ENTRY_FILE, 1);
		file(names[i], "x");
		/* And as a pax header tells it. */
		name = xasprintf("%s.pax", names[i]);
		want(&list, name, ENTRY_FILE, 1);
		pax("path", name);
		file("short", "x");
		free(name);
		name = xasprintf("%s%s", deep, names[i]);
		want(&list, name, ENTRY_FILE, 1);
		long_name('L', name);
		file("short", "x");
		free(name);
	}
	want_link("l", "\xff");
	want_link("m", "\xff");
	member('2', "l", "\xff", "", 0);
	long_name('K', "\xff");
	member('2', "m", "short", "", 0);
	free(deep);
	finish();
	unpack_well();
	assert_int_equal(dones, list.count);
	assert_int_equal(failures, 0);
	assert_int_equal(refusals, 0);
}

static void
a_file_or_link_takes_the_place_of_what_was_there(void **state)
{
	(void)state;
	assert_int_equal(symlinkat("../outside/secret", root, "file"), 0);
	put_file(root, "link", BYTES("old"));
	assert_int_equal(mkfifoat(root, "fifo", 0600), 0);
	want(&list, "file", ENTRY_FILE, 3);
	want(&list, "fifo", ENTRY_FILE, 3);
	want_link("link", "x");
	file("file", "new");
	file("fifo", "new");
	member('2', "link", "x", "", 0);
	finish();
	unpack_well();
	assert_int_equal(failures, 0);
	holds(root, "file", "new");
	holds(root, "fifo", "new");
	root_has(3);
}

static void
a_second_name_of_a_file_becomes_a_copy(void **state)
{
	struct stat a, b;

	(void)state;
	want(&list, "a", ENTRY_FILE, 5);
	want(&list, "b", ENTRY_FILE, 5);
	file("a", "hello");
	member('1', "b", "./a", "", 0);
	finish();
	unpack_well();
	assert_int_equal(failures, 0);
	holds(root, "b", "hello");
	assert_int_equal(bytes, 10);
	assert_int_equal(fstatat(root, "a", &a, 0), 0);
	assert_int_equal(fstatat(root, "b", &b, 0), 0);
	assert_int_not_equal(a.st_ino, b.st_ino);
}

/* What a tar makes of top/from. */
static bool
made_by(const char *const *argv)
{
	struct proc_request req = { .argv = argv,
		.max_output = (size_t)64 << 20 };
	struct until until = until_in(60000);
	struct proc_result res;

	if (proc_run(&req, &res, &until, &err) == -1) {
		assert_int_equal(err.code, ERR_NOT_FOUND);
		return false;
	}
	if (res.exit_code != 0)
		fail_msg("%s: %s", argv[0], res.err.data);
	buf_reset(&stream);
	buf_add(&stream, res.out.data, res.out.len);
	proc_result_free(&res);
	return true;
}

static void
remove_all(void)
{
	char *dir = path_join(top, "root");

	close(root);
	remove_tree(dir);
	put_dir(top_fd, "root");
	root = openat(top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void
streams_of_real_tars_are_read(void **state)
{
	char *from = path_join(top, "from");
	const char *const makers[][8] = {
		{ "tar", "-c", "-f", "-", "-C", from, "." },
		{ "tar", "-cSf", "-", "--format=gnu", "-C", from, "." },
		{ "tar", "-cSf", "-", "--format=posix", "-C", from, "." },
		{ "tar", "-cf", "-", "--format=ustar", "-C", from, "." },
		{ "busybox", "tar", "-cf", "-", "-C", from, "." },
		{ "bsdtar", "-cf", "-", "-C", from, "." },
		{ "bsdtar", "-cf", "-", "--format=gnutar", "-C", from, "." },
	};
	int from_fd = openat(top_fd, "from", O_RDONLY | O_CLOEXEC), fd;
	char tail[8] = "";
	size_t i;

	(void)state;
	put_file(from_fd, "one", BYTES("1"));
	put_file(from_fd, "caf\xe9", BYTES("latin"));
	put_dir(from_fd, "sub");
	assert_int_equal(linkat(from_fd, "one", from_fd, "sub/two", 0), 0);
	assert_int_equal(symlinkat("../one", from_fd, "sub/up"), 0);
	fd = openat(from_fd, "holes", O_CREAT | O_RDWR | O_CLOEXEC, 0644);
	assert_int_equal(pwrite(fd, "end", 3, 1000000), 3);
	assert_int_equal(ftruncate(fd, 2000000), 0);
	close(fd);
	close(from_fd);
	want(&list, "one", ENTRY_FILE, 1);
	want(&list, "caf\xe9", ENTRY_FILE, 5);
	want(&list, "sub", ENTRY_DIR, 0);
	want(&list, "sub/two", ENTRY_FILE, 1);
	want_link("sub/up", "../one");
	want(&list, "holes", ENTRY_FILE, 2000000);
	for (i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		if (!made_by(makers[i]))
			continue;
		dones = failures = refusals = 0;
		unpack_well();
		if (failures > 0 || refusals > 0 || dones != list.count)
			fail_msg("%s %s: %s%s", makers[i][0], makers[i][3],
			    last_failure, last_refusal);
		holds(root, "one", "1");
		holds(root, "sub/two", "1");
		holds(root, "caf\xe9", "latin");
		fd = openat(root, "holes", O_RDONLY | O_CLOEXEC);
		assert_int_equal(lseek(fd, 0, SEEK_END), 2000000);
		assert_int_equal(pread(fd, tail, 4, 1000000), 4);
		assert_memory_equal(tail, "end", 4);
		close(fd);
		remove_all();
	}
	free(from);
}

/* --- streams that mean harm ----------------------------------------------- */

static void
names_that_lead_outside_are_refused(void **state)
{
	static const char *const names[] = { "../outside/new", "/tmp/x",
		"a/../../outside/new", "..", "./../outside/new", "a/./b",
		"a//b", "//a", ".//../outside/new" };
	size_t i;

	(void)state;
	want(&list, "a", ENTRY_FILE, 1);
	want(&list, "a/b", ENTRY_FILE, 1);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		file(names[i], "x");
		pax("path", names[i]);
		file("a", "x");
		long_name('L', names[i]);
		file("a", "x");
		/* The later header counts. */
		pax("path", names[i]);
		long_name('L', "a");
		file("a", "x");
	}
	member('5', "/", NULL, "", 0);
	finish();
	unpack_well();
	assert_int_equal(refusals, 4 * i + 1);
	assert_int_equal(dones, 0);
}

/* Even if the list itself should hold such a name. */
static void
a_list_with_such_names_does_not_help(void **state)
{
	(void)state;
	want(&list, "../outside/new", ENTRY_FILE, 1);
	want(&list, "../outside/secret", ENTRY_FILE, 1);
	want(&list, "/tmp/rsmcp-never", ENTRY_FILE, 1);
	want(&list, "..", ENTRY_DIR, 0);
	file("../outside/new", "x");
	file("../outside/secret", "x");
	file("/tmp/rsmcp-never", "x");
	member('5', "../", NULL, "", 0);
	finish();
	unpack_well();
	assert_int_equal(failures, 4);
	says(last_failure, "refused");
	assert_int_equal(access("/tmp/rsmcp-never", F_OK), -1);
	root_has(0);
}

static void
nothing_goes_through_a_link(void **state)
{
	(void)state;
	/* One that came with the stream ... */
	want_link("way", "../outside");
	want(&list, "way/secret", ENTRY_FILE, 1);
	want(&list, "way/new", ENTRY_FILE, 1);
	want(&list, "way/dir", ENTRY_DIR, 0);
	want_link("way/link", "x");
	/* ... and one that was there. */
	assert_int_equal(symlinkat("../outside", root, "there"), 0);
	want(&list, "there", ENTRY_DIR, 0);
	want(&list, "there/secret", ENTRY_FILE, 1);
	member('2', "way", "../outside", "", 0);
	file("way/secret", "x");
	file("way/new", "x");
	member('5', "way/dir", NULL, "", 0);
	member('2', "way/link", "x", "", 0);
	member('5', "there", NULL, "", 0);
	file("there/secret", "x");
	finish();
	unpack_well();
	assert_int_equal(dones, 7);
	assert_int_equal(failures, 6);
	root_has(2);
}

static void
links_have_the_target_that_was_listed(void **state)
{
	(void)state;
	want_link("link", "good");
	want_link("more", "good");
	want_link("pax", "good");
	member('2', "link", "../outside/secret", "", 0);
	long_name('K', "../outside");
	member('2', "more", "good", "", 0);
	pax("linkpath", "../outside");
	member('2', "pax", "good", "", 0);
	finish();
	unpack_well();
	assert_int_equal(failures, 3);
	says(last_failure, "changed on the host");
	root_has(0);
}

static void
hard_links_reach_only_what_came_before(void **state)
{
	static const char *const targets[] = { "/etc/passwd",
		"../outside/secret", "there", "link", "later", "hard", "dir",
		"other" };
	size_t i;

	(void)state;
	put_file(root, "there", BYTES("secret"));
	want(&list, "there", ENTRY_FILE, 6);
	want_link("link", "../outside/secret");
	want(&list, "hard", ENTRY_FILE, 6);
	want(&list, "later", ENTRY_FILE, 6);
	want(&list, "dir", ENTRY_DIR, 0);
	want(&list, "other", ENTRY_FILE, 5);
	want_link("as link", "hard");
	for (i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		buf_reset(&stream);
		dones = failures = 0;
		member('2', "link", "../outside/secret", "", 0);
		member('5', "dir", NULL, "", 0);
		file("other", "other");
		member('1', "hard", targets[i], "", 0);
		file("later", "laters");
		member('1', "as link", "later", "", 0);
		finish();
		unpack_well();
		assert_int_equal(failures, 2);
		assert_false(is_there(root, "hard"));
		assert_false(is_there(root, "as link"));
	}
}

static void
other_kinds_of_members_are_not_made(void **state)
{
	static const char types[] = "34567DMNVXgSABCZ";
	size_t i;

	(void)state;
	for (i = 0; types[i] != '\0'; i++) {
		tree_free(&list);
		want(&list, "x", types[i] == '5' ? ENTRY_FILE : ENTRY_DIR, 0);
		want(&list, "y", ENTRY_OTHER, 0);
		buf_reset(&stream);
		member(types[i], "x", NULL, "", 0);
		member(types[i], "y", NULL, "", 0);
		finish();
		unpack(); /* well or not */
		/* Some mean a directory, in old ways of saying it. */
		if (is_there(root, "x")) {
			assert_int_equal(unlinkat(root, "x", AT_REMOVEDIR), 0);
			assert_true(types[i] == 'D');
		}
		root_has(0);
	}
}

static void
a_member_that_comes_twice_counts_once(void **state)
{
	(void)state;
	want(&list, "a", ENTRY_FILE, 3);
	file("a", "one");
	file("a", "two");
	file("./a", "two");
	member('2', "a", "../outside/secret", "", 0);
	member('5', "a/", NULL, "", 0);
	finish();
	unpack_well();
	holds(root, "a", "one");
	assert_int_equal(dones, 1);
	assert_int_equal(refusals, 4);
	says(last_refusal, "came before");
}

static void
types_and_sizes_are_those_of_the_list(void **state)
{
	(void)state;
	want(&list, "a", ENTRY_FILE, 3);
	want(&list, "b", ENTRY_FILE, 3);
	want(&list, "c", ENTRY_FILE, 3);
	want(&list, "d", ENTRY_DIR, 0);
	want(&list, "e", ENTRY_DIR, 0);
	want(&list, "good", ENTRY_FILE, 4);
	file("a", "longer");
	file("b", "");
	member('5', "c", NULL, "", 0);
	file("d", "file");
	member('2', "e", "../outside", "", 0);
	file("good", "good");
	finish();
	unpack_well();
	assert_int_equal(failures, 5);
	root_has(1);
	holds(root, "good", "good");
}

static void
sizes_that_make_no_sense_break_nothing(void **state)
{
	static const char *const sizes[] = { "77777777777",
		"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",
		"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"\xff\xff\xff\xff\x80\0\0\0\0\0\0\0",
		"\xbf\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
		"-0000000001", "not a size!" };
	size_t i;

	(void)state;
	want(&list, "a", ENTRY_FILE, 3);
	want(&list, "b", ENTRY_FILE, 3);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		buf_reset(&stream);
		file("a", "one");
		patch(0, 124, sizes[i], 11 + (i > 0 && i < 5));
		file("b", "two");
		finish();
		unpack(); /* well or not */
		assert_false(is_there(root, "a"));
	}
	/* By pax, and where the list agrees. */
	buf_reset(&stream);
	tree_free(&list);
	want(&list, "a", ENTRY_FILE, INT64_MAX);
	pax("size", "9223372036854775807");
	file("a", "one");
	finish();
	assert_int_equal(unpack(), -1);
	root_has(0);
}

/* An old GNU sparse header whose pieces lie outside the file. */
static void
sparse_pieces_stay_within_the_size(void **state)
{
	(void)state;
	want(&list, "a", ENTRY_FILE, 1000);
	want(&list, "b", ENTRY_FILE, 3);
	file("a", "abc");
	patch(0, 156, "S", 1);
	patch(0, 257, "ustar  ", 8);
	patch(0, 386, "07777777770\0", 12); /* offset of the piece */
	patch(0, 398, "00000000003\0", 12); /* its length */
	patch(0, 483, "00000001750\0", 12); /* real size: 1000 */
	file("b", "two");
	finish();
	unpack(); /* well or not */
	assert_false(is_there(root, "a"));
	assert_true(names_in(top_fd, "root") <= 1);
}

static void
nothing_replaces_a_directory(void **state)
{
	(void)state;
	put_dir(root, "dir");
	put_dir(root, "full");
	put_file(root, "full/x", BYTES("x"));
	want(&list, "dir", ENTRY_FILE, 1);
	want_link("full", "x");
	file("dir", "x");
	member('2', "full", "x", "", 0);
	finish();
	unpack_well();
	assert_int_equal(failures, 2);
	holds(root, "full/x", "x");
	root_has(2);
}

static void
what_was_not_asked_for_has_an_end(void **state)
{
	int i;

	(void)state;
	want(&list, "a", ENTRY_FILE, 1);
	file("a", "x");
	for (i = 0; i < 1010; i++)
		file("b", "x");
	finish();
	assert_int_equal(unpack(), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "not asked for");
	holds(root, "a", "x");
}

static ssize_t
endless(void *data, void *to, size_t size, struct err *why)
{
	ssize_t n = read_stream(data, to, size, why);

	if (n > 0)
		return n;
	memset(to, 'x', size);
	return (ssize_t)size;
}

static void
a_stream_without_end_is_ended(void **state)
{
	struct unpack_options o = { .wanted = &list };

	(void)state;
	want(&list, "a", ENTRY_FILE, 1);
	file("a", "x");
	file("b", "");
	patch(2 * TAR_BLOCK, 124, "77777777777", 11);
	piece = SIZE_MAX;
	assert_int_equal(unpack_stream(root, endless, NULL, &o, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "more than was asked for");
	holds(root, "a", "x");
	root_has(1);
}

/* The map of a sparse file as GNU tar has it in pax archives: before the
 * content, one number a line. */
static void
sparse_map(size_t entries)
{
	static const char records[] = "22 GNU.sparse.major=1\n"
	                              "22 GNU.sparse.minor=0\n"
	                              "21 GNU.sparse.name=a\n"
	                              "28 GNU.sparse.realsize=1000\n";
	struct buf map;

	buf_init(&map, SIZE_MAX);
	buf_addf(&map, "%zu\n", entries);
	while (entries-- > 0)
		buf_adds(&map, "1\n1\n");
	member('x', "x", NULL, records, sizeof(records) - 1);
	member('0', "b", NULL, map.data, map.len);
	buf_free(&map);
}

static void
a_map_of_a_sparse_file_has_an_end(void **state)
{
	(void)state;
	want(&list, "a", ENTRY_FILE, 1000);
	sparse_map(4000000);
	finish();
	assert_int_equal(unpack(), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "more than was asked for");
	assert_true(at < (size_t)4 << 20);
	root_has(0);
}

/* The old kind, before the member is known: headers that say that there is one
 * more. */
static void
a_header_has_an_end(void **state)
{
	char block[TAR_BLOCK] = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < 21; i++) {
		memcpy(block + 24 * i, "00000000001", 12);
		memcpy(block + 24 * i + 12, "00000000001", 12);
	}
	block[504] = 1;
	want(&list, "a", ENTRY_FILE, 1000);
	file("a", "");
	patch(0, 156, "S", 1);
	patch(0, 257, "ustar  ", 8);
	patch(0, 386, "00000000000", 12);
	patch(0, 398, "00000000001", 12);
	patch(0, 482, "\1", 1);             /* there is more */
	patch(0, 483, "00000001750\0", 12); /* real size: 1000 */
	for (i = 0; i < 32768; i++)
		buf_add(&stream, block, sizeof(block));
	finish();
	assert_int_equal(unpack(), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_true(at < (size_t)4 << 20);
	root_has(0);
}

/* What grew since it was listed is let go by, and the next one comes. */
static void
a_file_that_grew_is_passed_over(void **state)
{
	char *text = repeated("0123456789abcdef", 1 << 20);

	(void)state;
	want(&list, "a", ENTRY_FILE, 3);
	want(&list, "b", ENTRY_FILE, 3);
	file("a", text);
	file("b", "two");
	finish();
	unpack_well();
	assert_int_equal(failures, 1);
	says(last_failure, "changed on the host");
	holds(root, "b", "two");
	root_has(1);
	free(text);
}

/* --- streams that break --------------------------------------------------- */

/* Cut anywhere, it says so and leaves whole files only. */
static void
a_stream_that_ends_early_is_an_error(void **state)
{
	char *text = repeated("x", 700);
	size_t whole, cut;

	(void)state;
	want(&list, "a", ENTRY_FILE, 700);
	want(&list, "b", ENTRY_FILE, 700);
	file("a", text);
	long_name('L', "b");
	file("short", text);
	whole = stream.len;
	for (cut = 0; cut < whole; cut += cut % TAR_BLOCK == 0 ? 100 : 206) {
		stream.len = cut;
		if (unpack() == 0)
			fail_msg("%zu of %zu bytes are enough", cut, whole);
		says(err.msg, "ended early");
		if (is_there(root, "a"))
			holds(root, "a", text);
		assert_true(cut >= 3 * TAR_BLOCK || !is_there(root, "a"));
		assert_true(cut >= whole - TAR_BLOCK || !is_there(root, "b"));
		assert_true(names_in(top_fd, "root") <= 2);
		unlinkat(root, "a", 0);
		unlinkat(root, "b", 0);
	}
	/* All has come; the mark after it is not missed. */
	stream.len = whole;
	unpack_well();
	free(text);
}

/* One that has its end is whole, even if the host could not send all. */
static void
a_stream_that_lacks_something_is_no_error(void **state)
{
	(void)state;
	want(&list, "a", ENTRY_FILE, 1);
	want(&list, "b", ENTRY_FILE, 1);
	file("a", "x");
	finish();
	unpack_well();
	assert_int_equal(dones, 1);
	/* Padded as tars do, which is read to its end. */
	while (stream.len < 100000)
		finish();
	unpack_well();
	assert_int_equal(at, stream.len);
	/* A file of zeros is no mark. */
	buf_reset(&stream);
	tree_free(&list);
	want(&list, "a", ENTRY_FILE, 1024);
	want(&list, "b", ENTRY_FILE, 1);
	member('0', "a", NULL, (const char[1024]){ 0 }, 1024);
	assert_int_equal(unpack(), -1);
	says(err.msg, "ended early, after 1 of 2");
}

static void
no_tar_at_all_is_an_error(void **state)
{
	static const char *const texts[] = { "tar: command not found\n",
		"\x1f\x8b\x08\0", "x" };
	size_t i;

	(void)state;
	want(&list, "a", ENTRY_FILE, 1);
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		buf_reset(&stream);
		while (stream.len < 5000)
			buf_adds(&stream, texts[i]);
		assert_int_equal(unpack(), -1);
		assert_int_equal(err.code, ERR_IO);
	}
	/* Garbage after something good. */
	buf_reset(&stream);
	file("a", "x");
	buf_adds(&stream, "garbage");
	pad();
	finish();
	assert_int_equal(unpack(), -1);
	says(err.msg, "cannot be read");
	holds(root, "a", "x");
}

static void
a_reader_that_fails_is_believed(void **state)
{
	char *text = repeated("x", 4000);

	(void)state;
	piece = 512;
	want(&list, "a", ENTRY_FILE, 1);
	want(&list, "b", ENTRY_FILE, 4000);
	file("a", "x");
	file("b", text);
	finish();
	for (fail_at = 0; fail_at < stream.len - 512; fail_at += 512) {
		assert_int_equal(unpack(), -1);
		assert_int_equal(err.code, ERR_CANCELLED);
		assert_string_equal(err.msg, "no longer wanted");
	}
	root_has(2);
	free(text);
}

/* By their paths: descriptors know nothing of what was mounted since. */
static __attribute__((unused)) void
reopen(void)
{
	if (root != -1)
		close(root);
	close(top_fd);
	top_fd = open_root(top);
	root = openat(top_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* A small disk in place of the root, that nobody but this process sees. */
static bool
small_disk(void)
{
#ifdef __linux__
	char *dir = path_join(top, "root");
	bool is = unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("tmpfs", dir, "tmpfs", 0, "size=128k") == 0;

	free(dir);
	reopen();
	return is;
#else
	return false;
#endif
}

static void
no_small_disk(void)
{
#ifdef __linux__
	char *dir = path_join(top, "root");

	close(root);
	root = -1;
	assert_int_equal(umount(dir), 0);
	free(dir);
	reopen();
#endif
}

static void
a_full_disk_ends_it(void **state)
{
	char *text = repeated("x", 60000);

	(void)state;
	want(&list, "a", ENTRY_FILE, 60000);
	want(&list, "b", ENTRY_FILE, 60000);
	want(&list, "c", ENTRY_FILE, 60000);
	want(&list, "d", ENTRY_FILE, 1);
	file("a", text);
	file("b", text);
	file("c", text);
	file("d", "x");
	finish();
	free(text);
	if (!small_disk())
		skip();
	assert_int_equal(unpack(), -1);
	says(err.msg, "disk is full");
	says(err.msg, "'c'");
	assert_int_equal(failures, 1);
	/* What came before stays, and no half file is left. */
	root_has(2);
	no_small_disk();
}

/* --- names that are one --------------------------------------------------- */

/* A second name of a file looks like the same name in other letters. */
static void
a_file_of_this_run_is_not_replaced_under_another_name(void **state)
{
	struct distinct *d = distinct_new();
	char name[32];
	int i, fd;

	(void)state;
	put_file(root, "old", BYTES("x"));
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		fd = openat(root, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		distinct_add(d, fd);
		distinct_add(d, fd);
		close(fd);
	}
	for (i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(distinct_check(d, root, name, "p", &err), -1);
		says(err.msg, "'p'");
	}
	assert_int_equal(distinct_check(d, root, "old", "p", &err), 0);
	assert_int_equal(distinct_check(d, root, "gone", "p", &err), 0);
	assert_int_equal(linkat(root, "7", root, "seven", 0), 0);
	assert_int_equal(distinct_check(d, root, "seven", "p", &err), -1);
	distinct_free(d);
	distinct_free(NULL);
}

static void
trying_out_leaves_nothing_behind(void **state)
{
	(void)state;
	distinct_needed(root);
	root_has(0);
}

/* Where the disk takes "A" for "a", as most Macs do. */
static void
names_that_are_one_do_not_replace_each_other(void **state)
{
	(void)state;
	if (!distinct_needed(root))
		skip();
	want(&list, "A", ENTRY_FILE, 3);
	want(&list, "a", ENTRY_FILE, 3);
	file("A", "one");
	file("a", "two");
	finish();
	unpack_well();
	assert_int_equal(failures, 1);
	holds(root, "A", "one");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(what_was_asked_for_arrives),
		TEST(pieces_of_any_size_will_do),
		TEST(names_may_be_any_bytes),
		TEST(a_file_or_link_takes_the_place_of_what_was_there),
		TEST(a_second_name_of_a_file_becomes_a_copy),
		TEST(streams_of_real_tars_are_read),
		TEST(names_that_lead_outside_are_refused),
		TEST(a_list_with_such_names_does_not_help),
		TEST(nothing_goes_through_a_link),
		TEST(links_have_the_target_that_was_listed),
		TEST(hard_links_reach_only_what_came_before),
		TEST(other_kinds_of_members_are_not_made),
		TEST(a_member_that_comes_twice_counts_once),
		TEST(types_and_sizes_are_those_of_the_list),
		TEST(sizes_that_make_no_sense_break_nothing),
		TEST(sparse_pieces_stay_within_the_size),
		TEST(nothing_replaces_a_directory),
		TEST(what_was_not_asked_for_has_an_end),
		TEST(a_stream_without_end_is_ended),
		TEST(a_map_of_a_sparse_file_has_an_end),
		TEST(a_header_has_an_end),
		TEST(a_file_that_grew_is_passed_over),
		TEST(a_stream_that_ends_early_is_an_error),
		TEST(a_stream_that_lacks_something_is_no_error),
		TEST(no_tar_at_all_is_an_error),
		TEST(a_reader_that_fails_is_believed),
		TEST(a_full_disk_ends_it),
		TEST(a_file_of_this_run_is_not_replaced_under_another_name),
		TEST(trying_out_leaves_nothing_behind),
		TEST(names_that_are_one_do_not_replace_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
