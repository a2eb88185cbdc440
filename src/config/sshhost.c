/* The machine that SSH_HOST names. */
#include "config/sshhost.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define DOTENV_MAX ((size_t)256 << 10)

/* A user's ssh config may put host and user into a command for a shell, as
 * ProxyCommand does, and ssh before 9.6 lets them. */
static const char unsafe[] = "'`\"$\\;&<>|(){}";

void
sshhost_free(struct sshhost *s)
{
	free(s->host);
	free(s->port);
	free(s->key);
	free(s->note);
	memset(s, 0, sizeof(*s));
}

/* --- .env ----------------------------------------------------------------- */

static bool
blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Where the quoted text that begins here ends; NULL: nowhere. */
static const char *
closing(const char *at, const char *end)
{
	char quote = *at;

	for (at++; at < end; at++) {
		if (*at == '\\' && at + 1 < end)
			at++;
		else if (*at == quote)
			return at;
	}
	return NULL;
}

/* What stands behind "=".  Text in quotes may have several lines, so that of
 * others has to be passed over as well.  Returns where it ends. */
static const char *
take_value(const char *at, const char *end, const char **value, size_t *len)
{
	const char *stop;

	while (at < end && blank(*at))
		at++;
	*value = at;
	if (at < end && strchr("'\"`", *at) != NULL && *at != '\0') {
		stop = closing(at, end);
		if (stop != NULL) {
			*value = at + 1;
			*len = (size_t)(stop - at - 1);
			return stop + 1;
		}
	}
	while (at < end && *at != '\n' && *at != '#')
		at++;
	stop = at;
	while (stop > *value && blank(stop[-1]))
		stop--;
	*len = (size_t)(stop - *value);
	return at;
}

/* "export NAME =": its name.  Returns what is behind, or NULL if the line is
 * no such thing. */
static const char *
take_name(const char *at, const char *end, const char **name, size_t *len)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	if (end - at > 7 && strncmp(at, "export", 6) == 0 && blank(at[6])) {
		for (at += 6; at < end && blank(*at); at++)
			;
	}
	*name = at;
	while (at < end && (isalnum((unsigned char)*at) || *at == '_'))
		at++;
	*len = (size_t)(at - *name);
	while (at < end && blank(*at))
		at++;
	return *len > 0 && at < end && *at == '=' ? at + 1 : NULL;
}

static void
set_named(struct sshhost *s, const char *name, size_t name_len,
    const char *value, size_t len)
{
	char **to = NULL;

	if (name_len == 8 && strncmp(name, "SSH_HOST", 8) == 0)
		to = &s->host;
	else if (name_len == 8 && strncmp(name, "SSH_PORT", 8) == 0)
		to = &s->port;
	else if (name_len == 12 && strncmp(name, "SSH_KEY_PATH", 12) == 0)
		to = &s->key;
	if (to == NULL)
		return;
	free(*to);
	*to = xstrndup(value, len);
}

static void
prefer(char **mine, char **other)
{
	if (*mine != NULL)
		return;
	*mine = *other;
	*other = NULL;
}

void
sshhost_dotenv(struct sshhost *s, const char *text, size_t len)
{
	const char *at = text, *end = text + len, *name, *value;
	struct sshhost found = { 0 };
	size_t name_len, value_len;

	while (at < end) {
		const char *behind = take_name(at, end, &name, &name_len);

		if (behind != NULL) {
			at = take_value(behind, end, &value, &value_len);
			set_named(&found, name, name_len, value, value_len);
		} else {
			at = name; /* past the blank lines */
		}
		at = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
		if (at == NULL)
			break;
		at++;
	}
	s->from_file = s->host == NULL && found.host != NULL;
	prefer(&s->host, &found.host);
	prefer(&s->port, &found.port);
	prefer(&s->key, &found.key);
	sshhost_free(&found);
}

/* What somebody else put there is not the project's. */
static bool
fit_to_read(const char *path, struct sshhost *s)
{
	struct stat st;

	if (stat(path, &st) == -1 || !S_ISREG(st.st_mode))
		return false;
	if (st.st_uid == geteuid() || st.st_uid == 0)
		return true;
	s->note = xasprintf("%s belongs to another user and is not read", path);
	return false;
}

