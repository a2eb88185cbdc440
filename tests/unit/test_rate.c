#include "base/rate.h"
#include "test.h"

static void
nothing_is_known_at_first(void **state)
{
	struct rate r = { 0 };

	(void)state;
	assert_int_equal(rate_per_second(&r), 0);
	assert_int_equal(rate_left_s(&r, 10), -1);
	rate_look(&r, 1000, 5000);
	assert_int_equal(rate_per_second(&r), 0);
	assert_int_equal(rate_left_s(&r, 5000), 0);
}

static void
an_even_pace_is_found_at_once(void **state)
{
	struct rate r = { 0 };
	int i;

	(void)state;
	for (i = 0; i <= 20; i++)
		rate_look(&r, 1000 + i * 500, i * 1000);
	assert_int_equal(rate_per_second(&r), 2000);
	assert_int_equal(rate_left_s(&r, 30000), 6);
}

static void
a_change_is_followed_in_seconds(void **state)
{
	struct rate r = { 0 };
	int64_t done = 0, now = 1;
	int i;

	(void)state;
	for (i = 0; i < 20; i++)
		rate_look(&r, now += 500, done += 50000);
	for (i = 0; i < 40; i++)
		rate_look(&r, now += 500, done += 500);
	assert_in_range(rate_per_second(&r), 900, 2000);
	for (i = 0; i < 200; i++)
		rate_look(&r, now += 500, done);
	assert_int_equal(rate_per_second(&r), 0);
	assert_int_equal(rate_left_s(&r, done + 100), -1);
}

static void
odd_looks_do_no_harm(void **state)
{
	struct rate r = { 0 };

	(void)state;
	rate_look(&r, 1000, 100);
	rate_look(&r, 1000, 200);
	rate_look(&r, 1001, 300);
	rate_look(&r, 2000, 1100);
	assert_int_equal(rate_per_second(&r), 1000);
	rate_look(&r, 3000, 50); /* it began again */
	assert_int_equal(rate_per_second(&r), 0);
	rate_look(&r, 4000, INT64_MAX);
	assert_true(rate_per_second(&r) > 0);
	rate_look(&r, 10, INT64_MAX);
	assert_int_equal(rate_left_s(&r, INT64_MAX), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_known_at_first),
		cmocka_unit_test(an_even_pace_is_found_at_once),
		cmocka_unit_test(a_change_is_followed_in_seconds),
		cmocka_unit_test(odd_looks_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
