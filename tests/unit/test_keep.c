/*
 * Records of sandboxes.  The keyring itself is tested end to end; here PATH
 * decides whether there is one.
 */
#include <sys/stat.h>

#include "config/keep.h"
#include "config/keyring_inside.h"
#include "help.h"

static char *top, *kept_dir, *bin;
static struct until until;
static struct err err;

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	kept_dir = path_join(top, "kept");
	bin = path_join(top, "bin");
	assert_int_equal(mkdir(bin, 0700), 0);
	setenv("REMOTE_SANDBOX_MCP_HOME", top, 1);
	setenv("HOME", top, 1);
	setenv("XDG_CONFIG_HOME", top, 1);
	setenv("PATH", bin, 1); /* no keyring there */
	until = until_in(30000);
	memset(&err, 0, sizeof(err));
	return 0;
}

static int
end(void **state)
{
	(void)state;
	if (access(kept_dir, F_OK) == 0)
		remove_dir(kept_dir);
	else
		free(kept_dir);
	remove_dir(bin);
	remove_dir(top);
	return 0;
}

/* A sandbox of this JSON. */
static void
parse(struct sandbox *sb, const char *text)
{
	json_t *o = json_loads(text, 0, NULL);
	json_t *unknown = json_array();

	if (sandbox_parse(sb, o, top, unknown, &err) == -1)
		fail_msg("%s", err.msg);
	json_decref(unknown);
	json_decref(o);
}

static void
put(const char *text, struct kept *k)
{
	struct sandbox sb;

	parse(&sb, text);
	if (keep_put(&sb, k, &until, &err) == -1)
		fail_msg("%s", err.msg);
	sandbox_free(&sb);
}

static void
get(const char *key, const char *name, struct sandbox *sb)
{
	if (keep_get(key, name, sb, &until, &err) == -1)
		fail_msg("%s", err.msg);
}

static char *
text_of(const char *path)
{
	struct buf b;

	buf_init(&b, 1 << 20);
	assert_int_equal(fs_read(path, &b, &err), 0);
	return buf_take(&b);
}

