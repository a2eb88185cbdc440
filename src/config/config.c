/* Sandboxes from the environment and the configuration file. */
#include "config/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"

/* How much of a name a message repeats. */
#define NAME_SHOWN 80

static void
say(json_t *list, const char *where, const char *what)
{
	struct buf b;
	size_t i;

	buf_init(&b, 4096);
	buf_addf(&b, "%s: %s", where, what);
	for (i = 0; i < b.len; i++) {
		if ((unsigned char)b.data[i] < ' ' || b.data[i] == 0x7f)
			b.data[i] = ' ';
	}
	json_array_append_new(list, utf8_json(b.data, b.len));
	buf_free(&b);
}

static const char *
last_problem(const struct config *c)
{
	return json_string_value(
	    json_array_get(c->problems, json_array_size(c->problems) - 1));
}

/* Of what was to come behind the sandboxes that there are now. */
static void
complain(struct config *c, const char *where, const char *what)
{
	say(c->problems, where, what);
	if (c->count == 0 && c->no_default == NULL)
		c->no_default = last_problem(c);
}

static void
append(struct config *c, struct sandbox *sb)
{
	c->sandboxes =
	    xreallocarray(c->sandboxes, c->count + 1, sizeof(*c->sandboxes));
	c->sandboxes[c->count++] = *sb;
}

static void
note_unknown(struct config *c, const char *where, const json_t *unknown)
{
	const json_t *name;
	size_t i;

	json_array_foreach (unknown, i, name) {
		struct buf b;

		buf_init(&b, 1024);
		buf_addf(&b, "field '%s' is not known and ignored",
		    json_string_value(name));
		say(c->notes, where, b.data);
		buf_free(&b);
	}
}

/* One entry; "where" says which. */
static void
add_entry(struct config *c, const json_t *entry, const char *where,
    const char *home, unsigned open)
{
	json_t *unknown = json_array();
	struct sandbox sb;
	struct err err;

	if (sandbox_parse(&sb, entry, home, unknown, &err) == -1) {
		complain(c, where, err.msg);
		sandbox_free(&sb);
	} else if ((open & CONFIG_READABLE) != 0 && sandbox_has_secret(&sb)) {
		complain(c, where,
		    "holds a password or passphrase in a file that others can "
		    "read; run chmod 600 on it");
		sandbox_free(&sb);
	} else if ((open & CONFIG_WRITABLE) != 0 && sandbox_has_command(&sb)) {
		complain(c, where,
		    "names a command to run here, in a file that others can "
		    "write, or that is another user's; run chmod 600 on it, "
		    "and chown if it is not yours");
		sandbox_free(&sb);
	} else {
		note_unknown(c, where, unknown);
		sb.source = xstrdup(where);
		append(c, &sb);
	}
	json_decref(unknown);
}

/* "REMOTE_SANDBOX_LIST entry 2 (gpu1)" */
static char *
entry_place(const char *where, size_t i, const json_t *entry)
{
	const char *name = decode_text(json_object_get(entry, "name"));

	if (name == NULL)
		name = decode_text(json_object_get(entry, "host"));
	if (name == NULL)
		return xasprintf("%s, entry %zu", where, i + 1);
	return xasprintf("%s, entry %zu (%.*s)", where, i + 1,
	    (int)utf8_cut(name, strlen(name), NAME_SHOWN), name);
}

void
config_add_list(struct config *c, const char *text, size_t len,
    const char *where, const char *home, unsigned open)
{
	struct err err;
	json_t *root = decode_json(text, len, &err);
	const json_t *list = root, *entry;
	char *place;
	size_t i;

	if (root == NULL) {
		complain(c, where, err.msg);
		return;
	}
	if (json_is_object(root))
		list = json_object_get(root, "sandboxes");
	if (!json_is_array(list))
		complain(c, where,
		    "must be a JSON array of objects, each with at least a "
		    "\"host\"");
	else if (json_array_size(list) > CONFIG_SANDBOXES_MAX)
		complain(c, where, "lists more than 1000 sandboxes");
	else
		json_array_foreach (list, i, entry) {
			place = entry_place(where, i, entry);
			add_entry(c, entry, place, home, open);
			free(place);
		}
	json_decref(root);
}

