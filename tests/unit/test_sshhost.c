#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/sshhost.h"
#include "help.h"

static struct sshhost s;
static struct err err;
static char *dir;

static int
begin(void **state)
{
	(void)state;
	dir = make_dir();
	unsetenv("SSH_HOST");
	unsetenv("SSH_PORT");
	unsetenv("SSH_KEY_PATH");
	memset(&s, 0, sizeof(s));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	sshhost_free(&s);
	remove_dir(dir);
	return 0;
}

/* What a .env says, as "host|port|key". */
static void
dotenv_is(const char *text, const char *want)
{
	char got[500];

	sshhost_free(&s);
	sshhost_dotenv(&s, text, strlen(text));
	snprintf(got, sizeof(got), "%s|%s|%s", s.host != NULL ? s.host : "-",
	    s.port != NULL ? s.port : "-", s.key != NULL ? s.key : "-");
	if (strcmp(got, want) != 0)
		fail_msg("%s: %s, not %s", text, got, want);
}

static void
a_file_is_read_as_dotenv_reads_it(void **state)
{
	static const char *const rows[][2] = {
		{ "", "-|-|-" },
		{ "SSH_HOST=gpu1", "gpu1|-|-" },
		{ "SSH_HOST=gpu1\nSSH_PORT=2\nSSH_KEY_PATH=~/k\n",
		    "gpu1|2|~/k" },
		{ "\r\n  export  SSH_HOST = gpu1 \r\nSSH_PORT=2\r\n",
		    "gpu1|2|-" },
		{ "SSH_HOST='a b'\nSSH_PORT=\"2\" # x\nSSH_KEY_PATH=`k`",
		    "a b|2|k" },
		{ "SSH_HOST=gpu1 # the big one", "gpu1|-|-" },
		{ "SSH_HOST=gpu1#big", "gpu1|-|-" },
		{ "SSH_HOST=\"gpu#1\"", "gpu#1|-|-" },
		{ "SSH_HOST=\nSSH_PORT=2", "|2|-" },
		{ "SSH_HOST=a\nSSH_HOST=b", "b|-|-" },
		{ "SSH_HOST='a\nSSH_PORT=2", "'a|2|-" },
		{ "#SSH_HOST=a\n;\n=\nSSH_HOST\nSSH_HOST a\nSSH_HOSTS=b\n"
		  "XSSH_HOST=c\nssh_host=d\nSSH_PORT=2",
		    "-|2|-" },
		{ "A=\"x\nSSH_HOST=wrong\n\"\nSSH_PORT=2", "-|2|-" },
		{ "A=\"x \\\" y\nSSH_HOST=wrong\n\"\nSSH_PORT=2", "-|2|-" },
		{ "exportSSH_HOST=a\nexport\nSSH_PORT=2", "-|2|-" },
	};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		dotenv_is(rows[i][0], rows[i][1]);
}

static void
write_env(const char *text)
{
	char *path = path_join(dir, ".env");

	assert_int_equal(fs_replace(path, text, strlen(text), 0644, &err), 0);
	free(path);
}

static void
the_environment_wins_even_if_it_is_empty(void **state)
{
	(void)state;
	sshhost_read(&s, dir);
	assert_false(sshhost_given(&s));
	assert_null(s.note);

	write_env("SSH_HOST=file\nSSH_PORT=1\nSSH_KEY_PATH=k\n");
	sshhost_read(&s, dir);
	assert_string_equal(s.host, "file");
	assert_true(s.from_file);
	sshhost_free(&s);

	setenv("SSH_HOST", "mine", 1);
	setenv("SSH_PORT", "", 1);
	sshhost_read(&s, dir);
	assert_string_equal(s.host, "mine");
	assert_false(s.from_file);
	assert_string_equal(s.port, "");
	assert_string_equal(s.key, "k");
	sshhost_free(&s);

	setenv("SSH_HOST", " ", 1);
	sshhost_read(&s, dir);
	assert_false(sshhost_given(&s));
}

static void
a_file_that_is_too_large_is_told(void **state)
{
	char *text = repeated("0123456789abcde\n", 20000);

	(void)state;
	write_env(text);
	sshhost_read(&s, dir);
	says(s.note, "larger than");
	free(text);
}

/* The entry for this host and port, as compact JSON. */
static void
entry_is(const char *host, const char *port, const char *want)
{
	char *note, *text;
	json_t *o;

	sshhost_free(&s);
	s.host = xstrdup(host);
	s.port = port != NULL ? xstrdup(port) : NULL;
	o = sshhost_entry(&s, "/home/ann", &note, &err);
	assert_null(note);
	if (o == NULL)
		fail_msg("%s: %s", host, err.msg);
	text = json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS);
	assert_string_equal(text, want);
	free(text);
	json_decref(o);
}

