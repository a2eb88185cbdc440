#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ssh/sshconf.h"

static struct sandbox sb;
static const struct sshconf_extra nothing;
static json_t *argv;
static char host[] = "gpu1";

static int
begin(void **state)
{
	(void)state;
	memset(&sb, 0, sizeof(sb));
	sb.name = sb.host = host;
	sb.connect_timeout_s = 15;
	sb.control_persist_s = 600;
	return 0;
}

static int
end(void **state)
{
	(void)state;
	secret_free(&sb.password);
	secret_free(&sb.key_passphrase);
	json_decref(sb.password_command);
	json_decref(sb.ssh_options);
	json_decref(argv);
	argv = NULL;
	return 0;
}

/* --- the file ------------------------------------------------------------- */

static void
file_is(const struct sshconf *conf, const char *want)
{
	struct buf b;

	buf_init(&b, 65536);
	sshconf_file(&b, &sb, conf);
	assert_string_equal(b.data, want);
	assert_false(b.full);
	buf_free(&b);
}

/* What every file has, in its order. */
#define TOP                               \
	"# Made by remote-sandbox-mcp.\n" \
	"Host *\n"                        \
	"\tBatchMode yes\n"               \
	"\tNumberOfPasswordPrompts 1\n"   \
	"\tClearAllForwardings yes\n"     \
	"\tForwardAgent no\n"             \
	"\tForwardX11 no\n"               \
	"\tPermitLocalCommand no\n"       \
	"\tRequestTTY no\n"               \
	"\tRemoteCommand none\n"          \
	"\tEscapeChar none\n"             \
	"\tLogLevel INFO\n"               \
	"\tHashKnownHosts no\n"
#define BOTTOM                      \
	"Host *\n"                  \
	"\tServerAliveInterval 5\n" \
	"\tServerAliveCountMax 3\n" \
	"\tCiphers ^aes128-gcm@openssh.com\n"

static void
a_plain_sandbox_gets_our_options_and_the_users_files(void **state)
{
	const struct sshconf conf = {
		.known_hosts = "/state/known_hosts",
		.user_known_hosts = "/home/ann/.ssh/known_hosts "
		                    "/home/ann/.ssh/known_hosts2",
		.user_config = "/home/ann/.ssh/config",
		.system_config = "/etc/ssh/ssh_config",
	};

	(void)state;
	file_is(&conf,
	    TOP "\tStrictHostKeyChecking accept-new\n"
	        "\tUserKnownHostsFile \"/state/known_hosts\" "
	        "/home/ann/.ssh/known_hosts "
	        "/home/ann/.ssh/known_hosts2\n"
	        "\tConnectTimeout 15\n"
	        "Include \"/home/ann/.ssh/config\"\n"
	        "Include \"/etc/ssh/ssh_config\"\n" BOTTOM);
}

static void
a_strict_one_gets_that(void **state)
{
	const struct sshconf conf = { .known_hosts = "/k" };

	(void)state;
	sb.host_key_policy = HOST_KEY_STRICT;
	sb.connect_timeout_s = 3;
	file_is(&conf,
	    TOP "\tStrictHostKeyChecking yes\n"
	        "\tUserKnownHostsFile \"/k\"\n"
	        "\tConnectTimeout 3\n" BOTTOM);
}

static void
just_looking_leaves_host_keys_alone(void **state)
{
	const struct sshconf conf = { .user_config = "/c" };

	(void)state;
	file_is(&conf,
	    TOP "\tConnectTimeout 15\n"
	        "Include \"/c\"\n" BOTTOM);
}

/* ssh: 'keyword userknownhostsfile "none" argument must appear alone'. */
static void
no_known_hosts_of_the_user_are_none_beside_ours(void **state)
{
	const struct sshconf conf = { .known_hosts = "/k",
		.user_known_hosts = "none" };

	(void)state;
	file_is(&conf,
	    TOP "\tStrictHostKeyChecking accept-new\n"
	        "\tUserKnownHostsFile \"/k\"\n"
	        "\tConnectTimeout 15\n" BOTTOM);
}

/* Per cent means something in names of known_hosts, not behind Include. */
static void
names_of_files_are_just_names(void **state)
{
	const struct sshconf conf = {
		.known_hosts = "/a b/\"q\"/\\/100%/k",
		.user_config = "/a b/\"q\"/\\/100%/c",
	};

	(void)state;
	file_is(&conf,
	    TOP "\tStrictHostKeyChecking accept-new\n"
	        "\tUserKnownHostsFile "
	        "\"/a b/\\\"q\\\"/\\\\/100%%/k\"\n"
	        "\tConnectTimeout 15\n"
	        "Include \"/a b/\\\"q\\\"/\\\\/100%/c\"\n" BOTTOM);
}

