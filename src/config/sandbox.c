/* One entry of the configuration. */
#include "config/sandbox.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"

#define COMMAND_ARGS_MAX 64

/*
 * What "ssh_options" may set: how to connect and log in.  Nothing that runs
 * a program, forwards anything, or undoes what we rely on; such things belong
 * into the user's ssh config, where they can be seen.
 */
static const char *const allowed_options[] = { "AddressFamily", "BindAddress",
	"BindInterface", "CanonicalDomains", "CanonicalizeHostname",
	"CASignatureAlgorithms", "CertificateFile", "Ciphers", "Compression",
	"ConnectionAttempts", "FingerprintHash", "GSSAPIAuthentication",
	"HostbasedAuthentication", "HostKeyAlgorithms", "HostKeyAlias",
	"HostName", "IdentitiesOnly", "IdentityAgent", "IPQoS",
	"KbdInteractiveAuthentication", "KexAlgorithms", "MACs",
	"PasswordAuthentication", "PreferredAuthentications", "ProxyJump",
	"PubkeyAcceptedAlgorithms", "PubkeyAuthentication", "RekeyLimit",
	"RequiredRSASize", "ServerAliveCountMax", "ServerAliveInterval",
	"TCPKeepAlive", NULL };

static int
wrong(struct err *err, const char *field, const char *what)
{
	return err_set(err, ERR_INVALID, "field '%s' %s", field, what);
}

/* Valid UTF-8 with none of the control characters, those of eight bits (U+0080
 * to U+009F) included; from "least" on all others are fine. */
static int
check_text(const char *field, const char *s, unsigned char least,
    struct err *err)
{
	const unsigned char *c;

	if (!utf8_valid(s, strlen(s)))
		return wrong(err, field, "must be UTF-8");
	for (c = (const unsigned char *)s; *c != '\0'; c++) {
		if (*c < least || *c == 0x7f || (*c == 0xc2 && c[1] < 0xa0))
			return wrong(err, field,
			    least > ' ' ? "must not contain white space or "
			                  "control characters"
			                : "must not contain control "
			                  "characters");
	}
	return 0;
}

/* Something that ends up on ssh's command line. */
static int
check_word(const char *field, const char *s, struct err *err)
{
	if (s[0] == '\0')
		return wrong(err, field, "is empty");
	if (s[0] == '-')
		return wrong(err, field, "must not begin with a dash");
	return check_text(field, s, ' ' + 1, err);
}

/* No control characters: it goes into a line of a file. */
static int
check_line(const char *field, const char *s, struct err *err)
{
	return check_text(field, s, ' ', err);
}

/* A string field without NUL; *out stays if absent, null or "". */
static int
get_string(const json_t *entry, const char *field, char **out, struct err *err)
{
	const json_t *v = json_object_get(entry, field);

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return wrong(err, field, "must be a string");
	if (decode_text(v) == NULL)
		return wrong(err, field, "contains a NUL character");
	if (json_string_length(v) == 0)
		return 0;
	free(*out);
	*out = xstrdup(json_string_value(v));
	return 0;
}

static int
get_secret(const json_t *entry, const char *field, struct secret *out,
    struct err *err)
{
	const json_t *v = json_object_get(entry, field);

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return wrong(err, field, "must be a string");
	if (decode_text(v) == NULL ||
	    strpbrk(json_string_value(v), "\r\n") != NULL)
		return wrong(err, field, "must not contain line breaks or NUL");
	if (json_string_length(v) > 0)
		secret_set(out, json_string_value(v), json_string_length(v));
	return 0;
}

static int
get_int(const json_t *entry, const char *field, int min, int max, int *out,
    struct err *err)
{
	const json_t *v = json_object_get(entry, field);
	int64_t n;

