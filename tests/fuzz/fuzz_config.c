/*
 * Whatever a list of sandboxes says, each entry is taken or told about, what
 * is taken is fit for a command line, and no secret is in what is told.
 *
 * The first byte says whether others can read the list and whether there is
 * a home directory; the rest is the list.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/utf8.h"
#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Put in place of every secret string. */
#define SECRET "hunter2-hunter2"

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_line(const char *s)
{
	const unsigned char *c;

	if (s == NULL)
		return;
	must(utf8_valid(s, strlen(s)));
	for (c = (const unsigned char *)s; *c != '\0'; c++)
		must(*c >= ' ' && *c != 0x7f);
}

static void
check_word(const char *s)
{
	check_line(s);
	must(s[0] != '\0' && s[0] != '-' && strchr(s, ' ') == NULL);
}

static void
check_list(const json_t *list)
{
	const json_t *v;
	size_t i;

	must(list == NULL || json_is_array(list));
	json_array_foreach (list, i, v) {
		must(json_is_string(v));
		must(strlen(json_string_value(v)) == json_string_length(v));
	}
}

static void
check_options(const json_t *list)
{
	const json_t *v;
	size_t i;

	check_list(list);
	json_array_foreach (list, i, v) {
		const char *s = json_string_value(v);

		check_line(s);
		must(strchr(s, '=') != NULL);
		must(strncasecmp(s, "Proxycommand", 12) != 0);
		must(strncasecmp(s, "Local", 5) != 0);
	}
}

static void
check_sandbox(const struct sandbox *sb, bool shared)
{
	check_word(sb->host);
	check_line(sb->name);
	must(sb->name[0] != '\0');
	if (sb->user != NULL)
		check_word(sb->user);
	must(sb->port >= 0 && sb->port <= 65535);
	check_line(sb->key_file);
	check_line(sb->host_key);
	check_line(sb->workdir);
	check_line(sb->source);
	check_list(sb->password_command);
	check_list(sb->key_passphrase_command);
	check_options(sb->ssh_options);
	must(sb->connect_timeout_s >= 1 && sb->connect_timeout_s <= 600);
	must(sb->control_persist_s >= 1 && sb->control_persist_s <= 86400);
	must(!shared || !sandbox_has_secret(sb));
}

static void
check_said(const json_t *list, bool hidden)
{
	const json_t *v;
	size_t i;

	must(json_is_array(list));
	json_array_foreach (list, i, v) {
		check_line(json_string_value(v));
		must(!hidden || strstr(json_string_value(v), SECRET) == NULL);
	}
}

/* Make the strings of secret fields the secret.  Is there one? */
static bool
hide(json_t *root)
{
	json_t *list =
	    json_is_object(root) ? json_object_get(root, "sandboxes") : root;
	static const char *const fields[] = { "password", "key_passphrase" };
	bool hidden = false;
	json_t *entry;
	size_t i, f;

	json_array_foreach (list, i, entry) {
		for (f = 0; f < 2; f++) {
			if (!json_is_string(json_object_get(entry, fields[f])))
				continue;
			json_object_set_new(entry, fields[f],
			    json_string(SECRET));
			hidden = true;
		}
	}
	return hidden;
}

static void
check_list_text(const char *text, size_t len, uint8_t how, bool hidden)
{
	struct config_sources none = { 0 };
	bool shared = how & 1, writable = shared && (how & 4) != 0;
	struct config c;
	size_t i;

	config_load(&c, &none);
	config_add_list(&c, text, len, "here", how & 2 ? NULL : "/home/ann",
	    (shared ? CONFIG_READABLE : 0u) |
	        (writable ? CONFIG_WRITABLE : 0u));
	must(c.count <= CONFIG_SANDBOXES_MAX);
	for (i = 0; i < c.count; i++)
		check_sandbox(&c.sandboxes[i], shared);
	check_said(c.problems, hidden);
	check_said(c.notes, hidden);
	config_free(&c);
}

/* The whole way, where names become unique. */
static void
check_names(const char *text)
{
	struct config_sources src = { .list = text, .home = "/home/ann" };
	struct config c;
	size_t i, k;

	config_load(&c, &src);
	for (i = 0; i < c.count && i < 50; i++) {
		for (k = 0; k < i; k++)
			must(strcmp(c.sandboxes[i].name, c.sandboxes[k].name) !=
			    0);
		must(config_find(&c, c.sandboxes[i].name) == &c.sandboxes[i]);
	}
	config_free(&c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data + 1;
	json_t *root;
	struct buf text;
	char *again;

	if (size < 1)
		return 0;
	check_list_text(s, size - 1, data[0], false);
	buf_init(&text, SIZE_MAX);
	buf_add(&text, s, size - 1);
	check_names(text.data);

	root = json_loadb(s, size - 1, JSON_ALLOW_NUL, NULL);
	if (root != NULL && strstr(text.data, SECRET) == NULL && hide(root)) {
		again = json_dumps(root, 0);
		check_list_text(again, strlen(again), data[0], true);
		free(again);
	}
	json_decref(root);
	buf_free(&text);
	return 0;
}
