/* Setting up: the sandbox and the configuration file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "cli/setup.h"
#include "config/config.h"
#include "config/jsonc.h"
#include "config/sshnames.h"

/* --- which machine --------------------------------------------------------
 */

/* Where the port's colon is, or the end of the text. */
static const char *
port_colon(const char *host)
{
	const char *bracket = host[0] == '[' ? strchr(host, ']') : NULL;
	const char *colon = strrchr(bracket != NULL ? bracket : host, ':');

	/* More than one and no bracket: an address of IPv6. */
	if (colon == NULL || (bracket == NULL && strchr(host, ':') != colon))
		return host + strlen(host);
	return colon;
}

json_t *
setup_parse_host(const char *text, struct err *err)
{
	const char *at = strrchr(text, '@'), *host = at != NULL ? at + 1 : text;
	const char *colon = port_colon(host);
	size_t len = (size_t)(colon - host);
	json_t *o = json_object();
	int64_t port;

	if (len > 2 && host[0] == '[' && host[len - 1] == ']') {
		host++;
		len -= 2;
	}
	if (len == 0 ||
	    json_object_set_new(o, "host", json_stringn(host, len)) == -1 ||
	    (at != NULL &&
	        json_object_set_new(o, "user",
	            json_stringn(text, (size_t)(at - text))) == -1)) {
		err_set(err, ERR_INVALID,
		    "'%s' is not of the form [user@]host[:port]", text);
		json_decref(o);
		return NULL;
	}
	if (*colon == '\0')
		return o;
	if (str_to_int(colon + 1, 1, 65535, &port) == -1) {
		err_set(err, ERR_INVALID,
		    "'%s': a port is a number from 1 to 65535", text);
		json_decref(o);
		return NULL;
	}
	json_object_set_new(o, "port", json_integer(port));
	return o;
}

static void
ask_name(const struct setup *s, json_t *entry)
{
	char *prompt = xasprintf("Its name here [%s]: ",
	    json_string_value(json_object_get(entry, "host")));
	char *name = setup_ask(s, prompt);

	free(prompt);
	if (!str_blank(name))
		json_object_set_new(entry, "name", json_string(name));
	free(name);
}

int
setup_choose_sandbox(struct setup *s, struct err *err)
{
	json_t *hosts = sshnames(s->home);
	const json_t *v;
	int64_t number;
	char *line;
	size_t i;

	if (json_array_size(hosts) > 0)
		printf("Machines of your ssh configuration:\n");
	json_array_foreach (hosts, i, v) {
		printf("  %2zu  %s\n", i + 1, json_string_value(v));
	}
	line = setup_ask(s,
	    "Which machine shall agents use? A number, a name, "
	    "or user@host:port (empty: none): ");
	if (str_blank(line)) {
		free(line);
		json_decref(hosts);
		return 0;
	}
	if (str_to_int(line, 1, (int64_t)json_array_size(hosts), &number) == 0)
		s->entry = json_pack("{s:O}", "host",
		    json_array_get(hosts, (size_t)number - 1));
	else
		s->entry = setup_parse_host(line, err);
	free(line);
	json_decref(hosts);
	if (s->entry == NULL)
		return -1;
	ask_name(s, s->entry);
	return 0;
}

/* --- the file -------------------------------------------------------------
 */

/* Is the entry sound? */
static int
check_entry(const struct setup *s, struct err *err)
{
	json_t *unknown = json_array();
	struct sandbox sb;
	int rc = sandbox_parse(&sb, s->entry, s->home, unknown, err);

	sandbox_free(&sb);
	json_decref(unknown);
	return rc;
}

char *
setup_whole_path(const char *path)
{
	char *here = getcwd(NULL, 0);
	char *whole = path_join(here != NULL ? here : "/", path);

	free(here);
	return whole;
}

char *
setup_config_path(const struct setup *s, struct err *err)
{
	struct config_sources src;
	char *path, *whole;

	config_sources(&src, s->config_file, &path);
	if (path == NULL) {
		err_set(err, ERR_NOT_FOUND,
		    "HOME is not set; name the configuration file by --config");
		return NULL;
	}
	whole = setup_whole_path(path);
	free(path);
	return whole;
}

/* The names of the list in the file: none, for a file that is a list. */
static const char *const *
list_path(const json_t *root)
{
	static const char *const whole[] = { NULL };
	static const char *const inner[] = { "sandboxes", NULL };

	return json_is_object(root) ? inner : whole;
}

static const char *
entry_name(const json_t *entry)
{
	const char *name = decode_text(json_object_get(entry, "name"));

	return name != NULL && name[0] != '\0'
	    ? name
	    : decode_text(json_object_get(entry, "host"));
}

