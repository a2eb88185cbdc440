/* Records of sandboxes for the watchdog. */
#include "config/keep.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/config.h"
#include "config/dirs.h"
#include "config/keyring_inside.h"

#define KEPT_DIR "kept"
#define RECORD_MAX ((size_t)1 << 20)
#define RECORDS_MAX 10000

static const char *const fields[] = { "password", "key_passphrase", NULL };

void
kept_free(struct kept *k)
{
	free(k->path);
	free(k->warning);
	memset(k, 0, sizeof(*k));
}

json_t *
kept_json(const struct kept *k)
{
	static const char *const places[] = { "none", "keyring", "file" };
	json_t *o = json_object();

	json_object_set_new(o, "config_path",
	    utf8_json(k->path, strlen(k->path)));
	json_object_set_new(o, "sandbox_count", json_integer(1));
	json_object_set_new(o, "key", json_string(k->key));
	json_object_set_new(o, "secrets", json_string(places[k->place]));
	if (k->warning != NULL)
		json_object_set_new(o, "warning",
		    utf8_json(k->warning, strlen(k->warning)));
	return o;
}

/* FNV-1a; the NUL that ends a text counts. */
static uint64_t
mix(uint64_t h, const char *s)
{
	const unsigned char *c = (const unsigned char *)(s != NULL ? s : "");

	do {
		h = (h ^ *c) * 1099511628211u;
	} while (*c++ != '\0');
	return h;
}

void
keep_key(const struct sandbox *sb, char out[KEEP_KEY_SIZE])
{
	uint64_t h = 14695981039346656037u;
	const json_t *item;
	size_t i;

	h = mix(h, sb->name);
	h = mix(h, sb->host);
	h = mix(h, sb->user);
	h = (h ^ (uint64_t)sb->port) * 1099511628211u;
	json_array_foreach (sb->ssh_options, i, item)
		h = mix(h, json_string_value(item));
	snprintf(out, KEEP_KEY_SIZE, "%016llx", (unsigned long long)h);
}

static char *
record_path(const char *key, struct err *err)
{
	char *dir = dirs_state_sub(KEPT_DIR, err);
	char *path = NULL;

	if (dir != NULL)
		path = xasprintf("%s/%s.json", dir, key);
	free(dir);
	return path;
}

/* --- Putting -------------------------------------------------------------- */

static struct secret *
secret_of(struct sandbox *sb, const char *field)
{
	return strcmp(field, "password") == 0 ? &sb->password
	                                      : &sb->key_passphrase;
}

static char *
label_of(const struct sandbox *sb, const char *field)
{
	return xasprintf("%s of %s (remote-sandbox-mcp)", field, sb->name);
}

/* All secrets into the keyring, or none counts as there. */
static int
into_keyring(struct sandbox *sb, const char *key, const struct until *until,
    struct err *err)
{
	int i, rc = 0;

	for (i = 0; fields[i] != NULL && rc == 0; i++) {
		struct keyring_item item = { .key = key, .field = fields[i] };
		char *label;

		if (!secret_given(secret_of(sb, fields[i])))
			continue;
		label = label_of(sb, fields[i]);
		item.label = label;
		rc = keyring_put(&item, secret_of(sb, fields[i]), until, err);
		free(label);
	}
	return rc;
}

/* The text of a record ends up in a buffer that can be wiped: jansson's own
 * copies cannot, so secrets are added behind its back. */
static void
add_secrets(struct buf *out, struct sandbox *sb, enum keep_place place)
{
	const char *between = "";
	int i;

	buf_adds(out, ",\n  \"secrets\": {");
	for (i = 0; fields[i] != NULL; i++) {
		if (!secret_given(secret_of(sb, fields[i])))
			continue;
		buf_addf(out, "%s\"%s\": \"", between, fields[i]);
		if (place == KEEP_KEYRING)
			buf_adds(out, "keyring");
		else {
			buf_adds(out, "hex:");
			keyring_digits(out, secret_of(sb, fields[i]));
		}
		buf_addc(out, '"');
		between = ", ";
	}
	buf_adds(out, "}\n}\n");
}

/* What the daemon reads is not relative to where this server was started. */
static json_t *
entry_of(const struct sandbox *sb)
{
	json_t *entry = sandbox_entry(sb);
	char *cwd, *whole;

	if (sb->key_file != NULL && sb->key_file[0] != '/' &&
	    (cwd = getcwd(NULL, 0)) != NULL) {
		whole = path_join(cwd, sb->key_file);
		if (utf8_valid(whole, strlen(whole)))
			json_object_set_new(entry, "key_file",
			    json_string(whole));
		free(whole);
		free(cwd);
	}
	return entry;
}

