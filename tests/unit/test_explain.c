/*
 * What OpenSSH 9.2 printed when it was made to fail, and what is made of it.
 * User, host and paths are changed, nothing else.
 */
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "help.h"
#include "ssh/explain.h"

#define FRAME "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@\n"
#define PRINT "SHA256:10B3K3FZir4cIQOQ2tzVgQF1F4Deal3BMAtUcQ08FQ8"

/* Two files are known; the key stands in the second. */
static const char changed[] = FRAME
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n" FRAME
    "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n"
    "Someone could be eavesdropping on you right now (man-in-the-middle "
    "attack)!\n"
    "It is also possible that a host key has just been changed.\n"
    "The fingerprint for the ED25519 key sent by the remote host is\n" PRINT
    ".\n"
    "Please contact your system administrator.\n"
    "Add correct host key in /state/known_hosts to get rid of this message.\n"
    "Offending ED25519 key in /home/ann/.ssh/known_hosts:17\n"
    "  remove with:\n"
    "  ssh-keygen -f \"/home/ann/.ssh/known_hosts\" -R "
    "\"[gpu.example]:2222\"\n"
    "Host key for [gpu.example]:2222 has changed and you have requested "
    "strict checking.\n"
    "Host key verification failed.\n";

/* The server has no key of the type that is known. */
static const char changed_type[] = FRAME
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n" FRAME
    "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n"
    "The fingerprint for the ED25519 key sent by the remote host is\n" PRINT
    ".\n"
    "Please contact your system administrator.\n"
    "Add correct host key in /run/pin to get rid of this message.\n"
    "Offending ECDSA key in /run/pin:1\n"
    "  remove with:\n"
    "  ssh-keygen -f \"/run/pin\" -R \"[gpu.example]:2222\"\n"
    "Host key for [gpu.example]:2222 has changed and you have requested "
    "strict checking.\n"
    "Host key verification failed.\n";

static const char revoked[] =
    FRAME "@       WARNING: REVOKED HOST KEY DETECTED!               @\n" FRAME
          "The ED25519 host key for [gpu.example]:2222 is marked as revoked.\n"
          "This could mean that a stolen key is being used to\n"
          "impersonate this host.\n"
          "ED25519 host key for [gpu.example]:2222 was revoked and you have "
          "requested strict checking.\n"
          "Host key verification failed.\n";

static const char unknown_strict[] =
    "No ED25519 host key is known for [gpu.example]:2222 and you have "
    "requested strict checking.\n"
    "Host key verification failed.\n";

#define DENIED                                \
	"ann@gpu.example: Permission denied " \
	"(publickey,password,keyboard-interactive).\n"

static const char denied[] = DENIED;

static const char unprotected[] =
    FRAME "@         WARNING: UNPROTECTED PRIVATE KEY FILE!          @\n" FRAME
          "Permissions 0644 for '/home/ann/id' are too open.\n"
          "It is required that your private key files are NOT accessible by "
          "others.\n"
          "This private key will be ignored.\n"
          "Load key \"/home/ann/id\": bad permissions\n" DENIED;

static const char unreadable_key[] =
    "Load key \"/home/ann/id\": Permission denied\n" DENIED;

static const char broken_key[] =
    "Load key \"/home/ann/id\": error in libcrypto\n" DENIED;

static const char missing_key[] =
    "no such identity: /home/ann/id: No such file or directory\n" DENIED;

static const char inaccessible_key[] =
    "Warning: Identity file /home/ann/id not accessible: No such file or "
    "directory.\n" DENIED;

static const char agent_refused[] =
    "sign_and_send_pubkey: signing failed for ED25519 \"id\" from agent: "
    "agent refused operation\n" DENIED;

static const char many_keys[] =
    "Received disconnect from 10.0.0.7 port 2222:2: Too many authentication "
    "failures\r\n"
    "Disconnected from 10.0.0.7 port 2222\r\n";

/* With a banner of the server in front. */
static const char many_keys_banner[] =
    "Authorized users only.\n"
    "Permission denied to all others.\n"
    "\\033[31mred\\033[0m\n"
    "Received disconnect from 10.0.0.7 port 2222:2: Too many authentication "
    "failures\n"
    "Disconnected from 10.0.0.7 port 2222\n";

static const char refused[] =
    "ssh: connect to host gpu.example port 2222: Connection refused\n";

static const char unresolvable[] =
    "ssh: Could not resolve hostname gpu.invalid: Name or service not "
    "known\n";