/* The index of the entry of this name in the file, or -1. */
static int
find_entry(const json_t *root, const char *name, const json_t **found)
{
	const json_t *list =
	    json_is_object(root) ? json_object_get(root, "sandboxes") : root;
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		if (entry_name(entry) != NULL &&
		    strcmp(entry_name(entry), name) == 0) {
			*found = entry;
			return (int)i;
		}
	}
	return -1;
}

/* What the file says; an empty list if it says nothing.  The server reads it
 * as plain JSON. */
static json_t *
read_config(const struct change *c, struct err *err)
{
	json_t *root;

	if (str_blank(c->before.data))
		return json_array();
	root = decode_json(c->before.data, c->before.len, err);
	if (root == NULL)
		err_wrap(err, "%s", c->path);
	return root;
}

static int
add_entry(const struct setup *s, struct change *c, struct err *err)
{
	static const char *const member[] = { "sandboxes", NULL };
	const char *name = entry_name(s->entry);
	json_t *root = read_config(c, err), *list;
	const json_t *old = NULL;
	int rc = 0;

	if (root == NULL)
		return -1;
	if (find_entry(root, name, &old) >= 0 && !json_equal(old, s->entry)) {
		rc = err_set(err, ERR_INVALID,
		    "%s has a sandbox '%s' already; give this one another "
		    "--name, or remove that one first: setup --remove "
		    "--sandbox %s",
		    c->path, name, name);
	} else if (old != NULL) {
		buf_add(&c->after, c->before.data, c->before.len);
	} else if (json_is_object(root) &&
	    json_object_get(root, "sandboxes") == NULL) {
		list = json_pack("[O]", s->entry);
		rc = jsonc_set(&c->after, c->before.data, c->before.len, member,
		    list, err);
		json_decref(list);
	} else {
		rc = jsonc_append(&c->after, c->before.data, c->before.len,
		    list_path(root), s->entry, err);
	}
	json_decref(root);
	return rc;
}

static int
cut_entry(const struct setup *s, struct change *c, struct err *err)
{
	json_t *root = read_config(c, err);
	const json_t *old = NULL;
	int index, rc;

	if (root == NULL)
		return -1;
	index = find_entry(root, s->sandbox, &old);
	if (index == -1)
		rc = err_set(err, ERR_NOT_FOUND, "%s has no sandbox '%s'",
		    c->path, s->sandbox);
	else
		rc = jsonc_remove_item(&c->after, c->before.data, c->before.len,
		    list_path(root), (size_t)index, err);
	json_decref(root);
	return rc;
}

/* The file as it is.  change_free() in both cases. */
static int
open_config(const struct setup *s, struct change *c, struct err *err)
{
	char *path = setup_config_path(s, err);
	int rc;

	memset(c, 0, sizeof(*c));
	if (path == NULL)
		return -1;
	rc = change_init(c, path, err);
	free(path);
	return rc;
}

int
setup_look_at_config(const struct setup *s, struct err *err)
{
	struct change c;
	json_t *root = NULL;
	int rc = open_config(s, &c, err);

	if (rc == 0) {
		root = read_config(&c, err);
		rc = root == NULL ? -1 : 0;
	}
	json_decref(root);
	change_free(&c);
	return rc;
}

/* Can the entry be added to the file? */
static int
try_change(const struct setup *s, struct err *err)
{
	struct change c;
	int rc = open_config(s, &c, err);

	if (rc == 0)
		rc = add_entry(s, &c, err);
	if (rc == 0 && !s->dry_run)
		rc = change_allowed(&c, err);
	change_free(&c);
	return rc;
}

static int
change_config(const struct setup *s, const char *name, struct err *err)
{
	struct change c;
	char *what;
	int rc = open_config(s, &c, err);

	if (rc == 0)
		rc = s->remove ? cut_entry(s, &c, err) : add_entry(s, &c, err);
	what = xasprintf("sandbox %s", name);
	if (rc == 0)
		rc = setup_change(s, &c, what, err);
	free(what);
	change_free(&c);
	return rc;
}

int
setup_sandbox(struct setup *s, struct err *err)
{
	/* What cannot be added need not be tried. */
	if (check_entry(s, err) == -1 || try_change(s, err) == -1)
		return -1;
	if (!s->dry_run && !s->no_test && setup_test(s, err) == -1)
		return -1;
	return change_config(s, entry_name(s->entry), err);
}

int
setup_forget_sandbox(const struct setup *s, struct err *err)
{
	return change_config(s, s->sandbox, err);
}
