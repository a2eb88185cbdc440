/* The doctor's look at this machine. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/quote.h"
#include "base/str.h"
#include "cli/advice.h"
#include "cli/doctor.h"
#include "cli/report.h"
#include "config/dirs.h"
#include "config/keep.h"
#include "ssh/agent.h"
#include "ssh/sshrun.h"
#include "store/db.h"
#include "watch/service.h"

#define STORE_MS 10000
#define SERVICE_MS 15000

/* A command for the reader: its words, and a path that a shell takes whole. */
static char *
command_on(const char *words, const char *path)
{
	struct buf b;

	buf_init(&b, 8192);
	buf_addf(&b, "%s ", words);
	quote_sh(&b, path);
	return buf_take(&b);
}

static void
check_ssh(json_t *list, const struct until *until)
{
	static const char todo[] =
	    "install OpenSSH's client, version 8.4 or newer: apt install "
	    "openssh-client, or brew install openssh";
	json_t *argv = json_pack("[ss]", "ssh", "-V");
	struct proc_result res;
	struct err err;

	if (sshrun_check(until, &err) == -1 ||
	    sshrun(argv, NULL, false, &res, until, &err) == -1) {
		report_add(list, "ssh", REPORT_FAILED, todo, "%s", err.msg);
	} else {
		report_add(list, "ssh", REPORT_OK, NULL, "%s", res.err.data);
		proc_result_free(&res);
	}
	json_decref(argv);
}

/* Clients are not this shell: what they do not hand on cannot be seen from
 * here, so it is said. */
static void
check_agent(json_t *list)
{
	const char *variable = getenv("SSH_AUTH_SOCK");
	char *found = agent_find();

	if (found != NULL)
		report_add(list, "agent", REPORT_OK, NULL,
		    "%s, found without SSH_AUTH_SOCK", found);
	else if (agent_there())
		report_add(list, "agent", REPORT_OK, NULL,
		    "%s; servers see it only if their client passes "
		    "SSH_AUTH_SOCK on, as setup tells it to",
		    variable);
	else if (!str_blank(variable))
		report_add(list, "agent", REPORT_WARNING,
		    "start one (eval \"$(ssh-agent)\"; ssh-add), or unset "
		    "SSH_AUTH_SOCK",
		    "SSH_AUTH_SOCK is %s, and there is none", variable);
	else
		report_add(list, "agent", REPORT_OK, NULL,
		    "none: keys come from files");
	free(found);
}

/* --- configuration and secrets --------------------------------------------
 */

static void
check_config(json_t *list, const struct config *c, const char *path,
    const char *config_file)
{
	char *line = advice_setup(config_file);
	char *todo = xasprintf("add one: %s", line);
	bool missing = config_file != NULL && access(config_file, F_OK) == -1 &&
	    errno == ENOENT;
	bool sound = json_array_size(c->problems) == 0;
	const char *problem;
	const json_t *v;
	size_t i;

	json_array_foreach (c->problems, i, v) {
		problem = json_string_value(v);
		report_add(list, "config", REPORT_FAILED,
		    missing && str_starts(problem, path)
		        ? todo
		        : "correct that entry; 'man remote-sandbox-mcp.conf' "
		          "has all fields",
		    "%s", problem);
	}
	json_array_foreach (c->notes, i, v) {
		report_add(list, "config", REPORT_WARNING,
		    "correct or remove it", "%s", json_string_value(v));
	}
	if (c->count == 0 && sound)
		report_add(list, "config", REPORT_FAILED, todo,
		    "there is no sandbox, neither in the environment nor in "
		    "%s",
		    path != NULL ? path : "a configuration file");
	else if (sound)
		report_add(list, "config", REPORT_OK, NULL,
		    "%zu sandbox%s, %s first", c->count,
		    c->count == 1 ? "" : "es", c->sandboxes[0].name);
	free(todo);
	free(line);
}

/* A file that nobody else may touch with these rights. */
static void
check_mode(json_t *list, const char *path, mode_t bad, const char *why)
{
	struct stat st;
	char *todo;

	if (stat(path, &st) == -1 || (st.st_mode & bad) == 0)
		return;
	todo =
	    command_on(S_ISDIR(st.st_mode) ? "chmod 700" : "chmod 600", path);
	report_add(list, "secrets", REPORT_FAILED, todo,
	    "others can %s %s (mode %o), %s",
	    (st.st_mode & bad & 044) != 0 ? "read" : "change", path,
	    (unsigned)st.st_mode & 07777, why);
	free(todo);
}

static bool
secret_refused(const struct config *c)
{
	const json_t *v;
	size_t i;

	json_array_foreach (c->problems, i, v) {
		if (strstr(json_string_value(v), "holds a password") != NULL)
			return true;
	}
	return false;
}