static const char no_route[] =
    "ssh: connect to host 2001:db8::1 port 22: No route to host\n";

static const char no_permission[] =
    "ssh: connect to host gpu.example port 22: Permission denied\n";

static const char banner_timeout[] =
    "Connection timed out during banner exchange\n"
    "Connection to 10.0.0.7 port 22 timed out\n";

static const char reset_at_once[] =
    "kex_exchange_identification: read: Connection reset by peer\n"
    "Connection reset by 10.0.0.7 port 22\n";

static const char closed_at_once[] =
    "kex_exchange_identification: Connection closed by remote host\n"
    "Connection closed by 10.0.0.7 port 22\n";

static const char closed_later[] = "Connection closed by 10.0.0.7 port 22\n";

static const char no_kex[] =
    "Unable to negotiate with 10.0.0.7 port 22: no matching key exchange "
    "method found. Their offer: sntrup761x25519-sha512,"
    "sntrup761x25519-sha512@openssh.com,curve25519-sha256,"
    "curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,"
    "diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,"
    "diffie-hellman-group14-sha256,kex-strict-s-v00@openssh.com\n";

static const char bad_option[] =
    "/home/ann/.ssh/config: line 2: Bad configuration option: frobnicate\n"
    "/home/ann/.ssh/config: terminating, 1 bad configuration options\n";

static const char bad_known_hosts[] =
    "/home/ann/.ssh/config line 2: keyword userknownhostsfile \"none\" "
    "argument must appear alone.\n"
    "/home/ann/.ssh/config: terminating, 1 bad configuration options\n";

static const char bad_number[] =
    "command-line line 0: integer value invalid.\n";

static const char bad_cipher[] =
    "command-line line 0: Bad SSH2 cipher spec 'foo'.\n";

static const char bad_owner[] =
    "Bad owner or permissions on /home/ann/.ssh/config\n";

static const char jump_refused[] =
    "ssh: connect to host jump.example port 22: Connection refused\n"
    "kex_exchange_identification: Connection closed by remote host\n"
    "Connection closed by UNKNOWN port 65535\n";

static const char behind_jump_refused[] =
    "channel 0: open failed: connect failed: Connection refused\n"
    "stdio forwarding failed\n"
    "kex_exchange_identification: Connection closed by remote host\n"
    "Connection closed by UNKNOWN port 65535\n";

static const char no_proxy_program[] =
    "/bin/bash: line 1: /no/such/program: No such file or directory\n"
    "kex_exchange_identification: Connection closed by remote host\n"
    "Connection closed by UNKNOWN port 65535\n";

/*
 * With LogLevel ERROR there is less of it: no banner, but no last line either.
 */

static const char jump_refused_quiet[] =
    "ssh: connect to host jump.example port 22: Connection refused\n"
    "kex_exchange_identification: Connection closed by remote host\n";

static const char no_proxy_program_quiet[] =
    "/bin/bash: line 1: /no/such/program: No such file or directory\n"
    "kex_exchange_identification: Connection closed by remote host\n";

static const char jump_denied_quiet[] =
    "ann@jump.example: Permission denied (publickey).\n"
    "kex_exchange_identification: Connection closed by remote host\n";

static const char jump_changed_quiet[] = FRAME
    "@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n" FRAME
    "IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n"
    "The fingerprint for the ED25519 key sent by the remote host is\n" PRINT
    ".\n"
    "Please contact your system administrator.\n"
    "Add correct host key in /state/known_hosts to get rid of this message.\n"
    "Offending ED25519 key in /state/known_hosts:2\n"
    "  remove with:\n"
    "  ssh-keygen -f \"/state/known_hosts\" -R \"jump.example\"\n"
    "Host key for jump.example has changed and you have requested strict "
    "checking.\n"
    "Host key verification failed.\n"
    "kex_exchange_identification: Connection closed by remote host\n";

static const char closed_at_once_quiet[] =
    "kex_exchange_identification: Connection closed by remote host\n";

static const char banner_timeout_quiet[] =
    "Connection timed out during banner exchange\n";

/* --- */

static struct sandbox sb;
static struct err err;
static char name[] = "gpu1", user[] = "ann", key_file[] = "/home/ann/id";
static char pin[] = "ssh-ed25519 AAAA";

static int
begin(void **state)
{
	(void)state;
	memset(&sb, 0, sizeof(sb));
	sb.name = name;
	err = (struct err)ERR_INIT;
	return 0;
}

