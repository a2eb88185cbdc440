/* The watchdog as a systemd user unit. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "watch/service_inside.h"

#define ASK_MS 5000

static bool
usable(const struct until *until)
{
	static const char *const argv[] = { "systemctl", "--user", "show",
		"--property=Version", NULL };
	struct until soon = until_within(until, ASK_MS);
	struct err err;

	return service_run(argv, NULL, &soon, &err) == 0;
}

static char *
label(const struct service_spec *s)
{
	return xasprintf("remote-sandbox-mcp-watchdog%s.service", s->suffix);
}

static char *
file(const struct service_spec *s)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	char *name = label(s), *path;

	if (xdg != NULL && xdg[0] == '/')
		path = xasprintf("%s/systemd/user/%s", xdg, name);
	else
		path = xasprintf("%s/.config/systemd/user/%s", s->home, name);
	free(name);
	return path;
}

/* A word in quotes; "dollar" if it is one of a command line. */
static void
add_word(struct buf *out, const char *word, bool dollar)
{
	buf_addc(out, '"');
	for (; *word != '\0'; word++) {
		if (*word == '"' || *word == '\\')
			buf_addc(out, '\\');
		if (*word == '%' || (*word == '$' && dollar))
			buf_addc(out, *word);
		buf_addc(out, *word);
	}
	buf_addc(out, '"');
}

/* A path to the end of the line. */
static void
add_path(struct buf *out, const char *name, const char *path)
{
	buf_adds(out, name);
	for (; *path != '\0'; path++) {
		if (*path == '%')
			buf_addc(out, '%');
		buf_addc(out, *path);
	}
	buf_addc(out, '\n');
}

static void
add_variable(struct buf *out, const char *name, const char *value)
{
	char *pair = xasprintf("%s=%s", name, value);

	buf_adds(out, "Environment=");
	add_word(out, pair, false);
	buf_addc(out, '\n');
	free(pair);
}

/*
 * Only the daemon itself is ended with the unit: the ssh masters that it
 * started are shared with servers.
 */
static void
text(const struct service_spec *s, struct buf *out)
{
	const char *words[] = { s->program, "daemon", "--config",
		s->config_path, "--db", s->db_path, NULL };
	int i;

	buf_adds(out,
	    "# Written by remote-sandbox-mcp, and again when it changes.\n"
	    "[Unit]\n"
	    "Description=Watchdog of remote-sandbox-mcp\n"
	    "StartLimitIntervalSec=0\n"
	    "\n"
	    "[Service]\n"
	    "Type=exec\n"
	    "ExecStart=");
	for (i = 0; words[i] != NULL; i++) {
		if (i > 0)
			buf_addc(out, ' ');
		add_word(out, words[i], true);
	}
	buf_adds(out,
	    "\n"
	    "Restart=always\n"
	    "RestartSec=5\n"
	    "KillMode=process\n"
	    "TimeoutStopSec=15\n");
	add_variable(out, "PATH", s->path);
	add_variable(out, "REMOTE_SANDBOX_LOG_LEVEL", "info");
	add_path(out, "WorkingDirectory=", s->state_dir);
	add_path(out, "StandardOutput=append:", s->out_log);
	add_path(out, "StandardError=append:", s->err_log);
	buf_adds(out,
	    "\n"
	    "[Install]\n"
	    "WantedBy=default.target\n");
}

static int
systemctl(const char *verb, const char *name, const struct until *until,
    struct err *err)
{
	const char *argv[] = { "systemctl", "--user", "--quiet", verb, name,
		NULL };

	return service_run(argv, NULL, until, err);
}

static int
start(const struct service_spec *s, bool now, const struct until *until,
    struct err *err)
{
	char *name = label(s);
	int rc = systemctl("daemon-reload", NULL, until, err);

	if (rc == 0)
		rc = systemctl("enable", name, until, err);
	if (rc == 0 && now)
		rc = systemctl("restart", name, until, err);
	free(name);
	return rc;
}

static int
stop(const struct service_spec *s, const struct until *until, struct err *err)
{
	char *name = label(s);
	int rc = systemctl("stop", name, until, err);

	if (rc == 0)
		rc = systemctl("disable", name, until, err);
	free(name);
	return rc;
}

/* "Name=value" lines as fields. */
static void
add_properties(json_t *o, char *lines)
{
	char *line, *rest, *value;

	for (line = lines; line != NULL && *line != '\0'; line = rest) {
		rest = strchr(line, '\n');
		if (rest != NULL)
			*rest++ = '\0';
		value = strchr(line, '=');
		if (value == NULL)
			continue;
		*value++ = '\0';
		if (strcmp(line, "ActiveState") == 0)
			json_object_set_new(o, "active_state",
			    utf8_json(value, strlen(value)));
		if (strcmp(line, "UnitFileState") == 0)
			json_object_set_new(o, "unit_file_state",
			    utf8_json(value, strlen(value)));
	}
}

/* Without lingering it ends with the last session of the user.  Who is not
 * named is not asked about: without a user loginctl tells of itself. */
static void
add_hint(const struct service_spec *s, json_t *o, const struct until *until)
{
	char *user = xasprintf("%ld", s->uid);
	const char *argv[] = { "loginctl", "show-user", "--value",
		"--property=Linger", user, NULL };
	struct buf out;
	struct err err;

	buf_init(&out, 64);
	if (service_run(argv, &out, until, &err) == 0 &&
	    str_starts(out.data, "no"))
		json_object_set_new(o, "hint",
		    json_string("the watchdog ends when you log out of this "
		                "machine; run 'loginctl enable-linger' to "
		                "keep it running"));
	buf_free(&out);
	free(user);
}

static void
status(const struct service_spec *s, json_t *o, const struct until *until)
{
	struct until soon = until_within(until, ASK_MS);
	char *name = label(s);
	const char *argv[] = { "systemctl", "--user", "show",
		"--property=ActiveState,UnitFileState", name, NULL };
	struct buf out;
	struct err err;

	buf_init(&out, 4096);
	if (service_run(argv, &out, &soon, &err) == 0)
		add_properties(o, out.data);
	else
		json_object_set_new(o, "problem",
		    utf8_json(err.msg, strlen(err.msg)));
	add_hint(s, o, &soon);
	buf_free(&out);
	free(name);
}

const struct service_kind service_systemd = {
	.name = "systemd",
	.usable = usable,
	.label = label,
	.file = file,
	.text = text,
	.start = start,
	.stop = stop,
	.status = status,
};
