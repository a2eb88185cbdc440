#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/sandbox.h"
#include "help.h"

#define HOME "/home/ann"
#define BLOB \
	"AAAAC3NzaC1lZDI1NTE5AAAAIHB2ZQH7gDNIe89bfUmMXxSqCFUQ9S6Q0i4ygMWVq8Rw"
#define KEY_A "ssh-ed25519 " BLOB
#define PRINT                             \
	"SHA256:" /* and 43 characters */ \
	"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"

/* What is being read, kept for the assertions and freed after the test. */
static json_t *entry, *unknown;
static struct sandbox sb;
static struct err err;

static int
forget(void **state)
{
	(void)state;
	sandbox_free(&sb);
	json_decref(entry);
	json_decref(unknown);
	entry = unknown = NULL;
	return 0;
}

static int
parse(const char *json, const char *home)
{
	json_error_t je;

	forget(NULL);
	entry = json_loads(json, JSON_ALLOW_NUL | JSON_DECODE_ANY, &je);
	if (entry == NULL)
		fail_msg("the test's JSON is wrong: %s: %.100s", je.text, json);
	unknown = json_array();
	err = (struct err)ERR_INIT;
	return sandbox_parse(&sb, entry, home, unknown, &err);
}

static const struct sandbox *
accepted(const char *json)
{
	if (parse(json, HOME) == -1)
		fail_msg("%.100s: %s", json, err.msg);
	assert_int_equal(err.code, ERR_NONE);
	return &sb;
}

static const char *
refused(const char *json)
{
	if (parse(json, HOME) == 0)
		fail_msg("accepted: %.100s", json);
	assert_int_equal(err.code, ERR_INVALID);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	says_not(err.msg, "\n");
	return err.msg;
}

/* {"host":"h","FIELD":VALUE} */
static const char *
with(const char *field, const char *value)
{
	static char json[4096];

	snprintf(json, sizeof(json), "{\"host\":\"h\",\"%s\":%s}", field,
	    value);
	return json;
}

/* The message is about this very field. */
static const char *
refused_field(const char *field, const char *value)
{
	char quoted[100];

	snprintf(quoted, sizeof(quoted), "'%s'", field);
	refused(with(field, value));
	says(err.msg, quoted);
	return err.msg;
}

static void
a_host_is_enough_and_the_rest_is_left_to_ssh(void **state)
{
	(void)state;
	accepted("{\"host\":\"gpu1\"}");
	assert_string_equal(sb.host, "gpu1");
	assert_string_equal(sb.name, "gpu1");
	assert_false(sb.named);
	assert_null(sb.user);
	assert_int_equal(sb.port, 0);
	assert_false(secret_given(&sb.password));
	assert_false(secret_given(&sb.key_passphrase));
	assert_null(sb.password_command);
	assert_null(sb.key_passphrase_command);
	assert_null(sb.key_file);
	assert_null(sb.host_key);
	assert_null(sb.workdir);
	assert_null(sb.ssh_options);
	assert_int_equal(sb.host_key_policy, HOST_KEY_ACCEPT_NEW);
	assert_int_equal(sb.connect_timeout_s, 15);
	assert_int_equal(sb.control_persist_s, 600);
	assert_int_equal(json_array_size(unknown), 0);
	assert_false(sandbox_has_secret(&sb));
}

static void
every_field_is_read(void **state)
{
	(void)state;
	accepted(
	    "{\"name\":\"box\",\"host\":\"10.0.0.7\",\"port\":2222,"
	    "\"user\":\"ann\",\"password\":\"pw\","
	    "\"password_command\":[\"pass\",\"show box\"],"
	    "\"key_file\":\"~/.ssh/id\",\"key_passphrase\":\"pp\","
	    "\"key_passphrase_command\":[\"pass\"],"
	    "\"host_key\":\"" KEY_A "\",\"host_key_policy\":\"strict\","
	    "\"workdir\":\"~/work\",\"connect_timeout_s\":3,"
	    "\"control_persist_s\":60,\"ssh_options\":[\"Compression=yes\"],"
	    "\"scheduler\":\"slurm\"}");
	assert_string_equal(sb.name, "box");
	assert_true(sb.named);
	assert_string_equal(sb.host, "10.0.0.7");
	assert_int_equal(sb.port, 2222);
	assert_string_equal(sb.user, "ann");
	assert_string_equal(sb.password.data, "pw");
	assert_int_equal(sb.password.len, 2);
	assert_string_equal(json_string_value(
	                        json_array_get(sb.password_command, 1)),
	    "show box");
	assert_string_equal(sb.key_file, HOME "/.ssh/id");
	assert_string_equal(sb.key_passphrase.data, "pp");
	assert_int_equal(json_array_size(sb.key_passphrase_command), 1);
	assert_string_equal(sb.host_key, KEY_A);
	assert_int_equal(sb.host_key_policy, HOST_KEY_STRICT);
	assert_string_equal(sb.workdir, "~/work");
	assert_int_equal(sb.connect_timeout_s, 3);
	assert_int_equal(sb.control_persist_s, 60);
	assert_int_equal(json_array_size(sb.ssh_options), 1);
	assert_true(sb.slurm);
	assert_int_equal(json_array_size(unknown), 0);
	assert_true(sandbox_has_secret(&sb));
}

