/* The test cases of RFC 4231, with the programs that are here. */
#include "help.h"
#include "watch/hmac.h"

static struct err err;

static void
gives(const char *key, size_t key_len, const char *data, size_t len,
    const char *expected)
{
	struct until until = until_in(60000);
	struct secret s = { 0 };
	char out[HMAC_HEX_SIZE];

	secret_set(&s, key, key_len);
	if (hmac_sha256(&s, data, len, out, &until, &err) == -1)
		fail_msg("%s", err.msg);
	assert_string_equal(out, expected);
	secret_free(&s);
}

static void
the_codes_are_those_of_the_rfc(void **state)
{
	char twenty[20], aa[131];

	(void)state;
	memset(twenty, 0x0b, sizeof(twenty));
	memset(aa, 0xaa, sizeof(aa));
	gives(twenty, 20, BYTES("Hi There"),
	    "b0344c61d8db38535ca8afceaf0bf12b"
	    "881dc200c9833da726e9376c2e32cff7");
	gives("Jefe", 4, BYTES("what do ya want for nothing?"),
	    "5bdcc146bf60754e6a042426089575c7"
	    "5a003f089d2739839dec58b964ec3843");
	gives(aa, sizeof(aa),
	    BYTES("Test Using Larger Than Block-Size Key - Hash Key First"),
	    "60e431591ee0b67f0d8a26aacbf5b77f"
	    "8e0bc6213728c5140546040f0ee37f54");
}

/* Nor in the environment: a program that looks sees neither the secret nor
 * its digits. */
static void
the_secret_is_on_no_command_line(void **state)
{
	char *top = make_dir(), *program = path_join(top, "sha256sum");
	char *calls = path_join(top, "calls"), *path = xstrdup(getenv("PATH"));
	char *text = xasprintf("#!/bin/sh\necho \"called: $*\" >>'%s'\n"
	                       "env >>'%s'\nPATH='%s' exec sha256sum \"$@\"\n",
	    calls, calls, path);
	struct buf said;

	(void)state;
	assert_int_equal(fs_replace(program, text, strlen(text), 0700, &err),
	    0);
	free(text);
	text = xasprintf("%s:%s", top, path);
	setenv("PATH", text, 1);
	gives("Jefe", 4, BYTES("what do ya want for nothing?"),
	    "5bdcc146bf60754e6a042426089575c7"
	    "5a003f089d2739839dec58b964ec3843");
	setenv("PATH", path, 1);
	buf_init(&said, 1 << 20);
	assert_int_equal(fs_read(calls, &said, &err), 0);
	says(said.data, "called: \n");
	says_not(said.data, "Jefe");
	says_not(said.data, "4a656665");
	buf_free(&said);
	free(text);
	free(path);
	free(calls);
	free(program);
	remove_dir(top);
}

static void
without_a_program_it_says_which_are_wanted(void **state)
{
	struct until until = until_in(60000);
	struct secret s = { 0 };
	char out[HMAC_HEX_SIZE];

	(void)state;
	setenv("PATH", "/nowhere", 1);
	secret_set(&s, "k", 1);
	assert_int_equal(hmac_sha256(&s, "x", 1, out, &until, &err), -1);
	says(err.msg, "sha256sum");
	secret_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_codes_are_those_of_the_rfc),
		cmocka_unit_test(the_secret_is_on_no_command_line),
		cmocka_unit_test(without_a_program_it_says_which_are_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
