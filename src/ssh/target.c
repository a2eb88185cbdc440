/*
 * What ssh would use for a sandbox, and the configuration file it is given.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "ssh/explain.h"
#include "ssh/login.h"
#include "ssh/sshconf.h"
#include "ssh/sshrun.h"

#define CONF_MAX 16384
#define SAID_MAX 65536
#define TARGET_MS 10000

static char *
readable(char *path)
{
	if (access(path, R_OK) == 0)
		return path;
	free(path);
	return NULL;
}

static char *
user_config(void)
{
	const char *home = getenv("HOME");

	return home == NULL ? NULL : readable(path_join(home, ".ssh/config"));
}

char *
login_path(const struct sandbox *sb, const char *runtime_dir, const char *end)
{
	char name[17];

	sshconf_name(sb, name);
	return xasprintf("%s/%s.%s", runtime_dir, name, end);
}

char *
login_write_conf(const struct sandbox *sb, const char *runtime_dir,
    struct sshconf *conf, const char *end, struct err *err)
{
	char *user = user_config();
	char *system = readable(xstrdup("/etc/ssh/ssh_config"));
	char *path = login_path(sb, runtime_dir, end);
	struct buf text;

	conf->user_config = user;
	conf->system_config = system;
	buf_init(&text, CONF_MAX);
	sshconf_file(&text, sb, conf);
	if (fs_replace(path, text.data, text.len, 0600, err) == -1) {
		free(path);
		path = NULL;
	}
	buf_free(&text);
	free(user);
	free(system);
	return path;
}

static char *
rest_of_line(const char *text)
{
	return xstrndup(text, strcspn(text, "\r\n"));
}

static void
target_line(struct login_target *t, const char *l)
{
	int64_t port;
	char *value;

	if (str_starts(l, "user ") && t->user == NULL)
		t->user = rest_of_line(l + 5);
	else if (str_starts(l, "hostname ") && t->hostname == NULL)
		t->hostname = rest_of_line(l + 9);
	else if (str_starts(l, "hostkeyalias ") && t->host == NULL)
		t->host = rest_of_line(l + 13);
	else if (str_starts(l, "userknownhostsfile ") && t->known_hosts == NULL)
		t->known_hosts = rest_of_line(l + 19);
	else if (str_starts(l, "controlpath ") && t->control == NULL)
		t->control = rest_of_line(l + 12);
	else if (str_starts(l, "proxyjump ") || str_starts(l, "proxycommand "))
		t->proxied = !str_starts(strchr(l, ' '), " none");
	else if (str_starts(l, "port ")) {
		value = rest_of_line(l + 5);
		if (str_to_int(value, 1, 65535, &port) == 0)
			t->port = (int)port;
		free(value);
	}
}

void
login_target_parse(struct login_target *t, const char *text)
{
	memset(t, 0, sizeof(*t));
	while (*text != '\0') {
		target_line(t, text);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
	if (t->host == NULL && t->hostname != NULL)
		t->host = xstrdup(t->hostname);
}

void
login_target_free(struct login_target *t)
{
	free(t->user);
	free(t->host);
	free(t->hostname);
	free(t->known_hosts);
	free(t->control);
	memset(t, 0, sizeof(*t));
}

/* Without what it says about its version and its doings, because of "-v". */
static void
complaints(struct buf *out, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n) {
		n = strcspn(text, "\n");
		n += text[n] == '\n';
		if (!str_starts(text, "debug") && !str_starts(text, "OpenSSH_"))
			buf_add(out, text, n);
	}
}

static int
explain_target(const struct sandbox *sb, const char *text, struct err *err)
{
	struct buf said;
	int rc;

	buf_init(&said, SAID_MAX);
	complaints(&said, text);
	rc = explain_login(sb, said.data, err);
	buf_free(&said);
	return rc;
}

/* "-v", as its first line tells the version: to run it for that alone would
 * hold up the first login. */
int
login_target(struct login_target *t, const struct sandbox *sb,
    const char *runtime_dir, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, TARGET_MS);
	struct sshconf conf = { 0 };
	char *file = login_write_conf(sb, runtime_dir, &conf, "look", err);
	json_t *argv;
	struct proc_result res;
	int rc;

	memset(t, 0, sizeof(*t));
	if (file == NULL)
		return -1;
	argv = json_array();
	json_array_append_new(argv, json_string("ssh"));
	json_array_append_new(argv, json_string("-F"));
	json_array_append_new(argv, json_string(file));
	json_array_append_new(argv, json_string("-vG"));
	sshconf_target(argv, sb);
	json_array_append_new(argv, json_string("--"));
	json_array_append_new(argv, json_string(sb->host));
	rc = sshrun(argv, NULL, false, &res, &soon, err);
	json_decref(argv);
	free(file);
	if (rc == -1)
		return -1;
	sshrun_heard(res.err.data);
	if (res.exit_code == 0)
		login_target_parse(t, res.out.data);
	else
		rc = explain_target(sb, res.err.data, err);
	proc_result_free(&res);
	return rc;
}
