#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "ssh/hostkeys.h"
#include "ssh/knownhost.h"

/* A key, and what "ssh-keygen -l" says of it. */
#define KEY \
	"AAAAC3NzaC1lZDI1NTE5AAAAIHB2ZQH7gDNIe89bfUmMXxSqCFUQ9S6Q0i4ygMWVq8Rw"
#define PRINT "SHA256:2VMJuzSHm/OCoHL67m+FPLTRkc6aMsv3hWlKSBwgks8"

static struct buf out;

static int
begin(void **state)
{
	(void)state;
	buf_init(&out, 65536);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	buf_free(&out);
	return 0;
}

static const char *
new_lines(const char *before, const char *after)
{
	buf_reset(&out);
	hostkeys_new(&out, before, after, NULL);
	return out.data;
}

static void
new_lines_are_those_that_were_not_there(void **state)
{
	(void)state;
	assert_string_equal(new_lines("", ""), "");
	assert_string_equal(new_lines("", "a\nb\n"), "a\nb\n");
	assert_string_equal(new_lines("a\n", "a\nb\n"), "b\n");
	assert_string_equal(new_lines("b\n", "a\nb\n"), "a\n");
	assert_string_equal(new_lines("a\nb\n", "b\na\n"), "");
	assert_string_equal(new_lines("a\nb\n", ""), "");
	/* Without a line end at the end. */
	assert_string_equal(new_lines("a", "a\nb"), "b\n");
	assert_string_equal(new_lines("a\nb", "a\nb\nc"), "c\n");
	/* A part of a line is another line. */
	assert_string_equal(new_lines("ab\n", "a\nb\nab\nabc\n"),
	    "a\nb\nabc\n");
	assert_string_equal(new_lines("a\n\n\n", "\n\na\n\n"), "");
}

/* Other logins write to the same file. */
static void
new_lines_are_those_of_the_host(void **state)
{
	static const char after[] = "gpu1 k1\n[gpu1]:2222 k2\ngpu2 k3\n"
	                            "[gpu2]:2222 k4\ngpu10 k5\n"
	                            "x.gpu1 k6\ngpu1,10.0.0.7 k7\n"
	                            "10.0.0.7,gpu1 k8\ncomment gpu1\n";

	(void)state;
	hostkeys_new(&out, "", after, "gpu1");
	assert_string_equal(out.data,
	    "gpu1 k1\n[gpu1]:2222 k2\ngpu1,10.0.0.7 k7\n"
	    "10.0.0.7,gpu1 k8\n");
	buf_reset(&out);
	hostkeys_new(&out, "gpu2 k3\n", after, "gpu2");
	assert_string_equal(out.data, "[gpu2]:2222 k4\n");
	buf_reset(&out);
	/* Whose it is cannot be told if it is hashed. */
	hostkeys_new(&out, "", "|1|a=|b= k1\ngpu1 k2\n", "gpu2");
	assert_string_equal(out.data, "|1|a=|b= k1\n");
}

static struct until
soon(void)
{
	return until_in(20000);
}

static void
keys_are_described_with_host_type_and_print(void **state)
{
	struct until until = soon();

	(void)state;
	hostkeys_describe(&out, "[gpu1]:2222 ssh-ed25519 " KEY "\n", "box",
	    &until);
	assert_string_equal(out.data, "[gpu1]:2222 ED25519 " PRINT);
	buf_reset(&out);
	hostkeys_describe(&out,
	    "gpu1 ssh-ed25519 " KEY "\ngpu2 ssh-ed25519 " KEY "\n", "box",
	    &until);
	assert_string_equal(out.data,
	    "gpu1 ED25519 " PRINT ", gpu2 ED25519 " PRINT);
}

static void
a_hashed_name_shows_as_that_of_the_sandbox(void **state)
{
	struct until until = soon();

	(void)state;
	hostkeys_describe(&out,
	    "|1|aaaaaaaaaaaaaaaaaaaaaaaaaaa=|bbbbbbbbbbbbbbbbbbbbbbbbbbb= "
	    "ssh-ed25519 " KEY "\n",
	    "box", &until);
	assert_string_equal(out.data, "box ED25519 " PRINT);
}

static void
what_is_no_key_is_not_described(void **state)
{
	static const char *const lines[] = { "", "\n", "nonsense\n",
		"gpu1 ssh-ed25519 broken\n", "# comment\n", "\xff\xfe \x01\n" };
	struct until until = soon();
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		hostkeys_describe(&out, lines[i], "box", &until);
		assert_string_equal(out.data, "");
	}
}

