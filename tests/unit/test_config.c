#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "config/config.h"
#include "help.h"

static struct config c;
static struct config_sources src;
static char *dir, *file;

static int
begin(void **state)
{
	(void)state;
	dir = make_dir();
	file = path_join(dir, "config.json");
	src = (struct config_sources){ .home = "/home/ann" };
	return 0;
}

static int
end(void **state)
{
	(void)state;
	config_free(&c);
	remove_dir(dir);
	free(file);
	return 0;
}

/* Load what "src" says, from scratch. */
static void
load(void)
{
	config_free(&c);
	config_load(&c, &src);
}

static void
load_list(const char *list)
{
	src.list = list;
	load();
}

static void
write_file(const char *text, mode_t mode)
{
	struct err err;

	assert_int_equal(fs_replace(file, text, strlen(text), mode, &err), 0);
	src.file = file;
}

static size_t
problems(void)
{
	return json_array_size(c.problems);
}

static const char *
problem(size_t i)
{
	const char *s = json_string_value(json_array_get(c.problems, i));

	assert_non_null(s);
	return s;
}

static const char *
note(size_t i)
{
	const char *s = json_string_value(json_array_get(c.notes, i));

	assert_non_null(s);
	return s;
}

static void
nothing_said(void)
{
	if (problems() > 0)
		fail_msg("problem: %s", problem(0));
	if (json_array_size(c.notes) > 0)
		fail_msg("note: %s", note(0));
}

/* All names in their order, as "a b c". */
static void
names_are(const char *want)
{
	char got[2000] = "";
	size_t i, len = 0;

	for (i = 0; i < c.count; i++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s",
		    i > 0 ? " " : "", c.sandboxes[i].name);
	assert_string_equal(got, want);
}

static void
no_source_is_no_sandbox_and_no_problem(void **state)
{
	(void)state;
	load();
	names_are("");
	nothing_said();
	assert_false(c.list_set);
	assert_false(c.host_set);
	assert_int_equal(c.list_length, 0);
	src.list = " \n";
	src.host = "";
	src.password = "left over";
	load();
	names_are("");
	nothing_said();
	assert_false(c.list_set);
	assert_false(c.host_set);
}

static void
a_list_gives_its_entries_in_order(void **state)
{
	static const char list[] =
	    "[{\"host\":\"b\"},{\"name\":\"a\",\"host\":\"x\",\"port\":5}]";

	(void)state;
	load_list(list);
	names_are("b a");
	nothing_said();
	assert_true(c.list_set);
	assert_int_equal(c.list_length, strlen(list));
	assert_int_equal(c.sandboxes[1].port, 5);
	says(c.sandboxes[1].source, "REMOTE_SANDBOX_LIST");
	says(c.sandboxes[1].source, "entry 2");
}

static void
a_list_may_stand_in_an_object(void **state)
{
	(void)state;
	load_list("{\"sandboxes\":[{\"host\":\"b\"}]}");
	names_are("b");
	nothing_said();
}

static void
a_list_that_is_none_is_told(void **state)
{
	static const char *const wrong[] = { "{}", "17", "\"host\"", "null",
		"{\"sandboxes\":{\"host\":\"a\"}}", "{\"sandboxes\":null}",
		"{\"host\":\"a\"}" };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		load_list(wrong[i]);
		assert_int_equal(c.count, 0);
		assert_int_equal(problems(), 1);
		says(problem(0), "REMOTE_SANDBOX_LIST");
		says(problem(0), "array");
	}
	load_list("[]");
	names_are("");
	nothing_said();
}

static void
broken_json_is_told_with_its_place_and_nothing_of_it(void **state)
{
	(void)state;
	load_list("[\n {\"host\":\"a\", \"password\":\"hunter2\" \"x\"}]");
	assert_int_equal(c.count, 0);
	assert_int_equal(problems(), 1);
	says(problem(0), "REMOTE_SANDBOX_LIST");
	says(problem(0), "line 2");
	says_not(problem(0), "hunter2");
	load_list("[{\"host\":\"a\",\"password\":\"\\uhunter2\"}]");
	assert_int_equal(problems(), 1);
	says_not(problem(0), "hunt");
	load_list("[{\"host\":\"a\",\"password\":\"hunter2");
	says_not(problem(0), "hunter2");
}

