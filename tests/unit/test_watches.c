#include <pthread.h>

#include "store.h"
#include "store/events.h"
#include "store/meta.h"
#include "store/watches.h"

static struct until soon;

static int
begin(void **state)
{
	store_begin(state);
	soon = until_in(20000);
	return 0;
}

static void
must(int rc)
{
	if (rc != 0)
		fail_msg("%d: %s", rc, err.msg);
}

static int64_t
new_watch(int64_t next_check)
{
	struct watch w;
	int64_t id;

	watch_init(&w);
	watch_set(&w.sandbox_name, "box");
	watch_set(&w.tmux_session, "job");
	watch_set(&w.log_file, "/l");
	watch_set(&w.webhook_url, "http://h/");
	w.next_check_ts = next_check;
	must(watches_add(&w, &soon, &err));
	id = w.id;
	watch_free(&w);
	return id;
}

static struct event
new_event(int64_t watch_id, const char *type, unsigned channels)
{
	struct event e = { .watch_id = watch_id,
		.event_type = xstrdup(type),
		.summary = xstrdup("what happened"),
		.payload_json = xstrdup("{\"a\":1}"),
		.created_ts = 1000,
		.channels = channels };

	return e;
}

/* Save the watch with one event of this type. */
static int64_t
add_event(int64_t watch_id, const char *type, unsigned channels)
{
	struct event e = new_event(watch_id, type, channels);
	struct watch w;
	int64_t id;

	must(watches_get(watch_id, &w, &soon, &err));
	must(watches_save(&w, &e, 1, &soon, &err));
	id = e.id;
	watch_free(&w);
	event_free(&e);
	return id;
}

static void
a_row_comes_back_as_it_was_given(void **state)
{
	struct watch w, back;
	json_t *a, *b;

	(void)state;
	watch_init(&w);
	watch_set(&w.sandbox_name, "gpu 1");
	watch_set(&w.tmux_session, "s");
	watch_set(&w.log_file, "/\xff'\"\n");
	watch_set(&w.resume_plan_json, "{\"x\": [1]}");
	watch_set(&w.metadata_json, "{\"m\": 2}");
	w.auto_resume = true;
	w.notify_local = false;
	w.interval_s = 7;
	must(watches_add(&w, &soon, &err));
	must(watches_get(w.id, &back, &soon, &err));
	assert_string_equal(back.log_file, w.log_file);
	assert_string_equal(back.token, w.token);
	assert_int_equal(strlen(back.token), 32);
	assert_true(back.last_exit_code == WATCH_NO_CODE);
	assert_true(back.next_check_ts >= back.created_ts);
	a = watch_json(&w);
	b = watch_json(&back);
	assert_true(json_equal(a, b));
	assert_true(json_is_null(json_object_get(a, "last_exit_code")));
	assert_true(json_is_true(json_object_get(a, "auto_resume")));
	assert_int_equal(json_integer_value(
	                     json_object_get(json_object_get(a, "metadata"),
	                         "m")),
	    2);
	assert_null(json_object_get(a, "token"));
	assert_null(json_object_get(a, "metadata_json"));
	json_decref(a);
	json_decref(b);
	watch_free(&w);
	watch_free(&back);
}

