/* Logging in. */
#include "ssh/login.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/proc.h"
#include "base/self.h"
#include "base/str.h"
#include "config/dirs.h"
#include "ssh/agent.h"
#include "ssh/askpass.h"
#include "ssh/explain.h"
#include "ssh/knownhost.h"
#include "ssh/sshconf.h"

#define CONF_MAX 16384
#define TEXT_MAX 65536
#define SECRET_MAX 4096
#define KEY_FILE_MAX 65536
#define SECRET_MS 30000
#define TARGET_MS 10000

/* Key exchange and authentication come on top of connecting. */
#define LOGIN_EXTRA_MS 15000

#define SSH_OLDEST 804

extern char **environ;

/* An argv from a list of strings; the strings stay the list's. */
static const char **
argv_of(const json_t *list)
{
	size_t n = json_array_size(list), i;
	const char **argv = xcalloc(n + 1, sizeof(*argv));

	for (i = 0; i < n; i++)
		argv[i] = json_string_value(json_array_get(list, i));
	return argv;
}

static bool
env_dropped(const char *entry)
{
	static const char *const dropped[] = { "SSH_ASKPASS",
		"SSH_ASKPASS_REQUIRE", "REMOTE_PASSWORD",
		"REMOTE_KEY_PASSPHRASE", "REMOTE_SANDBOX_LIST",
		ASKPASS_SOCKET_ENV, NULL };
	size_t i, len = strcspn(entry, "=");

	for (i = 0; dropped[i] != NULL; i++) {
		if (strlen(dropped[i]) == len &&
		    strncmp(dropped[i], entry, len) == 0)
			return true;
	}
	return false;
}

/*
 * The environment of ssh: ours without secrets, with an agent if there is
 * one, and with us as askpass if "ask" is set.  A list of strings.
 */
static json_t *
child_env(const struct askpass *ask)
{
	json_t *env = json_array();
	char *agent = agent_find();
	char *self = self_path();
	char **e;

	for (e = environ; *e != NULL; e++) {
		if (!env_dropped(*e))
			json_array_append_new(env, json_string(*e));
	}
	if (agent != NULL)
		json_array_append_new(env,
		    json_sprintf("SSH_AUTH_SOCK=%s", agent));
	free(agent);
	if (ask == NULL || self == NULL) {
		free(self);
		return env;
	}
	json_array_append_new(env, json_sprintf("SSH_ASKPASS=%s", self));
	free(self);
	json_array_append_new(env, json_string("SSH_ASKPASS_REQUIRE=force"));
	json_array_append_new(env,
	    json_sprintf(ASKPASS_SOCKET_ENV "=%s", askpass_socket(ask)));
	return env;
}

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

static char *
conf_path(const struct sandbox *sb, const char *runtime_dir, const char *end)
{
	char name[17];

	sshconf_name(sb, name);
	return xasprintf("%s/%s.%s", runtime_dir, name, end);
}

/* Write the configuration file for ssh; its path, or NULL. */
static char *
write_conf(const struct sandbox *sb, const char *runtime_dir,
    struct sshconf *conf, const char *end, struct err *err)
{
	char *user = user_config();
	char *system = readable(xstrdup("/etc/ssh/ssh_config"));
	char *path = conf_path(sb, runtime_dir, end);
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
	memset(t, 0, sizeof(*t));
}

/* Run ssh with these arguments and the environment for it. */
static int
run_ssh(const json_t *list, const struct askpass *ask, bool session,
    struct proc_result *res, const struct until *until, struct err *err)
{
	json_t *env_list = child_env(ask);
	const char **argv = argv_of(list);
	const char **env = argv_of(env_list);
	struct proc_request req = {
		.argv = argv,
		.env = env,
		.session = session,
		.max_output = TEXT_MAX,
	};
	int rc = proc_run(&req, res, until, err);

	free(argv);
	free(env);
	json_decref(env_list);
	if (rc == -1 && err->code == ERR_NOT_FOUND)
		return err_set(err, ERR_NOT_FOUND,
		    "there is no ssh program; install the OpenSSH client "
		    "(8.4 or newer) and make sure the PATH of this server "
		    "has it");
	return rc;
}

int
login_target(struct login_target *t, const struct sandbox *sb,
    const char *runtime_dir, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, TARGET_MS);
	struct sshconf conf = { .ask = false };
	char *file = write_conf(sb, runtime_dir, &conf, "look", err);
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
	json_array_append_new(argv, json_string("-G"));
	sshconf_target(argv, sb);
	json_array_append_new(argv, json_string("--"));
	json_array_append_new(argv, json_string(sb->host));
	rc = run_ssh(argv, NULL, false, &res, &soon, err);
	json_decref(argv);
	free(file);
	if (rc == -1)
		return -1;
	if (res.exit_code == 0)
		login_target_parse(t, res.out.data);
	else
		rc = explain_login(sb, res.err.data, err);
	proc_result_free(&res);
	return rc;
}

