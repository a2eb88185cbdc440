/*
 * Uploads to a host whose SFTP server means to hurt.  What puts them in order
 * is compiled into this file.
 */
#include "sftphost.h"
#include "ssh/link_inside.h"
#include "sync/sftpdo.c"

#define LEFT 10000

/* Nothing of it is answered. */
static void
sweeping_takes_turns(void **state)
{
	struct left_over *left = xcalloc(LEFT, sizeof(*left));
	char name[] = ".rsmcp-u0", far[] = "/far", box[] = "box";
	struct sandbox sb = { .name = box };
	struct link link = { .sb = &sb };
	struct until soon = until_in(200);
	struct run r = { .link = &link, .until = &soon, .left_overs = left };
	struct up u = { .r = &r };
	struct sftphost h;
	struct err err;
	size_t i, swept = 0;

	(void)state;
	sftphost_init(&h);
	u.s = h.s;
	r.far.path = far;
	for (i = 0; i < LEFT; i++) {
		left[i].path = name;
		left[i].mtime = -1000000;
		left[i].next = i + 1 < LEFT ? &left[i + 1] : NULL;
	}
	/* It does not tell its time. */
	sftphost_says(&h, 0, SFTP_FAILURE);
	assert_int_equal(sweep(&u, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	for (i = 0; i < LEFT; i++)
		swept += left[i].swept;
	assert_int_equal(swept, PENDING_MAX);
	assert_int_equal(sftphost_got(&h, SFTP_REMOVE), PENDING_MAX);
	sftphost_free(&h);
	free(left);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sweeping_takes_turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