	if (v == NULL || json_is_null(v))
		return 0;
	if (json_is_integer(v))
		n = json_integer_value(v);
	else if (decode_text(v) == NULL ||
	    str_to_int(decode_text(v), min, max, &n) == -1)
		n = INT64_MIN;
	if (n < min || n > max)
		return err_set(err, ERR_INVALID,
		    "field '%s' must be an integer from %d to %d", field, min,
		    max);
	*out = (int)n;
	return 0;
}

static int
get_list(const json_t *entry, const char *field, json_t **out, struct err *err)
{
	json_t *v = json_object_get(entry, field);
	const json_t *item;
	size_t i;

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_array(v) || json_array_size(v) > COMMAND_ARGS_MAX)
		return wrong(err, field, "must be a list of strings");
	json_array_foreach (v, i, item) {
		if (!json_is_string(item) ||
		    strlen(json_string_value(item)) != json_string_length(item))
			return wrong(err, field, "must be a list of strings");
	}
	*out = json_incref(v);
	return 0;
}

static int
get_bool(const json_t *entry, const char *field, bool *out, struct err *err)
{
	const json_t *v = json_object_get(entry, field);

	if (v == NULL || json_is_null(v))
		return 0;
	if (!json_is_boolean(v))
		return wrong(err, field, "must be true or false");
	*out = json_is_true(v);
	return 0;
}

/* A list that is a command: not empty. */
static int
get_command(const json_t *entry, const char *field, json_t **out,
    struct err *err)
{
	if (get_list(entry, field, out, err) == -1)
		return -1;
	if (*out != NULL && json_array_size(*out) == 0)
		return wrong(err, field, "must not be empty");
	return 0;
}

static bool
option_allowed(const char *option)
{
	size_t len = strcspn(option, "=");
	const char *const *a;

	for (a = allowed_options; *a != NULL; a++) {
		if (strlen(*a) == len && strncasecmp(*a, option, len) == 0)
			return true;
	}
	return false;
}

static int
check_options(const json_t *options, struct err *err)
{
	const json_t *item;
	size_t i;

	json_array_foreach (options, i, item) {
		const char *o = json_string_value(item);

		if (strchr(o, '=') == NULL || check_line("", o, err) == -1)
			return wrong(err, "ssh_options",
			    "must hold strings of the form \"Name=value\"");
		if (!option_allowed(o))
			return err_set(err, ERR_INVALID,
			    "field 'ssh_options' may not set '%.*s'; put it "
			    "into your ssh config instead",
			    (int)strcspn(o, "="), o);
	}
	return 0;
}

static int
get_policy(const json_t *entry, struct sandbox *sb, struct err *err)
{
	char *policy = NULL;
	int rc = get_string(entry, "host_key_policy", &policy, err);

	if (rc == 0 && policy != NULL) {
		if (strcmp(policy, "strict") == 0)
			sb->host_key_policy = HOST_KEY_STRICT;
		else if (strcmp(policy, "accept-new") != 0)
			rc = wrong(err, "host_key_policy",
			    "must be \"accept-new\" or \"strict\"");
	}
	free(policy);
	return rc;
}

static int
get_scheduler(const json_t *entry, struct sandbox *sb, struct err *err)
{
	char *scheduler = NULL;
	int rc = get_string(entry, "scheduler", &scheduler, err);

	if (rc == 0 && scheduler != NULL) {
		sb->slurm = strcmp(scheduler, "slurm") == 0;
		if (!sb->slurm && strcmp(scheduler, "none") != 0)
			rc = wrong(err, "scheduler",
			    "must be \"slurm\" or \"none\"");
	}
	free(scheduler);
	return rc;
}

/* How many characters from "s" on are base64. */
static size_t
base64_span(const char *s)
{
	return strspn(s,
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	    "=");
}

/* "ssh-ed25519 AAAA... comment"; the comment may be absent. */
static bool
is_public_key(const char *s)
{
	const char *blob = strchr(s, ' ');
	size_t n;

	if (blob == NULL ||
	    !(str_starts(s, "ssh-") || str_starts(s, "ecdsa-") ||
	        str_starts(s, "sk-")))
		return false;
	blob++;
	n = base64_span(blob);
	return str_starts(blob, "AAAA") && n > 40 &&
	    (blob[n] == '\0' || blob[n] == ' ');
}

