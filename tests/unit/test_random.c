#include <string.h>

#include "base/random.h"
#include "test.h"

static void
bytes_are_filled_and_none_beyond(void **state)
{
	unsigned char b[256 + 1];
	unsigned char seen[256] = { 0 };
	size_t round, i;

	(void)state;
	b[256] = 0xa5;
	/* A byte that stays 0 in 64 rounds was not filled. */
	for (round = 0; round < 64; round++) {
		random_bytes(b, 256);
		for (i = 0; i < 256; i++)
			seen[i] |= b[i];
	}
	for (i = 0; i < 256; i++)
		assert_int_not_equal(seen[i], 0);
	assert_int_equal(b[256], 0xa5);
	random_bytes(b + 256, 0);
	assert_int_equal(b[256], 0xa5);
}

static void
hex_has_two_digits_a_byte_and_a_nul(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 8, 16, 63, 64 };
	char out[RANDOM_HEX(64) + 1];
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		n = sizes[i];
		memset(out, 'x', sizeof(out));
		random_hex(out, n);
		assert_int_equal(out[RANDOM_HEX(n) - 1], '\0');
		assert_int_equal(strspn(out, "0123456789abcdef"), 2 * n);
		assert_int_equal(out[RANDOM_HEX(n)], 'x');
	}
}

static void
no_two_names_are_the_same(void **state)
{
	char names[200][RANDOM_HEX(8)];
	size_t i, k;

	(void)state;
	for (i = 0; i < 200; i++) {
		random_hex(names[i], 8);
		for (k = 0; k < i; k++)
			assert_string_not_equal(names[i], names[k]);
	}
}

static void
every_digit_turns_up_everywhere(void **state)
{
	unsigned seen[16] = { 0 };
	char out[RANDOM_HEX(8)];
	int round;
	size_t i;

	(void)state;
	for (round = 0; round < 2000; round++) {
		random_hex(out, 8);
		for (i = 0; i < 16; i++)
			seen[i] |= 1u << (out[i] <= '9' ? out[i] - '0'
			                                : out[i] - 'a' + 10);
	}
	for (i = 0; i < 16; i++)
		assert_int_equal(seen[i], 0xffff);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_filled_and_none_beyond),
		cmocka_unit_test(hex_has_two_digits_a_byte_and_a_nul),
		cmocka_unit_test(no_two_names_are_the_same),
		cmocka_unit_test(every_digit_turns_up_everywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