static void
a_broken_entry_is_left_out_and_the_others_stay(void **state)
{
	(void)state;
	load_list("[{\"host\":\"a\"},{\"name\":\"bad\",\"host\":\"x y\"},"
	          "17,{\"port\":5},{\"host\":\"z\",\"port\":0},"
	          "{\"host\":\"b\"}]");
	names_are("a b");
	assert_int_equal(problems(), 4);
	says(problem(0), "entry 2 (bad)");
	says(problem(0), "'host'");
	says(problem(1), "entry 3");
	says(problem(1), "object");
	says(problem(2), "entry 4");
	says(problem(2), "'host'");
	says(problem(3), "entry 5 (z)");
	says(problem(3), "'port'");
}

static void
there_may_be_a_thousand_and_no_more(void **state)
{
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	for (i = 0; i < CONFIG_SANDBOXES_MAX; i++)
		buf_addf(&b, "%s{\"host\":\"h%d\"}", i > 0 ? "," : "[", i);
	buf_adds(&b, "]");
	load_list(b.data);
	assert_int_equal(c.count, CONFIG_SANDBOXES_MAX);
	nothing_said();
	b.data[b.len - 1] = ',';
	buf_adds(&b, "{\"host\":\"more\"}]");
	load_list(b.data);
	assert_int_equal(c.count, 0);
	assert_int_equal(problems(), 1);
	says(problem(0), "1000");
	buf_free(&b);
}

static void
single_variables_are_one_sandbox(void **state)
{
	(void)state;
	src.host = "gpu1";
	src.port = "2222";
	src.user = "ann";
	src.password = " hunter2 ";
	src.key_file = "~/.ssh/id";
	src.key_passphrase = "phrase";
	load();
	names_are("gpu1");
	nothing_said();
	assert_true(c.host_set);
	assert_int_equal(c.sandboxes[0].port, 2222);
	assert_string_equal(c.sandboxes[0].user, "ann");
	assert_string_equal(c.sandboxes[0].password.data, " hunter2 ");
	assert_string_equal(c.sandboxes[0].key_file, "/home/ann/.ssh/id");
	assert_string_equal(c.sandboxes[0].key_passphrase.data, "phrase");
	says(c.sandboxes[0].source, "REMOTE_HOST");
}

static void
blanks_around_single_variables_do_not_count(void **state)
{
	(void)state;
	src.host = " gpu1\n";
	src.port = " 22 ";
	src.user = "\tann ";
	src.key_file = "";
	src.password = "";
	load();
	names_are("gpu1");
	nothing_said();
	assert_int_equal(c.sandboxes[0].port, 22);
	assert_string_equal(c.sandboxes[0].user, "ann");
	assert_null(c.sandboxes[0].key_file);
	src.port = "  ";
	src.user = "";
	load();
	names_are("gpu1");
	assert_int_equal(c.sandboxes[0].port, 0);
	assert_null(c.sandboxes[0].user);
}

static void
a_wrong_single_variable_is_told(void **state)
{
	(void)state;
	src.host = "gpu1";
	src.port = "ssh";
	src.password = "hunter2";
	load();
	names_are("");
	assert_int_equal(problems(), 1);
	says(problem(0), "REMOTE_HOST");
	says(problem(0), "'port'");
	says_not(problem(0), "hunter2");
	src.port = NULL;
	src.host = "a b";
	load();
	names_are("");
	says(problem(0), "'host'");
}