static void
set(json_t *o, const char *field, const char *value)
{
	/* Not checked to be UTF-8: a password may be anything. */
	if (value != NULL && value[0] != '\0')
		json_object_set_new(o, field, json_string_nocheck(value));
}

/* A copy without the white space around it; NULL if nothing is left. */
static char *
trimmed(const char *s)
{
	size_t len;

	if (str_blank(s))
		return NULL;
	s += strspn(s, " \t\r\n");
	for (len = strlen(s); strchr(" \t\r\n", s[len - 1]) != NULL; len--)
		;
	return xstrndup(s, len);
}

/* REMOTE_HOST and its companions as one entry. */
static void
add_single(struct config *c, const struct config_sources *src)
{
	json_t *entry = json_object();
	char *host = trimmed(src->host);
	char *port = trimmed(src->port);
	char *user = trimmed(src->user);
	char *key = trimmed(src->key_file);

	set(entry, "host", host);
	set(entry, "port", port);
	set(entry, "user", user);
	set(entry, "key_file", key);
	set(entry, "password", src->password);
	set(entry, "key_passphrase", src->key_passphrase);
	add_entry(c, entry, "REMOTE_HOST", src->home, CONFIG_OURS);
	json_decref(entry);
	free(host);
	free(port);
	free(user);
	free(key);
}

/* Last, so that it never changes which sandbox is the active one.  A project's
 * file says nothing to who has others: whoever wrote that project would choose
 * where the work of its user goes. */
static void
add_ssh_host(struct config *c, const struct config_sources *src)
{
	const char *where =
	    src->ssh->from_file ? "SSH_HOST in .env" : "SSH_HOST";
	size_t before = c->count;
	char *note = NULL;
	struct err err;
	json_t *entry;

	if (src->ssh->note != NULL)
		say(c->notes, "SSH_HOST", src->ssh->note);
	if (sshhost_given(src->ssh) && src->ssh->from_file &&
	    (c->count > 0 || json_array_size(c->problems) > 0)) {
		say(c->notes, where,
		    "is not used, as there are other sandboxes; set SSH_HOST "
		    "in the environment to have it as well");
		return;
	}
	c->ssh_host_set = sshhost_given(src->ssh);
	if (!c->ssh_host_set)
		return;
	entry = sshhost_entry(src->ssh, src->home, &note, &err);
	if (note != NULL)
		say(c->notes, where, note);
	free(note);
	if (entry == NULL) {
		complain(c, where, err.msg);
		return;
	}
	if (config_find(c, json_string_value(json_object_get(entry, "name"))))
		json_object_set_new(entry, "name", json_string("SSH_HOST"));
	add_entry(c, entry, where, src->home, CONFIG_OURS);
	if (c->count > before)
		c->sandboxes[before].ssh_host = true;
	json_decref(entry);
}

static unsigned
openness(const char *path)
{
	unsigned open = CONFIG_OURS;
	struct stat st;

	if (stat(path, &st) == -1)
		return CONFIG_OURS;
	if (fs_others_write(&st))
		open |= CONFIG_WRITABLE;
	if ((st.st_mode & 077) != 0)
		open |= CONFIG_READABLE;
	return open;
}

static void
add_file(struct config *c, const struct config_sources *src)
{
	struct buf text;
	struct err err;

	buf_init(&text, CONFIG_FILE_MAX);
	if (fs_read(src->file, &text, &err) == 0)
		config_add_list(c, text.data, text.len, src->file, src->home,
		    openness(src->file));
	else if (err.code != ERR_NOT_FOUND || src->file_named)
		complain(c, src->file, err.msg);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
}

static void
drop(struct config *c, size_t i)
{
	sandbox_free(&c->sandboxes[i]);
	memmove(&c->sandboxes[i], &c->sandboxes[i + 1],
	    (c->count - i - 1) * sizeof(c->sandboxes[0]));
	c->count--;
}

/* Another entry before "end" with the name of entry "i"? */
static bool
name_taken(const struct config *c, size_t i, size_t begin, size_t end)
{
	size_t k;

	for (k = begin; k < end; k++) {
		if (k != i &&
		    strcmp(c->sandboxes[k].name, c->sandboxes[i].name) == 0)
			return true;
	}
	return false;
}

