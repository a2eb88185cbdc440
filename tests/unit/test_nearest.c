#include <string.h>

#include "base/nearest.h"
#include "test.h"

static const char *const names[] = { "dry_run", "timeout_s", "cwd",
	"max_output_chars", "excludes", "exclude_file", "mem", "on", NULL };

static const char *
nearest(const char *given, enum nearest_most most)
{
	struct nearest n;
	size_t i;

	nearest_init(&n, given, most);
	for (i = 0; names[i] != NULL; i++)
		nearest_try(&n, names[i]);
	return n.best;
}

static void
slip(const char *given, const char *meant)
{
	const char *best = nearest(given, NEAREST_SLIP);

	if (best == NULL || strcmp(best, meant) != 0)
		fail_msg("'%s' is taken for %s", given,
		    best != NULL ? best : "nothing");
}

static void
no_slip(const char *given)
{
	const char *best = nearest(given, NEAREST_SLIP);

	if (best != NULL)
		fail_msg("'%s' is taken for %s", given, best);
}

static void
case_and_joints_do_not_count(void **state)
{
	(void)state;
	slip("dryrun", "dry_run");
	slip("dry-run", "dry_run");
	slip("dryRun", "dry_run");
	slip("DRY_RUN", "dry_run");
	slip("-d_ryrun--", "dry_run");
	slip("maxOutputChars", "max_output_chars");
	slip("CWD", "cwd");
	slip("On", "on");
}

static void
one_letter_is_a_slip(void **state)
{
	(void)state;
	slip("dry_rn", "dry_run");
	slip("dry_runn", "dry_run");
	slip("try_run", "dry_run");
	slip("dyr_run", "dry_run");
	slip("Dy-Run", "dry_run");
	slip("exclude", "excludes");
	slip("exclude_fil", "exclude_file");
	no_slip("dr_rn");
	no_slip("dry_running");
	no_slip("rdy_rnu");
}

static void
a_letter_of_a_short_name_makes_another(void **state)
{
	(void)state;
	no_slip("cmd");
	no_slip("cw");
	no_slip("men");
	no_slip("memo");
	no_slip("no");
	no_slip("o");
}

static void
what_comes_behind_may_be_left_out(void **state)
{
	(void)state;
	slip("timeout", "timeout_s");
	slip("TimeOut", "timeout_s");
	slip("max_output", "max_output_chars");
	slip("maxoutput", "max_output_chars");
	no_slip("max");
	no_slip("max_out");
	no_slip("max_output_c");
	no_slip("output_chars");
	no_slip("timeout_seconds");
}

static void
a_letter_is_nearer_than_a_word(void **state)
{
	struct nearest n;

	(void)state;
	nearest_init(&n, "exclude", NEAREST_SLIP);
	nearest_try(&n, "exclude_file");
	assert_string_equal(n.best, "exclude_file");
	nearest_try(&n, "excludes");
	assert_string_equal(n.best, "excludes");
	nearest_try(&n, "exclude");
	assert_string_equal(n.best, "exclude");
	nearest_try(&n, "Exclude");
	assert_string_equal(n.best, "exclude");
}

static void
a_guess_may_be_further_off(void **state)
{
	(void)state;
	assert_string_equal(nearest("excluding", NEAREST_GUESS), "excludes");
	assert_string_equal(nearest("dry", NEAREST_GUESS), "dry_run");
	assert_null(nearest("reckoning", NEAREST_GUESS));
	assert_null(nearest("cmd", NEAREST_GUESS));
}

static void
odd_names_are_like_nothing(void **state)
{
	char name[100000];
	size_t len;

	(void)state;
	no_slip("");
	no_slip("_");
	no_slip("----");
	no_slip("dry_ru\xc3\xbcn");
	memset(name, '-', sizeof(name));
	for (len = 50; len < sizeof(name); len += 49000) {
		name[len] = '\0';
		no_slip(name);
		name[len] = '-';
	}
	memcpy(name, "dry_run", strlen("dry_run"));
	name[64] = '\0';
	slip(name, "dry_run");
	name[64] = '-';
	name[65] = '\0';
	no_slip(name);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(case_and_joints_do_not_count),
		cmocka_unit_test(one_letter_is_a_slip),
		cmocka_unit_test(a_letter_of_a_short_name_makes_another),
		cmocka_unit_test(what_comes_behind_may_be_left_out),
		cmocka_unit_test(a_letter_is_nearer_than_a_word),
		cmocka_unit_test(a_guess_may_be_further_off),
		cmocka_unit_test(odd_names_are_like_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
