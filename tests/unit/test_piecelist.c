#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "help.h"
#include "sync/piecelist.h"

/* Two pieces and a half. */
#define SIZE (2 * PIECE + PIECE / 2)

static int64_t
take(const char *list, bool have[3])
{
	char *text = xstrdup(list);
	int64_t bytes = piecelist_read(text, SIZE, have);

	free(text);
	return bytes;
}

static void
a_file_is_cut_into_pieces(void **state)
{
	(void)state;
	assert_int_equal(piece_count(0), 0);
	assert_int_equal(piece_count(1), 1);
	assert_int_equal(piece_count(PIECE), 1);
	assert_int_equal(piece_count(PIECE + 1), 2);
	assert_true(piece_count(INT64_MAX) == (size_t)1 << 39);
	assert_int_equal(piece_len(SIZE, 0), PIECE);
	assert_int_equal(piece_len(SIZE, 2), PIECE / 2);
}

static void
whole_pieces_are_taken_once(void **state)
{
	bool have[3] = { false };

	(void)state;
	assert_int_equal(take("16777216 16777216\n33554432 8388608\n", have),
	    PIECE + PIECE / 2);
	assert_false(have[0]);
	assert_true(have[1] && have[2]);
	assert_int_equal(take("16777216 16777216\n0 16777216\n", have), PIECE);
	assert_true(have[0]);
}

static void
what_is_no_piece_is_passed_over(void **state)
{
	bool have[3] = { false };

	(void)state;
	assert_int_equal(take("", have), 0);
	assert_int_equal(take("H\n\n \nx 1\n", have), 0);
	assert_int_equal(take("0\n0 \n0 1\n0 16777217\n1 16777216\n", have), 0);
	assert_int_equal(take("33554432 16777216\n", have), 0);
	assert_int_equal(take("50331648 16777216\n-16777216 16777216\n", have),
	    0);
	assert_int_equal(take("99999999999999999999 16777216\n"
	                      "0 -16777216\n0 99999999999999999999\n",
	                     have),
	    0);
	assert_false(have[0] || have[1] || have[2]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_cut_into_pieces),
		cmocka_unit_test(whole_pieces_are_taken_once),
		cmocka_unit_test(what_is_no_piece_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
