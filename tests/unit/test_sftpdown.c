/* Downloads from a host whose SFTP server leaves requests without answers. */
#include "sftphost.h"
#include "sync/inside.h"

#define SIZE 100000 /* takes four requests */

static void
ignore_reply(void *data, const struct sftp_packet *reply)
{
	(void)data;
	(void)reply;
}

/* As many requests as may be under way, about something else. */
static void
fill(struct sftphost *h)
{
	while (sftp_room(h->s))
		sftp_path(h->s, SFTP_STAT, "x", ignore_reply, NULL);
}

static int
fetch(struct sftphost *h, const struct until *until, struct err *err)
{
	struct entry e = { .path = "f", .size = SIZE };
	struct run r = { .sftp = h->s, .until = until };
	char path[] = "/tmp/rsmcp-test.XXXXXX";
	int fd = mkstemp(path), rc;
	struct buf handle;

	assert_int_not_equal(fd, -1);
	unlink(path);
	buf_init(&handle, SFTP_HANDLE_MAX);
	buf_adds(&handle, "h");
	rc = sftp_fetch_range(&r, &e, &handle, fd, 0, SIZE, err);
	buf_free(&handle);
	close(fd);
	return rc;
}

/* It would be a file of zeros. */
static void
no_room_for_a_request_is_no_success(void **state)
{
	struct until soon = until_in(50);
	struct sftphost h;
	struct err err;

	(void)state;
	sftphost_init(&h);
	fill(&h);
	assert_int_equal(fetch(&h, &soon, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(sftphost_got(&h, SFTP_READ), 0);
	sftphost_free(&h);
}

static void
patience_has_an_end_where_there_is_no_room(void **state)
{
	struct until never = until_never();
	struct sftphost h;
	struct err err;

	(void)state;
	sftphost_init(&h);
	sftp_patience(h.s, 100);
	fill(&h);
	assert_int_equal(fetch(&h, &never, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	says(err.msg, "said nothing");
	sftphost_free(&h);
}

static void
what_has_room_again_is_asked_for(void **state)
{
	struct until soon = until_in(200);
	struct sftphost h;
	struct err err;
	uint32_t i;

	(void)state;
	sftphost_init(&h);
	fill(&h);
	for (i = 0; i < 10; i++)
		sftphost_says(&h, i, SFTP_FAILURE);
	assert_int_equal(fetch(&h, &soon, &err), -1);
	assert_int_equal(sftphost_got(&h, SFTP_READ), 4);
	sftphost_free(&h);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_room_for_a_request_is_no_success),
		cmocka_unit_test(patience_has_an_end_where_there_is_no_room),
		cmocka_unit_test(what_has_room_again_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
