/* What is allowed here. */
#include "config/allow.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "config/config.h"
#include "config/dirs.h"

#define FILE_NAME "allow.json"

static bool
env_says(const char *name)
{
	const char *value = getenv(name);
	bool yes = false;

	return value != NULL && str_to_bool(value, &yes) == 0 && yes;
}

/* Of a file that others can write only what forbids counts, and a secret that
 * nobody could read. */
static void
distrust(json_t *o, const struct stat *st, bool *refused)
{
	static const char *const names[] = { "allow_event_command",
		"allow_private_webhooks", NULL };
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		if (json_is_true(json_object_get(o, names[i])))
			json_object_del(o, names[i]);
	}
	*refused = json_object_del(o, "webhook_secret_command") == 0;
	if ((st->st_mode & 077) != 0 &&
	    json_object_del(o, "webhook_secret") == 0)
		*refused = true;
}

/* What a file says as an object, as far as it is to be believed; or NULL.
 * a->unread: there is one, but nobody can tell what it says. */
static json_t *
read_object(const char *path, struct allow *a)
{
	struct stat st;
	struct buf text;
	struct err err;
	json_t *o = NULL;

	if (path == NULL || stat(path, &st) == -1)
		return NULL;
	buf_init(&text, CONFIG_FILE_MAX);
	if (fs_read(path, &text, &err) == 0)
		o = decode_json(text.data, text.len, &err);
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	a->unread = o == NULL;
	if (o != NULL && !json_is_object(o)) {
		json_decref(o);
		return NULL;
	}
	if (o != NULL && fs_others_write(&st))
		distrust(o, &st, &a->secret_refused);
	return o;
}

static char *
remembered_path(struct err *err)
{
	char *state = dirs_state(err), *path = NULL;

	if (state != NULL)
		path = path_join(state, FILE_NAME);
	free(state);
	return path;
}

/* The configuration file decides; if it says nothing, the others. */
static bool
is_allowed(const json_t *file, const json_t *remembered, const char *name,
    const char *env)
{
	const json_t *v = json_object_get(file, name);

	if (v != NULL)
		return json_is_true(v);
	return env_says(env) || json_is_true(json_object_get(remembered, name));
}

static void
take_secret(struct allow *a, const json_t *file)
{
	const char *s = decode_text(json_object_get(file, "webhook_secret"));
	const json_t *command = json_object_get(file, "webhook_secret_command");
	const json_t *word;
	size_t i;

	if (s != NULL && s[0] != '\0')
		secret_set(&a->webhook_secret, s, strlen(s));
	if (!json_is_array(command) || json_array_size(command) == 0)
		return;
	json_array_foreach (command, i, word) {
		if (decode_text(word) == NULL)
			return;
	}
	a->webhook_secret_command = json_deep_copy(command);
}

void
allow_load(struct allow *a, bool watchdog)
{
	struct config_sources src;
	struct allow other = { 0 };
	json_t *file, *remembered = NULL;
	struct err err;
	char *path;

	memset(a, 0, sizeof(*a));
	config_sources(&src, NULL, &path);
	file = read_object(path, a);
	free(path);
	if (watchdog) {
		path = remembered_path(&err);
		remembered = read_object(path, &other);
		free(path);
	}
	a->event_command = is_allowed(file, remembered, "allow_event_command",
	    ALLOW_COMMAND_ENV);
	a->private_webhooks = is_allowed(file, remembered,
	    "allow_private_webhooks", ALLOW_PRIVATE_ENV);
	take_secret(a, file);
	json_decref(file);
	json_decref(remembered);
}

void
allow_free(struct allow *a)
{
	secret_free(&a->webhook_secret);
	json_decref(a->webhook_secret_command);
	memset(a, 0, sizeof(*a));
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

int
allow_remember(struct err *err)
{
	bool command = env_says(ALLOW_COMMAND_ENV);
	bool private = env_says(ALLOW_PRIVATE_ENV);
	struct allow other = { 0 };
	json_t *o;
	char *path, *text;
	int rc;

	if (!command && !private)
		return 0;
	path = remembered_path(err);
	if (path == NULL)
		return -1;
	o = read_object(path, &other);
	if (o == NULL)
		o = json_object();
	if (command)
		json_object_set_new(o, "allow_event_command", json_true());
	if (private)
		json_object_set_new(o, "allow_private_webhooks", json_true());
	text = dump(o);
	rc = fs_replace(path, text, strlen(text), 0600, err);
	free(text);
	free(path);
	return rc;
}

void
allow_forget(void)
{
	struct err err;
	char *path = remembered_path(&err);

	if (path != NULL)
		unlink(path);
	free(path);
}

int
allow_check_command(const struct allow *a, const char *argument,
    struct err *err)
{
	if (a->event_command)
		return 0;
	return err_set(err, ERR_DENIED,
	    "%s would run a command on the user's own machine, which is not "
	    "allowed; the user can allow it with " ALLOW_COMMAND_ENV "=1 in "
	    "the environment of this server, or with \"allow_event_command\": "
	    "true in its config.json; leave %s out otherwise",
	    argument, argument);
}