/* Jump hosts get the file too. */
static void
nothing_of_the_target_is_in_the_file(void **state)
{
	const struct sshconf conf = { .known_hosts = "/k" };
	char key[] = "/key", user[] = "ann", pin[] = "ssh-ed25519 AAAA";
	struct buf b;

	(void)state;
	sb.port = 2222;
	sb.user = user;
	sb.key_file = key;
	sb.host_key = pin;
	sb.ssh_options = json_pack("[s]", "Compression=yes");
	secret_set(&sb.password, "hunter2", 7);
	buf_init(&b, 65536);
	sshconf_file(&b, &sb, &conf);
	says_not(b.data, "gpu1");
	says_not(b.data, "2222");
	says_not(b.data, "ann");
	says_not(b.data, "key\"");
	says_not(b.data, "AAAA");
	says_not(b.data, "Compression");
	says_not(b.data, "hunter2");
	says_not(b.data, "Authentication");
	buf_free(&b);
}

/* --- the command line ----------------------------------------------------- */

static void
list_is(const json_t *list, const char *const *want)
{
	const json_t *item;
	size_t i, n = 0;

	while (want[n] != NULL)
		n++;
	json_array_foreach (list, i, item) {
		if (i >= n)
			fail_msg("more: %s", json_string_value(item));
		assert_string_equal(json_string_value(item), want[i]);
	}
	assert_int_equal(json_array_size(list), n);
}

#define MASTER(...)                                                          \
	(const char *const[])                                                \
	{                                                                    \
		"ssh", "-F", "/conf", "-M", "-N", "-T", "-S", "/sock", "-o", \
		    "ControlPersist=602", __VA_ARGS__, "--", "gpu1", NULL    \
	}

static void
master_is(const struct sshconf_extra *extra, const char *const *want)
{
	json_decref(argv);
	argv = sshconf_master(&sb, "/conf", "/sock", extra);
	list_is(argv, want);
}

static void
a_host_alone_leaves_the_rest_to_ssh(void **state)
{
	static const char *const want[] = { "ssh", "-F", "/conf", "-M", "-N",
		"-T", "-S", "/sock", "-o", "ControlPersist=602", "--", "gpu1",
		NULL };

	(void)state;
	master_is(&nothing, want);
	json_decref(argv);
	argv = json_array();
	sshconf_target(argv, &sb);
	assert_int_equal(json_array_size(argv), 0);
}

static void
port_and_user_are_told_if_given(void **state)
{
	char user[] = "ann";

	(void)state;
	sb.port = 2222;
	master_is(&nothing, MASTER("-p", "2222"));
	sb.user = user;
	master_is(&nothing, MASTER("-p", "2222", "-l", "ann"));
	sb.port = 0;
	master_is(&nothing, MASTER("-l", "ann"));
}

static void
a_key_file_is_the_only_key(void **state)
{
	char key[] = "/home/ann/id";

	(void)state;
	sb.key_file = key;
	master_is(&nothing,
	    MASTER("-o", "IdentityFile=\"/home/ann/id\"", "-o",
	        "IdentitiesOnly=yes", "-o",
	        "PreferredAuthentications=publickey"));
	/* A passphrase changes nothing: ssh will ask for it. */
	secret_set(&sb.key_passphrase, "hunter2", 7);
	master_is(&nothing,
	    MASTER("-o", "IdentityFile=\"/home/ann/id\"", "-o",
	        "IdentitiesOnly=yes", "-o",
	        "PreferredAuthentications=publickey"));
}

static void
other_keys_may_come_after_it(void **state)
{
	char key[] = "/id";
	char before[17], after[17];

	(void)state;
	sb.key_file = key;
	sshconf_name(&sb, before);
	sb.other_keys = true;
	master_is(&nothing, MASTER("-o", "IdentityFile=\"/id\""));
	sshconf_name(&sb, after);
	assert_string_not_equal(before, after);
}

static void
the_name_of_a_key_file_is_just_a_name(void **state)
{
	char key[] = "/a b/100%/\"id\\";

	(void)state;
	sb.key_file = key;
	master_is(&nothing,
	    MASTER("-o", "IdentityFile=\"/a b/100%%/\\\"id\\\\\"", "-o",
	        "IdentitiesOnly=yes", "-o",
	        "PreferredAuthentications=publickey"));
}

