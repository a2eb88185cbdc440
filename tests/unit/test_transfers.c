#include "store.h"

static struct until soon;

static int
begin(void **state)
{
	store_begin(state);
	soon = until_in(20000);
	return 0;
}

static void
has_status(int64_t id, const char *status)
{
	struct transfer t;

	if (transfers_get(id, &t, &soon, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(t.status, status);
	transfer_free(&t);
}

static void
a_row_comes_back_as_it_was_given(void **state)
{
	struct transfer t = { 0 }, back;

	(void)state;
	t.direction = xstrdup(TRANSFER_DOWN);
	t.sandbox_name = xstrdup("gpu 1");
	t.local_path = xstrdup("/a/\xff\xfe'\"\n");
	t.remote_path = xstrdup("~/r");
	t.delete_extras = true;
	t.excludes_json = xstrdup("[\"*.o\"]");
	t.exclude_file = xstrdup("/x");
	t.options_json = xstrdup("{\"checksum\": true}");
	assert_int_equal(transfers_create(&t, &soon, &err), 0);
	assert_int_equal(transfers_get(t.id, &back, &soon, &err), 0);
	assert_string_equal(back.direction, t.direction);
	assert_string_equal(back.sandbox_name, t.sandbox_name);
	assert_string_equal(back.local_path, t.local_path);
	assert_string_equal(back.remote_path, t.remote_path);
	assert_true(back.delete_extras);
	assert_string_equal(back.excludes_json, t.excludes_json);
	assert_string_equal(back.exclude_file, t.exclude_file);
	assert_string_equal(back.options_json, t.options_json);
	assert_string_equal(back.status, TRANSFER_QUEUED);
	assert_string_equal(back.progress_json, "{}");
	assert_string_equal(back.last_error, "");
	assert_true(back.created_ts > 0);
	assert_int_equal(back.updated_ts, back.created_ts);
	transfer_free(&t);
	transfer_free(&back);
}

static void
an_unknown_number_is_said(void **state)
{
	struct transfer t;

	(void)state;
	assert_int_equal(transfers_get(7, &t, &soon, &err), -1);
	transfer_free(&t);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "no transfer task 7");
	assert_int_equal(transfers_progress(7, "{}", &soon, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(transfers_set_log(7, "x", "{}", &soon, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
it_runs_and_ends_once(void **state)
{
	struct transfer_end done = { .status = TRANSFER_COMPLETED,
		.result_json = "{\"a\": 1}" };
	struct transfer_end late = { .status = TRANSFER_CANCELLED,
		.last_error = "late",
		.result_json = "{}" };
	int64_t id = new_transfer();
	struct transfer t;

	(void)state;
	assert_int_equal(transfers_begin(id, 123, 456, &soon, &err), 0);
	has_status(id, TRANSFER_RUNNING);
	assert_int_equal(transfers_begin(id, 9, 9, &soon, &err), 1);
	assert_int_equal(transfers_end(id, &done, &soon, &err), 0);
	assert_int_equal(transfers_end(id, &late, &soon, &err), 1);
	assert_int_equal(transfers_get(id, &t, &soon, &err), 0);
	assert_string_equal(t.status, TRANSFER_COMPLETED);
	assert_string_equal(t.result_json, "{\"a\": 1}");
	assert_string_equal(t.last_error, "");
	assert_int_equal(t.pid, 123);
	assert_int_equal(t.worker_start, 456);
	assert_true(t.started_ts > 0);
	assert_true(t.finished_ts >= t.started_ts);
	transfer_free(&t);
}

static void
one_that_was_cancelled_does_not_begin(void **state)
{
	struct transfer_end end = { .status = TRANSFER_CANCELLED };
	int64_t id = new_transfer();

	(void)state;
	assert_int_equal(transfers_end(id, &end, &soon, &err), 0);
	assert_int_equal(transfers_begin(id, 1, 2, &soon, &err), 1);
	has_status(id, TRANSFER_CANCELLED);
}

static void
those_that_have_not_ended_are_listed(void **state)
{
	struct transfer_end end = { .status = TRANSFER_FAILED };
	int64_t *ids = NULL;
	size_t count = 0;

	(void)state;
	new_transfer();
	new_transfer();
	new_transfer();
	assert_int_equal(transfers_begin(3, 1, 2, &soon, &err), 0);
	assert_int_equal(transfers_end(2, &end, &soon, &err), 0);
	assert_int_equal(transfers_unfinished(10, &ids, &count, &soon, &err),
	    0);
	assert_int_equal(count, 2);
	assert_int_equal(ids[0], 1);
	assert_int_equal(ids[1], 3);
	free(ids);
}

static void
the_newest_are_told_in_brief(void **state)
{
	json_t *list;

	(void)state;
	assert_false(db_exists());
	new_transfer();
	assert_true(db_exists());
	new_transfer();
	new_transfer();
	list = transfers_newest(2, &soon, &err);
	assert_int_equal(json_array_size(list), 2);
	is_json(json_array_get(list, 0),
	    "{\"id\":3,\"sandbox_name\":\"box\",\"direction\":"
	    "\"local_to_remote\",\"status\":\"queued\"}");
	json_decref(list);
}

static void
a_worker_can_put_its_row_back(void **state)
{
	struct transfer t;
	char *path = db_path();
	int64_t id;

	(void)state;
	new_transfer();
	id = new_transfer();
	assert_int_equal(transfers_begin(id, 77, 88, &soon, &err), 0);
	assert_int_equal(transfers_get(id, &t, &soon, &err), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(transfers_progress(id, "{}", &soon, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(transfers_restore(&t, &soon, &err), 0);
	assert_int_equal(transfers_restore(&t, &soon, &err), 0);
	transfer_free(&t);
	assert_int_equal(transfers_get(id, &t, &soon, &err), 0);
	assert_string_equal(t.status, TRANSFER_RUNNING);
	assert_int_equal(t.pid, 77);
	assert_int_equal(t.worker_start, 88);
	assert_string_equal(t.remote_path, "to/there");
	transfer_free(&t);
	free(path);
}

/* Any type may stand in any column. */
static void
odd_values_are_read_without_harm(void **state)
{
	int64_t id = new_transfer();
	struct transfer t;
	sqlite3 *db = other_open();

	(void)state;
	other_run(db,
	    "UPDATE transfer_tasks SET status = x'00ff00', pid = 'many',"
	    " progress_json = 1.5, result_json = x'', log_file = 12,"
	    " started_ts = 9.9e99, delete_extras = 'yes'");
	sqlite3_close(db);
	assert_int_equal(transfers_get(id, &t, &soon, &err), 0);
	assert_string_equal(t.status, "");
	assert_int_equal(t.pid, 0);
	assert_string_equal(t.progress_json, "1.5");
	assert_string_equal(t.log_file, "12");
	assert_false(transfer_ended(t.status));
	transfer_free(&t);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, store_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_comes_back_as_it_was_given),
		TEST(an_unknown_number_is_said),
		TEST(it_runs_and_ends_once),
		TEST(one_that_was_cancelled_does_not_begin),
		TEST(those_that_have_not_ended_are_listed),
		TEST(the_newest_are_told_in_brief),
		TEST(a_worker_can_put_its_row_back),
		TEST(odd_values_are_read_without_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
