#include <stdint.h>
#include <string.h>

#include "help.h"
#include "ssh/sftpwire.h"

static void
check_bytes(struct buf *b, const char *bytes, size_t len)
{
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, bytes, len);
	buf_free(b);
}

static void
numbers_and_strings_are_big_endian(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	sftp_put_u32(&b, 0x01020304);
	sftp_put_u64(&b, UINT64_C(0x0a0b0c0d0e0f1011));
	sftp_put_string(&b, "ab");
	sftp_put_bytes(&b, "\0x", 2);
	check_bytes(&b,
	    BYTES("\x01\x02\x03\x04"
	          "\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11"
	          "\0\0\0\x02"
	          "ab"
	          "\0\0\0\x02"
	          "\0x"));
}

static void
a_packet_knows_its_length(void **state)
{
	struct buf b;
	size_t at;

	(void)state;
	buf_init(&b, 1000);
	buf_adds(&b, "before");
	at = sftp_packet_begin(&b, SFTP_MKDIR, 7);
	sftp_put_string(&b, "d");
	sftp_packet_end(&b, at);
	check_bytes(&b,
	    BYTES("before"
	          "\0\0\0\x0a\x0e\0\0\0\x07\0\0\0\x01"
	          "d"));
}

static void
only_attributes_that_are_set_are_sent(void **state)
{
	struct sftp_attrs a = { 0 };
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	sftp_put_attrs(&b, &a);
	check_bytes(&b, BYTES("\0\0\0\0"));
	a.has_mode = a.has_times = true;
	a.mode = 0640;
	a.mtime = 5;
	buf_init(&b, 1000);
	sftp_put_attrs(&b, &a);
	check_bytes(&b, BYTES("\0\0\0\x0c\0\0\x01\xa0\0\0\0\x05\0\0\0\x05"));
	a.has_mode = a.has_times = false;
	a.has_size = true;
	a.size = UINT64_C(1) << 40;
	buf_init(&b, 1000);
	sftp_put_attrs(&b, &a);
	check_bytes(&b, BYTES("\0\0\0\x01\0\0\x01\0\0\0\0\0"));
}

static void
packets_are_taken_one_by_one(void **state)
{
	static const char two[] = "\0\0\0\x05\x65\0\0\0\x09"
	                          "\0\0\0\x06\x67\0\0\0\x0a!";
	struct sftp_packet p;
	size_t i;

	(void)state;
	for (i = 0; i < 9; i++)
		assert_int_equal(sftp_get_packet(two, i, &p), 0);
	assert_int_equal(sftp_get_packet(two, sizeof(two) - 1, &p), 9);
	assert_int_equal(p.type, SFTP_STATUS);
	assert_int_equal(p.id, 9);
	assert_int_equal(p.body.left, 0);
	assert_int_equal(sftp_get_packet(two + 9, sizeof(two) - 10, &p), 10);
	assert_int_equal(p.type, SFTP_DATA);
	assert_int_equal(p.id, 10);
	assert_int_equal(p.body.left, 1);
	assert_int_equal(*p.body.at, '!');
}

static void
what_is_no_packet_is_refused(void **state)
{
	struct sftp_packet p;

	(void)state;
	/* Too short to have an id; too long; text of a login script. */
	assert_int_equal(sftp_get_packet("\0\0\0\x04", 4, &p), -1);
	assert_int_equal(sftp_get_packet("\0\0\0\0", 4, &p), -1);
	assert_int_equal(sftp_get_packet("\0\x04\0\x01", 4, &p), -1);
	assert_int_equal(sftp_get_packet("\0\x04\0\0", 4, &p), 0);
	assert_int_equal(sftp_get_packet(BYTES("Welcome!\n"), &p), -1);
}

static void
attributes_are_read(void **state)
{
	static const char all[] = "\x80\0\0\x0f"
	                          "\0\0\0\x01\0\0\0\x02" /* size */
	                          "\0\0\0\x01\0\0\0\x02" /* owner */
	                          "\0\0\x81\xa4"         /* mode */
	                          "\0\0\0\x03\xff\xff\xff\xfe"
	                          "\0\0\0\x01"
	                          "\0\0\0\x01k\0\0\0\x02vv"
	                          "rest";
	struct sftp_in in = { .at = all, .left = sizeof(all) - 1 };
	struct sftp_attrs a;
	size_t cut;

	(void)state;
	sftp_get_attrs(&in, &a);
	assert_false(in.bad);
	assert_int_equal(in.left, 4);
	assert_true(a.has_size && a.has_mode && a.has_times);
	assert_int_equal(a.size, (UINT64_C(1) << 32) + 2);
	assert_int_equal(a.mode, 0100644);
	assert_int_equal(a.mtime, UINT32_C(0xfffffffe));
	for (cut = 0; cut < sizeof(all) - 5; cut++) {
		in = (struct sftp_in){ .at = all, .left = cut };
		sftp_get_attrs(&in, &a);
		assert_true(in.bad);
		assert_false(a.has_size || a.has_mode || a.has_times);
	}
}

static void
more_attributes_than_there_are_come_to_an_end(void **state)
{
	struct sftp_in in = { .at = "\x80\0\0\0\xff\xff\xff\xff", .left = 8 };
	struct sftp_attrs a;

	(void)state;
	sftp_get_attrs(&in, &a);
	assert_true(in.bad);
}

static void
reading_past_the_end_gives_nothing(void **state)
{
	struct sftp_in in = { .at = "\0\0\0\x05"
		                    "abcd",
		.left = 8 };
	size_t len = 99;

	(void)state;
	assert_string_equal(sftp_get_bytes(&in, &len), "");
	assert_int_equal(len, 0);
	assert_true(in.bad);
	assert_int_equal(sftp_get_u32(&in), 0);
	assert_int_equal(sftp_get_u64(&in), 0);
	in = (struct sftp_in){ .at = "\0\0\0\x04"
		                     "abcd",
		.left = 8 };
	assert_memory_equal(sftp_get_bytes(&in, &len), "abcd", 4);
	assert_int_equal(len, 4);
	assert_false(in.bad);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_strings_are_big_endian),
		cmocka_unit_test(a_packet_knows_its_length),
		cmocka_unit_test(only_attributes_that_are_set_are_sent),
		cmocka_unit_test(packets_are_taken_one_by_one),
		cmocka_unit_test(what_is_no_packet_is_refused),
		cmocka_unit_test(attributes_are_read),
		cmocka_unit_test(more_attributes_than_there_are_come_to_an_end),
		cmocka_unit_test(reading_past_the_end_gives_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