static void
a_login_without_a_secret_is_kept_without_one(void **state)
{
	struct sandbox sb;
	struct kept k;
	struct stat st;
	char *text;

	(void)state;
	put("{\"name\": \"gpu\", \"host\": \"h\", \"user\": \"u\","
	    " \"port\": 2222, \"key_file\": \"~/key\","
	    " \"password_command\": [\"pass\", \"show\"],"
	    " \"workdir\": \"/w\"}",
	    &k);
	assert_int_equal(k.place, KEEP_NOTHING);
	assert_null(k.warning);
	assert_int_equal(stat(k.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(kept_dir, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	text = text_of(k.path);
	says(text, "\"secrets\": {}");
	free(text);
	get(k.key, "gpu", &sb);
	assert_string_equal(sb.host, "h");
	assert_string_equal(sb.user, "u");
	assert_int_equal(sb.port, 2222);
	assert_string_equal(sb.workdir, "/w");
	assert_int_equal(json_array_size(sb.password_command), 2);
	assert_false(sandbox_has_secret(&sb));
	sandbox_free(&sb);
	kept_free(&k);
}

static void
without_a_keyring_the_file_has_it_and_a_warning_says_so(void **state)
{
	struct sandbox sb;
	struct kept k;
	json_t *list, *o;
	char *text;

	(void)state;
	put("{\"name\": \"gpu\", \"host\": \"h\", \"password\": \"s\\u00e4cret"
	    " \\\"x\\\"\", \"key_passphrase\": \"other\"}",
	    &k);
	assert_int_equal(k.place, KEEP_FILE);
	says(k.warning, "gpu");
	says(k.warning, k.path);
	says(k.warning, "password_command");
	says_not(k.warning, "s\xc3\xa4");
	text = text_of(k.path);
	says_not(text, "cret \\\"x");
	free(text);
	get(k.key, "gpu", &sb);
	assert_string_equal(sb.password.data,
	    "s\xc3\xa4"
	    "cret \"x\"");
	assert_string_equal(sb.key_passphrase.data, "other");
	sandbox_free(&sb);
	list = keep_warnings();
	assert_int_equal(json_array_size(list), 2);
	says(json_string_value(json_array_get(list, 0)), "gpu");
	json_decref(list);
	o = kept_json(&k);
	assert_string_equal(json_string_value(json_object_get(o, "secrets")),
	    "file");
	json_decref(o);
	kept_free(&k);
}

static void
a_relative_key_file_becomes_whole(void **state)
{
	struct sandbox sb;
	struct kept k;
	char *cwd = getcwd(NULL, 0), *whole = path_join(cwd, "keys/k");

	(void)state;
	put("{\"host\": \"h\", \"key_file\": \"keys/k\"}", &k);
	get(k.key, "h", &sb);
	assert_string_equal(sb.key_file, whole);
	sandbox_free(&sb);
	kept_free(&k);
	free(whole);
	free(cwd);
}

static void
one_name_for_two_machines_makes_two_records(void **state)
{
	struct kept one, two, again;
	struct sandbox sb;

	(void)state;
	put("{\"name\": \"gpu\", \"host\": \"one\"}", &one);
	put("{\"name\": \"gpu\", \"host\": \"two\"}", &two);
	put("{\"name\": \"gpu\", \"host\": \"one\", \"workdir\": \"/w\"}",
	    &again);
	assert_string_not_equal(one.key, two.key);
	assert_string_equal(one.key, again.key);
	get(one.key, "gpu", &sb);
	assert_string_equal(sb.host, "one");
	assert_string_equal(sb.workdir, "/w");
	sandbox_free(&sb);
	get(two.key, "gpu", &sb);
	assert_string_equal(sb.host, "two");
	sandbox_free(&sb);
	kept_free(&one);
	kept_free(&two);
	kept_free(&again);
}

static void
by_name_the_newest_record_counts(void **state)
{
	struct kept one, two;
	struct sandbox sb;
	char *old;

	(void)state;
	put("{\"name\": \"gpu\", \"host\": \"one\"}", &one);
	put("{\"name\": \"gpu\", \"host\": \"two\"}", &two);
	/* Make one of them old, whatever the order of the directory. */
	old = xstrdup("{\"schema_version\": 1, \"saved_at\": 5, \"sandbox\":"
	              " {\"name\": \"gpu\", \"host\": \"one\"}}");
	assert_int_equal(fs_replace(one.path, old, strlen(old), 0600, &err), 0);
	free(old);
	get(NULL, "gpu", &sb);
	assert_string_equal(sb.host, "two");
	sandbox_free(&sb);
	kept_free(&one);
	kept_free(&two);
}

static void
the_file_of_the_earlier_server_is_read(void **state)
{
	static const char seed[] =
	    "{\"schema_version\": 1, \"saved_at\": 1, \"sandboxes\": ["
	    "{\"name\": \"old\", \"host\": \"h\", \"user\": \"u\","
	    " \"password\": \"pw\", \"port\": 22, \"key_file\": null,"
	    " \"key_passphrase\": null}]}";
	char *path = path_join(top, "config.json");
	struct sandbox sb;
	json_t *list;

	(void)state;
	assert_int_equal(fs_replace(path, seed, strlen(seed), 0600, &err), 0);
	get("", "old", &sb);
	assert_string_equal(sb.user, "u");
	assert_string_equal(sb.password.data, "pw");
	sandbox_free(&sb);
	list = keep_warnings();
	assert_int_equal(json_array_size(list), 1);
	says(json_string_value(json_array_get(list, 0)), "config.json");
	json_decref(list);
	free(path);
}

static void
what_nobody_kept_is_not_found(void **state)
{
	struct sandbox sb;

	(void)state;
	assert_int_equal(keep_get("", "gpu", &sb, &until, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "'gpu'");
	sandbox_free(&sb);
	assert_int_equal(keep_get("0123456789abcdef", "gpu", &sb, &until, &err),
	    -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	sandbox_free(&sb);
	assert_int_equal(keep_get("../../etc/passwd", "gpu", &sb, &until, &err),
	    -1);
	assert_int_equal(err.code, ERR_INVALID);
	sandbox_free(&sb);
}

static void
a_record_that_others_can_read_or_is_broken_is_refused(void **state)
{
	static const char *const broken[] = { "", "{", "[]", "{}",
		"{\"sandbox\": 1}", "{\"sandbox\": {\"host\": \"-x\"}}",
		"{\"sandbox\": {\"host\": \"h\"}, \"secrets\":"
		" {\"password\": 1}}",
		"{\"sandbox\": {\"host\": \"h\"}, \"secrets\":"
		" {\"password\": \"hex:0\"}}",
		"{\"sandbox\": {\"host\": \"h\"}, \"secrets\":"
		" {\"password\": \"hex:00\"}}",
		NULL };
	struct sandbox sb;
	struct kept k;
	int i;

	(void)state;
	put("{\"host\": \"h\"}", &k);
	assert_int_equal(chmod(k.path, 0640), 0);
	assert_int_equal(keep_get(k.key, "h", &sb, &until, &err), -1);
	says(err.msg, "chmod 600");
	sandbox_free(&sb);
	for (i = 0; broken[i] != NULL; i++) {
		assert_int_equal(fs_replace(k.path, broken[i],
		                     strlen(broken[i]), 0600, &err),
		    0);
		err.msg[0] = '\0';
		assert_int_equal(keep_get(k.key, "h", &sb, &until, &err), -1);
		assert_true(err.msg[0] != '\0');
		sandbox_free(&sb);
	}
	kept_free(&k);
}

/* A program that keeps what it is given, and never sees it as a word. */
static void
make_keyring(void)
{
	static const char script[] = "#!/bin/sh\n"
	                             "dir=${0%/*}\n"
	                             "verb=$1\n"
	                             "for word; do last=$word; done\n"
	                             "case $verb in\n"
	                             "store) /bin/cat >\"$dir/$last\" ;;\n"
	                             "lookup) exec /bin/cat \"$dir/$last\" ;;\n"
	                             "clear) /bin/rm -f \"$dir/$last\" ;;\n"
	                             "esac\n"
	                             "echo \"$*\" >>\"$dir/calls\"\n";
	char *path = path_join(bin, "secret-tool");

	assert_int_equal(fs_replace(path, script, strlen(script), 0700, &err),
	    0);
	free(path);
}

static void
with_a_keyring_the_record_holds_nothing(void **state)
{
	char *calls = path_join(bin, "calls"), *text;
	struct sandbox sb;
	struct kept k;

	(void)state;
	make_keyring();
	put("{\"host\": \"h\", \"password\": \"hunter2\"}", &k);
	assert_int_equal(k.place, KEEP_KEYRING);
	assert_null(k.warning);
	text = text_of(k.path);
	says(text, "\"password\": \"keyring\"");
	says_not(text, "68756e74"); /* "hunt" */
	free(text);
	text = text_of(calls);
	says_not(text, "hunter2");
	says_not(text, "68756e74");
	free(text);
	get(k.key, "h", &sb);
	assert_string_equal(sb.password.data, "hunter2");
	sandbox_free(&sb);
	assert_int_equal(keep_drop_all(&until, &err), 1);
	assert_int_equal(access(k.path, F_OK), -1);
	assert_int_equal(keep_get(k.key, "h", &sb, &until, &err), -1);
	sandbox_free(&sb);
	text = text_of(calls);
	says(text, "clear service remote-sandbox-mcp");
	free(text);
	free(calls);
	kept_free(&k);
}

static void
secrets_of_any_bytes_survive(void **state)
{
	struct secret s = { 0 }, back = { 0 };
	char all[255];
	struct buf b;
	int i;

	(void)state;
	for (i = 0; i < 255; i++)
		all[i] = (char)(i + 1);
	secret_set(&s, all, sizeof(all));
	buf_init(&b, 1024);
	keyring_digits(&b, &s);
	assert_int_equal(b.len, 510);
	assert_int_equal(keyring_undigits(&back, b.data, b.len), 0);
	assert_true(secret_equal(&s, &back));
	assert_int_equal(keyring_undigits(&back, "6", 1), -1);
	assert_int_equal(keyring_undigits(&back, "6G", 2), -1);
	assert_int_equal(keyring_undigits(&back, "", 0), -1);
	secret_free(&s);
	secret_free(&back);
	buf_free(&b);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_login_without_a_secret_is_kept_without_one),
		T(without_a_keyring_the_file_has_it_and_a_warning_says_so),
		T(a_relative_key_file_becomes_whole),
		T(one_name_for_two_machines_makes_two_records),
		T(by_name_the_newest_record_counts),
		T(the_file_of_the_earlier_server_is_read),
		T(what_nobody_kept_is_not_found),
		T(a_record_that_others_can_read_or_is_broken_is_refused),
		T(with_a_keyring_the_record_holds_nothing),
		T(secrets_of_any_bytes_survive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
