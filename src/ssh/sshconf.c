/* What ssh is told. */
#include "ssh/sshconf.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/* A master that waits for its first session, on a busy machine. */
#define FIRST_USE_S 2

/*
 * A value in a configuration file: quoted, since it may hold blanks.  Where
 * ssh expands %-tokens, a percent sign is doubled.
 */
static void
quoted(struct buf *out, const char *value, bool tokens)
{
	const char *c;

	buf_addc(out, '"');
	for (c = value; *c != '\0'; c++) {
		if (*c == '"' || *c == '\\')
			buf_addc(out, '\\');
		if (*c == '%' && tokens)
			buf_addc(out, '%');
		buf_addc(out, *c);
	}
	buf_addc(out, '"');
}

static void
line(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "\t%s %s\n", name, value);
}

/* What must hold for every connection, jump hosts included. */
static void
fixed_options(struct buf *out)
{
	/* Jump hosts are never answered; the command line says otherwise for
	 * the target. */
	line(out, "BatchMode", "yes");
	line(out, "NumberOfPasswordPrompts", "1");
	line(out, "ClearAllForwardings", "yes");
	line(out, "ForwardAgent", "no");
	line(out, "ForwardX11", "no");
	line(out, "PermitLocalCommand", "no");
	line(out, "RequestTTY", "no");
	line(out, "RemoteCommand", "none");
	line(out, "EscapeChar", "none");
	line(out, "LogLevel", "INFO");
	line(out, "HashKnownHosts", "no"); /* to tell whose key is new */
}

static void
host_keys(struct buf *out, const struct sandbox *sb, const struct sshconf *conf)
{
	if (conf->known_hosts == NULL)
		return;
	line(out, "StrictHostKeyChecking",
	    sb->host_key_policy == HOST_KEY_STRICT ? "yes" : "accept-new");
	buf_adds(out, "\tUserKnownHostsFile ");
	quoted(out, conf->known_hosts, true);
	if (conf->user_known_hosts != NULL &&
	    strcmp(conf->user_known_hosts, "none") != 0)
		buf_addf(out, " %s", conf->user_known_hosts);
	buf_adds(out, "\n");
}

static void
include(struct buf *out, const char *path)
{
	if (path == NULL)
		return;
	buf_adds(out, "Include ");
	quoted(out, path, false);
	buf_adds(out, "\n");
}

void
sshconf_file(struct buf *out, const struct sandbox *sb,
    const struct sshconf *conf)
{
	buf_adds(out, "# Made by remote-sandbox-mcp.\nHost *\n");
	fixed_options(out);
	host_keys(out, sb, conf);
	buf_addf(out, "\tConnectTimeout %d\n", sb->connect_timeout_s);
	include(out, conf->user_config);
	include(out, conf->system_config);
	/* Only where nobody else said anything. */
	buf_adds(out, "Host *\n");
	line(out, "ServerAliveInterval", "5");
	line(out, "ServerAliveCountMax", "3");
	/* Twice as fast as the default where the CPU has AES. */
	line(out, "Ciphers", "^aes128-gcm@openssh.com");
}

static void
add(json_t *argv, const char *s)
{
	json_array_append_new(argv, json_string(s));
}

static void
option(json_t *argv, const char *text)
{
	add(argv, "-o");
	add(argv, text);
}

/*
 * Which methods may be used.  A password alone must not be preceded by all
 * the keys of an agent: servers count these as failed tries.
 */
static void
methods(json_t *argv, const struct sandbox *sb)
{
	bool password =
	    secret_given(&sb->password) || sb->password_command != NULL;

	if (sb->other_keys)
		return;
	if (sb->key_file != NULL && password)
		option(argv,
		    "PreferredAuthentications=publickey,"
		    "keyboard-interactive,password");
	else if (sb->key_file != NULL)
		option(argv, "PreferredAuthentications=publickey");
	else if (password) {
		option(argv, "PubkeyAuthentication=no");
		option(argv,
		    "PreferredAuthentications=password,"
		    "keyboard-interactive");
	}
}

/* Not "-i": that drops a file which is not there, and ssh goes on with the
 * user's other keys. */
static void
identity(json_t *argv, const struct sandbox *sb)
{
	struct buf b;

	buf_init(&b, 8192);
	buf_adds(&b, "IdentityFile=");
	quoted(&b, sb->key_file, true);
	option(argv, b.data);
	if (!sb->other_keys)
		option(argv, "IdentitiesOnly=yes");
	buf_free(&b);
}