static void
an_unknown_number_is_said(void **state)
{
	struct watch w;

	(void)state;
	assert_int_equal(watches_get(7, &w, &soon, &err), -1);
	watch_free(&w);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "no watch 7");
	assert_int_equal(watches_cancel(7, &soon, &err), -1);
	assert_int_equal(watches_started(7, "a", "a/1", "b", &soon, &err), -1);
	assert_int_equal(watches_find("box", "none", "none/1", &w, &soon, &err),
	    -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

static void
those_due_are_found_and_a_clock_set_back_hides_none(void **state)
{
	struct watch_due *list;
	struct watch w;
	size_t count;
	int64_t wait = -1;

	(void)state;
	must(watches_wait(500, 60, &wait, &soon, &err));
	assert_int_equal(wait, 60);
	new_watch(1000);
	new_watch(900);
	new_watch(1010);
	new_watch(5000000);
	must(watches_due(1000, 10, &list, &count, &soon, &err));
	assert_int_equal(count, 3);
	assert_int_equal(list[0].id, 2);
	assert_int_equal(list[1].id, 1);
	assert_int_equal(list[2].id, 4);
	watches_due_free(list, count);
	must(watches_due(1000, 1, &list, &count, &soon, &err));
	assert_int_equal(count, 1);
	watches_due_free(list, count);
	must(watches_get(3, &w, &soon, &err));
	assert_false(watch_due_at(&w, 1009));
	assert_true(watch_due_at(&w, 1010));
	/* An interval ahead, or the time that a start is given. */
	w.interval_s = 10;
	assert_false(watch_due_at(&w, 1010 - WATCH_START_S));
	assert_true(watch_due_at(&w, 1009 - WATCH_START_S));
	w.interval_s = 300;
	assert_false(watch_due_at(&w, 1010 - 300));
	assert_true(watch_due_at(&w, 1009 - 300));
	watch_free(&w);
	must(watches_due(10, 10, &list, &count, &soon, &err));
	assert_int_equal(count, 4);
	watches_due_free(list, count);
	must(watches_wait(10, 60, &wait, &soon, &err));
	assert_int_equal(wait, 0);
	must(watches_cancel(4, &soon, &err));
	must(watches_wait(880, 60, &wait, &soon, &err));
	assert_int_equal(wait, 20);
	must(watches_wait(2000, 60, &wait, &soon, &err));
	assert_int_equal(wait, 0);
}

static void
state_and_events_are_written_together_or_not_at_all(void **state)
{
	int64_t id = new_watch(5);
	struct event e = new_event(id, EVENT_COMPLETED,
	    1u << CHANNEL_FILE | 1u << CHANNEL_WEBHOOK);
	struct watch w, old;

	(void)state;
	must(watches_get(id, &w, &soon, &err));
	watch_copy(&old, &w);
	watch_set(&w.status, WATCH_COMPLETED);
	w.last_exit_code = 0;
	must(watches_save(&w, &e, 1, &soon, &err));
	assert_int_equal(e.id, 1);
	assert_int_equal(w.revision, 1);
	gives("SELECT status || last_exit_code || last_event_ts FROM watches",
	    "completed01000");
	gives("SELECT group_concat(channel) FROM event_deliveries",
	    "file,webhook");
	/* What was read before somebody else wrote is too old. */
	assert_int_equal(watches_save(&old, &e, 1, &soon, &err), 1);
	assert_int_equal(old.revision, 0);
	gives("SELECT count(*) FROM watch_events", "1");
	watch_free(&w);
	watch_free(&old);
	event_free(&e);
}

static void
a_watch_that_was_cancelled_meanwhile_stays_cancelled(void **state)
{
	int64_t id = new_watch(5);
	struct event e = new_event(id, EVENT_FAILED, 0);
	struct watch w;

	(void)state;
	must(watches_get(id, &w, &soon, &err));
	must(watches_cancel(id, &soon, &err));
	assert_int_equal(watches_save(&w, &e, 1, &soon, &err), 1);
	gives("SELECT status FROM watches", "cancelled");
	gives("SELECT count(*) FROM watch_events", "0");
	watch_free(&w);
	event_free(&e);
}

static void
events_come_in_order_from_a_place_on(void **state)
{
	struct events_query q = { .max = 10 };
	int64_t one = new_watch(5), two = new_watch(5), last = -1;
	struct event *list;
	size_t count;

	(void)state;
	must(events_last(&last, &soon, &err));
	assert_int_equal(last, 0);
	add_event(one, "a", 0);
	add_event(two, "b", 0);
	add_event(one, "c", 0);
	must(events_list(&q, &list, &count, &soon, &err));
	assert_int_equal(count, 3);
	assert_string_equal(list[0].event_type, "a");
	events_free(list, count);
	q.after = 1;
	q.watch_id = one;
	must(events_list(&q, &list, &count, &soon, &err));
	assert_int_equal(count, 1);
	assert_string_equal(list[0].event_type, "c");
	events_free(list, count);
	q = (struct events_query){ .newest = true, .max = 2 };
	must(events_list(&q, &list, &count, &soon, &err));
	assert_int_equal(count, 2);
	assert_string_equal(list[0].event_type, "c");
	assert_string_equal(list[1].event_type, "b");
	events_free(list, count);
	must(events_last(&last, &soon, &err));
	assert_int_equal(last, 3);
}

/* Those of webhooks that are due at "now". */
static int
take(int64_t now, struct delivery **list, size_t *count)
{
	return deliveries_take(&(struct deliveries_query){ .channel =
	                                                       CHANNEL_WEBHOOK,
	                           .now = now,
	                           .lease_s = 30,
	                           .max = 5 },
	    list, count, &soon, &err);
}

static void
a_delivery_is_hidden_while_it_is_tried(void **state)
{
	int64_t id = new_watch(5), wait = -1, now = time(NULL);
	struct delivery *list;
	size_t count;

	(void)state;
	add_event(id, EVENT_FAILED, 1u << CHANNEL_WEBHOOK);
	must(deliveries_wait(CHANNEL_WEBHOOK, now, 60, &wait, &soon, &err));
	assert_int_equal(wait, 0);
	must(take(now, &list, &count));
	assert_int_equal(count, 1);
	assert_int_equal(list[0].tries, 1);
	assert_string_equal(list[0].webhook_url, "http://h/");
	assert_string_equal(list[0].event.event_type, EVENT_FAILED);
	deliveries_free(list, count);
	must(take(now + 29, &list, &count));
	assert_int_equal(count, 0);
	must(
	    deliveries_wait(CHANNEL_WEBHOOK, now + 20, 60, &wait, &soon, &err));
	assert_int_equal(wait, 10);
	/* Whoever took it was killed. */
	must(take(now + 30, &list, &count));
	assert_int_equal(count, 1);
	assert_int_equal(list[0].tries, 2);
	deliveries_free(list, count);
	must(delivery_failed(1, CHANNEL_WEBHOOK, "refused", now + 100, &soon,
	    &err));
	must(
	    deliveries_wait(CHANNEL_WEBHOOK, now + 40, 90, &wait, &soon, &err));
	assert_int_equal(wait, 60);
	must(delivery_done(1, CHANNEL_WEBHOOK, &soon, &err));
	must(deliveries_wait(CHANNEL_WEBHOOK, now + 9999, 90, &wait, &soon,
	    &err));
	assert_int_equal(wait, 90);
	must(delivery_failed(1, CHANNEL_WEBHOOK, "late", now + 100, &soon,
	    &err));
	gives("SELECT state || tries FROM event_deliveries", "done2");
}

/* Nor for hours if the clock is set back meanwhile. */
static void
a_delivery_is_not_held_up_by_a_clock_set_back(void **state)
{
	int64_t id = new_watch(5), wait = -1, now = time(NULL);
	struct delivery *list;
	size_t count;

	(void)state;
	add_event(id, EVENT_FAILED, 1u << CHANNEL_WEBHOOK);
	must(take(now + 7200, &list, &count));
	deliveries_free(list, count);
	must(deliveries_wait(CHANNEL_WEBHOOK, now, 60, &wait, &soon, &err));
	assert_int_equal(wait, 0);
	must(take(now, &list, &count));
	assert_int_equal(count, 1);
	deliveries_free(list, count);
	must(deliveries_wait(CHANNEL_WEBHOOK, now, 60, &wait, &soon, &err));
	assert_int_equal(wait, 30);
}

static void
a_delivery_is_given_up_and_told(void **state)
{
	int64_t id = new_watch(5);
	json_t *list;

	(void)state;
	add_event(id, EVENT_FAILED, 1u << CHANNEL_COMMAND);
	must(delivery_failed(1, CHANNEL_COMMAND, "\xff no", 0, &soon, &err));
	list = deliveries_json(1, &soon, &err);
	assert_int_equal(json_array_size(list), 1);
	assert_string_equal(json_string_value(
	                        json_object_get(json_array_get(list, 0),
	                            "state")),
	    "failed");
	json_decref(list);
}

static void
old_events_go_but_none_that_is_not_delivered(void **state)
{
	struct events_keep keep = { .age_s = 100, .most = 4, .least = 2 };
	struct event *list;
	int64_t *ids;
	size_t count;
	int i;

	(void)state;
	new_watch(0);
	for (i = 0; i < 6; i++) /* of the time 1000 */
		add_event(1, "completed", i == 0 ? 1u << CHANNEL_FILE : 0);
	must(events_old(&keep, 1050, 10, &ids, &count, &soon, &err));
	assert_int_equal(count, 1); /* 1 is not delivered, 3 to 6 are four */
	assert_int_equal(ids[0], 2);
	free(ids);
	must(events_old(&keep, 1101, 2, &ids, &count, &soon, &err));
	assert_int_equal(count, 2);
	assert_int_equal(ids[1], 3);
	free(ids);
	must(delivery_done(1, CHANNEL_FILE, &soon, &err));
	must(events_old(&keep, 1101, 10, &ids, &count, &soon, &err));
	assert_int_equal(count, 4);
	must(events_remove(ids, count, &soon, &err));
	free(ids);
	must(events_list(&(struct events_query){ .max = 10 }, &list, &count,
	    &soon, &err));
	assert_int_equal(count, 2);
	assert_int_equal(list[0].id, 5);
	events_free(list, count);
	gives("SELECT count(*) FROM event_deliveries", "0");
	must(events_old(&keep, 9999, 10, &ids, &count, &soon, &err));
	assert_int_equal(count, 0);
	assert_null(ids);
}

static void
tries_come_later_and_later(void **state)
{
	int64_t i, at;

	(void)state;
	assert_int_equal(delivery_next(5, 5, 1000), 0);
	for (i = 1; i < 40; i++) {
		at = delivery_next(i, 100, 1000);
		assert_true(at >= 1005 && at <= 1000 + 3600 + 360);
	}
	assert_true(delivery_next(1, 100, 1000) <= 1006);
	assert_true(delivery_next(20, 100, 1000) >= 1000 + 3600);
}

static const char seed[] =
    "CREATE TABLE watches (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " run_id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',"
    " sandbox_name TEXT NOT NULL, tmux_session TEXT NOT NULL,"
    " log_file TEXT NOT NULL, cwd TEXT NOT NULL DEFAULT '',"
    " interval_s INTEGER NOT NULL DEFAULT 60,"
    " status TEXT NOT NULL DEFAULT 'active',"
    " last_exit_code INTEGER, created_ts INTEGER NOT NULL,"
    " updated_ts INTEGER NOT NULL,"
    " next_check_ts INTEGER NOT NULL DEFAULT 0);"
    "CREATE TABLE watch_events (id INTEGER PRIMARY KEY AUTOINCREMENT,"
    " watch_id INTEGER NOT NULL, event_type TEXT NOT NULL,"
    " summary TEXT NOT NULL, payload_json TEXT NOT NULL,"
    " created_ts INTEGER NOT NULL, FOREIGN KEY(watch_id) "
    "REFERENCES watches(id));"
    "CREATE TABLE daemon_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL,"
    " updated_ts INTEGER NOT NULL);"
    "INSERT INTO watches(sandbox_name, tmux_session, log_file, created_ts,"
    " updated_ts) VALUES('a', 'b', 'c', 1, 2), ('d', 'e', 'f', 3, 4);"
    "INSERT INTO watch_events(watch_id, event_type, summary, payload_json,"
    " created_ts) VALUES(1, 'running_restored', 's', '{}', 9);"
    "INSERT INTO daemon_meta VALUES('heartbeat', '{\"ts\": 5}', 5);";

static void
a_database_of_the_earlier_server_goes_on(void **state)
{
	sqlite3 *db = other_open();
	struct watch w;
	json_t *meta;

	(void)state;
	other_run(db, seed);
	sqlite3_close(db);
	must(watches_get(2, &w, &soon, &err));
	assert_string_equal(w.sandbox_name, "d");
	assert_string_equal(w.resume_plan_json, "{}");
	assert_int_equal(w.interval_s, 60);
	assert_int_equal(w.max_resume_attempts, 1);
	assert_int_equal(strlen(w.token), 32);
	watch_free(&w);
	gives("SELECT count(DISTINCT token) FROM watches", "2");
	add_event(2, EVENT_COMPLETED, 0);
	gives("SELECT max(id) FROM watch_events", "2");
	meta = meta_get("heartbeat", &soon, &err);
	assert_int_equal(json_integer_value(
	                     json_object_get(json_object_get(meta, "value"),
	                         "ts")),
	    5);
	json_decref(meta);
}

static void
odd_values_are_read_without_harm(void **state)
{
	int64_t id = new_watch(5);
	struct watch w;
	sqlite3 *db = other_open();
	json_t *o;

	(void)state;
	other_run(db,
	    "UPDATE watches SET status = x'00ff00', interval_s = -5,"
	    " max_log_lines = 9e99, metadata_json = 'no', name = x'fe',"
	    " resume_plan_json = '[1]', last_exit_code = 'x',"
	    " created_ts = 'never', resume_delay_s = 9223372036854775807");
	sqlite3_close(db);
	must(watches_get(id, &w, &soon, &err));
	assert_int_equal(w.interval_s, 1);
	assert_int_equal(w.max_log_lines, 10000);
	assert_int_equal(w.resume_delay_s, 86400);
	o = watch_json(&w);
	assert_true(json_is_object(json_object_get(o, "resume_plan")));
	json_decref(o);
	watch_free(&w);
}

static void
news_of_the_daemon_are_replaced(void **state)
{
	json_t *v = json_pack("{s:i}", "ts", 1), *got;

	(void)state;
	got = meta_get("heartbeat", &soon, &err);
	assert_true(json_is_null(got));
	must(meta_set("heartbeat", v, 10, &soon, &err));
	must(meta_set("heartbeat", v, 20, &soon, &err));
	got = meta_get("heartbeat", &soon, &err);
	assert_int_equal(json_integer_value(json_object_get(got, "updated_ts")),
	    20);
	json_decref(got);
	json_decref(v);
}

static void
watches_are_counted_listed_and_removed(void **state)
{
	struct watch *list, w;
	size_t count;
	json_t *o;

	(void)state;
	new_watch(5);
	new_watch(6);
	new_watch(7);
	must(watches_cancel(2, &soon, &err));
	o = watches_counts(&soon, &err);
	assert_int_equal(json_integer_value(json_object_get(o, "active")), 2);
	assert_int_equal(json_integer_value(json_object_get(o, "cancelled")),
	    1);
	assert_int_equal(json_integer_value(json_object_get(o, "failed")), 0);
	json_decref(o);
	must(watches_list("", &list, &count, &soon, &err));
	assert_int_equal(count, 3);
	assert_int_equal(list[0].id, 3);
	watches_free(list, count);
	must(watches_list("cancelled", &list, &count, &soon, &err));
	assert_int_equal(count, 1);
	watches_free(list, count);
	must(watches_started(1, "other", "other/1", "/x", &soon, &err));
	must(watches_find("box", "other", "other/1", &w, &soon, &err));
	assert_int_equal(w.id, 1);
	/* Another run of that name has no watch, unless this one resumed it. */
	watch_free(&w);
	assert_int_equal(watches_find("box", "other", "other/2", &w, &soon,
	                     &err),
	    -1);
	must(watches_get(1, &w, &soon, &err));
	w.resume_attempts = 1;
	must(watches_save(&w, NULL, 0, &soon, &err));
	watch_free(&w);
	must(watches_find("box", "other", "other/2", &w, &soon, &err));
	assert_int_equal(w.id, 1);
	watch_free(&w);
	must(watches_remove(1, &soon, &err));
	assert_int_equal(watches_get(1, &w, &soon, &err), -1);
}

static void
the_jobs_watched_last_are_told_once_each(void **state)
{
	json_t *list;

	(void)state;
	new_watch(0);
	new_watch(0);
	new_watch(0);
	must(watches_started(1, "first", "first/1", "/x", &soon, &err));
	must(watches_cancel(3, &soon, &err));
	list = watches_jobs(10, &soon, &err);
	assert_int_equal(json_array_size(list), 2);
	is_json(json_array_get(list, 0),
	    "{\"sandbox_name\":\"box\",\"tmux_session\":\"job\","
	    "\"status\":\"cancelled\",\"id\":3}");
	is_json(json_array_get(list, 1),
	    "{\"sandbox_name\":\"box\",\"tmux_session\":\"first\","
	    "\"status\":\"active\",\"id\":1}");
	json_decref(list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, store_end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_comes_back_as_it_was_given),
		TEST(an_unknown_number_is_said),
		TEST(those_due_are_found_and_a_clock_set_back_hides_none),
		TEST(state_and_events_are_written_together_or_not_at_all),
		TEST(a_watch_that_was_cancelled_meanwhile_stays_cancelled),
		TEST(events_come_in_order_from_a_place_on),
		TEST(a_delivery_is_hidden_while_it_is_tried),
		TEST(a_delivery_is_not_held_up_by_a_clock_set_back),
		TEST(a_delivery_is_given_up_and_told),
		TEST(old_events_go_but_none_that_is_not_delivered),
		TEST(tries_come_later_and_later),
		TEST(a_database_of_the_earlier_server_goes_on),
		TEST(odd_values_are_read_without_harm),
		TEST(news_of_the_daemon_are_replaced),
		TEST(watches_are_counted_listed_and_removed),
		TEST(the_jobs_watched_last_are_told_once_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