/* A public key line or a SHA-256 fingerprint. */
static int
check_host_key(const char *key, struct err *err)
{
	if (check_line("host_key", key, err) == -1)
		return -1;
	if (str_starts(key, "SHA256:") && strlen(key) == 7 + 43 &&
	    base64_span(key + 7) == 43)
		return 0;
	if (is_public_key(key))
		return 0;
	return wrong(err, "host_key",
	    "must be a public key (\"ssh-ed25519 AAAA...\") or its "
	    "fingerprint (\"SHA256:...\")");
}

static int
parse_login(struct sandbox *sb, const json_t *entry, const char *home,
    struct err *err)
{
	char *key = NULL;

	if (get_secret(entry, "password", &sb->password, err) == -1 ||
	    get_command(entry, "password_command", &sb->password_command,
	        err) == -1 ||
	    get_secret(entry, "key_passphrase", &sb->key_passphrase, err) ==
	        -1 ||
	    get_command(entry, "key_passphrase_command",
	        &sb->key_passphrase_command, err) == -1 ||
	    get_bool(entry, "other_keys", &sb->other_keys, err) == -1 ||
	    get_string(entry, "key_file", &key, err) == -1)
		return -1;
	if (key != NULL) {
		if (key[0] == '~' && home == NULL) {
			free(key);
			return wrong(err, "key_file",
			    "begins with ~, but HOME is not set");
		}
		sb->key_file = path_home(key, home != NULL ? home : "");
		free(key);
		if (check_line("key_file", sb->key_file, err) == -1)
			return -1;
		/* ssh would expand it, and knows no way to say otherwise. */
		if (strstr(sb->key_file, "${") != NULL)
			return wrong(err, "key_file",
			    "must not contain \"${\"; give the name itself, or "
			    "a link to it");
	}
	return 0;
}

static int
parse_connection(struct sandbox *sb, const json_t *entry, struct err *err)
{
	if (get_int(entry, "connect_timeout_s", 1, 600, &sb->connect_timeout_s,
	        err) == -1 ||
	    get_int(entry, "control_persist_s", 1, 86400,
	        &sb->control_persist_s, err) == -1 ||
	    get_string(entry, "workdir", &sb->workdir, err) == -1 ||
	    (sb->workdir != NULL &&
	        check_line("workdir", sb->workdir, err) == -1) ||
	    get_list(entry, "ssh_options", &sb->ssh_options, err) == -1 ||
	    check_options(sb->ssh_options, err) == -1 ||
	    get_string(entry, "host_key", &sb->host_key, err) == -1 ||
	    get_policy(entry, sb, err) == -1 ||
	    get_scheduler(entry, sb, err) == -1)
		return -1;
	if (sb->host_key != NULL)
		return check_host_key(sb->host_key, err);
	return 0;
}

static int
parse_address(struct sandbox *sb, const json_t *entry, struct err *err)
{
	if (get_string(entry, "host", &sb->host, err) == -1)
		return -1;
	if (sb->host == NULL)
		return wrong(err, "host", "is missing");
	if (check_word("host", sb->host, err) == -1 ||
	    get_string(entry, "user", &sb->user, err) == -1 ||
	    (sb->user != NULL && check_word("user", sb->user, err) == -1) ||
	    get_int(entry, "port", 1, 65535, &sb->port, err) == -1 ||
	    get_string(entry, "name", &sb->name, err) == -1)
		return -1;
	sb->named = sb->name != NULL;
	if (sb->name == NULL)
		sb->name = xstrdup(sb->host);
	if (str_blank(sb->name))
		return wrong(err, "name", "is blank");
	return check_line("name", sb->name, err);
}