/* Names that came from the host and collide become host:port. */
static void
spread_default_names(struct config *c, size_t begin)
{
	bool *clash = xcalloc(c->count + 1, sizeof(*clash));
	size_t i;

	for (i = begin; i < c->count; i++)
		clash[i] =
		    !c->sandboxes[i].named && name_taken(c, i, begin, c->count);
	for (i = begin; i < c->count; i++) {
		struct sandbox *sb = &c->sandboxes[i];

		if (!clash[i] || sb->port == 0)
			continue;
		free(sb->name);
		sb->name = xasprintf("%s:%d", sb->host, sb->port);
	}
	free(clash);
}

/* Entries from "begin" on come from one source: names must differ there. */
static void
drop_duplicates(struct config *c, size_t begin)
{
	bool *clash = xcalloc(c->count + 1, sizeof(*clash));
	size_t i;

	for (i = begin; i < c->count; i++)
		clash[i] = name_taken(c, i, begin, c->count);
	for (i = begin; i < c->count; i++) {
		if (!clash[i])
			continue;
		complain(c, c->sandboxes[i].source,
		    "another entry has the same name; give each its own "
		    "\"name\"");
		if (i == 0)
			c->no_default = last_problem(c);
	}
	for (i = c->count; i-- > begin;) {
		if (clash[i])
			drop(c, i);
	}
	free(clash);
}

/* Entries of the file whose name the environment has already. */
static void
drop_shadowed(struct config *c, size_t begin)
{
	size_t i;

	for (i = c->count; i-- > begin;) {
		if (!name_taken(c, i, 0, begin))
			continue;
		say(c->notes, c->sandboxes[i].source,
		    "not used: the environment has a sandbox of this name");
		drop(c, i);
	}
}

void
config_load(struct config *c, const struct config_sources *src)
{
	const char *list = src->list != NULL ? src->list : "";
	size_t from_env;

	memset(c, 0, sizeof(*c));
	c->problems = json_array();
	c->notes = json_array();
	c->list_set = !str_blank(src->list);
	c->list_length = strlen(list);
	c->host_set = !str_blank(src->host);
	if (src->first != NULL)
		add_entry(c, src->first, "--local", src->home, CONFIG_OURS);
	if (c->count > 0)
		c->sandboxes[0].throwaway = true;
	if (c->list_set)
		config_add_list(c, list, c->list_length, "REMOTE_SANDBOX_LIST",
		    src->home, CONFIG_OURS);
	else if (c->host_set)
		add_single(c, src);
	spread_default_names(c, 0);
	drop_duplicates(c, 0);
	from_env = c->count;
	if (src->file != NULL)
		add_file(c, src);
	spread_default_names(c, from_env);
	drop_duplicates(c, from_env);
	drop_shadowed(c, from_env);
	if (src->ssh != NULL)
		add_ssh_host(c, src);
}

void
config_free(struct config *c)
{
	while (c->count > 0)
		drop(c, c->count - 1);
	free(c->sandboxes);
	json_decref(c->problems);
	json_decref(c->notes);
	memset(c, 0, sizeof(*c));
}

const struct sandbox *
config_find(const struct config *c, const char *name)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		if (strcmp(c->sandboxes[i].name, name) == 0)
			return &c->sandboxes[i];
	}
	return NULL;
}

static int
none_usable(const struct config *c, struct err *err)
{
	if (json_array_size(c->problems) > 0)
		return err_set(err, ERR_INVALID,
		    "Sandbox configuration error: %s (list_sandboxes shows "
		    "all problems)",
		    json_string_value(json_array_get(c->problems, 0)));
	return err_set(err, ERR_NOT_FOUND,
	    "no sandboxes are configured; 'remote-sandbox-mcp setup' adds one, "
	    "or write a JSON array such as [{\"host\": \"gpu1\"}] to "
	    "~/.config/remote-sandbox-mcp/config.json or into the variable "
	    "REMOTE_SANDBOX_LIST of this server; or set SSH_HOST to one "
	    "machine that ssh knows");
}

/* Why an entry of this name was left out: "..., entry 2 (gpu1): ..."; or NULL.
 */
