/* Options for sbatch. */
#include <string.h>

#include "job/submit.h"
#include "test.h"

static void
is(const struct submit *s, const char *want)
{
	struct buf out;
	struct err err;

	buf_init(&out, SIZE_MAX);
	assert_int_equal(submit_options(&out, s, true, &err), 0);
	assert_string_equal(out.data, want);
	buf_free(&out);
}

static void
refused(const struct submit *s, const char *words)
{
	struct buf out;
	struct err err;

	buf_init(&out, SIZE_MAX);
	assert_int_equal(submit_options(&out, s, true, &err), -1);
	assert_non_null(strstr(err.msg, words));
	buf_free(&out);
}

static void
wishes_become_options(void **state)
{
	json_t *extra = json_pack("[s, s]", "--exclusive", "--mail-user=it's");
	struct submit all = { .partition = "gpu",
		.account = "a",
		.qos = "q",
		.time = "1-02:00",
		.nodes = 2,
		.ntasks = 4,
		.cpus = 8,
		.mem = "16G",
		.gpus = "a100:2",
		.constraint = "a&b",
		.array = "0-9%2",
		.requeue = 1,
		.extra = extra };
	struct submit none = { .requeue = -1, .partition = "" };

	(void)state;
	assert_true(submit_given(&all));
	assert_false(submit_given(&none));
	is(&none, " ");
	is(&all,
	    "  '--partition=gpu' '--account=a' '--qos=q' '--time=1-02:00' "
	    "'--mem=16G' '--gpus=a100:2' '--constraint=a&b' '--array=0-9%2' "
	    "'--nodes=2' '--ntasks=4' '--cpus-per-task=8' --requeue "
	    "--exclusive '--mail-user=it'\\''s'");
	json_decref(extra);
}

static void
what_is_no_option_is_refused(void **state)
{
	static const char *const extras[] = { "", "-", "--", "-J", "x",
		"--Wrap=x", "--a b", "--output=x", "--out=x", "--w=x", "--wait",
		"--comment=x", "--x=a\nb" };
	size_t i;

	(void)state;
	refused(&(struct submit){ .requeue = -1, .qos = "a b" }, "slurm.qos");
	refused(&(struct submit){ .requeue = -1, .time = "1;ls" },
	    "slurm.time");
	refused(&(struct submit){ .requeue = -1, .array = "a" }, "slurm.array");
	for (i = 0; i < sizeof(extras) / sizeof(extras[0]); i++) {
		json_t *extra = json_pack("[s]", extras[i]);

		print_message("%s\n", extras[i]);
		refused(&(struct submit){ .requeue = -1, .extra = extra },
		    "slurm.extra");
		json_decref(extra);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wishes_become_options),
		cmocka_unit_test(what_is_no_option_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