/* Latin-1 in the environment: a password is bytes, names are text. */
static void
a_password_in_another_encoding_is_kept(void **state)
{
	(void)state;
	src.host = "gpu1";
	src.password = "p\xe4ss";
	src.key_passphrase = "\xff";
	load();
	names_are("gpu1");
	nothing_said();
	assert_string_equal(c.sandboxes[0].password.data, "p\xe4ss");
	assert_string_equal(c.sandboxes[0].key_passphrase.data, "\xff");
}

static void
names_in_another_encoding_are_told(void **state)
{
	(void)state;
	src.host = "b\xfc"
	           "cher";
	load();
	names_are("");
	assert_int_equal(problems(), 1);
	says(problem(0), "'host'");
	src.host = "gpu1";
	src.user = "j\xf6rg";
	load();
	names_are("");
	assert_int_equal(problems(), 1);
	says(problem(0), "'user'");
	src.user = NULL;
	src.key_file = "/home/j\xf6rg/id";
	load();
	names_are("");
	assert_int_equal(problems(), 1);
	says(problem(0), "'key_file'");
}

static void
the_list_beats_single_variables(void **state)
{
	(void)state;
	src.host = "single";
	load_list("[{\"host\":\"a\"}]");
	names_are("a");
	assert_true(c.host_set);
	load_list("[broken");
	names_are("");
	assert_int_equal(problems(), 1);
}

static void
the_file_is_added_behind_the_environment(void **state)
{
	(void)state;
	write_file("[{\"host\":\"f1\"},{\"host\":\"f2\"}]", 0600);
	load_list("[{\"host\":\"e\"}]");
	names_are("e f1 f2");
	nothing_said();
	says(c.sandboxes[1].source, "config.json");
	says(c.sandboxes[1].source, "entry 1");
	src.list = NULL;
	src.host = "single";
	load();
	names_are("single f1 f2");
	write_file("{\"sandboxes\":[{\"host\":\"f3\"}]}", 0600);
	load();
	names_are("single f3");
}

static void
an_entry_of_our_own_comes_before_all_others(void **state)
{
	json_t *first = json_pack("{s:s,s:s,s:i}", "name", "local", "host",
	    "127.0.0.1", "port", 2200);

	(void)state;
	write_file("[{\"host\":\"f\"},{\"host\":\"local\"}]", 0600);
	src.first = first;
	load_list("[{\"host\":\"e\"}]");
	names_are("local e f");
	assert_true(c.sandboxes[0].throwaway);
	assert_false(c.sandboxes[1].throwaway);
	says(note(0), "(local)");
	json_decref(first);
}

static void
the_environment_wins_over_the_file_and_says_so(void **state)
{
	(void)state;
	write_file("[{\"name\":\"b\",\"host\":\"f\",\"port\":1},"
	           "{\"host\":\"a\",\"port\":2},{\"host\":\"c\"}]",
	    0600);
	load_list("[{\"host\":\"a\"},{\"host\":\"b\"}]");
	names_are("a b c");
	assert_int_equal(problems(), 0);
	assert_int_equal(json_array_size(c.notes), 2);
	says(note(0), "config.json");
	says(note(0), "environment");
	assert_int_equal(c.sandboxes[0].port, 0);
	assert_string_equal(c.sandboxes[1].host, "b");
}

static void
a_missing_file_matters_only_if_it_was_named(void **state)
{
	(void)state;
	src.file = file;
	load();
	nothing_said();
	src.file_named = true;
	load();
	assert_int_equal(problems(), 1);
	says(problem(0), "config.json");
	says(problem(0), "No such file");
}

static void
a_file_that_cannot_be_read_is_told(void **state)
{
	char *large = xmalloc(CONFIG_FILE_MAX + 2);

	(void)state;
	src.file = dir;
	load_list("[{\"host\":\"a\"}]");
	names_are("a");
	assert_int_equal(problems(), 1);
	memset(large, ' ', CONFIG_FILE_MAX + 1);
	large[CONFIG_FILE_MAX + 1] = '\0';
	write_file(large, 0600);
	load();
	names_are("a");
	assert_int_equal(problems(), 1);
	says(problem(0), "larger");
	free(large);
}