static void
a_password_alone_tries_no_keys(void **state)
{
	(void)state;
	secret_set(&sb.password, "hunter2", 7);
	master_is(&nothing,
	    MASTER("-o", "PubkeyAuthentication=no", "-o",
	        "PreferredAuthentications=password,keyboard-interactive"));
	secret_free(&sb.password);
	sb.password_command = json_pack("[s]", "pass");
	master_is(&nothing,
	    MASTER("-o", "PubkeyAuthentication=no", "-o",
	        "PreferredAuthentications=password,keyboard-interactive"));
}

static void
a_key_comes_before_a_password(void **state)
{
	char key[] = "/id";

	(void)state;
	sb.key_file = key;
	secret_set(&sb.password, "hunter2", 7);
	master_is(&nothing,
	    MASTER("-o", "IdentityFile=\"/id\"", "-o", "IdentitiesOnly=yes",
	        "-o",
	        "PreferredAuthentications=publickey,keyboard-interactive,"
	        "password"));
}

/* The first value that ssh sees counts. */
static void
options_of_the_entry_come_before_ours(void **state)
{
	(void)state;
	sb.port = 22;
	sb.ssh_options = json_pack("[s,s]", "ProxyJump=jump",
	    "PreferredAuthentications=hostbased");
	secret_set(&sb.password, "hunter2", 7);
	master_is(&nothing,
	    MASTER("-o", "ProxyJump=jump", "-o",
	        "PreferredAuthentications=hostbased", "-p", "22", "-o",
	        "PubkeyAuthentication=no", "-o",
	        "PreferredAuthentications=password,keyboard-interactive"));
}

static void
a_pinned_key_is_all_that_is_known_of_the_target(void **state)
{
	const struct sshconf_extra file = { .pin_file = "/run/100%/pin" };
	const struct sshconf_extra command = {
		.pin_command = "\"/bin/us\" known-host SHA256:x %t %K",
	};

	(void)state;
	master_is(&file,
	    MASTER("-o", "UserKnownHostsFile=\"/run/100%%/pin\"", "-o",
	        "GlobalKnownHostsFile=none", "-o",
	        "StrictHostKeyChecking=yes"));
	master_is(&command,
	    MASTER("-o", "UserKnownHostsFile=none", "-o",
	        "KnownHostsCommand=\"/bin/us\" known-host SHA256:x %t %K", "-o",
	        "GlobalKnownHostsFile=none", "-o",
	        "StrictHostKeyChecking=yes"));
}

static void
what_one_login_needs_is_told_before_the_rest(void **state)
{
	const struct sshconf_extra ask = { .ask = true };
	const struct sshconf_extra dsa = { .dsa = true };
	const struct sshconf_extra all = { .ask = true,
		.dsa = true,
		.host_key_algorithms = "rsa-sha2-512,rsa-sha2-256",
		.pin_command = "/us" };

	(void)state;
	sb.port = 5;
	master_is(&ask, MASTER("-o", "BatchMode=no", "-p", "5"));
	master_is(&dsa,
	    MASTER("-o", "PubkeyAcceptedAlgorithms=+ssh-dss", "-p", "5"));
	master_is(&all,
	    MASTER("-o", "BatchMode=no", "-o",
	        "PubkeyAcceptedAlgorithms=+ssh-dss", "-o",
	        "HostKeyAlgorithms=rsa-sha2-512,rsa-sha2-256", "-o",
	        "UserKnownHostsFile=none", "-o", "KnownHostsCommand=/us", "-o",
	        "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes",
	        "-p", "5"));
}

/* Whatever else it says: nothing is tried, and no master is used or made. */
static void
a_look_at_the_reason_tries_nothing(void **state)
{
	const struct sshconf_extra pin = { .pin_file = "/pin" };
	char key[] = "/id", user[] = "ann";
	char *text;

	(void)state;
	sb.key_file = key;
	sb.user = user;
	argv = sshconf_diagnose(&sb, "/conf", &pin);
	text = json_dumps(argv, JSON_COMPACT);
	says(text, "[\"ssh\",\"-F\",\"/conf\",\"-T\"");
	says(text, "\"ControlPath=none\"");
	says(text, "\"ControlMaster=no\"");
	says(text, "\"PubkeyAuthentication=no\"");
	says(text, "\"-l\",\"ann\"");
	says(text, "\"--\",\"gpu1\",\"exit\"]");
	/* Nor is another key than the pinned one remembered. */
	says(text, "StrictHostKeyChecking=yes");
	/* The first value counts. */
	assert_true(strstr(text, "PreferredAuthentications=none") <
	    strstr(text, "PreferredAuthentications=publickey"));
	says_not(text, "-M");
	free(text);
}