static const char *
explained(const char *text, enum err_code code)
{
	const char *c;

	assert_int_equal(explain_login(&sb, text, &err), -1);
	if (err.code != code)
		fail_msg("code %d for: %s", (int)err.code, err.msg);
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	for (c = err.msg; *c != '\0'; c++)
		assert_true((unsigned char)*c >= ' ' || *c == '\t');
	says(err.msg, "gpu1");
	return err.msg;
}

static void
a_changed_key_is_refused_with_print_and_place(void **state)
{
	(void)state;
	explained(changed, ERR_DENIED);
	says(err.msg, "CHANGED");
	says(err.msg, PRINT);
	says(err.msg, "/home/ann/.ssh/known_hosts:17");
	says_not(err.msg, "/state/known_hosts");
	says(err.msg, "Nothing was sent");
	says(err.msg, "owner");
}

static void
a_pinned_key_that_does_not_fit_is_told_as_that(void **state)
{
	(void)state;
	sb.host_key = pin;
	explained(changed_type, ERR_DENIED);
	says(err.msg, "host_key");
	says(err.msg, PRINT);
	says(err.msg, "Nothing was sent");
	says_not(err.msg, "/run/pin");
	explained(changed, ERR_DENIED);
	says(err.msg, "host_key");
	says_not(err.msg, "known_hosts");
	explained(unknown_strict, ERR_DENIED);
	says(err.msg, "host_key");
	says_not(err.msg, "policy");
}

static void
a_revoked_key_is_not_to_be_forgotten(void **state)
{
	(void)state;
	explained(revoked, ERR_DENIED);
	says(err.msg, "revoked");
	says(err.msg, "Nothing was sent");
	says_not(err.msg, "remove");
	says_not(err.msg, "CHANGED");
}

static void
an_unknown_key_under_a_strict_policy_says_how_to_know_it(void **state)
{
	(void)state;
	explained(unknown_strict, ERR_DENIED);
	says(err.msg, "strict");
	says(err.msg, "host_key");
	says(err.msg, "No ED25519 host key is known for [gpu.example]:2222");
}

static void
a_refused_login_says_what_was_tried_and_what_is_offered(void **state)
{
	(void)state;
	explained(denied, ERR_DENIED);
	says(err.msg, "refused the login");
	says(err.msg, "publickey,password,keyboard-interactive");
	says(err.msg, "agent");
	/* Who it was, if ssh chose. */
	says(err.msg, "ann@gpu.example: Permission denied");
	sb.user = user;
	says(explained(denied, ERR_DENIED), "as ann");
	sb.key_file = key_file;
	says(explained(denied, ERR_DENIED), "the key file");
	says_not(err.msg, "agent");
	secret_set(&sb.password, "hunter2", 7);
	says(explained(denied, ERR_DENIED), "the key file and the password");
	says_not(err.msg, "hunter2");
	sb.key_file = NULL;
	says(explained(denied, ERR_DENIED), "tried the password");
	secret_free(&sb.password);
	sb.password_command = json_array();
	says(explained(denied, ERR_DENIED), "tried the password");
	json_decref(sb.password_command);
}

static void
trouble_with_the_key_file_is_told(void **state)
{
	(void)state;
	sb.key_file = key_file;
	explained(unprotected, ERR_DENIED);
	says(err.msg, "chmod 600 /home/ann/id");
	explained(broken_key, ERR_DENIED);
	says(err.msg, "error in libcrypto");
	says(err.msg, "publickey,password,keyboard-interactive");
	explained(unreadable_key, ERR_DENIED);
	says(err.msg, "Load key \"/home/ann/id\": Permission denied");
	says(err.msg, "publickey,password,keyboard-interactive");
	explained(missing_key, ERR_DENIED);
	says(err.msg, "/home/ann/id: No such file or directory");
	explained(inaccessible_key, ERR_DENIED);
	says(err.msg, "No such file or directory");
	explained(agent_refused, ERR_DENIED);
	says(err.msg, "agent refused operation");
}

static void
an_unprotected_key_of_the_ssh_config_is_told_too(void **state)
{
	(void)state;
	says(explained(unprotected, ERR_DENIED), "chmod 600");
}

static void
too_many_keys_are_told_in_spite_of_a_banner(void **state)
{
	(void)state;
	explained(many_keys, ERR_DENIED);
	says(err.msg, "key_file");
	explained(many_keys_banner, ERR_DENIED);
	says(err.msg, "key_file");
	says(err.msg, "Too many authentication failures");
}