static void
note_unknown(const json_t *entry, json_t *unknown)
{
	static const char *const known[] = { "name", "host", "user", "port",
		"password", "password_command", "key_file", "other_keys",
		"key_passphrase", "key_passphrase_command", "host_key",
		"host_key_policy", "workdir", "connect_timeout_s",
		"control_persist_s", "ssh_options", "scheduler", NULL };
	const char *key;
	json_t *v;
	size_t i;

	json_object_foreach ((json_t *)(uintptr_t)entry, key, v) {
		for (i = 0; known[i] != NULL; i++) {
			if (strcmp(known[i], key) == 0)
				break;
		}
		if (known[i] == NULL)
			json_array_append_new(unknown, json_string(key));
	}
}

int
sandbox_parse(struct sandbox *sb, const json_t *entry, const char *home,
    json_t *unknown, struct err *err)
{
	memset(sb, 0, sizeof(*sb));
	sb->connect_timeout_s = SANDBOX_CONNECT_TIMEOUT_S;
	sb->control_persist_s = SANDBOX_PERSIST_S;
	if (!json_is_object(entry))
		return err_set(err, ERR_INVALID, "is not an object");
	if (parse_address(sb, entry, err) == -1 ||
	    parse_login(sb, entry, home, err) == -1 ||
	    parse_connection(sb, entry, err) == -1)
		return -1;
	note_unknown(entry, unknown);
	return 0;
}

static void
set_text(json_t *entry, const char *field, const char *value)
{
	/* All of these were checked to be UTF-8 when they came in. */
	if (value != NULL)
		json_object_set_new(entry, field, json_string(value));
}

static void
set_list(json_t *entry, const char *field, const json_t *list)
{
	if (list != NULL)
		json_object_set_new(entry, field, json_deep_copy(list));
}

json_t *
sandbox_entry(const struct sandbox *sb)
{
	json_t *o = json_object();

	set_text(o, "name", sb->name);
	set_text(o, "host", sb->host);
	set_text(o, "user", sb->user);
	if (sb->port != 0)
		json_object_set_new(o, "port", json_integer(sb->port));
	set_list(o, "password_command", sb->password_command);
	set_text(o, "key_file", sb->key_file);
	if (sb->other_keys)
		json_object_set_new(o, "other_keys", json_true());
	set_list(o, "key_passphrase_command", sb->key_passphrase_command);
	set_text(o, "host_key", sb->host_key);
	if (sb->host_key_policy == HOST_KEY_STRICT)
		set_text(o, "host_key_policy", "strict");
	set_text(o, "workdir", sb->workdir);
	json_object_set_new(o, "connect_timeout_s",
	    json_integer(sb->connect_timeout_s));
	json_object_set_new(o, "control_persist_s",
	    json_integer(sb->control_persist_s));
	set_list(o, "ssh_options", sb->ssh_options);
	if (sb->slurm)
		set_text(o, "scheduler", "slurm");
	return o;
}

void
sandbox_free(struct sandbox *sb)
{
	if (sb == NULL)
		return;
	free(sb->name);
	free(sb->host);
	free(sb->user);
	secret_free(&sb->password);
	json_decref(sb->password_command);
	free(sb->key_file);
	secret_free(&sb->key_passphrase);
	json_decref(sb->key_passphrase_command);
	free(sb->host_key);
	free(sb->workdir);
	json_decref(sb->ssh_options);
	free(sb->source);
	memset(sb, 0, sizeof(*sb));
}

char *
sandbox_dir(const struct sandbox *sb, const char *cwd)
{
	if (str_blank(cwd))
		return sb->workdir != NULL ? xstrdup(sb->workdir) : NULL;
	if (cwd[0] == '/' || path_is_home(cwd) || str_blank(sb->workdir))
		return xstrdup(cwd);
	return path_join(sb->workdir, cwd);
}

bool
sandbox_has_secret(const struct sandbox *sb)
{
	return secret_given(&sb->password) || secret_given(&sb->key_passphrase);
}

bool
sandbox_has_command(const struct sandbox *sb)
{
	return sb->password_command != NULL ||
	    sb->key_passphrase_command != NULL;
}
