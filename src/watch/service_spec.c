/* What is to run as a service, and programs of the system that see to it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/self.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/dirs.h"
#include "store/db.h"
#include "watch/service.h"
#include "watch/service_inside.h"

#define TEXT_MAX 65536

#define USUAL_PATH \
	"/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

static bool
is_below_home(const char *state_dir, const char *home, const char *name)
{
	char *path = path_join(home, name);
	char *real = realpath(path, NULL);
	bool yes = real != NULL && strcmp(state_dir, real) == 0;

	free(real);
	free(path);
	return yes;
}

/* Where the state is if nobody says otherwise? */
static bool
is_usual(const char *state_dir, const char *home)
{
	return is_below_home(state_dir, home,
	           ".local/state/remote-sandbox-mcp") ||
	    is_below_home(state_dir, home,
	        "Library/Application Support/remote-sandbox-mcp");
}

static void
make_suffix(struct service_spec *s)
{
	const unsigned char *c = (const unsigned char *)s->state_dir;
	uint32_t h = 2166136261u;

	if (is_usual(s->state_dir, s->home))
		return;
	for (; *c != '\0'; c++)
		h = (h ^ *c) * 16777619u;
	snprintf(s->suffix, sizeof(s->suffix), "-%07x", h & 0xfffffff);
}

/* A definition is lines of text, and read as UTF-8. */
static int
check_text(const char *what, const char *s, struct err *err)
{
	if (utf8_valid(s, strlen(s)) && strpbrk(s, "\r\n") == NULL)
		return 0;
	return err_set(err, ERR_INVALID,
	    "the watchdog cannot be a service, because %s holds characters "
	    "that no definition of a service can",
	    what);
}

int
service_spec_make(struct service_spec *s, struct err *err)
{
	const char *home = getenv("HOME"), *path = getenv("PATH");
	char *state;

	memset(s, 0, sizeof(*s));
	state = dirs_state(err);
	if (state == NULL)
		return -1;
	/* Wherever it will be started from. */
	s->state_dir = realpath(state, NULL);
	free(state);
	s->program = self_path();
	if (s->state_dir == NULL || s->program == NULL)
		return err_sys(err, "cannot find our own program or state");
	s->home = xstrdup(home != NULL ? home : "/");
	s->path = xstrdup(str_blank(path) ? USUAL_PATH : path);
	s->config_path = path_join(s->state_dir, "config.json");
	s->db_path = path_join(s->state_dir, DB_FILE);
	s->out_log = path_join(s->state_dir, "watchdog.stdout.log");
	s->err_log = path_join(s->state_dir, "watchdog.stderr.log");
	s->uid = (long)geteuid();
	make_suffix(s);
	if (check_text("the state directory", s->state_dir, err) == -1 ||
	    check_text("the path of our program", s->program, err) == -1 ||
	    check_text("PATH", s->path, err) == -1)
		return -1;
	return 0;
}

void
service_spec_free(struct service_spec *s)
{
	free(s->program);
	free(s->home);
	free(s->state_dir);
	free(s->config_path);
	free(s->db_path);
	free(s->out_log);
	free(s->err_log);
	free(s->path);
	memset(s, 0, sizeof(*s));
}

int
service_run(const char *const *argv, struct buf *out, const struct until *until,
    struct err *err)
{
	struct proc_request req = { .argv = argv, .max_output = TEXT_MAX };
	struct proc_result res;
	struct env env;
	int rc;

	env_init(&env);
	env_session(&env);
	req.env = (const char *const *)env.list;
	rc = proc_run(&req, &res, until, err);
	env_free(&env);
	if (rc == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "%s %s ended with status %d: %.300s",
		    argv[0], argv[1], res.exit_code, res.err.data);
	else if (out != NULL)
		buf_add(out, res.out.data, res.out.len);
	proc_result_free(&res);
	return rc;
}
