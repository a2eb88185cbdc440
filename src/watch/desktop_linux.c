/* Notifications by notify-send of libnotify. */
#include "watch/desktop.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/proc.h"

/*
 * Desktops read the body as markup, and notify-send reads backslashes in it
 * as C does.
 */
static void
add_plain(struct buf *out, const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '&')
			buf_adds(out, "&amp;");
		else if (*s == '<')
			buf_adds(out, "&lt;");
		else if (*s == '>')
			buf_adds(out, "&gt;");
		else if (*s == '\\')
			buf_adds(out, "\\\\");
		else
			buf_addc(out, *s);
	}
}

/* Is there a session to tell it to, or one that may be started? */
static bool
has_session(const struct env *e)
{
	const char *dir = env_get(e, "XDG_RUNTIME_DIR");
	char *bus = xasprintf("%s/bus", dir != NULL ? dir : "/nonexistent");
	bool there = access(bus, F_OK) == 0 ||
	    env_get(e, "DBUS_SESSION_BUS_ADDRESS") != NULL ||
	    env_get(e, "DISPLAY") != NULL;

	free(bus);
	return there;
}

static int
run(const char *const *argv, const struct until *until, struct err *err)
{
	struct proc_request req = { .argv = argv, .max_output = 4096 };
	struct proc_result res;
	struct env env;
	int rc;

	env_init(&env);
	env_session(&env);
	req.env = (const char *const *)env.list;
	if (has_session(&env))
		rc = proc_run(&req, &res, until, err);
	else
		rc = err_set(err, ERR_NOT_FOUND, "there is no desktop session");
	env_free(&env);
	if (rc == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "%s could not notify: %.200s",
		    argv[0], res.err.data);
	proc_result_free(&res);
	return rc;
}

int
desktop_notify(const char *subtitle, const char *message,
    const struct until *until, struct err *err)
{
	const char *argv[] = { "notify-send", "--app-name=remote-sandbox-mcp",
		"--urgency=normal", "--", DESKTOP_TITLE, NULL, NULL };
	struct buf body;
	int rc;

	buf_init(&body, 8192);
	add_plain(&body, subtitle);
	buf_addc(&body, '\n');
	add_plain(&body, message);
	argv[5] = body.data;
	rc = run(argv, until, err);
	buf_free(&body);
	return rc;
}