static void
what_others_can_read_or_write_holds_no_secret_or_command(void **state)
{
	static const char text[] =
	    "[{\"host\":\"a\",\"password\":\"hunter2\"},{\"host\":\"b\"},"
	    "{\"host\":\"c\",\"key_passphrase\":\"hunter2\"},"
	    "{\"host\":\"d\",\"password_command\":[\"pass\"]}]";
	static const mode_t shared[] = { 0640, 0604, 0660, 0602, 0644 };
	bool writable;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		write_file(text, shared[i]);
		load();
		writable = (shared[i] & 022) != 0;
		names_are(writable ? "b" : "b d");
		assert_int_equal(problems(), writable ? 3 : 2);
		says(problem(0), "chmod 600");
		says(problem(0), "(a)");
		says(problem(1), "(c)");
		says_not(problem(0), "hunter2");
		if (writable)
			says(problem(2), "names a command");
	}
	write_file(text, 0600);
	load();
	names_are("a b c d");
	nothing_said();
	write_file(text, 0400);
	load();
	names_are("a b c d");
}

static void
two_entries_with_one_name_are_both_left_out(void **state)
{
	(void)state;
	load_list("[{\"name\":\"x\",\"host\":\"a\"},{\"host\":\"good\"},"
	          "{\"name\":\"x\",\"host\":\"b\"}]");
	names_are("good");
	assert_int_equal(problems(), 2);
	says(problem(0), "entry 1 (x)");
	says(problem(0), "same name");
	says(problem(1), "entry 3 (x)");
	/* Case and blanks make a difference. */
	load_list("[{\"name\":\"x\",\"host\":\"a\"},"
	          "{\"name\":\"X\",\"host\":\"b\"}]");
	names_are("x X");
	nothing_said();
}

static void
default_names_that_collide_get_their_port(void **state)
{
	(void)state;
	load_list("[{\"host\":\"h\",\"port\":22},{\"host\":\"h\","
	          "\"port\":2222},{\"host\":\"i\",\"port\":5}]");
	names_are("h:22 h:2222 i");
	nothing_said();
	assert_string_equal(c.sandboxes[0].host, "h");
	/* One without a port keeps the plain name. */
	load_list("[{\"host\":\"h\"},{\"host\":\"h\",\"port\":2222}]");
	names_are("h h:2222");
	nothing_said();
	/* A given name stays as it is. */
	load_list("[{\"host\":\"h\",\"port\":22},"
	          "{\"name\":\"h\",\"host\":\"z\"}]");
	names_are("h:22 h");
	nothing_said();
}

static void
default_names_that_still_collide_are_told(void **state)
{
	(void)state;
	load_list("[{\"host\":\"h\",\"port\":22,\"user\":\"a\"},"
	          "{\"host\":\"h\",\"port\":22,\"user\":\"b\"},"
	          "{\"host\":\"k\"},{\"host\":\"k\"},{\"host\":\"ok\"}]");
	names_are("ok");
	assert_int_equal(problems(), 4);
	load_list("[{\"host\":\"h\",\"port\":22},{\"host\":\"h\","
	          "\"port\":23},{\"name\":\"h:22\",\"host\":\"z\"}]");
	assert_non_null(config_find(&c, "h:23"));
	assert_int_equal(c.count, 1);
	assert_int_equal(problems(), 2);
}

static void
names_are_unique_whatever_comes(void **state)
{
	size_t i, k;

	(void)state;
	write_file("[{\"host\":\"h\",\"port\":1},{\"host\":\"h\"},"
	           "{\"name\":\"h:2\",\"host\":\"q\"},"
	           "{\"name\":\"r\",\"host\":\"q\"}]",
	    0600);
	load_list("[{\"host\":\"h\",\"port\":1},{\"host\":\"h\",\"port\":2},"
	          "{\"name\":\"h\",\"host\":\"z\"}]");
	names_are("h:1 h:2 h r");
	for (i = 0; i < c.count; i++) {
		for (k = 0; k < i; k++)
			assert_string_not_equal(c.sandboxes[i].name,
			    c.sandboxes[k].name);
	}
}