static void
an_address_has_many_forms(void **state)
{
	(void)state;
	entry_is("gpu1", NULL, "{\"host\":\"gpu1\",\"name\":\"gpu1\"}");
	entry_is(" gpu1\n", "", "{\"host\":\"gpu1\",\"name\":\"gpu1\"}");
	/* What everybody wrote beside an alias is no wish. */
	entry_is("gpu1", "22", "{\"host\":\"gpu1\",\"name\":\"gpu1\"}");
	entry_is("gpu1", "222",
	    "{\"host\":\"gpu1\",\"name\":\"gpu1\",\"port\":\"222\"}");
	entry_is("ann@h:23", "24",
	    "{\"host\":\"h\",\"name\":\"ann@h:23\",\"port\":\"23\","
	    "\"user\":\"ann\"}");
	entry_is("a@b@h", NULL,
	    "{\"host\":\"h\",\"name\":\"a@b@h\",\"user\":\"a@b\"}");
	entry_is("ssh://ann@h:23", NULL,
	    "{\"host\":\"h\",\"name\":\"ann@h:23\",\"port\":\"23\","
	    "\"user\":\"ann\"}");
	entry_is("[::1]:23", NULL,
	    "{\"host\":\"::1\",\"name\":\"[::1]:23\",\"port\":\"23\"}");
	entry_is("ann@fe80::1", NULL,
	    "{\"host\":\"fe80::1\",\"name\":\"ann@fe80::1\","
	    "\"user\":\"ann\"}");
}

static void
what_a_shell_would_run_is_no_host(void **state)
{
	static const char *const bad[] = { "a b", "a;b", "$(a)", "`a`", "a|b",
		"a&b", "u$x@h", "a\"b", "a'b", "a\\b", "{a,b}", "a<b", "a\nb" };
	char *note;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		sshhost_free(&s);
		s.host = xstrdup(bad[i]);
		if (sshhost_entry(&s, NULL, &note, &err) != NULL)
			fail_msg("%s is taken", bad[i]);
		says(err.msg, "is no name of a machine");
	}
}

static void
a_key_is_one_of_several(void **state)
{
	char *note, *key = path_join(dir, "key");
	json_t *o;

	(void)state;
	s.host = xstrdup("h");
	s.key = xstrdup("~/key");
	o = sshhost_entry(&s, dir, &note, &err);
	says(note, "/key'");
	assert_null(json_object_get(o, "key_file"));
	json_decref(o);
	free(note);

	assert_int_equal(fs_replace(key, "k", 1, 0600, &err), 0);
	o = sshhost_entry(&s, dir, &note, &err);
	assert_null(note);
	assert_string_equal(json_string_value(json_object_get(o, "key_file")),
	    key);
	assert_true(json_is_true(json_object_get(o, "other_keys")));
	json_decref(o);
	free(key);
}

/* --- As a part of the configuration --------------------------------------- */

static void
it_comes_last_and_gets_a_name_of_its_own(void **state)
{
	struct config_sources src = { .ssh = &s,
		.list = "[{\"host\":\"gpu1\"},{\"host\":\"b\"}]" };
	struct config c;

	(void)state;
	s.host = xstrdup("gpu1");
	config_load(&c, &src);
	assert_int_equal(c.count, 3);
	assert_string_equal(c.sandboxes[2].name, "SSH_HOST");
	assert_string_equal(c.sandboxes[2].host, "gpu1");
	assert_true(c.sandboxes[2].ssh_host);
	assert_false(c.sandboxes[0].ssh_host);
	assert_ptr_equal(config_pick_ssh_host(&c, "gpu1", &err),
	    &c.sandboxes[2]);
	config_free(&c);
}

static void
a_broken_one_is_not_replaced_by_another(void **state)
{
	struct config_sources src = { .ssh = &s, .list = "[{\"host\":\"b\"}]" };
	struct config c;

	(void)state;
	s.host = xstrdup("-oProxyCommand=x");
	config_load(&c, &src);
	assert_int_equal(c.count, 1);
	assert_null(config_pick_ssh_host(&c, "b", &err));
	says(err.msg, "SSH_HOST: field 'host' must not begin with a dash");
	config_free(&c);

	sshhost_free(&s);
	config_load(&c, &src);
	assert_ptr_equal(config_pick_ssh_host(&c, "b", &err), &c.sandboxes[0]);
	config_free(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_is_read_as_dotenv_reads_it),
		TEST(the_environment_wins_even_if_it_is_empty),
		TEST(a_file_that_is_too_large_is_told),
		TEST(an_address_has_many_forms),
		TEST(what_a_shell_would_run_is_no_host),
		TEST(a_key_is_one_of_several),
		TEST(it_comes_last_and_gets_a_name_of_its_own),
		TEST(a_broken_one_is_not_replaced_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
