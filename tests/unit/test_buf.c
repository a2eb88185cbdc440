#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "test.h"

static void
is_an_empty_string_from_the_start(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
	assert_int_equal(b.cap, 0);
	assert_false(b.full);
	buf_free(&b);
}

static void
adds_up_to_the_limit_and_says_so(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 5);
	buf_adds(&b, "abcde");
	assert_string_equal(b.data, "abcde");
	assert_false(b.full);
	buf_adds(&b, "f");
	assert_string_equal(b.data, "abcde");
	assert_int_equal(b.len, 5);
	assert_true(b.full);
	buf_free(&b);
}

static void
keeps_the_part_that_fits(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	buf_adds(&b, "ab");
	buf_adds(&b, "cdef");
	assert_string_equal(b.data, "abcd");
	assert_true(b.full);
	buf_addc(&b, 'x');
	assert_string_equal(b.data, "abcd");
	buf_free(&b);
}

static void
takes_nothing_with_a_limit_of_zero(void **state)
{
	struct buf b;
	size_t room;

	(void)state;
	buf_init(&b, 0);
	buf_add(&b, "", 0);
	assert_false(b.full);
	buf_space(&b, 1, &room);
	assert_int_equal(room, 0);
	assert_false(b.full);
	buf_addf(&b, "%d", 1);
	assert_true(b.full);
	assert_string_equal(b.data, "");
	assert_int_equal(b.cap, 0);
	buf_free(&b);
}

static void
holds_nul_bytes(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_add(&b, "a\0b", 3);
	buf_addc(&b, '\0');
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "a\0b\0", 5);
	buf_free(&b);
}

static void
grows_and_stays_terminated(void **state)
{
	struct buf b;
	size_t i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	for (i = 0; i < 100000; i++) {
		buf_addc(&b, (char)('a' + i % 26));
		assert_int_equal(b.data[b.len], '\0');
	}
	assert_int_equal(b.len, 100000);
	assert_int_equal(strlen(b.data), 100000);
	assert_int_equal(b.data[99999], 'a' + 99999 % 26);
	buf_free(&b);
}

static void
never_allocates_beyond_its_limit(void **state)
{
	struct buf b;
	size_t i;

	(void)state;
	buf_init(&b, 1000);
	for (i = 0; i < 2000; i++)
		buf_addc(&b, 'x');
	assert_int_equal(b.len, 1000);
	assert_true(b.cap <= 1001);
	buf_free(&b);
}

static void
formats(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	buf_addf(&b, "%s=%d", "answer", 42);
	buf_addf(&b, "%s", "");
	buf_addf(&b, ";%200s;", "x");
	assert_int_equal(b.len, strlen("answer=42") + 202);
	assert_memory_equal(b.data, "answer=42;   ", 13);
	assert_string_equal(b.data + b.len - 3, " x;");
	assert_false(b.full);
	buf_free(&b);
}

static void
cuts_what_it_formats_at_the_limit(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 6);
	buf_adds(&b, "ab");
	buf_addf(&b, "%d", 1234567);
	assert_string_equal(b.data, "ab1234");
	assert_int_equal(b.len, 6);
	assert_true(b.full);
	buf_free(&b);
}

static void
drops_from_the_front(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 10);
	buf_drop(&b, 5);
	assert_int_equal(b.len, 0);
	buf_adds(&b, "abcdef");
	buf_drop(&b, 0);
	assert_string_equal(b.data, "abcdef");
	buf_drop(&b, 2);
	assert_string_equal(b.data, "cdef");
	buf_drop(&b, 100);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
	buf_free(&b);
}

static void
takes_more_again_after_a_drop(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 4);
	buf_adds(&b, "abcd");
	buf_drop(&b, 3);
	buf_adds(&b, "xyz");
	assert_string_equal(b.data, "dxyz");
	assert_false(b.full);
	buf_free(&b);
}

static void
lends_room_to_write_into(void **state)
{
	struct buf b;
	size_t room;
	char *space;

	(void)state;
	buf_init(&b, 100);
	buf_adds(&b, "ab");
	space = buf_space(&b, 10, &room);
	assert_true(room >= 10);
	assert_true(room <= 98);
	memcpy(space, "cdef", 4);
	buf_grew(&b, 4);
	assert_string_equal(b.data, "abcdef");
	buf_grew(&b, 0);
	assert_int_equal(b.len, 6);
	buf_free(&b);
}