static const char *const fields[] = { "name", "user", "port", "password",
	"password_command", "key_file", "key_passphrase",
	"key_passphrase_command", "host_key", "host_key_policy", "workdir",
	"connect_timeout_s", "control_persist_s", "ssh_options", "scheduler",
	NULL };

static void
null_means_absent(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; fields[i] != NULL; i++) {
		accepted(with(fields[i], "null"));
		assert_string_equal(sb.name, "h");
		assert_int_equal(sb.port, 0);
		assert_int_equal(sb.connect_timeout_s, 15);
	}
}

static void
an_empty_string_means_absent(void **state)
{
	accepted(
	    "{\"host\":\"h\",\"name\":\"\",\"user\":\"\",\"password\":\"\","
	    "\"key_file\":\"\",\"key_passphrase\":\"\",\"host_key\":\"\","
	    "\"host_key_policy\":\"\",\"workdir\":\"\"}");
	(void)state;
	assert_string_equal(sb.name, "h");
	assert_false(sb.named);
	assert_null(sb.user);
	assert_false(secret_given(&sb.password));
	assert_null(sb.key_file);
	assert_false(sandbox_has_secret(&sb));
	assert_null(sb.workdir);
}

static void
the_host_is_required(void **state)
{
	(void)state;
	says(refused("{}"), "field 'host' is missing");
	says(refused("{\"name\":\"x\"}"), "field 'host' is missing");
	says(refused("{\"host\":null}"), "field 'host' is missing");
	says(refused("{\"host\":\"\"}"), "field 'host' is missing");
}

static void
an_entry_is_an_object(void **state)
{
	static const char *const wrong[] = { "[]", "\"gpu1\"", "17", "null",
		"true" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		says(refused(wrong[i]), "is not an object");
}

static void
odd_types_are_refused_by_name(void **state)
{
	static const char *const odd[] = { "true", "1.5", "{}", "{\"a\":1}",
		"[1]", "[[\"a\"]]", "[null]" };
	size_t i, k;

	(void)state;
	for (i = 0; fields[i] != NULL; i++) {
		for (k = 0; k < sizeof(odd) / sizeof(odd[0]); k++)
			refused_field(fields[i], odd[k]);
	}
	says(refused_field("other_keys", "\"yes\""), "must be true or false");
	assert_true(accepted(with("other_keys", "true"))->other_keys);
	assert_false(accepted(with("other_keys", "null"))->other_keys);
	says(refused("{\"host\":17}"), "field 'host' must be a string");
	says(refused("{\"host\":[\"h\"]}"), "'host'");
	says(refused_field("user", "0"), "must be a string");
	says(refused_field("password", "1234"), "must be a string");
	says(refused_field("password_command", "\"pass show x\""),
	    "list of strings");
}

static void
numbers_have_a_range(void **state)
{
	(void)state;
	assert_int_equal(accepted(with("port", "1"))->port, 1);
	assert_int_equal(accepted(with("port", "65535"))->port, 65535);
	says(refused_field("port", "0"), "from 1 to 65535");
	refused_field("port", "65536");
	refused_field("port", "-22");
	refused_field("port", "4294967318"); /* 2^32 + 22 */
	refused_field("port", "-9223372036854775808");
	refused_field("port", "9223372036854775807");
	refused_field("port", "22.0");
	accepted(with("connect_timeout_s", "600"));
	refused_field("connect_timeout_s", "0");
	refused_field("connect_timeout_s", "601");
	accepted(with("control_persist_s", "86400"));
	refused_field("control_persist_s", "0");
	refused_field("control_persist_s", "86401");
}

/* As environment variables and careless writers have them. */
static void
numbers_may_be_written_as_strings(void **state)
{
	(void)state;
	assert_int_equal(accepted(with("port", "\"2222\""))->port, 2222);
	assert_int_equal(accepted(with("port", "\" 22 \""))->port, 22);
	refused_field("port", "\"ssh\"");
	refused_field("port", "\"22x\"");
	refused_field("port", "\"0x16\"");
	refused_field("port", "\"22.5\"");
	refused_field("port", "\"-1\"");
	refused_field("port", "\"99999999999999999999\"");
	refused_field("port", "\"22\\u0000x\"");
	refused_field("port", "\"\\u0000\"");
}

/* They end up on the command line of ssh. */
static void
hosts_and_users_are_single_harmless_words(void **state)
{
	static const char *const bad[] = { "-oProxyCommand=id", "-", "a b",
		" a", "a ", "a\\tb", "a\\nb", "a\\u0000b", "a\\u001bb",
		"a\\u007fb", "\\r", " " };
	static const char *const good[] = { "gpu1", "10.0.0.7", "::1",
		"fe80::1%eth0", "host-name.example.org", "a_b",
		"m\xc3\xbcnchen.example" };
	char json[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(json, sizeof(json), "{\"host\":\"%s\"}", bad[i]);
		says(refused(json), "'host'");
		snprintf(json, sizeof(json), "\"%s\"", bad[i]);
		refused_field("user", json);
	}
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(json, sizeof(json), "{\"host\":\"%s\"}", good[i]);
		assert_string_equal(accepted(json)->host, good[i]);
	}
	says(refused("{\"host\":\"-x\"}"), "dash");
	says(refused("{\"host\":\"a b\"}"), "white space");
}