void
sshconf_target(json_t *argv, const struct sandbox *sb)
{
	const json_t *item;
	char port[16];
	size_t i;

	json_array_foreach (sb->ssh_options, i, item) {
		option(argv, json_string_value(item));
	}
	if (sb->port != 0) {
		snprintf(port, sizeof(port), "%d", sb->port);
		add(argv, "-p");
		add(argv, port);
	}
	if (sb->user != NULL) {
		add(argv, "-l");
		add(argv, sb->user);
	}
	if (sb->key_file != NULL) {
		identity(argv, sb);
	}
	methods(argv, sb);
}

/* Nothing but the pinned key is known. */
static void
pinned(json_t *argv, const struct sshconf_extra *extra)
{
	struct buf b;

	if (extra->pin_file == NULL && extra->pin_command == NULL)
		return;
	buf_init(&b, 8192);
	buf_adds(&b, "UserKnownHostsFile=");
	if (extra->pin_file != NULL)
		quoted(&b, extra->pin_file, true);
	else
		buf_adds(&b, "none");
	option(argv, b.data);
	if (extra->pin_command != NULL) {
		buf_reset(&b);
		buf_addf(&b, "KnownHostsCommand=%s", extra->pin_command);
		option(argv, b.data);
	}
	option(argv, "GlobalKnownHostsFile=none");
	option(argv, "StrictHostKeyChecking=yes");
	buf_free(&b);
}

/* A login that cannot succeed, for what ssh says on the way. */
json_t *
sshconf_diagnose(const struct sandbox *sb, const char *file,
    const struct sshconf_extra *extra)
{
	json_t *argv = json_array();

	add(argv, "ssh");
	add(argv, "-F");
	add(argv, file);
	add(argv, "-T");
	option(argv, "ControlPath=none");
	option(argv, "ControlMaster=no");
	option(argv, "PubkeyAuthentication=no");
	option(argv, "PreferredAuthentications=none");
	pinned(argv, extra);
	sshconf_target(argv, sb);
	add(argv, "--");
	add(argv, sb->host);
	add(argv, "exit");
	return argv;
}

json_t *
sshconf_master(const struct sandbox *sb, const char *file, const char *socket,
    const struct sshconf_extra *extra)
{
	json_t *argv = json_array();
	char persist[64];

	/* ssh counts in whole seconds, and from the login on. */
	snprintf(persist, sizeof(persist), "ControlPersist=%d",
	    sb->control_persist_s + FIRST_USE_S);
	add(argv, "ssh");
	add(argv, "-F");
	add(argv, file);
	add(argv, "-M");
	add(argv, "-N");
	add(argv, "-T");
	add(argv, "-S");
	add(argv, socket);
	option(argv, persist);
	if (extra->ask)
		option(argv, "BatchMode=no");
	if (extra->dsa)
		option(argv, "PubkeyAcceptedAlgorithms=+ssh-dss");
	if (extra->host_key_algorithms != NULL) {
		add(argv, "-o");
		json_array_append_new(argv,
		    json_sprintf("HostKeyAlgorithms=%s",
		        extra->host_key_algorithms));
	}
	pinned(argv, extra);
	sshconf_target(argv, sb);
	add(argv, "--");
	add(argv, sb->host);
	return argv;
}

static uint64_t
mix(uint64_t h, const char *s)
{
	for (; s != NULL && *s != '\0'; s++)
		h = (h ^ (unsigned char)*s) * 1099511628211u;
	return (h ^ 0xff) * 1099511628211u; /* "ab" "c" is not "a" "bc" */
}

void
sshconf_name(const struct sandbox *sb, char out[17])
{
	uint64_t h = 14695981039346656037u;
	const json_t *item;
	size_t i;

	h = mix(h, sb->host);
	h = mix(h, sb->user);
	h = mix(h, sb->key_file);
	h = mix(h, sb->host_key);
	json_array_foreach (sb->ssh_options, i, item)
		h = mix(h, json_string_value(item));
	if (sb->other_keys)
		h = mix(h, "other_keys");
	h = (h ^ (uint64_t)sb->port) * 1099511628211u;
	h = (h ^ (uint64_t)sb->host_key_policy) * 1099511628211u;
	h ^= secret_given(&sb->password) || sb->password_command != NULL;
	snprintf(out, 17, "%016llx", (unsigned long long)h);
}