int
login_ssh_version(const char *text)
{
	const char *at = strstr(text, "OpenSSH_");
	int major, minor;
	char *end;

	if (at == NULL)
		return 0;
	major = (int)strtol(at + 8, &end, 10);
	if (*end != '.')
		return 0;
	minor = (int)strtol(end + 1, NULL, 10);
	return major * 100 + minor;
}

/* The secret as it is, or as its command prints it. */
static int
get_secret(struct secret *out, const struct secret *given,
    const json_t *command, const char *field, const struct sandbox *sb,
    const struct until *until, struct err *err)
{
	struct until soon = until_within(until, SECRET_MS);
	const char **argv;
	struct proc_request req = { .max_output = SECRET_MAX };
	struct proc_result res;
	int rc;

	if (secret_given(given) || command == NULL) {
		if (secret_given(given))
			secret_set(out, given->data, given->len);
		return 0;
	}
	argv = argv_of(command);
	req.argv = argv;
	rc = proc_run(&req, &res, &soon, err);
	free(argv);
	if (rc == -1)
		return err_wrap(err, "%s of %s", field, sb->name);
	if (res.exit_code != 0)
		rc = err_set(err, ERR_DENIED,
		    "%s of %s ended with status %d: %.200s", field, sb->name,
		    res.exit_code, res.err.data);
	else
		secret_set(out, res.out.data, strcspn(res.out.data, "\r\n"));
	secret_wipe(res.out.data, res.out.cap);
	proc_result_free(&res);
	return rc;
}

/* A known_hosts file that holds nothing but the pinned key, for any host. */
static char *
write_pin(const struct sandbox *sb, const char *runtime_dir, struct err *err)
{
	char *path = conf_path(sb, runtime_dir, "pin");
	char *text = xasprintf("* %s\n", sb->host_key);

	if (fs_replace(path, text, strlen(text), 0600, err) == -1) {
		free(path);
		path = NULL;
	}
	free(text);
	return path;
}

/*
 * Is it a DSA key?  The name of its type stands in the file in base64, at one
 * of three alignments, or plainly in the older form.
 */
static bool
is_dsa_key(const char *path)
{
	static const char *const signs[] = { "BEGIN DSA PRIVATE KEY",
		"c3NoLWRzc", "NzaC1kc3", "zc2gtZHNz", NULL };
	struct buf text;
	struct err err;
	bool yes = false;
	size_t i;

	buf_init(&text, KEY_FILE_MAX);
	if (fs_read(path, &text, &err) == 0) {
		for (i = 0; signs[i] != NULL && !yes; i++)
			yes = strstr(text.data, signs[i]) != NULL;
	}
	secret_wipe(text.data, text.cap);
	buf_free(&text);
	return yes;
}

/* DSA is off by default in ssh, and gone from newer ones. */
static int
allow_dsa(json_t *argv, const struct sandbox *sb, const struct until *until,
    struct err *err)
{
	struct proc_result res;
	json_t *query;
	int rc;

	if (sb->key_file == NULL || !is_dsa_key(sb->key_file))
		return 0;
	query = json_pack("[sss]", "ssh", "-Q", "key");
	rc = run_ssh(query, NULL, false, &res, until, err);
	json_decref(query);
	if (rc == -1)
		return -1;
	if (strstr(res.out.data, "ssh-dss") == NULL)
		rc = err_set(err, ERR_DENIED,
		    "%s is a DSA key, and the ssh program here no longer "
		    "knows these; make an Ed25519 key with ssh-keygen and "
		    "install it on %s",
		    sb->key_file, sb->name);
	proc_result_free(&res);
	json_array_insert_new(argv, 1, json_string("-o"));
	json_array_insert_new(argv, 2,
	    json_string("PubkeyAcceptedAlgorithms=+ssh-dss"));
	return rc;
}

/* Everything one login needs, let go together. */
struct attempt {
	const struct sandbox *sb;
	const char *runtime_dir;
	struct login_target target;
	struct secret password;
	struct secret passphrase;
	struct askpass *askpass;
	char *known_hosts;
	char *pin_file;
	char *pin_command;
	char *conf;
};

static void
attempt_free(struct attempt *a)
{
	askpass_stop(a->askpass);
	login_target_free(&a->target);
	secret_free(&a->password);
	secret_free(&a->passphrase);
	free(a->known_hosts);
	free(a->pin_file);
	free(a->pin_command);
	free(a->conf);
}