static void
the_fingerprint_of_a_line_is_found(void **state)
{
	static const char text[] = "# comment\n"
	                           "gpu1 ssh-ed25519 " KEY "\n"
	                           "@revoked * ssh-ed25519 " KEY "\n"
	                           "broken\n"
	                           "gpu2 ssh-ed25519 " KEY;
	static const struct {
		long number;
		const char *want;
	} cases[] = { { 1, "" }, { 2, PRINT }, { 3, PRINT }, { 4, "" },
		{ 5, PRINT }, { 6, "" }, { 1000000, "" }, { -5, "" } };
	char *dir = make_dir(), *path = path_join(dir, "known_hosts");
	struct until until = soon();
	struct buf b;
	struct err err;
	size_t i;

	(void)state;
	assert_int_equal(fs_replace(path, text, strlen(text), 0600, &err), 0);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		buf_reset(&out);
		hostkeys_fingerprint(&out, path, cases[i].number, &until);
		assert_string_equal(out.data, cases[i].want);
	}
	hostkeys_read(path, &b);
	assert_string_equal(b.data, text);
	buf_free(&b);
	/* No such file: nothing. */
	hostkeys_read("/nonexistent", &b);
	assert_string_equal(b.data, "");
	buf_free(&b);
	hostkeys_fingerprint(&out, "/nonexistent", 1, &until);
	free(path);
	remove_dir(dir);
}

static void
a_revoked_key_of_the_host_is_found(void **state)
{
	static const char text[] = "gpu1 ssh-ed25519 " KEY "\n"
	                           "@cert-authority * ssh-ed25519 " KEY "\n"
	                           "@revoked gpu2 ssh-ed25519 broken\n"
	                           "@revoked gpu2,gpu3 ssh-ed25519 " KEY "\n";
	static const char any[] = "@revoked * ssh-ed25519 " KEY "\n";
	char *dir = make_dir(), *path = path_join(dir, "known_hosts");
	struct until until = soon();
	struct err err;

	(void)state;
	assert_int_equal(fs_replace(path, text, strlen(text), 0600, &err), 0);
	hostkeys_revoked(&out, path, "gpu1", &until);
	assert_string_equal(out.data, "");
	hostkeys_revoked(&out, path, "gpu", &until);
	assert_string_equal(out.data, "");
	hostkeys_revoked(&out, path, "gpu3", &until);
	assert_string_equal(out.data, PRINT);
	buf_reset(&out);
	hostkeys_revoked(&out, path, "gpu2", &until);
	assert_string_equal(out.data, PRINT);
	buf_reset(&out);
	assert_int_equal(fs_replace(path, any, strlen(any), 0600, &err), 0);
	hostkeys_revoked(&out, path, "gpu1", &until);
	assert_string_equal(out.data, PRINT);
	buf_reset(&out);
	hostkeys_revoked(&out, "/nonexistent", "gpu1", &until);
	assert_string_equal(out.data, "");
	free(path);
	remove_dir(dir);
}

/* What the helper prints when ssh asks for a key. */
static void
helper_prints(const char *print, const char *type, const char *key,
    const char *want)
{
	char got[500];
	struct err err;
	int fds[2];
	ssize_t n;

	assert_int_equal(fs_pipe(fds, &err), 0);
	assert_int_equal(knownhost_helper(print, type, key, fds[1]), 0);
	close(fds[1]);
	n = read(fds[0], got, sizeof(got) - 1);
	assert_true(n >= 0);
	got[n] = '\0';
	close(fds[0]);
	assert_string_equal(got, want);
}

static void
only_the_pinned_key_is_known(void **state)
{
	(void)state;
	helper_prints(PRINT, "ssh-ed25519", KEY, "* ssh-ed25519 " KEY "\n");
	helper_prints("SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
	    "ssh-ed25519", KEY, "");
	helper_prints(PRINT, "ssh-rsa", KEY, "");
	helper_prints(PRINT, "ssh-ed25519", "", "");
	helper_prints(PRINT, "ssh-ed25519", "broken", "");
	helper_prints(PRINT "x", "ssh-ed25519", KEY, "");
	helper_prints("SHA256:", "ssh-ed25519", KEY, "");
	helper_prints("", "ssh-ed25519", KEY, "");
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(new_lines_are_those_that_were_not_there),
		TEST(new_lines_are_those_of_the_host),
		TEST(keys_are_described_with_host_type_and_print),
		TEST(a_hashed_name_shows_as_that_of_the_sandbox),
		TEST(what_is_no_key_is_not_described),
		TEST(the_fingerprint_of_a_line_is_found),
		TEST(a_revoked_key_of_the_host_is_found),
		TEST(only_the_pinned_key_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