static void
each_failure_has_its_advice_and_the_words_of_ssh(void **state)
{
	static const struct {
		const char *text;
		enum err_code code;
		const char *advice, *words;
	} cases[] = {
		{ refused, ERR_IO, "port", "Connection refused" },
		{ unresolvable, ERR_IO, "host",
		    "Could not resolve hostname gpu.invalid" },
		{ no_route, ERR_IO, "reached", "No route to host" },
		{ banner_timeout, ERR_TIMEOUT, "does not answer", "timed out" },
		{ banner_timeout_quiet, ERR_TIMEOUT, "does not answer",
		    "timed out" },
		{ closed_at_once_quiet, ERR_IO, "MaxStartups",
		    "closed by remote host" },
		{ reset_at_once, ERR_IO, "MaxStartups", "reset by peer" },
		{ closed_at_once, ERR_IO, "MaxStartups",
		    "closed by remote host" },
		{ closed_later, ERR_IO, "during the login",
		    "Connection closed by 10.0.0.7" },
		{ no_kex, ERR_DENIED, "ssh_options",
		    "no matching key exchange method" },
		{ bad_owner, ERR_DENIED, "others can write",
		    "/home/ann/.ssh/config" },
		{ jump_refused, ERR_IO, "",
		    "jump.example port 22: Connection" },
		{ jump_refused_quiet, ERR_IO, "",
		    "jump.example port 22: Connection" },
		{ behind_jump_refused, ERR_IO, "", "Connection refused" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		explained(cases[i].text, cases[i].code);
		says(err.msg, cases[i].advice);
		says(err.msg, cases[i].words);
	}
}

/* Trying again is useless there, and the line that says why is shown. */
static void
mistakes_in_the_configuration_show_their_line(void **state)
{
	static const struct {
		const char *text, *words;
	} cases[] = {
		{ bad_option, "Bad configuration option: frobnicate" },
		{ bad_known_hosts, "argument must appear alone" },
		{ bad_number, "integer value invalid" },
		{ bad_cipher, "Bad SSH2 cipher spec 'foo'" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		says(explained(cases[i].text, ERR_DENIED), cases[i].words);
}

static void
a_network_that_denies_is_no_refused_login(void **state)
{
	(void)state;
	explained(no_permission, ERR_DENIED);
	says_not(err.msg, "refused the login");
	says(err.msg, "connect to host gpu.example port 22: Permission denied");
}

/* "UNKNOWN port 65535" is what ssh calls the far end of a proxy. */
static void
a_proxy_that_fails_is_not_blamed_on_the_server(void **state)
{
	(void)state;
	explained(no_proxy_program, ERR_IO);
	says(err.msg, "/no/such/program: No such file or directory");
	says_not(err.msg, "MaxStartups");
	explained(no_proxy_program_quiet, ERR_IO);
	says(err.msg, "/no/such/program: No such file or directory");
	says_not(err.msg, "MaxStartups");
}

static void
trouble_with_a_jump_host_names_it(void **state)
{
	(void)state;
	explained(jump_denied_quiet, ERR_DENIED);
	says(err.msg, "ann@jump.example: Permission denied");
	explained(jump_changed_quiet, ERR_DENIED);
	says(err.msg, "CHANGED");
	says(err.msg, "jump.example");
	says(err.msg, "/state/known_hosts:2");
}

/* The fingerprint of the old key, added by us. */
static void
a_changed_key_may_show_the_old_one(void **state)
{
	char *text = xasprintf("%s\nremembered key is SHA256:old\n", changed);

	(void)state;
	explained(text, ERR_DENIED);
	says(err.msg, PRINT);
	says(err.msg, "SHA256:old");
	free(text);
	text = xasprintf("%s\nremembered key is SHA256:old\n", revoked);
	explained(text, ERR_DENIED);
	says(err.msg, "SHA256:old");
	free(text);
}

static void
anything_else_is_repeated(void **state)
{
	(void)state;
	/* As when the server hangs up in the middle of the login. */
	says(explained("", ERR_IO), "during the login");
	says(explained("\r\n\n", ERR_IO), "during the login");
	says(explained("first\r\nsomething new\r\n\n", ERR_IO),
	    "(ssh: something new)");
	says_not(err.msg, "first");
}

static void
whatever_ssh_prints_the_message_is_text(void **state)
{
	static const char *const texts[] = {
		"\x1b[31mred\x1b[0m \x07 \xff\xfe\n",
		"\x1b]0;title\x07",
		"ann@h: Permission denied (\x1b[31m\xff,\x01).\n",
		"ann@h: Permission denied (",
		"ann@h: Permission denied ()",
		"Permission denied (\n",
		"Load key \"\xff\x1b\": x\nu@h: Permission denied (a).\n",
		"IDENTIFICATION HAS CHANGED key sent by the remote host is",
		"IDENTIFICATION HAS CHANGED\nOffending \xff key in \x1b[1\xff:1",
		"Host key verification failed",
		"host key is known\nHost key verification failed",
		"Connection refused\x1b[0m",
		"REVOKED HOST KEY",
		"UNPROTECTED PRIVATE KEY FILE",
	};
	size_t i;
	int code;

	(void)state;
	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		explain_login(&sb, texts[i], &err);
		code = (int)err.code;
		explained(texts[i], (enum err_code)code);
	}
}

static void
long_lines_are_cut_between_characters(void **state)
{
	static const char *const fronts[] = { "", "Connection refused ",
		"u@h: Permission denied (", "Load key ",
		"IDENTIFICATION HAS CHANGED\nkey sent by the remote host is ",
		"IDENTIFICATION HAS CHANGED\nOffending x key in ",
		"host key is known Host key verification failed " };
	char *wide = repeated("\xe2\x82\xac", 1000);
	size_t i, k;
	int code;

	(void)state;
	for (i = 0; i < sizeof(fronts) / sizeof(fronts[0]); i++) {
		for (k = 0; k < 3; k++) {
			struct buf b;

			buf_init(&b, SIZE_MAX);
			buf_adds(&b, fronts[i]);
			buf_add(&b, "xx", k);
			buf_adds(&b, wide);
			buf_adds(&b, "\nu@h: Permission denied (a)\n");
			explain_login(&sb, b.data, &err);
			code = (int)err.code;
			explained(b.data, (enum err_code)code);
			buf_free(&b);
		}
	}
	free(wide);
}

static void
what_a_server_says_at_its_end_is_not_taken_for_words_of_ssh(void **state)
{
	static const char *const reasons[] = {
		"WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!",
		"Host key verification failed.",
		"REVOKED HOST KEY",
		"UNPROTECTED PRIVATE KEY FILE",
		"a@b: Permission denied (publickey).",
		"Offending x key in /etc/passwd:1",
		"x: Too many authentication failures",
	};
	struct buf b;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
		buf_init(&b, SIZE_MAX);
		buf_addf(&b,
		    "Received disconnect from ::1 port 22:2: %s\n"
		    "Disconnected from ::1 port 22\n",
		    reasons[i]);
		assert_int_equal(explain_login(&sb, b.data, &err), -1);
		assert_int_equal(err.code, ERR_IO);
		assert_null(strstr(err.msg, "Nothing was sent"));
		buf_free(&b);
	}
}

int
main(void)
{
#define TEST(test) cmocka_unit_test_setup(test, begin)
	const struct CMUnitTest tests[] = {
		TEST(a_changed_key_is_refused_with_print_and_place),
		TEST(a_pinned_key_that_does_not_fit_is_told_as_that),
		TEST(a_revoked_key_is_not_to_be_forgotten),
		TEST(an_unknown_key_under_a_strict_policy_says_how_to_know_it),
		TEST(a_refused_login_says_what_was_tried_and_what_is_offered),
		TEST(trouble_with_the_key_file_is_told),
		TEST(an_unprotected_key_of_the_ssh_config_is_told_too),
		TEST(too_many_keys_are_told_in_spite_of_a_banner),
		TEST(each_failure_has_its_advice_and_the_words_of_ssh),
		TEST(mistakes_in_the_configuration_show_their_line),
		TEST(a_network_that_denies_is_no_refused_login),
		TEST(a_proxy_that_fails_is_not_blamed_on_the_server),
		TEST(trouble_with_a_jump_host_names_it),
		TEST(a_changed_key_may_show_the_old_one),
		TEST(anything_else_is_repeated),
		TEST(whatever_ssh_prints_the_message_is_text),
		TEST(long_lines_are_cut_between_characters),
		TEST(
		    what_a_server_says_at_its_end_is_not_taken_for_words_of_ssh),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