static void
control_characters_are_refused_everywhere(void **state)
{
	static const char *const lines[] = { "name", "key_file", "host_key",
		"workdir", NULL };
	static const char *const bad[] = { "\"a\\nb\"", "\"a\\u0000b\"",
		"\"\\u001b[31m\"", "\"a\\u007f\"", "\"a\\rb\"" };
	size_t i, k;

	(void)state;
	for (i = 0; lines[i] != NULL; i++) {
		for (k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
			refused_field(lines[i], bad[k]);
	}
	refused_field("password", "\"hunter2\\n\"");
	refused_field("password", "\"hunt\\u0000er2\"");
	refused_field("key_passphrase", "\"hunter2\\r\"");
	refused_field("password_command", "[\"a\\u0000b\"]");
	refused_field("ssh_options", "[\"HostName=a\\nProxyCommand=id\"]");
	refused_field("ssh_options", "[\"HostName=a\\u0000\"]");
}

static void
names_may_be_anything_that_can_be_seen(void **state)
{
	(void)state;
	assert_string_equal(accepted(with("name", "\"my box\""))->name,
	    "my box");
	assert_string_equal(accepted(with("name", "\"-x\""))->name, "-x");
	assert_string_equal(accepted(with("name", "\"\xe7\xae\xb1\""))->name,
	    "\xe7\xae\xb1");
	refused_field("name", "\"  \"");
	refused_field("name", "\"\\t\"");
}

static void
a_tilde_is_the_home_directory(void **state)
{
	(void)state;
	assert_string_equal(accepted(with("key_file", "\"~/k\""))->key_file,
	    HOME "/k");
	assert_string_equal(accepted(with("key_file", "\"/k/~x\""))->key_file,
	    "/k/~x");
	assert_string_equal(accepted(with("key_file", "\"a b\""))->key_file,
	    "a b");
}

static void
without_a_home_directory_there_is_no_tilde(void **state)
{
	(void)state;
	assert_int_equal(parse(with("key_file", "\"~/k\""), NULL), -1);
	says(err.msg, "'key_file'");
	says(err.msg, "HOME");
	assert_int_equal(parse(with("key_file", "\"/k\""), NULL), 0);
	assert_string_equal(sb.key_file, "/k");
	assert_int_equal(parse("{\"host\":\"h\"}", NULL), 0);
}

static void
secrets_keep_their_blanks_and_bytes(void **state)
{
	(void)state;
	accepted(with("password", "\" p\\\"\\\\ \\t\xc3\xa4 \""));
	assert_string_equal(sb.password.data, " p\"\\ \t\xc3\xa4 ");
	accepted(with("key_passphrase", "\" \""));
	assert_string_equal(sb.key_passphrase.data, " ");
	assert_true(sandbox_has_secret(&sb));
	accepted(with("password_command", "[\"pass\"]"));
	assert_false(sandbox_has_secret(&sb));
}

/* Whatever else is wrong with an entry that has secrets. */
static void
no_message_repeats_a_secret(void **state)
{
	static const char *const wrong[] = { "\"host\":17",
		"\"host\":\"h\",\"port\":\"hunter2\"",
		"\"host\":\"h\",\"port\":99999", "\"host\":\"h\",\"user\":[]",
		"\"host\":\"h\",\"password_command\":[\"echo\",5]",
		"\"host\":\"h\",\"key_file\":\"a\\nb\"",
		"\"host\":\"h\",\"host_key\":\"hunter2\"",
		"\"host\":\"h\",\"host_key_policy\":\"hunter2\"",
		"\"host\":\"h\",\"ssh_options\":[\"hunter2\"]",
		"\"host\":\"h\",\"ssh_options\":\"hunter2\"",
		"\"host\":\"h\",\"workdir\":\"hunter2\\n\"",
		"\"host\":\"h\",\"connect_timeout_s\":\"hunter2\"" };
	char json[500];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		snprintf(json, sizeof(json),
		    "{%s,\"password\":\"hunter2\","
		    "\"key_passphrase\":\"hunter2-too\"}",
		    wrong[i]);
		says_not(refused(json), "hunter2");
	}
	says_not(refused_field("password", "\"hunter2\\nx\""), "hunter2");
	says_not(refused_field("password", "[\"hunter2\"]"), "hunter2");
	says_not(refused_field("key_passphrase", "{\"hunter2\":1}"), "hunter2");
	says_not(refused_field("password_command", "\"hunter2\""), "hunter2");
}

