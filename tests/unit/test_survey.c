/* How a server introduces itself, and what a host has to offer. */
#include <string.h>

#include "config/sshnames.h"
#include "help.h"
#include "ssh/handshake.h"
#include "ssh/survey.h"

/* As OpenSSH 9.2 says it, by way of a jump host. */
static const char said[] =
    "OpenSSH_9.2p1 Debian-2, OpenSSL 3.0\n"
    "debug1: Remote protocol version 2.0, remote software version JUMP\r\n"
    "debug1: kex: algorithm: curve25519-sha256\r\n"
    "debug1: Server host key: ssh-rsa SHA256:jump\r\n"
    "debug1: Authentications that can continue: password\r\n"
    "debug1: Remote protocol version 2.0, remote software version "
    "OpenSSH_9.2p1 Debian-2\r\n"
    "debug1: kex: algorithm: sntrup761x25519-sha512@openssh.com\r\n"
    "debug1: Server host key: ssh-ed25519 SHA256:abc\r\n"
    "Warning: Permanently added 'box' (ED25519) to the list of known hosts.\n"
    "debug1: Authentications that can continue: publickey,password\r\n"
    "ann@box: Permission denied (publickey,password).\r\n";

static void
the_last_server_counts(void **state)
{
	struct handshake h;

	(void)state;
	handshake_parse(&h, said);
	assert_string_equal(h.software, "OpenSSH_9.2p1 Debian-2");
	assert_string_equal(h.kex, "sntrup761x25519-sha512@openssh.com");
	assert_string_equal(h.host_key, "ssh-ed25519 SHA256:abc");
	assert_string_equal(h.methods, "publickey,password");
	handshake_parse(&h, "Permission denied (hostbased)\n");
	assert_string_equal(h.methods, "hostbased");
	handshake_parse(&h, "");
	assert_string_equal(h.software, "");
	assert_string_equal(h.methods, "");
}

static void
what_it_says_is_made_safe(void **state)
{
	struct handshake h;

	(void)state;
	handshake_parse(&h,
	    "debug1: Remote protocol version 2.0, remote software version "
	    "\033[31mred\007\xff\n");
	assert_string_equal(h.software, "red\xef\xbf\xbd");
}

static void
words_of_its_own_are_told_apart(void **state)
{
	struct buf words;

	(void)state;
	buf_init(&words, 4096);
	handshake_words(&words, said);
	assert_string_equal(words.data,
	    "Warning: Permanently added 'box' (ED25519) to the list of known "
	    "hosts.\nann@box: Permission denied (publickey,password).\r\n");
	buf_free(&words);
}

static const char *
text(const json_t *o, const char *name)
{
	const char *s = json_string_value(json_object_get(o, name));

	assert_non_null(s);
	return s;
}

static void
facts_are_read(void **state)
{
	json_t *f = survey_parse("x\ntime 1700000000\nshell /bin/zsh\n"
	                         "tool bash GNU bash 5.2\ntool find \n"
	                         "dir ok\ndir readonly\n"
	                         "disk /dev/a 4096 1024 3072 25% /home\n"
	                         "gpu 0 GPU 0: Fast\nend\n");
	const json_t *tools = json_object_get(f, "tools");

	(void)state;
	assert_int_equal(json_integer_value(json_object_get(f, "time")),
	    1700000000);
	assert_string_equal(text(f, "shell"), "/bin/zsh");
	assert_string_equal(text(f, "dir"), "readonly");
	assert_string_equal(text(tools, "bash"), "GNU bash 5.2");
	assert_string_equal(text(tools, "find"), "");
	assert_null(json_object_get(tools, "tar"));
	assert_int_equal(json_integer_value(
	                     json_object_get(json_object_get(f, "disk"),
	                         "free_mb")),
	    3);
	assert_true(json_is_true(json_object_get(f, "gpu_ok")));
	assert_string_equal(text(f, "gpu"), "GPU 0: Fast");
	json_decref(f);
}

static void
what_is_missing_or_odd_is_null(void **state)
{
	static const char *const names[] = { "time", "shell", "dir", "disk",
		"gpu", "gpu_ok", NULL };
	json_t *f = survey_parse("time never\nshell \ndisk nothing\n");
	size_t i;

	(void)state;
	for (i = 0; names[i] != NULL; i++)
		assert_true(json_is_null(json_object_get(f, names[i])));
	json_decref(f);
	/* A directory that is missing is not one that is read-only. */
	f = survey_parse("dir missing\ndir readonly\ngpu 9 driver mismatch\n");
	assert_string_equal(text(f, "dir"), "missing");
	assert_true(json_is_false(json_object_get(f, "gpu_ok")));
	json_decref(f);
	/* It hangs. */
	f = survey_parse("tool nvidia-smi \n");
	assert_string_equal(text(f, "gpu"), "");
	assert_true(json_is_null(json_object_get(f, "gpu_ok")));
	json_decref(f);
}

static void
hosts_are_found_in_a_configuration(void **state)
{
	json_t *hosts = json_array(), *includes = json_array();
	json_t *expected;

	(void)state;
	sshnames_parse("# Host no\nHost a b*c \"d e\" !f -g\n  HostName x\n"
	               "\tHOST=h\r\nHost a # i\nInclude k/* \"l m\"\n"
	               "HostKeyAlias n\nMatch host o\nHost \xff",
	    hosts, includes);
	expected = json_pack("[sss]", "a", "d e", "h");
	assert_true(json_equal(hosts, expected));
	json_decref(expected);
	expected = json_pack("[ss]", "k/*", "l m");
	assert_true(json_equal(includes, expected));
	json_decref(expected);
	json_decref(hosts);
	json_decref(includes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_server_counts),
		cmocka_unit_test(what_it_says_is_made_safe),
		cmocka_unit_test(words_of_its_own_are_told_apart),
		cmocka_unit_test(facts_are_read),
		cmocka_unit_test(what_is_missing_or_odd_is_null),
		cmocka_unit_test(hosts_are_found_in_a_configuration),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
