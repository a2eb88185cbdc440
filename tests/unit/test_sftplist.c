/*
 * Listing a host whose SFTP server means to hurt.  What lists is compiled into
 * this file.
 */
#include "sync/sftplist.c"

#include "sftphost.h"

static bool
take_nothing(void *data, const char *bytes, size_t len)
{
	(void)data;
	(void)bytes;
	(void)len;
	return true;
}

/* The reply to READDIR: names without a word of what they are. */
static void
add_names(struct buf *out, uint32_t count)
{
	uint32_t i;

	sftp_put_u32(out, count);
	for (i = 0; i < count; i++) {
		sftp_put_string(out, "x");
		sftp_put_string(out, "");
		sftp_put_u32(out, 0);
	}
}

static void
names_without_end_are_not_asked_for_at_once(void **state)
{
	struct farlist_options o = { .recursive = true };
	char *root = repeated("/root", ROOT_MAX / 5);
	struct until now = until_in(0);
	struct sftp_packet reply = { .type = SFTP_NAME };
	struct sftphost h;
	struct walk w = { .o = &o, .take = take_nothing, .open = 1 };
	struct dir *d;
	struct err err;
	struct buf names;

	(void)state;
	sftphost_init(&h);
	w.s = h.s;
	buf_init(&w.text, SIZE_MAX);
	assert_int_equal(take_root(&w, root, &err), 0);
	add_dir(&w, "", 0);
	d = w.waiting;
	w.waiting = NULL;
	buf_init(&names, SIZE_MAX);
	add_names(&names, 20000);
	reply.body.at = names.data;
	reply.body.left = names.len;
	assert_true(names.len < SFTP_PACKET_MAX);
	take_names(d, &reply);
	assert_int_equal(w.err.code, ERR_NONE);
	assert_true(h.s->out.len < OUT_MAX + 2 * ROOT_MAX);
	assert_true(sftp_pending(h.s) <= PENDING_MAX + 1);
	/* All that waits is let go when it ends. */
	assert_int_equal(walk(&w, &now, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(w.held, 0);
	sftphost_free(&h);
	buf_free(&w.text);
	buf_free(&names);
	free(root);
}

static void
a_root_has_the_length_of_a_path(void **state)
{
	char *far = repeated("/home", 13000), plain[] = "/a//b///";
	struct walk w = { 0 };
	struct err err;

	(void)state;
	assert_int_equal(take_root(&w, far, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	says(err.msg, "too long");
	assert_null(w.root);
	assert_int_equal(take_root(&w, plain, &err), 0);
	assert_string_equal(w.root, "/a//b");
	free(far);
}

static void
take_size(void *data, const char *path, int64_t size, int64_t mtime)
{
	(void)path;
	(void)mtime;
	*(int64_t *)data = size;
}

static void
sizes_stay_within_what_can_be_added_up(void **state)
{
	int64_t size = 0;
	struct farlist_options o = { .left_over = take_size,
		.problem_data = &size };
	struct sftp_attrs a = { .has_size = true,
		.has_mode = true,
		.mode = S_IFREG | 0600,
		.size = (uint64_t)1 << 63 };
	struct walk w = { .o = &o };

	(void)state;
	assert_true(is_ours(&w, ".rsmcp-r0", ".rsmcp-r0", &a));
	assert_true(size == INT64_MAX / 2);
	a.size = 5;
	assert_true(is_ours(&w, ".rsmcp-r0", ".rsmcp-r0", &a));
	assert_int_equal(size, 5);
	assert_false(is_ours(&w, "f", "f", &a));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_without_end_are_not_asked_for_at_once),
		cmocka_unit_test(a_root_has_the_length_of_a_path),
		cmocka_unit_test(sizes_stay_within_what_can_be_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