static void
secrets_are_never_on_the_command_line(void **state)
{
	char key[] = "/id";
	char *text;

	(void)state;
	sb.key_file = key;
	sb.password_command = json_pack("[s,s]", "echo", "hunter2");
	secret_set(&sb.password, "hunter2", 7);
	secret_set(&sb.key_passphrase, "hunter2", 7);
	argv = sshconf_master(&sb, "/conf", "/sock", &nothing);
	text = json_dumps(argv, 0);
	says_not(text, "hunter2");
	free(text);
}

static void
how_long_a_master_stays_is_told(void **state)
{
	(void)state;
	sb.control_persist_s = 86400;
	argv = sshconf_master(&sb, "/conf", "/sock", &nothing);
	assert_string_equal(json_string_value(json_array_get(argv, 9)),
	    "ControlPersist=86402");
}

/* --- names ---------------------------------------------------------------- */

static void
name_of(char out[17])
{
	memset(out, 'x', 17);
	sshconf_name(&sb, out);
	assert_int_equal(strlen(out), 16);
	assert_int_equal(strspn(out, "0123456789abcdef"), 16);
}

static void
the_same_way_in_has_the_same_name(void **state)
{
	char other_name[] = "other", first[17], second[17];

	(void)state;
	name_of(first);
	name_of(second);
	assert_string_equal(first, second);
	/* None of these changes who logs in where. */
	sb.name = other_name;
	sb.connect_timeout_s = 1;
	sb.control_persist_s = 1;
	sb.workdir = other_name;
	name_of(second);
	assert_string_equal(first, second);
	secret_set(&sb.password, "a", 1);
	name_of(first);
	assert_string_not_equal(first, second);
	secret_set(&sb.password, "b", 1);
	name_of(second);
	assert_string_equal(first, second);
}

/* Remember each name and see that it is new. */
static void
is_new(char seen[][17], size_t *count)
{
	size_t i;

	name_of(seen[*count]);
	for (i = 0; i < *count; i++)
		assert_string_not_equal(seen[*count], seen[i]);
	++*count;
}

static void
another_way_in_has_another_name(void **state)
{
	char a[] = "a", ab[] = "ab", b[] = "b", key[] = "ssh-rsa AAAA";
	char seen[40][17];
	size_t n = 0;

	(void)state;
	is_new(seen, &n);
	sb.host = ab;
	is_new(seen, &n);
	sb.host = a;
	is_new(seen, &n);
	/* "a" and "b" are not "ab" and nothing. */
	sb.user = b;
	is_new(seen, &n);
	sb.user = NULL;
	sb.key_file = b;
	is_new(seen, &n);
	sb.key_file = NULL;
	sb.host_key = b;
	is_new(seen, &n);
	sb.host_key = key;
	is_new(seen, &n);
	sb.host_key = NULL;
	sb.ssh_options = json_pack("[s]", "b");
	is_new(seen, &n);
	json_array_append_new(sb.ssh_options, json_string("c"));
	is_new(seen, &n);
	json_array_clear(sb.ssh_options);
	json_array_append_new(sb.ssh_options, json_string("bc"));
	is_new(seen, &n);
	json_array_clear(sb.ssh_options);
	for (sb.port = 1; sb.port < 10; sb.port++)
		is_new(seen, &n);
	sb.port = 0;
	sb.host_key_policy = HOST_KEY_STRICT;
	is_new(seen, &n);
	secret_set(&sb.password, "x", 1);
	is_new(seen, &n);
	sb.host_key_policy = HOST_KEY_ACCEPT_NEW;
	is_new(seen, &n);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(a_plain_sandbox_gets_our_options_and_the_users_files),
		TEST(a_strict_one_gets_that),
		TEST(just_looking_leaves_host_keys_alone),
		TEST(no_known_hosts_of_the_user_are_none_beside_ours),
		TEST(names_of_files_are_just_names),
		TEST(nothing_of_the_target_is_in_the_file),
		TEST(a_host_alone_leaves_the_rest_to_ssh),
		TEST(port_and_user_are_told_if_given),
		TEST(a_key_file_is_the_only_key),
		TEST(other_keys_may_come_after_it),
		TEST(the_name_of_a_key_file_is_just_a_name),
		TEST(a_password_alone_tries_no_keys),
		TEST(a_key_comes_before_a_password),
		TEST(options_of_the_entry_come_before_ours),
		TEST(a_pinned_key_is_all_that_is_known_of_the_target),
		TEST(what_one_login_needs_is_told_before_the_rest),
		TEST(a_look_at_the_reason_tries_nothing),
		TEST(secrets_are_never_on_the_command_line),
		TEST(how_long_a_master_stays_is_told),
		TEST(the_same_way_in_has_the_same_name),
		TEST(another_way_in_has_another_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