static const char *
problem_of(const struct config *c, const char *name)
{
	char *place = xasprintf(" (%.*s): ",
	    (int)utf8_cut(name, strlen(name), NAME_SHOWN), name);
	const char *found = NULL;
	const json_t *problem;
	size_t i;

	json_array_foreach (c->problems, i, problem) {
		if (found == NULL &&
		    strstr(json_string_value(problem), place) != NULL)
			found = json_string_value(problem);
	}
	free(place);
	return found;
}

static void
add_names(const struct config *c, struct buf *out)
{
	size_t i;

	buf_init(out, 4096);
	for (i = 0; i < c->count && out->len < 512; i++)
		buf_addf(out, "%s%.*s", i > 0 ? ", " : "",
		    (int)utf8_cut(c->sandboxes[i].name,
		        strlen(c->sandboxes[i].name), NAME_SHOWN),
		    c->sandboxes[i].name);
	if (i < c->count)
		buf_adds(out, ", ...");
}

const struct sandbox *
config_pick(const struct config *c, const char *name, const char *active,
    struct err *err)
{
	const struct sandbox *sb;
	const char *problem;
	struct buf names;

	if (c->count == 0) {
		none_usable(c, err);
		return NULL;
	}
	if (str_blank(name))
		name = active;
	sb = config_find(c, name);
	if (sb != NULL)
		return sb;
	add_names(c, &names);
	problem = str_blank(name) ? c->no_default : problem_of(c, name);
	if (str_blank(name))
		err_set(err, ERR_INVALID,
		    "no sandbox is active, as the one to be it cannot be used: "
		    "Sandbox configuration error: %s; mend it, or choose "
		    "another by sandbox_name or select_sandbox: %s",
		    problem != NULL ? problem : "none was chosen", names.data);
	else
		err_set(err, ERR_NOT_FOUND, "%s '%.*s'%s%s; available: %s",
		    problem != NULL ? "cannot use sandbox" : "unknown sandbox",
		    (int)utf8_cut(name, strlen(name), NAME_SHOWN), name,
		    problem != NULL ? ": Sandbox configuration error: " : "",
		    problem != NULL ? problem : "", names.data);
	buf_free(&names);
	return NULL;
}

const struct sandbox *
config_pick_ssh_host(const struct config *c, const char *active,
    struct err *err)
{
	const char *why = "no machine";
	const json_t *problem;
	size_t i;

	if (!c->ssh_host_set)
		return config_pick(c, "", active, err);
	for (i = 0; i < c->count; i++) {
		if (c->sandboxes[i].ssh_host)
			return &c->sandboxes[i];
	}
	json_array_foreach (c->problems, i, problem) {
		if (str_starts(json_string_value(problem), "SSH_HOST"))
			why = json_string_value(problem);
	}
	err_set(err, ERR_INVALID, "Sandbox configuration error: %s", why);
	return NULL;
}

/* config.json in the directory where this system keeps configuration. */
static char *
default_file(const char *home)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");

	if (xdg != NULL && xdg[0] == '/')
		return xasprintf("%s/remote-sandbox-mcp/config.json", xdg);
	if (home == NULL)
		return NULL;
	return xasprintf("%s/.config/remote-sandbox-mcp/config.json", home);
}

void
config_sources(struct config_sources *src, const char *file, char **path)
{
	memset(src, 0, sizeof(*src));
	src->list = getenv("REMOTE_SANDBOX_LIST");
	src->host = getenv("REMOTE_HOST");
	src->port = getenv("REMOTE_PORT");
	src->user = getenv("REMOTE_USER");
	src->password = getenv("REMOTE_PASSWORD");
	src->key_file = getenv("REMOTE_KEY_FILE");
	src->key_passphrase = getenv("REMOTE_KEY_PASSPHRASE");
	src->home = getenv("HOME");
	src->file_named = file != NULL;
	*path = file != NULL ? xstrdup(file) : default_file(src->home);
	src->file = *path;
}

void
config_forget_env(void)
{
	unsetenv("REMOTE_SANDBOX_LIST");
	unsetenv("REMOTE_PASSWORD");
	unsetenv("REMOTE_KEY_PASSPHRASE");
}