static void
commands_for_secrets_are_lists_of_words(void **state)
{
	char *many = repeated("\"a\",", 64);
	char json[1000];

	(void)state;
	accepted(with("password_command", "[\"/bin/echo\",\"\"]"));
	refused_field("password_command", "[]");
	refused_field("key_passphrase_command", "[]");
	snprintf(json, sizeof(json), "[%s\"a\"]", many);
	refused_field("password_command", json);
	free(many);
}

static void
host_keys_are_keys_or_fingerprints(void **state)
{
	static const char *const good[] = { KEY_A, KEY_A " ann@laptop",
		"ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQCs1Zlh4IP1GfgKfhcMu+nG=",
		"ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlz=",
		"sk-ssh-ed25519@openssh.com "
		"AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIA==",
		PRINT };
	static const char *const bad[] = { BLOB, "ssh-ed25519 AAAA",
		"ssh-ed25519 AAAA " BLOB, "ssh-ed25519 x" BLOB, KEY_A ",x",
		"dsa " BLOB, "SHA256:", "SHA256:short", "MD5:ac:bb:cc",
		"ssh-ed25519", "* " KEY_A, "h " KEY_A, PRINT "x",
		"@revoked " KEY_A, " " KEY_A,
		"SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSu U" };
	char value[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(value, sizeof(value), "\"%s\"", good[i]);
		assert_string_equal(accepted(with("host_key", value))->host_key,
		    good[i]);
	}
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(value, sizeof(value), "\"%s\"", bad[i]);
		refused_field("host_key", value);
	}
}

static void
the_host_key_policy_has_two_values(void **state)
{
	(void)state;
	accepted(with("host_key_policy", "\"accept-new\""));
	assert_int_equal(sb.host_key_policy, HOST_KEY_ACCEPT_NEW);
	accepted(with("host_key_policy", "\"strict\""));
	assert_int_equal(sb.host_key_policy, HOST_KEY_STRICT);
	says(refused_field("host_key_policy", "\"no\""), "accept-new");
	refused_field("host_key_policy", "\"Strict\"");
	refused_field("host_key_policy", "\"strict\\u0000\"");
}

static void
the_scheduler_is_slurm_or_none(void **state)
{
	(void)state;
	accepted(with("scheduler", "\"slurm\""));
	assert_true(sb.slurm);
	accepted(with("scheduler", "\"none\""));
	assert_false(sb.slurm);
	says(refused_field("scheduler", "\"pbs\""), "slurm");
	refused_field("scheduler", "true");
}

static void
options_that_only_connect_and_log_in_are_allowed(void **state)
{
	static const char *const good[] = { "ProxyJump=jump", "Compression=yes",
		"hostname=10.0.0.1", "HOSTKEYALIAS=x", "Ciphers=aes128-ctr",
		"PreferredAuthentications=publickey",
		"HostName=", "KexAlgorithms=+diffie-hellman-group14-sha1",
		"IPQoS=lowdelay throughput", "CertificateFile=~/.ssh/c=d" };
	char value[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		snprintf(value, sizeof(value), "[\"%s\"]", good[i]);
		accepted(with("ssh_options", value));
		assert_string_equal(json_string_value(
		                        json_array_get(sb.ssh_options, 0)),
		    good[i]);
	}
	accepted(with("ssh_options", "[]"));
	assert_int_equal(json_array_size(sb.ssh_options), 0);
}