static void
unknown_fields_are_noted(void **state)
{
	(void)state;
	load_list("[{\"host\":\"a\",\"pasword\":\"hunter2\",\"x\":1}]");
	names_are("a");
	assert_int_equal(problems(), 0);
	assert_int_equal(json_array_size(c.notes), 2);
	says(note(0), "'pasword'");
	says(note(0), "entry 1 (a)");
	says_not(note(0), "hunter2");
}

/* Whatever is wrong, nothing that was secret turns up in what is said. */
static void
secrets_are_never_said(void **state)
{
	static const char *const lists[] = {
		"[{\"host\":5,\"password\":\"hunter2\"}]",
		"[{\"host\":\"a\",\"password\":\"hunter2\\n\"}]",
		"[{\"host\":\"a\",\"password\":[\"hunter2\"]}]",
		"[{\"host\":\"a\",\"password\":\"hunter2\",\"zzz\":1},"
		"{\"host\":\"a\",\"key_passphrase\":\"hunter2\"}]",
		"[{\"host\":\"a\",\"password\":\"hunter2\","
		"\"password\":\"hunter2\"}]",
		"{\"sandboxes\":{\"password\":\"hunter2\"}}",
		"[{\"host\":\"a\",\"password\":\"hunter2\"},]",
		"[{\"host\":\"a\",\"password\":hunter2}]",
		"[{\"host\":\"a\",\"port\":\"hunter2\"}]",
		"\"hunter2\"",
		"hunter2",
	};
	char *said;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		load_list(lists[i]);
		assert_true(problems() > 0);
		said = json_dumps(c.problems, 0);
		says_not(said, "hunter2");
		free(said);
		said = json_dumps(c.notes, 0);
		says_not(said, "hunter2");
		free(said);
	}
}

static void
what_is_said_is_text_without_control_characters(void **state)
{
	char *wide = repeated("\xc3\xa4", 100);
	char list[1000];
	const char *at;

	(void)state;
	snprintf(list, sizeof(list),
	    "[{\"name\":\"%s\",\"host\":\"a b\"},"
	    "{\"name\":\"x\\u001b[31m\\n\",\"host\":\"h\"},"
	    "{\"host\":\"h\",\"f\\u001b\\n\":1}]",
	    wide);
	load_list(list);
	assert_int_equal(problems(), 2);
	assert_int_equal(json_array_size(c.notes), 1);
	/* Cut between characters: no replacement characters either. */
	says_not(problem(0), "\xef\xbf\xbd");
	says(problem(1), "'name'");
	for (at = problem(1); *at != '\0'; at++)
		assert_true((unsigned char)*at >= ' ');
	for (at = note(0); *at != '\0'; at++)
		assert_true((unsigned char)*at >= ' ');
	free(wide);
}

static void
a_sandbox_is_found_by_its_name(void **state)
{
	(void)state;
	load_list("[{\"host\":\"a\"},{\"name\":\"b\",\"host\":\"x\"}]");
	assert_ptr_equal(config_find(&c, "b"), &c.sandboxes[1]);
	assert_null(config_find(&c, "x"));
	assert_null(config_find(&c, ""));
	assert_null(config_find(&c, "B"));
}

static void
without_a_name_the_active_one_is_picked(void **state)
{
	struct err err;

	(void)state;
	load_list("[{\"host\":\"a\"},{\"host\":\"b\"}]");
	assert_string_equal(config_pick(&c, NULL, "b", &err)->name, "b");
	assert_string_equal(config_pick(&c, "", "b", &err)->name, "b");
	assert_string_equal(config_pick(&c, " ", "b", &err)->name, "b");
	assert_string_equal(config_pick(&c, "a", "b", &err)->name, "a");
}

