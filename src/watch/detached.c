/*
 * The watchdog as a process of its own, where no service manager is there:
 * containers, WSL.  It does not come back after a reboot by itself; the next
 * server that needs it starts it.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "watch/service_inside.h"

static bool
usable(const struct until *until)
{
	(void)until;
	return true;
}

static char *
label(const struct service_spec *s)
{
	return xasprintf("remote-sandbox-mcp-watchdog%s", s->suffix);
}

static char *
file(const struct service_spec *s)
{
	(void)s;
	return NULL;
}

static void
text(const struct service_spec *s, struct buf *out)
{
	(void)s;
	(void)out;
}

/* A shell puts it into the background and ends, so it is nobody's child. */
static int
start(const struct service_spec *s, bool now, const struct until *until,
    struct err *err)
{
	static const char script[] =
	    "umask 077; cd \"$RSMCP_DIR\" || exit; dir=$RSMCP_DIR; "
	    "unset RSMCP_DIR; "
	    "\"$0\" \"$@\" </dev/null >>\"$dir/watchdog.stdout.log\" "
	    "2>>\"$dir/watchdog.stderr.log\" &";
	const char *argv[] = { "/bin/sh", "-c", script, s->program, "daemon",
		"--config", s->config_path, "--db", s->db_path, NULL };
	struct proc_request req = { .argv = argv,
		.session = true,
		.max_output = 1024 };
	struct proc_result res;
	struct env env;
	int rc;

	if (!now)
		return 0;
	env_init(&env);
	env_set(&env, "RSMCP_DIR", s->state_dir);
	if (env_get(&env, "REMOTE_SANDBOX_LOG_LEVEL") == NULL)
		env_set(&env, "REMOTE_SANDBOX_LOG_LEVEL", "info");
	req.env = (const char *const *)env.list;
	rc = proc_run(&req, &res, until, err);
	env_free(&env);
	if (rc == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "cannot start the watchdog: %.200s",
		    res.err.data);
	proc_result_free(&res);
	return rc;
}

/* Who holds the lock is stopped for every kind; there is nothing else. */
static int
stop(const struct service_spec *s, const struct until *until, struct err *err)
{
	(void)s;
	return until_check(until, err);
}

static void
status(const struct service_spec *s, json_t *o, const struct until *until)
{
	(void)s;
	(void)until;
	json_object_set_new(o, "hint",
	    json_string("there is no service manager for this user, so the "
	                "watchdog runs as a process of its own; after a "
	                "reboot it starts with the next watch, or with "
	                "'remote-sandbox-mcp watchdog install'"));
}

const struct service_kind service_detached = {
	.name = "detached",
	.usable = usable,
	.label = label,
	.file = file,
	.text = text,
	.start = start,
	.stop = stop,
	.status = status,
};