static void
options_that_run_forward_or_undo_are_refused(void **state)
{
	static const char *const bad[] = { "ProxyCommand=id", "proxycommand=id",
		"LocalCommand=id", "PermitLocalCommand=yes",
		"KnownHostsCommand=/bin/id", "Match=exec id", "Include=/tmp/x",
		"RemoteCommand=id", "LocalForward=1:h:1", "RemoteForward=1:h:1",
		"DynamicForward=1", "ForwardAgent=yes", "ForwardX11=yes",
		"ForwardX11Trusted=yes", "Tunnel=yes", "ControlPath=/tmp/x",
		"ControlMaster=auto", "ControlPersist=no",
		"StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null",
		"GlobalKnownHostsFile=/dev/null", "CheckHostIP=no",
		"VerifyHostKeyDNS=yes", "NoHostAuthenticationForLocalhost=yes",
		"UpdateHostKeys=yes", "BatchMode=no", "RequestTTY=force",
		"EscapeChar=~", "SendEnv=*", "SetEnv=A=b", "StdinNull=yes",
		"ForkAfterAuthentication=yes", "SessionType=none",
		"ProxyUseFdpass=yes", "PKCS11Provider=/tmp/x.so",
		"SecurityKeyProvider=/tmp/x.so", "XAuthLocation=/tmp/x",
		"Port=22", "User=root", "IdentityFile=/k", "=x", "",
		"Compression", "Compression yes", "Compression =yes",
		" Compression=yes", "ProxyCommand id;Compression=yes",
		"-oCompression=yes", "Comp=yes", "CompressionX=yes" };
	char value[200];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(value, sizeof(value), "[\"Compression=yes\",\"%s\"]",
		    bad[i]);
		refused_field("ssh_options", value);
	}
	says(refused_field("ssh_options", "[\"ProxyCommand=secret-tool\"]"),
	    "ProxyCommand");
	says_not(err.msg, "secret-tool");
	says(refused_field("ssh_options", "[\"Compression\"]"), "Name=value");
}

static void
unknown_fields_are_told_and_ignored(void **state)
{
	(void)state;
	accepted("{\"host\":\"h\",\"hots\":\"x\",\"Port\":5,\"\":null,"
	         "\"pasword\":\"hunter2\"}");
	assert_int_equal(json_array_size(unknown), 4);
	assert_string_equal(json_string_value(json_array_get(unknown, 0)),
	    "hots");
	assert_string_equal(json_string_value(json_array_get(unknown, 3)),
	    "pasword");
	assert_int_equal(sb.port, 0);
}

static void
freeing_takes_nothing_and_half_built_ones(void **state)
{
	struct sandbox none;

	(void)state;
	memset(&none, 0, sizeof(none));
	sandbox_free(&none);
	sandbox_free(&none);
	sandbox_free(NULL);
	/* With a sanitizer this shows that nothing leaks. */
	refused(
	    "{\"host\":\"h\",\"user\":\"u\",\"password\":\"p\","
	    "\"password_command\":[\"a\"],\"key_file\":\"k\",\"host_key\":5}");
	sandbox_free(&sb);
	sandbox_free(&sb);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_teardown(name, forget)
	const struct CMUnitTest tests[] = {
		TEST(a_host_is_enough_and_the_rest_is_left_to_ssh),
		TEST(every_field_is_read),
		TEST(null_means_absent),
		TEST(an_empty_string_means_absent),
		TEST(the_host_is_required),
		TEST(an_entry_is_an_object),
		TEST(odd_types_are_refused_by_name),
		TEST(numbers_have_a_range),
		TEST(numbers_may_be_written_as_strings),
		TEST(hosts_and_users_are_single_harmless_words),
		TEST(control_characters_are_refused_everywhere),
		TEST(names_may_be_anything_that_can_be_seen),
		TEST(a_tilde_is_the_home_directory),
		TEST(without_a_home_directory_there_is_no_tilde),
		TEST(secrets_keep_their_blanks_and_bytes),
		TEST(no_message_repeats_a_secret),
		TEST(commands_for_secrets_are_lists_of_words),
		TEST(host_keys_are_keys_or_fingerprints),
		TEST(the_host_key_policy_has_two_values),
		TEST(the_scheduler_is_slurm_or_none),
		TEST(options_that_only_connect_and_log_in_are_allowed),
		TEST(options_that_run_forward_or_undo_are_refused),
		TEST(unknown_fields_are_told_and_ignored),
		TEST(freeing_takes_nothing_and_half_built_ones),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