/* As text; the value is released. */
static char *
dump(json_t *v)
{
	char *text = json_dumps(v, JSON_INDENT(2));

	if (text == NULL)
		out_of_memory();
	json_decref(v);
	return text;
}

static int
write_record(struct sandbox *sb, const struct kept *k, struct err *err)
{
	json_t *o = json_object();
	struct buf text;
	char *head;
	size_t room, len;
	int rc;

	json_object_set_new(o, "schema_version", json_integer(1));
	json_object_set_new(o, "saved_at", json_integer(time(NULL)));
	json_object_set_new(o, "sandbox", entry_of(sb));
	head = dump(o);
	len = strlen(head);
	buf_init(&text, RECORD_MAX);
	(void)buf_space(&text,
	    len + 256 + 2 * (sb->password.len + sb->key_passphrase.len), &room);
	buf_add(&text, head, len - strlen("\n}"));
	add_secrets(&text, sb, k->place);
	free(head);
	if (text.full)
		rc = err_set(err, ERR_LIMIT, "the entry of %s is too large",
		    sb->name);
	else
		rc = fs_replace(k->path, text.data, text.len, 0600, err);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return rc;
}

int
keep_put(const struct sandbox *given, struct kept *out,
    const struct until *until, struct err *err)
{
	/* Nothing in it is changed; the table of fields wants it so. */
	struct sandbox *sb = (struct sandbox *)(uintptr_t)given;
	struct err why = ERR_INIT;

	memset(out, 0, sizeof(*out));
	keep_key(sb, out->key);
	out->path = record_path(out->key, err);
	if (out->path == NULL)
		return -1;
	if (sandbox_has_secret(sb)) {
		out->place = KEEP_KEYRING;
		if (into_keyring(sb, out->key, until, &why) == -1) {
			if (until_check(until, err) == -1)
				return -1;
			out->place = KEEP_FILE;
			out->warning = xasprintf(
			    "the password or passphrase of %s is now in %s "
			    "(readable by you alone), because there is no "
			    "keyring to keep it in (%s); use a key file, an "
			    "agent or password_command to avoid this",
			    sb->name, out->path, why.msg);
		}
	}
	if (write_record(sb, out, err) == -1)
		return err_wrap(err, "cannot keep %s for the watchdog",
		    sb->name);
	return 0;
}

/* --- Getting -------------------------------------------------------------- */

/* The record as JSON, or NULL. */
static json_t *
read_record(const char *path, struct err *err)
{
	struct buf text;
	struct stat st;
	json_t *o = NULL;

	if (lstat(path, &st) == -1) {
		err_sys(err, "cannot read %s", path);
		return NULL;
	}
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 077) != 0) {
		err_set(err, ERR_DENIED,
		    "%s must be a file that only you can read; run chmod 600 "
		    "on it, or remove it",
		    path);
		return NULL;
	}
	buf_init(&text, RECORD_MAX);
	if (fs_read(path, &text, err) == 0) {
		o = decode_json(text.data, text.len, err);
		if (o == NULL)
			err_wrap(err, "%s", path);
	}
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return o;
}

static int
take_secret(const json_t *secrets, const char *field, const char *key,
    struct sandbox *sb, const struct until *until, struct err *err)
{
	struct keyring_item item = { .key = key, .field = field };
	const json_t *v = json_object_get(secrets, field);
	const char *text = decode_text(v);

	if (v == NULL)
		return 0;
	if (text != NULL && strcmp(text, "keyring") == 0) {
		if (keyring_get(&item, secret_of(sb, field), until, err) == -1)
			return err_wrap(err,
			    "cannot get the %s of %s from the keyring", field,
			    sb->name);
		return 0;
	}
	if (text != NULL && str_starts(text, "hex:") &&
	    keyring_undigits(secret_of(sb, field), text + 4,
	        strlen(text + 4)) == 0)
		return 0;
	return err_set(err, ERR_INVALID,
	    "the record of %s holds a %s that cannot be read; start a watch "
	    "on it again",
	    sb->name, field);
}

