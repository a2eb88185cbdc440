#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/str.h"
#include "base/utf8.h"
#include "help.h"
#include "ssh/backoff.h"

static char *dir, *file;

static int
begin(void **state)
{
	(void)state;
	dir = make_dir();
	file = path_join(dir, "failed");
	return 0;
}

static int
end(void **state)
{
	(void)state;
	remove_dir(dir);
	free(file);
	return 0;
}

static void
waits_double_up_to_a_minute(void **state)
{
	int64_t wait = 0;
	int i;

	(void)state;
	wait = backoff_next(wait, ERR_IO);
	assert_int_equal(wait, 1000);
	wait = backoff_next(wait, ERR_TIMEOUT);
	assert_int_equal(wait, 2000);
	for (i = 0; i < 100; i++)
		wait = backoff_next(wait, ERR_IO);
	assert_int_equal(wait, 60000);
	assert_int_equal(backoff_next(INT64_MAX, ERR_IO), 60000);
	assert_int_equal(backoff_next(-1, ERR_IO), 1000);
	assert_int_equal(backoff_next(INT64_MIN, ERR_IO), 1000);
}

/* Servers lock out who tries passwords. */
static void
a_refused_login_waits_longer_from_the_start(void **state)
{
	(void)state;
	assert_int_equal(backoff_next(0, ERR_DENIED), 8000);
	assert_int_equal(backoff_next(1000, ERR_DENIED), 8000);
	assert_int_equal(backoff_next(8000, ERR_DENIED), 16000);
	assert_int_equal(backoff_next(60000, ERR_DENIED), 60000);
}

/* That it failed, and is not to be tried before so many seconds are over. */
static void
remember(int seconds, int64_t wait)
{
	struct err err;
	char text[128];

	snprintf(text, sizeof(text),
	    "{\"next\":%lld,\"wait\":%lld,\"message\":\"m\",\"code\":4}",
	    ((long long)time(NULL) + seconds) * 1000, (long long)wait);
	assert_int_equal(fs_replace(file, text, strlen(text), 0600, &err), 0);
}

static void
without_a_failure_it_is_time_to_try(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	assert_int_equal(backoff_check(file, &err), 0);
	assert_int_equal(err.code, ERR_NONE);
	backoff_clear(file);
	assert_int_equal(backoff_check(file, &err), 0);
}

static void
a_failure_is_remembered_until_it_is_cleared(void **state)
{
	struct err failure, err = ERR_INIT;

	(void)state;
	err_set(&failure, ERR_DENIED, "gpu1 refused the login");
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "gpu1 refused the login");
	says(err.msg, "not tried again for 8 s");
	says(err.msg, "(remote-sandbox-mcp doctor tries at once)");
	/* Another one: twice as long. */
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	says(err.msg, "for 16 s");
	backoff_clear(file);
	assert_int_equal(backoff_check(file, &err), 0);
}

static void
what_is_remembered_tells_its_cause(void **state)
{
	struct err failure, err = ERR_INIT;

	(void)state;
	err_set(&failure, ERR_DENIED, "gpu1 refused the login");
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	err_wrap(&err, "cannot look");
	backoff_cause(&err);
	assert_string_equal(err.msg, "cannot look: gpu1 refused the login");
	backoff_cause(&err);
	assert_string_equal(err.msg, "cannot look: gpu1 refused the login");
	err_set(&err, ERR_IO, "it was not tried again for long");
	backoff_cause(&err);
	assert_string_equal(err.msg, "it was not tried again for long");
}

static void
the_message_stays_text(void **state)
{
	struct err failure = { ERR_IO, "\xff\"\\\n\x01 caf\xe9" };
	char *wide = repeated("\xe2\x82\xac", 341);
	struct err err;

	(void)state;
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	err_set(&failure, ERR_IO, "%s", wide);
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	free(wide);
}

static void
a_file_that_makes_no_sense_does_not_stop_anybody(void **state)
{
	static const char *const texts[] = { "", "{", "[]", "17", "{}",
		"{\"next\":\"x\"}", "{\"next\":1}",
		"{\"next\":99999999999999,\"message\":\"m\",\"code\":4}",
		"{\"next\":9223372036854775807,\"message\":\"m\",\"code\":4}",
		"{\"next\":-9223372036854775808,\"message\":\"m\"}",
		"{\"next\":1.5e300,\"message\":\"m\",\"code\":4}" };
	struct err err = ERR_INIT;
	struct err failure = { ERR_IO, "x" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		assert_int_equal(fs_replace(file, texts[i], strlen(texts[i]),
		                     0600, &err),
		    0);
		if (backoff_check(file, &err) != 0)
			fail_msg("stopped by %s", texts[i]);
		backoff_note(file, &failure);
		assert_int_equal(backoff_check(file, &err), -1);
		assert_int_equal(err.code, ERR_IO);
	}
	/* What was remembered of the wait may be anything, too. */
	remember(0, INT64_MAX);
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	says(err.msg, "for 60 s");
}

