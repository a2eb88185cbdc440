/* The ssh program. */
#include "ssh/sshrun.h"

#include <ctype.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/self.h"
#include "base/str.h"
#include "ssh/agent.h"

#define TEXT_MAX 65536
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

/* Secrets of other sandboxes are nobody's business, and who answers prompts
 * is decided here. */
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

static void
add(json_t *env, const char *name, const char *value)
{
	char *entry = xasprintf("%s=%s", name, value);

	/* Not checked to be UTF-8: paths may be anything. */
	json_array_append_new(env, json_string_nocheck(entry));
	free(entry);
}

static json_t *
child_env(const struct askpass *ask)
{
	json_t *env = json_array();
	char *agent = agent_find();
	char *self = ask != NULL ? self_path() : NULL;
	char **e;

	for (e = environ; *e != NULL; e++) {
		if (!env_dropped(*e) &&
		    (agent == NULL || !str_starts(*e, "SSH_AUTH_SOCK=")))
			json_array_append_new(env, json_string_nocheck(*e));
	}
	if (agent != NULL)
		add(env, "SSH_AUTH_SOCK", agent);
	if (self != NULL) {
		add(env, "SSH_ASKPASS", self);
		add(env, "SSH_ASKPASS_REQUIRE", "force");
		add(env, ASKPASS_SOCKET_ENV, askpass_socket(ask));
	}
	free(agent);
	free(self);
	return env;
}

int
sshrun(const json_t *list, const struct askpass *ask, bool session,
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
	if (rc == -1 && err->code == ERR_NOT_FOUND &&
	    strcmp(json_string_value(json_array_get(list, 0)), "ssh") == 0)
		return err_set(err, ERR_NOT_FOUND,
		    "there is no ssh program; install the OpenSSH client "
		    "(8.4 or newer) and make sure the PATH of this server "
		    "has it");
	return rc;
}

int
sshrun_version(const char *text)
{
	const char *at = strstr(text, "OpenSSH_");
	long major, minor;
	char *end;

	if (at == NULL || !isdigit((unsigned char)at[strlen("OpenSSH_")]))
		return 0;
	major = strtol(at + strlen("OpenSSH_"), &end, 10);
	if (*end != '.' || major < 0 || major > 1000)
		return 0;
	minor = strtol(end + 1, NULL, 10);
	if (minor < 0 || minor > 99)
		return 0;
	return (int)(major * 100 + minor);
}

/* Is there an ssh that will do?  It is not asked twice. */
static pthread_mutex_t good_lock = PTHREAD_MUTEX_INITIALIZER;
static bool good;

static int
look_at_version(const struct until *until, struct err *err)
{
	json_t *argv = json_pack("[ss]", "ssh", "-V");
	struct proc_result res;
	int rc = sshrun(argv, NULL, false, &res, until, err);

	json_decref(argv);
	if (rc == -1)
		return -1;
	if (sshrun_version(res.err.data) < SSH_OLDEST)
		rc = err_set(err, ERR_NOT_FOUND,
		    "the ssh program is too old or unknown (%.100s); OpenSSH "
		    "8.4 or newer is needed",
		    res.err.data);
	proc_result_free(&res);
	return rc;
}

int
sshrun_check(const struct until *until, struct err *err)
{
	int rc = 0;

	pthread_mutex_lock(&good_lock);
	if (!good)
		rc = look_at_version(until, err);
	good = rc == 0;
	pthread_mutex_unlock(&good_lock);
	return rc;
}

void
sshrun_heard(const char *text)
{
	pthread_mutex_lock(&good_lock);
	if (sshrun_version(text) >= SSH_OLDEST)
		good = true;
	pthread_mutex_unlock(&good_lock);
}