static int
take_record(const json_t *record, const char *key, struct sandbox *sb,
    const struct until *until, struct err *err)
{
	const json_t *secrets = json_object_get(record, "secrets");
	json_t *unknown = json_array();
	int i, rc;

	rc = sandbox_parse(sb, json_object_get(record, "sandbox"),
	    getenv("HOME"), unknown, err);
	json_decref(unknown);
	for (i = 0; fields[i] != NULL && rc == 0; i++)
		rc = take_secret(secrets, fields[i], key, sb, until, err);
	if (rc == 0)
		sb->source = xasprintf("record %s", key);
	return rc;
}

/* "0123456789abcdef" and nothing else: it becomes part of a path. */
static bool
is_key(const char *s)
{
	return strlen(s) == KEEP_KEY_SIZE - 1 &&
	    strspn(s, "0123456789abcdef") == KEEP_KEY_SIZE - 1;
}

static int
get_by_key(const char *key, struct sandbox *sb, const struct until *until,
    struct err *err)
{
	char *path;
	json_t *record = NULL;
	int rc = -1;

	if (!is_key(key))
		return err_set(err, ERR_INVALID, "there is no such record");
	path = record_path(key, err);
	if (path != NULL)
		record = read_record(path, err);
	if (record != NULL)
		rc = take_record(record, key, sb, until, err);
	json_decref(record);
	free(path);
	return rc;
}

/* Call "each" with the key and the content of every record. */
static void
for_records(void (*each)(const char *key, const json_t *record, void *arg),
    void *arg)
{
	struct err err;
	char *dir = dirs_state_sub(KEPT_DIR, &err);
	DIR *d = dir != NULL ? opendir(dir) : NULL;
	struct dirent *entry;
	int seen = 0;

	while (
	    d != NULL && seen++ < RECORDS_MAX && (entry = readdir(d)) != NULL) {
		char key[KEEP_KEY_SIZE], *path;
		json_t *record;

		snprintf(key, sizeof(key), "%.16s", entry->d_name);
		if (!is_key(key) || strcmp(entry->d_name + 16, ".json") != 0)
			continue;
		path = path_join(dir, entry->d_name);
		record = read_record(path, &err);
		if (record != NULL)
			each(key, record, arg);
		json_decref(record);
		free(path);
	}
	if (d != NULL)
		closedir(d);
	free(dir);
}

struct newest {
	const char *name;
	char key[KEEP_KEY_SIZE];
	json_int_t saved_at;
};

static void
pick_newest(const char *key, const json_t *record, void *arg)
{
	const json_t *entry = json_object_get(record, "sandbox");
	const char *name = decode_text(json_object_get(entry, "name"));
	json_int_t saved_at =
	    json_integer_value(json_object_get(record, "saved_at"));
	struct newest *n = arg;

	if (name == NULL || strcmp(name, n->name) != 0 ||
	    (n->key[0] != '\0' && saved_at < n->saved_at))
		return;
	n->saved_at = saved_at;
	snprintf(n->key, sizeof(n->key), "%s", key);
}

/* Move the sandbox of this name out of a configuration. */
static int
take_named(struct config *c, const char *name, struct sandbox *sb)
{
	size_t i;

	for (i = 0; i < c->count; i++) {
		if (strcmp(c->sandboxes[i].name, name) == 0) {
			*sb = c->sandboxes[i];
			memset(&c->sandboxes[i], 0, sizeof(*sb));
			return 0;
		}
	}
	return -1;
}

/* From a file alone, the environment aside. */
static int
get_from_file(const char *file, const char *name, struct sandbox *sb)
{
	struct config_sources src = { .file = file, .home = getenv("HOME") };
	struct config c;
	int rc;

	if (file == NULL)
		return -1;
	config_load(&c, &src);
	rc = take_named(&c, name, sb);
	config_free(&c);
	return rc;
}

static const char *named_file; /* set once, at the start */

void
keep_use_file(const char *path)
{
	named_file = path;
}

static int
get_from_files(const char *name, struct sandbox *sb, struct err *err)
{
	struct config_sources src;
	char *file, *state;
	int rc;

	if (named_file != NULL && get_from_file(named_file, name, sb) == 0)
		return 0;
	config_sources(&src, NULL, &file);
	rc = get_from_file(file, name, sb);
	free(file);
	if (rc == -1 && (state = dirs_state(err)) != NULL) {
		file = path_join(state, "config.json");
		rc = get_from_file(file, name, sb);
		free(file);
		free(state);
	}
	if (rc == 0)
		return 0;
	return err_set(err, ERR_NOT_FOUND,
	    "nothing is kept about a sandbox '%s'; start a watch on it again, "
	    "or write it to the configuration file",
	    name);
}

