#include "store.h"
#include "store/remote_jobs.h"

static struct until soon;

static int
begin(void **state)
{
	store_begin(state);
	soon = until_in(20000);
	return 0;
}

static int
end(void **state)
{
	remove_dir(path_join(state_dir, "remote"));
	return store_end(state);
}

static int64_t
add(const char *sandbox)
{
	struct remote_job j;
	int64_t id;

	if (remote_jobs_add(&j, sandbox, &soon, &err) == -1)
		fail_msg("%s", err.msg);
	id = j.id;
	remote_job_free(&j);
	return id;
}

static void
a_job_comes_back_as_it_was_given(void **state)
{
	struct remote_job j, back;

	(void)state;
	assert_int_equal(remote_jobs_add(&j, "ann@gpu 1", &soon, &err), 0);
	assert_int_equal(j.id, 1);
	assert_int_equal(strlen(j.token), 2 * REMOTE_JOB_TOKEN);
	assert_int_equal(remote_jobs_get(1, &back, &soon, &err), 0);
	assert_int_equal(back.id, 1);
	assert_string_equal(back.token, j.token);
	assert_string_equal(back.sandbox_name, "ann@gpu 1");
	remote_job_free(&j);
	remote_job_free(&back);
	assert_int_equal(remote_jobs_get(2, &back, &soon, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
a_number_is_given_once(void **state)
{
	sqlite3 *db;

	(void)state;
	assert_int_equal(add("a"), 1);
	assert_int_equal(add("a"), 2);
	db = other_open();
	other_run(db, "DELETE FROM remote_jobs");
	sqlite3_close(db);
	assert_int_equal(add("b"), 3);
}

static void
a_database_that_is_begun_anew_goes_on(void **state)
{
	char *path = db_path();

	(void)state;
	assert_int_equal(add("a"), 1);
	assert_int_equal(add("a"), 2);
	db_end();
	assert_int_equal(unlink(path), 0);
	assert_int_equal(add("a"), 3);
	free(path);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_comes_back_as_it_was_given),
		TEST(a_number_is_given_once),
		TEST(a_database_that_is_begun_anew_goes_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
