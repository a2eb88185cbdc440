/* Decisions about the service, and the definitions that are written. */
#include "help.h"
#include "watch/service_inside.h"

static struct service_spec spec = {
	.program = (char *)(uintptr_t) "/opt/a b/re$ma%in \"q\"",
	.home = (char *)(uintptr_t) "/home/u",
	.state_dir = (char *)(uintptr_t) "/home/u/st ate",
	.config_path = (char *)(uintptr_t) "/home/u/st ate/config.json",
	.db_path = (char *)(uintptr_t) "/home/u/st ate/watchdog.sqlite3",
	.out_log = (char *)(uintptr_t) "/home/u/st ate/out",
	.err_log = (char *)(uintptr_t) "/home/u/st ate/err",
	.path = (char *)(uintptr_t) "/bin:/a&b<c>",
	.suffix = "-1234567",
	.uid = 501,
};

static void
what_is_well_is_left_alone(void **state)
{
	struct service_seen seen = { .held = true, .fresh = true };

	(void)state;
	assert_int_equal(service_decide(&seen), SERVICE_GOOD);
	seen.order = 1;
	assert_int_equal(service_decide(&seen), SERVICE_GOOD);
}

static void
what_is_not_well_is_started_or_replaced(void **state)
{
	struct service_seen none = { .fresh = true };
	struct service_seen stale = { .held = true };
	struct service_seen older = { .held = true,
		.fresh = true,
		.order = -1 };
	struct service_seen gone = { .held = true,
		.fresh = true,
		.program_gone = true };

	(void)state;
	assert_int_equal(service_decide(&none), SERVICE_START);
	assert_int_equal(service_decide(&stale), SERVICE_RESTART);
	assert_int_equal(service_decide(&older), SERVICE_RESTART);
	assert_int_equal(service_decide(&gone), SERVICE_RESTART);
}

static void
versions_have_an_order(void **state)
{
	(void)state;
	assert_int_equal(service_order("0.1.0", "0.1.0"), 0);
	assert_int_equal(service_order("0.1", "0.1.0"), 0);
	assert_int_equal(service_order("0.9.0", "0.10.0"), -1);
	assert_int_equal(service_order("1.0.0", "0.10.7"), 1);
	assert_int_equal(service_order("", "0.0.1"), -1);
	assert_int_equal(service_order("x", "0.0.1"), -1);
	assert_int_equal(service_order("0.2.0", "0.1.9.9"), 1);
}

static void
a_heartbeat_grows_stale(void **state)
{
	(void)state;
	assert_true(service_fresh(1000, 1000));
	assert_true(service_fresh(1000, 1180));
	assert_false(service_fresh(1000, 1181));
	/* The clock was set back. */
	assert_true(service_fresh(1180, 1000));
	assert_false(service_fresh(1181, 1000));
	assert_false(service_fresh(0, 100));
}

static void
a_unit_quotes_what_systemd_would_read(void **state)
{
	struct buf b;
	char *name = service_systemd.label(&spec);

	(void)state;
	buf_init(&b, 65536);
	service_systemd.text(&spec, &b);
	says(b.data,
	    "\nExecStart=\"/opt/a b/re$$ma%%in \\\"q\\\"\" \"daemon\" "
	    "\"--config\" \"/home/u/st ate/config.json\" \"--db\" "
	    "\"/home/u/st ate/watchdog.sqlite3\"\n");
	says(b.data, "\nRestart=always\n");
	says(b.data, "\nKillMode=process\n");
	says(b.data, "\nWorkingDirectory=/home/u/st ate\n");
	says(b.data, "\nStandardError=append:/home/u/st ate/err\n");
	says(b.data, "\nEnvironment=\"PATH=/bin:/a&b<c>\"\n");
	says(b.data, "\nWantedBy=default.target\n");
	assert_string_equal(name,
	    "remote-sandbox-mcp-watchdog-1234567.service");
	free(name);
	buf_free(&b);
}

static void
a_property_list_escapes_what_xml_would_read(void **state)
{
	struct buf b;
	char *path = service_launchd.file(&spec);

	(void)state;
	buf_init(&b, 65536);
	service_launchd.text(&spec, &b);
	says(b.data, "<string>/bin:/a&amp;b&lt;c&gt;</string>");
	says(b.data,
	    "<string>com.remote-sandbox-mcp.watchdog-1234567</string>");
	assert_string_equal(path,
	    "/home/u/Library/LaunchAgents/"
	    "com.remote-sandbox-mcp.watchdog-1234567.plist");
	free(path);
	buf_free(&b);
}

static void
the_usual_state_directory_has_the_usual_name(void **state)
{
	char *top = make_dir(), *usual, *other;
	struct service_spec s;
	struct err err;

	(void)state;
	setenv("HOME", top, 1);
	unsetenv("XDG_STATE_HOME");
	unsetenv("REMOTE_SANDBOX_MCP_HOME");
	if (service_spec_make(&s, &err) == -1)
		fail_msg("%s", err.msg);
	usual = xstrdup(s.state_dir);
	assert_string_equal(s.suffix, "");
	service_spec_free(&s);
	other = path_join(top, "other");
	setenv("REMOTE_SANDBOX_MCP_HOME", other, 1);
	assert_int_equal(service_spec_make(&s, &err), 0);
	assert_int_equal(strlen(s.suffix), 8);
	assert_true(s.program[0] == '/');
	service_spec_free(&s);
	rmdir(usual);
	*strrchr(usual, '/') = '\0';
	rmdir(usual);
	*strrchr(usual, '/') = '\0';
	rmdir(usual);
	rmdir(other);
	rmdir(top);
	free(usual);
	free(other);
	free(top);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_well_is_left_alone),
		cmocka_unit_test(what_is_not_well_is_started_or_replaced),
		cmocka_unit_test(versions_have_an_order),
		cmocka_unit_test(a_heartbeat_grows_stale),
		cmocka_unit_test(a_unit_quotes_what_systemd_would_read),
		cmocka_unit_test(a_property_list_escapes_what_xml_would_read),
		cmocka_unit_test(the_usual_state_directory_has_the_usual_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