int
keep_get(const char *key, const char *name, struct sandbox *sb,
    const struct until *until, struct err *err)
{
	struct newest n = { .name = name };

	memset(sb, 0, sizeof(*sb));
	if (!str_blank(key)) {
		if (get_by_key(key, sb, until, err) == 0)
			return 0;
		if (err->code != ERR_NOT_FOUND)
			return -1;
		sandbox_free(sb);
	}
	for_records(pick_newest, &n);
	if (n.key[0] != '\0')
		return get_by_key(n.key, sb, until, err);
	return get_from_files(name, sb, err);
}

/* --- Looking after -------------------------------------------------------- */

static void
warn_of(const char *key, const json_t *record, void *arg)
{
	const json_t *secrets = json_object_get(record, "secrets");
	const json_t *entry = json_object_get(record, "sandbox");
	const char *name = decode_text(json_object_get(entry, "name"));
	const char *text;
	int i;

	for (i = 0; fields[i] != NULL; i++) {
		text = decode_text(json_object_get(secrets, fields[i]));
		if (text == NULL || !str_starts(text, "hex:"))
			continue;
		json_array_append_new(arg,
		    json_sprintf("the %s of %s is in clear in kept/%s.json of "
		                 "the state directory, because there was no "
		                 "keyring; use a key file, an agent or "
		                 "password_command instead",
		        fields[i], name != NULL ? name : "?", key));
	}
}

/* The earlier server's file. */
static void
warn_of_seed(json_t *list)
{
	struct err err;
	char *state = dirs_state(&err), *file;
	struct config_sources src = { 0 };
	struct config c;
	size_t i;

	if (state == NULL)
		return;
	file = path_join(state, "config.json");
	src.file = file;
	src.home = getenv("HOME");
	config_load(&c, &src);
	for (i = 0; i < c.count; i++) {
		if (sandbox_has_secret(&c.sandboxes[i]))
			json_array_append_new(list,
			    json_sprintf("%s holds the password or passphrase "
			                 "of %s in clear",
			        file, c.sandboxes[i].name));
	}
	config_free(&c);
	free(file);
	free(state);
}

json_t *
keep_warnings(void)
{
	json_t *list = json_array();

	for_records(warn_of, list);
	warn_of_seed(list);
	return list;
}

struct finding {
	const char *key_file;
	char *key;
	bool found;
};

static void
find_one(const char *key, const json_t *record, void *arg)
{
	const json_t *entry = json_object_get(record, "sandbox");
	const char *file = decode_text(json_object_get(entry, "key_file"));
	struct finding *f = arg;

	if (file == NULL || strcmp(file, f->key_file) != 0)
		return;
	memcpy(f->key, key, KEEP_KEY_SIZE);
	f->found = true;
}

bool
keep_find(const char *key_file, char key[KEEP_KEY_SIZE])
{
	struct finding f = { .key_file = key_file, .key = key };

	for_records(find_one, &f);
	return f.found;
}

/* And its secrets from the keyring. */
static int
drop(const char *key, const json_t *record, const struct until *until,
    struct err *err)
{
	const json_t *secrets = json_object_get(record, "secrets");
	char *path;
	int i, rc;

	for (i = 0; fields[i] != NULL; i++) {
		struct keyring_item item = { .key = key, .field = fields[i] };
		const char *place =
		    decode_text(json_object_get(secrets, fields[i]));

		if (place != NULL && strcmp(place, "keyring") == 0)
			keyring_drop(&item, until);
	}
	path = record_path(key, err);
	if (path == NULL)
		return -1;
	rc = unlink(path) == 0 ? 0 : err_sys(err, "cannot remove %s", path);
	free(path);
	return rc;
}

int
keep_drop(const char *key, const struct until *until, struct err *err)
{
	char *path = record_path(key, err);
	json_t *record = path != NULL ? read_record(path, err) : NULL;
	int rc = record != NULL ? drop(key, record, until, err) : -1;

	json_decref(record);
	free(path);
	return rc;
}

struct dropping {
	const struct until *until;
	int count;
};

static void
drop_one(const char *key, const json_t *record, void *arg)
{
	struct dropping *d = arg;
	struct err ignored;

	d->count += drop(key, record, d->until, &ignored) == 0;
}

int
keep_drop_all(const struct until *until, struct err *err)
{
	struct dropping d = { .until = until };

	for_records(drop_one, &d);
	if (until_check(until, err) == -1)
		return -1;
	return d.count;
}