static void
a_failure_of_long_ago_is_forgotten(void **state)
{
	struct err err = ERR_INIT;
	struct err failure = { ERR_IO, "x" };

	(void)state;
	remember(-500, 32000);
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	says(err.msg, "for 60 s");
	remember(-700, 32000);
	backoff_note(file, &failure);
	assert_int_equal(backoff_check(file, &err), -1);
	says(err.msg, "for 1 s");
}

/* Half a minute, though it was to be one second. */
static void
a_clock_that_is_set_back_makes_no_longer_wait(void **state)
{
	struct err err = ERR_INIT;

	(void)state;
	remember(30, 1000);
	assert_int_equal(backoff_check(file, &err), 0);
}

/* --- the file -------------------------------------------------------------
 */

static struct sandbox
entry_of(char *key)
{
	static char name[] = "box", host[] = "h";
	struct sandbox sb = { .name = name, .host = host, .key_file = key };

	return sb;
}

/* Is it the same file as "before"?  That one is freed, and the new one put in
 * its place. */
static bool
same_file(char **before, const struct sandbox *sb)
{
	char *now = backoff_path(sb, "/run");
	bool same = strcmp(now, *before) == 0;

	free(*before);
	*before = now;
	return same;
}

static void
the_same_entry_shares_its_failures(void **state)
{
	static char dir_of_work[] = "/w";
	struct sandbox sb = entry_of(NULL);
	char *seen = backoff_path(&sb, "/run");

	(void)state;
	assert_true(str_starts(seen, "/run/") && str_ends(seen, ".fail"));
	sb.workdir = dir_of_work;
	assert_true(same_file(&seen, &sb));
	/* Nobody can learn a secret from the file's name. */
	secret_set(&sb.password, "a", 1);
	assert_false(same_file(&seen, &sb));
	secret_set(&sb.password, "b", 1);
	assert_true(same_file(&seen, &sb));
	secret_free(&sb.password);
	free(seen);
}

static void
one_that_logs_in_by_other_means_has_failures_of_its_own(void **state)
{
	static char other[] = "other";
	struct sandbox sb = entry_of(NULL);
	char *seen = backoff_path(&sb, "/run");

	(void)state;
	sb.name = other;
	assert_false(same_file(&seen, &sb));
	sb.host = other;
	assert_false(same_file(&seen, &sb));
	sb.connect_timeout_s++;
	assert_false(same_file(&seen, &sb));
	sb.key_passphrase_command = json_pack("[s]", "false");
	assert_false(same_file(&seen, &sb));
	sb.password_command = sb.key_passphrase_command;
	sb.key_passphrase_command = NULL;
	assert_false(same_file(&seen, &sb));
	json_array_append_new(sb.password_command, json_string("x"));
	assert_false(same_file(&seen, &sb));
	secret_set(&sb.key_passphrase, "x", 1);
	assert_false(same_file(&seen, &sb));
	secret_free(&sb.key_passphrase);
	json_decref(sb.password_command);
	free(seen);
}

static void
another_key_file_of_the_same_name_is_another(void **state)
{
	struct sandbox sb = entry_of(file);
	char *seen = backoff_path(&sb, "/run");
	struct err err;

	(void)state;
	assert_int_equal(fs_replace(file, "key", 3, 0644, &err), 0);
	assert_false(same_file(&seen, &sb));
	assert_int_equal(chmod(file, 0600), 0);
	assert_false(same_file(&seen, &sb));
	assert_int_equal(fs_replace(file, "other", 5, 0600, &err), 0);
	assert_false(same_file(&seen, &sb));
	assert_true(same_file(&seen, &sb));
	free(seen);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_double_up_to_a_minute),
		cmocka_unit_test(a_refused_login_waits_longer_from_the_start),
		TEST(without_a_failure_it_is_time_to_try),
		TEST(a_failure_is_remembered_until_it_is_cleared),
		TEST(what_is_remembered_tells_its_cause),
		TEST(the_message_stays_text),
		TEST(a_file_that_makes_no_sense_does_not_stop_anybody),
		TEST(a_failure_of_long_ago_is_forgotten),
		TEST(a_clock_that_is_set_back_makes_no_longer_wait),
		TEST(the_same_entry_shares_its_failures),
		TEST(one_that_logs_in_by_other_means_has_failures_of_its_own),
		TEST(another_key_file_of_the_same_name_is_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