/* Else work that was meant for one machine runs on another. */
static void
behind_a_broken_entry_none_is_the_default(void **state)
{
	static const char *const broken[] = {
		"[{\"host\":\"a\",\"port\":\"x\"},{\"host\":\"b\"}]",
		"[1,{\"host\":\"b\"}]",
		("[{\"host\":\"a\",\"name\":\"n\"},{\"host\":\"b\"},"
		 "{\"host\":\"c\",\"name\":\"n\"}]"),
		"[{\"host\":\"a\"",
		"{}",
	};
	struct err err;
	size_t i;

	(void)state;
	write_file("[{\"host\":\"f\"}]", 0600);
	for (i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		load_list(broken[i]);
		assert_non_null(c.no_default);
		assert_null(config_pick(&c, "", "", &err));
		says(err.msg, c.no_default);
		says(err.msg, "no sandbox is active");
		assert_string_equal(config_pick(&c, "f", "", &err)->name, "f");
		assert_string_equal(config_pick(&c, "", "f", &err)->name, "f");
	}
	load_list("[{\"host\":\"b\"},{\"host\":\"a\",\"port\":\"x\"}]");
	assert_int_equal(problems(), 1);
	assert_null(c.no_default);
}

static void
an_unknown_name_is_told_with_those_there_are(void **state)
{
	struct err err;

	(void)state;
	load_list("[{\"host\":\"a\"},{\"host\":\"b\"}]");
	assert_null(config_pick(&c, "zzz", "a", &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "'zzz'");
	says(err.msg, "a, b");
}

static void
long_names_are_cut_between_characters(void **state)
{
	char *wide = repeated("\xe7\xae\xb1", 200);
	struct err err;
	struct buf b;
	int i;

	(void)state;
	buf_init(&b, SIZE_MAX);
	for (i = 0; i < 40; i++)
		buf_addf(&b, "%s{\"host\":\"h\",\"name\":\"%d%s\"}",
		    i > 0 ? "," : "[", i, wide);
	buf_adds(&b, "]");
	load_list(b.data);
	assert_int_equal(c.count, 40);
	assert_null(config_pick(&c, wide, "x", &err));
	says(err.msg, "available");
	says(err.msg, "...");
	assert_true(utf8_valid(err.msg, strlen(err.msg)));
	buf_free(&b);
	free(wide);
}

static void
without_a_usable_one_the_error_says_how_to_mend_it(void **state)
{
	struct err err;

	(void)state;
	load();
	assert_null(config_pick(&c, NULL, NULL, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "REMOTE_SANDBOX_LIST");
	load_list("[{\"name\":\"x\",\"host\":\"a b\"}]");
	assert_null(config_pick(&c, "x", NULL, &err));
	assert_int_equal(err.code, ERR_INVALID);
	says(err.msg, "Sandbox configuration error");
	says(err.msg, "entry 1 (x)");
	says(err.msg, "'host'");
	says(err.msg, "list_sandboxes");
}

static void
lists_may_be_added_one_by_one(void **state)
{
	(void)state;
	load();
	config_add_list(&c, BYTES("[{\"host\":\"a\"}]"), "here", NULL,
	    CONFIG_OURS);
	config_add_list(&c, BYTES("[{\"host\":\"b\"}]garbage"), "there", NULL,
	    CONFIG_OURS);
	names_are("a");
	assert_int_equal(problems(), 1);
	says(problem(0), "there");
	config_add_list(&c, "", 0, "nowhere", NULL, CONFIG_OURS);
	assert_int_equal(problems(), 2);
	config_add_list(&c,
	    BYTES("[{\"host\":\"k\",\"key_file\":\"~/k\"},"
	          "{\"host\":\"s\",\"password\":\"x\"}]"),
	    "shared", NULL, CONFIG_READABLE);
	assert_int_equal(problems(), 4);
	names_are("a");
}

static void
the_environment_is_read(void **state)
{
	static const char *const names[] = { "REMOTE_SANDBOX_LIST",
		"REMOTE_HOST", "REMOTE_PORT", "REMOTE_USER", "REMOTE_PASSWORD",
		"REMOTE_KEY_FILE", "REMOTE_KEY_PASSPHRASE" };
	struct config_sources got;
	char *path;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		setenv(names[i], names[i], 1);
	setenv("HOME", "/home/ann", 1);
	setenv("XDG_CONFIG_HOME", "/xdg", 1);
	config_sources(&got, NULL, &path);
	assert_string_equal(got.list, "REMOTE_SANDBOX_LIST");
	assert_string_equal(got.host, "REMOTE_HOST");
	assert_string_equal(got.port, "REMOTE_PORT");
	assert_string_equal(got.user, "REMOTE_USER");
	assert_string_equal(got.password, "REMOTE_PASSWORD");
	assert_string_equal(got.key_file, "REMOTE_KEY_FILE");
	assert_string_equal(got.key_passphrase, "REMOTE_KEY_PASSPHRASE");
	assert_string_equal(got.home, "/home/ann");
	assert_string_equal(got.file, "/xdg/remote-sandbox-mcp/config.json");
	assert_false(got.file_named);
	free(path);

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	/* One that is relative does not count, says its standard. */
	setenv("XDG_CONFIG_HOME", "relative", 1);
	config_sources(&got, NULL, &path);
	assert_null(got.list);
	assert_null(got.password);
	assert_string_equal(got.file,
	    "/home/ann/.config/remote-sandbox-mcp/config.json");
	free(path);

	unsetenv("XDG_CONFIG_HOME");
	unsetenv("HOME");
	config_sources(&got, NULL, &path);
	assert_null(got.file);
	assert_null(got.home);
	src = got;
	load();
	nothing_said();
	free(path);

	config_sources(&got, "my.json", &path);
	assert_string_equal(got.file, "my.json");
	assert_true(got.file_named);
	free(path);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(no_source_is_no_sandbox_and_no_problem),
		TEST(a_list_gives_its_entries_in_order),
		TEST(a_list_may_stand_in_an_object),
		TEST(a_list_that_is_none_is_told),
		TEST(broken_json_is_told_with_its_place_and_nothing_of_it),
		TEST(a_broken_entry_is_left_out_and_the_others_stay),
		TEST(there_may_be_a_thousand_and_no_more),
		TEST(single_variables_are_one_sandbox),
		TEST(blanks_around_single_variables_do_not_count),
		TEST(a_wrong_single_variable_is_told),
		TEST(a_password_in_another_encoding_is_kept),
		TEST(names_in_another_encoding_are_told),
		TEST(the_list_beats_single_variables),
		TEST(the_file_is_added_behind_the_environment),
		TEST(an_entry_of_our_own_comes_before_all_others),
		TEST(the_environment_wins_over_the_file_and_says_so),
		TEST(a_missing_file_matters_only_if_it_was_named),
		TEST(a_file_that_cannot_be_read_is_told),
		TEST(what_others_can_read_or_write_holds_no_secret_or_command),
		TEST(two_entries_with_one_name_are_both_left_out),
		TEST(default_names_that_collide_get_their_port),
		TEST(default_names_that_still_collide_are_told),
		TEST(names_are_unique_whatever_comes),
		TEST(unknown_fields_are_noted),
		TEST(secrets_are_never_said),
		TEST(what_is_said_is_text_without_control_characters),
		TEST(a_sandbox_is_found_by_its_name),
		TEST(without_a_name_the_active_one_is_picked),
		TEST(behind_a_broken_entry_none_is_the_default),
		TEST(an_unknown_name_is_told_with_those_there_are),
		TEST(long_names_are_cut_between_characters),
		TEST(without_a_usable_one_the_error_says_how_to_mend_it),
		TEST(lists_may_be_added_one_by_one),
		TEST(the_environment_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