/* The records of the watchdog. */
static void
check_records(json_t *list)
{
	struct err err;
	char *state = dirs_state(&err), *kept, *path;
	struct dirent *e;
	DIR *dir;

	if (state == NULL) {
		report_add(list, "secrets", REPORT_FAILED,
		    "make that directory, or set REMOTE_SANDBOX_MCP_HOME", "%s",
		    err.msg);
		return;
	}
	path = path_join(state, "allow.json");
	check_mode(list, path, 077, "and it says what the watchdog may do");
	free(path);
	kept = path_join(state, "kept");
	dir = opendir(kept);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		path = path_join(kept, e->d_name);
		if (e->d_name[0] != '.')
			check_mode(list, path, 077,
			    "and it may hold a password");
		free(path);
	}
	if (dir != NULL)
		closedir(dir);
	free(kept);
	free(state);
}

static void
check_secrets(json_t *list, const struct config *c, const char *config_path)
{
	size_t before = json_array_size(list), i;
	json_t *warnings = keep_warnings();
	struct err err;
	char *dir = dirs_runtime(&err);
	const json_t *v;

	if (dir == NULL)
		report_add(list, "secrets", REPORT_FAILED,
		    "do what it says, then try again", "%s", err.msg);
	free(dir);
	if (config_path != NULL)
		check_mode(list, config_path, secret_refused(c) ? 077 : 022,
		    "and it says who logs in where");
	for (i = 0; i < c->count; i++) {
		if (c->sandboxes[i].key_file != NULL)
			check_mode(list, c->sandboxes[i].key_file, 077,
			    "so ssh does not use this key");
	}
	check_records(list);
	json_array_foreach (warnings, i, v) {
		report_add(list, "secrets", REPORT_WARNING,
		    "unlock a keyring, or use a key or password_command", "%s",
		    json_string_value(v));
	}
	json_decref(warnings);
	if (json_array_size(list) == before)
		report_add(list, "secrets", REPORT_OK, NULL,
		    "files with secrets are for this user alone");
}

/* --- store and watchdog ---------------------------------------------------
 */

static const json_t *
part(const json_t *o, const char *a, const char *b)
{
	return json_object_get(json_object_get(o, a), b);
}

static void
check_store(json_t *list, const json_t *status, const struct err *err)
{
	json_t *notes = db_notes();
	const json_t *v;
	size_t i;

	json_array_foreach (notes, i, v) {
		report_add(list, "store", REPORT_WARNING,
		    "nothing, if you know why; else keep the file that was "
		    "set aside",
		    "%s", json_string_value(v));
	}
	if (status == NULL)
		report_add(list, "store", REPORT_FAILED,
		    "do what it says; transfers and watches need it", "%s",
		    err->msg);
	else if (json_array_size(notes) == 0)
		report_add(list, "store", REPORT_OK, NULL, "%s",
		    json_string_value(part(status, "paths", "db_path")));
	json_decref(notes);
}

static void
check_watchdog(json_t *list, const json_t *status)
{
	const char *kind = json_string_value(part(status, "service", "kind"));
	const char *problem =
	    json_string_value(part(status, "service", "problem"));
	bool running = json_is_true(part(status, "service", "running"));
	bool stale = json_is_true(json_object_get(status, "heartbeat_stale"));
	json_int_t active =
	    json_integer_value(part(status, "watch_counts", "active"));

	if (running && stale)
		report_add(list, "watchdog", REPORT_FAILED,
		    "start it anew: remote-sandbox-mcp watchdog install",
		    "it runs, but gave no sign of life for three minutes");
	else if (running)
		report_add(list, "watchdog", REPORT_OK, NULL,
		    "runs (%s) and looks after %" JSON_INTEGER_FORMAT " %s",
		    kind != NULL ? kind : "by hand", active,
		    str_plural(active, "job", "jobs"));
	else if (active > 0)
		report_add(list, "watchdog", REPORT_FAILED,
		    "start it: remote-sandbox-mcp watchdog install",
		    "it does not run, but %" JSON_INTEGER_FORMAT
		    " %s to be looked after%s%s",
		    active, str_plural(active, "job is", "jobs are"),
		    problem != NULL ? ": " : "",
		    problem != NULL ? problem : "");
	else
		report_add(list, "watchdog", REPORT_OK, NULL,
		    "does not run; the first watched job starts it");
}

json_t *
doctor_here(const struct config *c, const char *config_file,
    const struct until *until)
{
	struct until soon = until_within(until, SERVICE_MS);
	struct config_sources src;
	json_t *list = json_array(), *status;
	struct err err = ERR_INIT;
	char *path;

	config_sources(&src, config_file, &path);
	check_ssh(list, until);
	check_agent(list);
	check_config(list, c, path, config_file);
	check_secrets(list, c, path);
	status = service_status(&soon, &err);
	check_store(list, status, &err);
	if (status != NULL)
		check_watchdog(list, status);
	json_decref(status);
	free(path);
	return list;
}