static int
prepare_secrets(struct attempt *a, const struct until *until, struct err *err)
{
	const struct sandbox *sb = a->sb;
	struct askpass_login login = {
		.user = a->target.user,
		.host = a->target.host,
		.key_file = sb->key_file,
		.password = &a->password,
		.passphrase = &a->passphrase,
	};

	if (get_secret(&a->password, &sb->password, sb->password_command,
	        "password_command", sb, until, err) == -1 ||
	    get_secret(&a->passphrase, &sb->key_passphrase,
	        sb->key_passphrase_command, "key_passphrase_command", sb, until,
	        err) == -1)
		return -1;
	if (!secret_given(&a->password) && !secret_given(&a->passphrase))
		return 0;
	a->askpass = askpass_start(a->runtime_dir, &login, err);
	return a->askpass == NULL ? -1 : 0;
}

/* A pinned key: a file that holds it, or us as the one who knows it. */
static int
prepare_pin(struct attempt *a, struct err *err)
{
	char *self;

	if (a->sb->host_key == NULL)
		return 0;
	if (!str_starts(a->sb->host_key, "SHA256:")) {
		a->pin_file = write_pin(a->sb, a->runtime_dir, err);
		return a->pin_file == NULL ? -1 : 0;
	}
	self = self_path();
	if (self == NULL)
		return err_set(err, ERR_NOT_FOUND,
		    "cannot find our own program, which checks the pinned "
		    "host key; pin the public key instead");
	a->pin_command = xasprintf("\"%s\" " KNOWNHOST_COMMAND " %s %%t %%K",
	    self, a->sb->host_key);
	free(self);
	return 0;
}

static int
prepare_conf(struct attempt *a, struct err *err)
{
	struct sshconf conf = { .ask = a->askpass != NULL };
	char *state = dirs_state(err);

	if (state == NULL)
		return -1;
	a->known_hosts = path_join(state, "known_hosts");
	free(state);
	if (prepare_pin(a, err) == -1)
		return -1;
	conf.known_hosts = a->known_hosts;
	conf.user_known_hosts = a->target.known_hosts;
	a->conf = write_conf(a->sb, a->runtime_dir, &conf, "conf", err);
	return a->conf == NULL ? -1 : 0;
}

static int
run_login(struct attempt *a, const char *socket, char *new_key, size_t size,
    const struct until *until, struct err *err)
{
	struct until limit = until_within(until,
	    (int64_t)a->sb->connect_timeout_s * 1000 + LOGIN_EXTRA_MS);
	struct sshconf_pin pin = { a->pin_file, a->pin_command };
	json_t *argv = sshconf_master(a->sb, a->conf, socket, &pin);
	struct proc_result res;
	int rc = allow_dsa(argv, a->sb, &limit, err);

	if (rc == -1) {
		json_decref(argv);
		return -1;
	}
	rc = run_ssh(argv, a->askpass, true, &res, &limit, err);
	json_decref(argv);
	if (rc == -1) {
		if (err->code == ERR_TIMEOUT)
			return err_set(err, ERR_TIMEOUT,
			    "the login to %s took longer than %d seconds",
			    a->sb->name,
			    a->sb->connect_timeout_s + LOGIN_EXTRA_MS / 1000);
		return -1;
	}
	if (res.exit_code != 0)
		rc = explain_login(a->sb, res.err.data, err);
	else if (!explain_new_key(res.err.data, new_key, size))
		new_key[0] = '\0';
	proc_result_free(&res);
	return rc;
}

/* Once per process: is the ssh program fit for us? */
static int
check_version(const struct until *until, struct err *err)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static bool good;
	struct proc_result res;
	json_t *argv;
	int rc = 0, version;

	pthread_mutex_lock(&lock);
	if (!good) {
		argv = json_pack("[ss]", "ssh", "-V");
		rc = run_ssh(argv, NULL, false, &res, until, err);
		json_decref(argv);
	}
	if (!good && rc == 0) {
		version = login_ssh_version(res.err.data);
		good = version >= SSH_OLDEST;
		if (!good)
			rc = err_set(err, ERR_NOT_FOUND,
			    "the ssh program is too old or unknown (%.100s); "
			    "OpenSSH 8.4 or newer is needed",
			    res.err.data);
		proc_result_free(&res);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

int
login_start(const struct sandbox *sb, const char *runtime_dir,
    const char *socket, char *new_key, size_t new_key_size,
    const struct until *until, struct err *err)
{
	struct attempt a = { .sb = sb, .runtime_dir = runtime_dir };
	int rc;

	rc = check_version(until, err);
	if (rc == 0)
		rc = login_target(&a.target, sb, runtime_dir, until, err);
	if (rc == 0)
		rc = prepare_secrets(&a, until, err);
	if (rc == 0)
		rc = prepare_conf(&a, err);
	if (rc == 0)
		rc = run_login(&a, socket, new_key, new_key_size, until, err);
	attempt_free(&a);
	return rc;
}
