#include <sys/stat.h>

#include "config/allow.h"
#include "help.h"

static char *top, *config_dir;
static struct err err;

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	config_dir = path_join(top, "remote-sandbox-mcp");
	assert_int_equal(mkdir(config_dir, 0700), 0);
	setenv("XDG_CONFIG_HOME", top, 1);
	setenv("REMOTE_SANDBOX_MCP_HOME", top, 1);
	unsetenv(ALLOW_COMMAND_ENV);
	unsetenv(ALLOW_PRIVATE_ENV);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	remove_dir(config_dir);
	remove_dir(top);
	return 0;
}

static void
write_config(const char *text, mode_t mode)
{
	char *path = path_join(config_dir, "config.json");

	assert_int_equal(fs_replace(path, text, strlen(text), mode, &err), 0);
	free(path);
}

static bool
command_allowed(void)
{
	struct allow a;
	bool yes;

	allow_load(&a, true);
	yes = a.event_command;
	allow_free(&a);
	return yes;
}

static void
nothing_is_allowed_by_itself(void **state)
{
	struct allow a;

	(void)state;
	allow_load(&a, true);
	assert_false(a.event_command);
	assert_false(a.private_webhooks);
	assert_false(secret_given(&a.webhook_secret));
	assert_int_equal(allow_check_command(&a, "event_command", &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "event_command would run a command");
	says(err.msg, "REMOTE_SANDBOX_ALLOW_EVENT_COMMAND=1");
	says(err.msg, "allow_event_command");
	allow_free(&a);
}

static void
the_environment_allows(void **state)
{
	struct allow a;

	(void)state;
	setenv(ALLOW_COMMAND_ENV, "0", 1);
	assert_false(command_allowed());
	setenv(ALLOW_COMMAND_ENV, "what", 1);
	assert_false(command_allowed());
	setenv(ALLOW_COMMAND_ENV, "1", 1);
	allow_load(&a, true);
	assert_true(a.event_command);
	assert_false(a.private_webhooks);
	assert_int_equal(allow_check_command(&a, "x", &err), 0);
	allow_free(&a);
}

static void
what_it_allows_is_remembered_until_forgotten(void **state)
{
	struct allow a;

	(void)state;
	assert_int_equal(allow_remember(&err), 0);
	assert_false(command_allowed());
	setenv(ALLOW_COMMAND_ENV, "yes", 1);
	assert_int_equal(allow_remember(&err), 0);
	unsetenv(ALLOW_COMMAND_ENV);
	setenv(ALLOW_PRIVATE_ENV, "1", 1);
	assert_int_equal(allow_remember(&err), 0);
	unsetenv(ALLOW_PRIVATE_ENV);
	allow_load(&a, true);
	assert_true(a.event_command);
	assert_true(a.private_webhooks);
	allow_free(&a);
	/* By the watchdog; another server has an environment of its own. */
	allow_load(&a, false);
	assert_false(a.event_command);
	assert_false(a.private_webhooks);
	allow_free(&a);
	allow_forget();
	assert_false(command_allowed());
}

static void
the_configuration_file_allows_and_its_no_wins(void **state)
{
	struct allow a;

	(void)state;
	write_config("{\"sandboxes\": [], \"allow_event_command\": true,"
	             " \"allow_private_webhooks\": true,"
	             " \"webhook_secret\": \"s\","
	             " \"webhook_secret_command\": [\"pass\", \"x\"]}",
	    0600);
	allow_load(&a, true);
	assert_true(a.event_command);
	assert_true(a.private_webhooks);
	assert_string_equal(a.webhook_secret.data, "s");
	assert_int_equal(json_array_size(a.webhook_secret_command), 2);
	allow_free(&a);
	setenv(ALLOW_COMMAND_ENV, "1", 1);
	write_config("{\"allow_event_command\": false}", 0600);
	assert_false(command_allowed());
	write_config("{\"allow_event_command\": \"true\"}", 0600);
	assert_false(command_allowed());
}

static void
a_file_that_others_can_write_allows_nothing(void **state)
{
	(void)state;
	write_config("{\"allow_event_command\": true}", 0644);
	assert_true(command_allowed());
	write_config("{\"allow_event_command\": true}", 0666);
	assert_false(command_allowed());
	write_config("[]", 0600);
	assert_false(command_allowed());
	write_config("{", 0600);
	assert_false(command_allowed());
}

static void
a_file_that_others_can_write_forbids(void **state)
{
	struct allow a;

	(void)state;
	setenv(ALLOW_COMMAND_ENV, "1", 1);
	write_config("{\"allow_event_command\": true}", 0666);
	assert_true(command_allowed()); /* by the environment */
	write_config("{\"allow_event_command\": false}", 0664);
	assert_false(command_allowed());
	/* What it names as a secret is not used, and not left out silently. */
	write_config("{\"webhook_secret\": \"s\"}", 0664);
	allow_load(&a, true);
	assert_true(a.secret_refused && !a.unread);
	assert_false(secret_given(&a.webhook_secret));
	allow_free(&a);
	write_config("{\"webhook_secret_command\": [\"x\"]}", 0620);
	allow_load(&a, true);
	assert_true(a.secret_refused);
	assert_null(a.webhook_secret_command);
	allow_free(&a);
	write_config("{\"sandboxes\": []}", 0664);
	allow_load(&a, true);
	assert_false(a.secret_refused || a.unread);
	allow_free(&a);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_is_allowed_by_itself),
		T(the_environment_allows),
		T(what_it_allows_is_remembered_until_forgotten),
		T(the_configuration_file_allows_and_its_no_wins),
		T(a_file_that_others_can_write_allows_nothing),
		T(a_file_that_others_can_write_forbids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
