/* What "ssh -G" and "ssh -V" print; the recordings are of OpenSSH 9.2. */
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ssh/login.h"
#include "ssh/sshrun.h"

static struct login_target t;

static int
end(void **state)
{
	(void)state;
	login_target_free(&t);
	login_target_free(&t);
	return 0;
}

static void
parse(const char *text)
{
	login_target_free(&t);
	login_target_parse(&t, text);
}

static void
a_plain_host_is_read(void **state)
{
	char *text = recorded("ssh-G-plain.txt");

	(void)state;
	parse(text);
	assert_string_equal(t.user, "ann");
	assert_string_equal(t.hostname, "10.0.0.7");
	assert_string_equal(t.host, "10.0.0.7");
	assert_int_equal(t.port, 22);
	assert_false(t.proxied);
	assert_string_equal(t.known_hosts,
	    "/home/ann/.ssh/known_hosts /home/ann/.ssh/known_hosts2");
	free(text);
}

/* ssh shows names in small letters, in its prompts too. */
static void
an_alias_is_read_as_prompts_will_show_it(void **state)
{
	char *text = recorded("ssh-G-alias.txt");

	(void)state;
	parse(text);
	assert_string_equal(t.user, "ann");
	assert_string_equal(t.hostname, "gpu1.example.org");
	assert_string_equal(t.host, "gpu-pool");
	assert_int_equal(t.port, 2222);
	assert_true(t.proxied);
	assert_string_equal(t.known_hosts,
	    "/home/ann/.ssh/known_gpu /etc/ssh/gpu_hosts");
	free(text);
}

static void
the_order_of_lines_does_not_matter(void **state)
{
	(void)state;
	parse("hostname b\nhostkeyalias a\nuser u\nport 5\n");
	assert_string_equal(t.host, "a");
	assert_string_equal(t.hostname, "b");
	parse("hostkeyalias a\nhostname b");
	assert_string_equal(t.host, "a");
	assert_string_equal(t.hostname, "b");
}

static void
what_is_missing_stays_missing(void **state)
{
	(void)state;
	parse("");
	assert_null(t.user);
	assert_null(t.host);
	assert_null(t.hostname);
	assert_null(t.known_hosts);
	assert_null(t.control);
	assert_int_equal(t.port, 0);
	parse("\n\n\nuserx y\nhostnamex\nport\nport \nport x\nport 0\n"
	      "port 65536\nport 22x\n");
	assert_null(t.user);
	assert_null(t.hostname);
	assert_int_equal(t.port, 0);
}

static void
the_users_control_socket_is_read(void **state)
{
	(void)state;
	parse("controlmaster auto\ncontrolpath /home/ann/.ssh/c m\n"
	      "controlpersist no\n");
	assert_string_equal(t.control, "/home/ann/.ssh/c m");
}

static void
similar_lines_are_not_taken_for_these(void **state)
{
	(void)state;
	parse("host alias\nusername x\n user x\nuserknownhostsfiles x\n"
	      "hostnames x\nportx 5\nhostkeyaliases x\nx user y\n"
	      "controlpaths x\n");
	assert_null(t.control);
	assert_null(t.user);
	assert_null(t.host);
	assert_null(t.known_hosts);
	assert_int_equal(t.port, 0);
}

static void
lines_may_end_as_elsewhere(void **state)
{
	(void)state;
	parse("user ann b\r\nhostname h\r\nport 7\r\n");
	assert_string_equal(t.user, "ann b");
	assert_string_equal(t.hostname, "h");
	assert_int_equal(t.port, 7);
}

static void
a_proxy_is_noticed(void **state)
{
	(void)state;
	parse("proxyjump jump\n");
	assert_true(t.proxied);
	parse("proxycommand nc %h %p\n");
	assert_true(t.proxied);
	parse("proxycommand none\n");
	assert_false(t.proxied);
	parse("proxyjump none\n");
	assert_false(t.proxied);
	parse("proxyusefdpass no\nproxyjumps x\n");
	assert_false(t.proxied);
}

static void
nothing_leaks_if_a_line_comes_twice(void **state)
{
	(void)state;
	parse("user a\nuser b\nhostname c\nhostname d\nhostkeyalias e\n"
	      "hostkeyalias f\nuserknownhostsfile g\nuserknownhostsfile h\n");
	assert_string_equal(t.user, "a");
	assert_string_equal(t.hostname, "c");
	assert_string_equal(t.host, "e");
	assert_string_equal(t.known_hosts, "g");
}

static void
versions_are_read(void **state)
{
	static const struct {
		const char *text;
		int version;
	} cases[] = {
		{ "OpenSSH_9.2p1 Debian-2+deb12u10, OpenSSL 3.0.19 27 Jan "
		  "2026\n",
		    902 },
		{ "OpenSSH_8.4p1, OpenSSL 1.1.1n  15 Mar 2022\n", 804 },
		{ "OpenSSH_8.10p1\n", 810 },
		{ "OpenSSH_10.0p2, LibreSSL 3.3.6\n", 1000 },
		{ "OpenSSH_7.4p1, OpenSSL 1.0.2k-fips  26 Jan 2017\n", 704 },
		{ "OpenSSH_9.9\n", 909 },
		{ "warning\nOpenSSH_9.6p1 Ubuntu-3ubuntu13, OpenSSL\n", 906 },
		{ "", 0 },
		{ "OpenSSH", 0 },
		{ "OpenSSH_", 0 },
		{ "OpenSSH_9", 0 },
		{ "OpenSSH_x.y", 0 },
		{ "Dropbear v2022.83\n", 0 },
		{ "OpenSSH_99999999999999999999.1p1", 0 },
		{ "OpenSSH_30000000.1p1", 0 },
		{ "OpenSSH_9.99999999999p1", 0 },
		{ "OpenSSH_-9.2", 0 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (sshrun_version(cases[i].text) != cases[i].version)
			fail_msg("%s is %d", cases[i].text,
			    sshrun_version(cases[i].text));
	}
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, end)
	const struct CMUnitTest tests[] = {
		TEST(a_plain_host_is_read),
		TEST(an_alias_is_read_as_prompts_will_show_it),
		TEST(the_order_of_lines_does_not_matter),
		TEST(the_users_control_socket_is_read),
		TEST(what_is_missing_stays_missing),
		TEST(similar_lines_are_not_taken_for_these),
		TEST(lines_may_end_as_elsewhere),
		TEST(a_proxy_is_noticed),
		TEST(nothing_leaks_if_a_line_comes_twice),
		TEST(versions_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