static void
lends_at_least_one_byte(void **state)
{
	struct buf b;
	size_t room;

	(void)state;
	buf_init(&b, 100);
	buf_space(&b, 0, &room);
	assert_true(room >= 1);
	buf_free(&b);
}

static void
lends_what_is_left_and_then_nothing(void **state)
{
	struct buf b;
	size_t room;
	char *space;

	(void)state;
	buf_init(&b, 100);
	buf_space(&b, 4096, &room);
	assert_int_equal(room, 100);
	buf_adds(&b, "abc");
	space = buf_space(&b, 4096, &room);
	assert_int_equal(room, 97);
	memset(space, 'x', room);
	buf_grew(&b, room);
	buf_space(&b, 1, &room);
	assert_int_equal(room, 0);
	assert_int_equal(b.len, 100);
	assert_false(b.full);
	buf_free(&b);
}

static void
keeps_its_memory_when_reset(void **state)
{
	struct buf b;
	size_t cap;

	(void)state;
	buf_init(&b, 5);
	buf_reset(&b);
	buf_adds(&b, "abcdefgh");
	cap = b.cap;
	buf_reset(&b);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
	assert_int_equal(b.cap, cap);
	assert_false(b.full);
	buf_free(&b);
}

static void
gives_back_what_a_large_content_left_behind(void **state)
{
	struct buf b;
	size_t i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	buf_trim(&b);
	for (i = 0; i < 100000; i++)
		buf_adds(&b, "0123456789");
	buf_drop(&b, b.len - 5);
	buf_trim(&b);
	assert_string_equal(b.data, "56789");
	assert_true(b.cap < 100);
	for (i = 0; i < 100000; i++)
		buf_addc(&b, 'x');
	buf_reset(&b);
	buf_trim(&b);
	assert_int_equal(b.cap, 0);
	assert_string_equal(b.data, "");
	buf_adds(&b, "again");
	assert_string_equal(b.data, "again");
	buf_free(&b);
}

static void
hands_its_content_over(void **state)
{
	struct buf b;
	char *s;

	(void)state;
	buf_init(&b, 5);
	s = buf_take(&b);
	assert_string_equal(s, "");
	free(s);
	buf_adds(&b, "abcdef");
	s = buf_take(&b);
	assert_string_equal(s, "abcde");
	free(s);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
	assert_false(b.full);
	buf_adds(&b, "xyz123");
	assert_string_equal(b.data, "xyz12");
	buf_free(&b);
}

static void
may_be_freed_twice_zeroed_or_null(void **state)
{
	struct buf b;
	struct buf zeroed = { 0 };

	(void)state;
	buf_init(&b, 10);
	buf_adds(&b, "x");
	buf_free(&b);
	buf_free(&b);
	assert_string_equal(b.data, "");
	buf_free(&zeroed);
	buf_free(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_an_empty_string_from_the_start),
		cmocka_unit_test(adds_up_to_the_limit_and_says_so),
		cmocka_unit_test(keeps_the_part_that_fits),
		cmocka_unit_test(takes_nothing_with_a_limit_of_zero),
		cmocka_unit_test(holds_nul_bytes),
		cmocka_unit_test(grows_and_stays_terminated),
		cmocka_unit_test(never_allocates_beyond_its_limit),
		cmocka_unit_test(formats),
		cmocka_unit_test(cuts_what_it_formats_at_the_limit),
		cmocka_unit_test(drops_from_the_front),
		cmocka_unit_test(takes_more_again_after_a_drop),
		cmocka_unit_test(lends_room_to_write_into),
		cmocka_unit_test(lends_at_least_one_byte),
		cmocka_unit_test(lends_what_is_left_and_then_nothing),
		cmocka_unit_test(keeps_its_memory_when_reset),
		cmocka_unit_test(gives_back_what_a_large_content_left_behind),
		cmocka_unit_test(hands_its_content_over),
		cmocka_unit_test(may_be_freed_twice_zeroed_or_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