static char *
from_environment(const char *name)
{
	const char *value = getenv(name);

	return value != NULL ? xstrdup(value) : NULL;
}

void
sshhost_read(struct sshhost *s, const char *dir)
{
	char *path = path_join(dir, ".env");
	struct buf text;
	struct err err;

	memset(s, 0, sizeof(*s));
	s->host = from_environment("SSH_HOST");
	s->port = from_environment("SSH_PORT");
	s->key = from_environment("SSH_KEY_PATH");
	buf_init(&text, DOTENV_MAX);
	if (fit_to_read(path, s)) {
		if (fs_read(path, &text, &err) == 0)
			sshhost_dotenv(s, text.data, text.len);
		else
			s->note = xstrdup(err.msg);
	}
	buf_free(&text);
	free(path);
}

/* --- The entry ------------------------------------------------------------ */

bool
sshhost_given(const struct sshhost *s)
{
	return !str_blank(s->host);
}

static void
set_part(json_t *entry, const char *field, const char *text, size_t len)
{
	char *copy = xstrndup(text, len);

	if (len > 0)
		json_object_set_new(entry, field, json_string(copy));
	free(copy);
}

/* "host", "host:port", "[host]:port", or an address with many colons. */
static void
set_address(json_t *entry, const char *text)
{
	const char *colon = strchr(text, ':'), *close = strchr(text, ']');

	if (text[0] == '[' && close != NULL) {
		set_part(entry, "host", text + 1, (size_t)(close - text - 1));
		if (close[1] == ':')
			set_part(entry, "port", close + 2, strlen(close + 2));
	} else if (colon != NULL && strchr(colon + 1, ':') == NULL) {
		set_part(entry, "host", text, (size_t)(colon - text));
		set_part(entry, "port", colon + 1, strlen(colon + 1));
	} else {
		set_part(entry, "host", text, strlen(text));
	}
}

/* 22 is what everybody wrote beside an alias, and ssh's own default: the port
 * that the user's ssh config has for it must win. */
static void
set_port(json_t *entry, const char *port)
{
	int64_t n;

	if (str_blank(port) || json_object_get(entry, "port") != NULL ||
	    (str_to_int(port, 22, 22, &n) == 0))
		return;
	json_object_set_new(entry, "port", json_string(port));
}

/* One more key to try: the server that these variables come from left it to
 * ssh which one fits. */
static void
set_key(json_t *entry, const char *key, const char *home, char **note)
{
	char *path = path_home(key, home != NULL ? home : "");

	if (access(path, R_OK) == 0) {
		json_object_set_new(entry, "key_file", json_string(path));
		json_object_set_new(entry, "other_keys", json_true());
	} else {
		*note = xasprintf("SSH_KEY_PATH: cannot read '%.300s' (%s); "
		                  "which key to use is left to ssh",
		    path, strerror(errno));
	}
	free(path);
}

json_t *
sshhost_entry(const struct sshhost *s, const char *home, char **note,
    struct err *err)
{
	const char *text = s->host + strspn(s->host, " \t"), *at;
	size_t len = strcspn(text, " \t\r\n");
	json_t *entry;
	char *whole;

	*note = NULL;
	if (!str_blank(text + len) || strcspn(text, unsafe) < strlen(text)) {
		err_set(err, ERR_INVALID,
		    "'%.100s' is no name of a machine; give an alias of your "
		    "ssh config, or user@host:port",
		    text);
		return NULL;
	}
	entry = json_object();
	whole = xstrndup(text, len);
	text = str_starts(whole, "ssh://") ? whole + 6 : whole;
	json_object_set_new(entry, "name", json_string(text));
	at = strrchr(text, '@');
	if (at != NULL)
		set_part(entry, "user", text, (size_t)(at - text));
	set_address(entry, at != NULL ? at + 1 : text);
	set_port(entry, s->port);
	if (!str_blank(s->key))
		set_key(entry, s->key, home, note);
	free(whole);
	return entry;
}
