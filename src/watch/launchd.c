/* The watchdog as a launchd agent of macOS. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "watch/service_inside.h"

#define LABEL "com.remote-sandbox-mcp.watchdog"
#define ASK_MS 5000
#define TRIES 10 /* "bootout" is over before the agent is */
#define TRY_MS 500

static bool
usable(const struct until *until)
{
	static const char *const argv[] = { "launchctl", "help", NULL };
	struct until soon = until_within(until, ASK_MS);
	struct proc_request req = { .argv = argv, .max_output = 1 };
	struct proc_result res;
	struct err err;

	if (proc_run(&req, &res, &soon, &err) == -1)
		return false;
	proc_result_free(&res);
	return true;
}

static char *
label(const struct service_spec *s)
{
	return xasprintf(LABEL "%s", s->suffix);
}

static char *
file(const struct service_spec *s)
{
	char *name = label(s);
	char *path =
	    xasprintf("%s/Library/LaunchAgents/%s.plist", s->home, name);

	free(name);
	return path;
}

static void
add_string(struct buf *out, const char *indent, const char *s)
{
	buf_addf(out, "%s<string>", indent);
	for (; *s != '\0'; s++) {
		if (*s == '&')
			buf_adds(out, "&amp;");
		else if (*s == '<')
			buf_adds(out, "&lt;");
		else if (*s == '>')
			buf_adds(out, "&gt;");
		else
			buf_addc(out, *s);
	}
	buf_adds(out, "</string>\n");
}

static void
add_pair(struct buf *out, const char *indent, const char *key,
    const char *value)
{
	buf_addf(out, "%s<key>%s</key>\n", indent, key);
	add_string(out, indent, value);
}

static void
text(const struct service_spec *s, struct buf *out)
{
	const char *words[] = { s->program, "daemon", "--config",
		s->config_path, "--db", s->db_path, NULL };
	char *name = label(s);
	int i;

	buf_adds(out,
	    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	    "<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" "
	    "\"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n"
	    "<plist version=\"1.0\">\n"
	    "<dict>\n");
	add_pair(out, "\t", "Label", name);
	buf_adds(out, "\t<key>ProgramArguments</key>\n\t<array>\n");
	for (i = 0; words[i] != NULL; i++)
		add_string(out, "\t\t", words[i]);
	buf_adds(out,
	    "\t</array>\n"
	    "\t<key>RunAtLoad</key>\n\t<true/>\n"
	    "\t<key>KeepAlive</key>\n\t<true/>\n");
	add_pair(out, "\t", "WorkingDirectory", s->state_dir);
	buf_adds(out, "\t<key>EnvironmentVariables</key>\n\t<dict>\n");
	add_pair(out, "\t\t", "PATH", s->path);
	add_pair(out, "\t\t", "REMOTE_SANDBOX_LOG_LEVEL", "info");
	buf_adds(out, "\t</dict>\n");
	add_pair(out, "\t", "StandardOutPath", s->out_log);
	add_pair(out, "\t", "StandardErrorPath", s->err_log);
	buf_adds(out, "</dict>\n</plist>\n");
	free(name);
}

/* "launchctl VERB OPTION gui/UID/LABEL" or "... gui/UID FILE". */
static int
launchctl(const struct service_spec *s, const char *verb, bool by_file,
    struct buf *out, const struct until *until, struct err *err)
{
	bool kick = strcmp(verb, "kickstart") == 0;
	char *name = label(s), *path = file(s);
	char *domain = by_file ? xasprintf("gui/%ld", s->uid)
	                       : xasprintf("gui/%ld/%s", s->uid, name);
	const char *argv[6] = { "launchctl", verb };
	int n = 2, rc;

	if (kick)
		argv[n++] = "-k";
	argv[n++] = domain;
	if (by_file)
		argv[n++] = path;
	rc = service_run(argv, out, until, err);
	free(domain);
	free(path);
	free(name);
	return rc;
}

static int
bootstrap(const struct service_spec *s, const struct until *until,
    struct err *err)
{
	struct until step;
	struct err ignored;
	int i, rc = -1;

	for (i = 0; i < TRIES && rc == -1; i++) {
		if (i > 0) {
			step = until_within(until, TRY_MS);
			until_poll(&step, NULL, 0, &ignored);
		}
		rc = launchctl(s, "bootstrap", true, NULL, until, err);
		if (rc == -1 && until_check(until, &ignored) == -1)
			break;
	}
	return rc;
}

static int
start(const struct service_spec *s, bool now, const struct until *until,
    struct err *err)
{
	struct err ignored;

	if (!now)
		return 0; /* launchd finds the file at the next login */
	(void)launchctl(s, "bootout", true, NULL, until, &ignored);
	if (bootstrap(s, until, err) == -1)
		return -1;
	return launchctl(s, "kickstart", false, NULL, until, err);
}

static int
stop(const struct service_spec *s, const struct until *until, struct err *err)
{
	struct err ignored;

	(void)launchctl(s, "bootout", true, NULL, until, &ignored);
	return until_check(until, err);
}

/* As the earlier server showed it. */
static void
status(const struct service_spec *s, json_t *o, const struct until *until)
{
	char *name = label(s);
	char *target = xasprintf("gui/%ld/%s", s->uid, name);
	const char *argv[] = { "launchctl", "print", target, NULL };
	struct until soon = until_within(until, ASK_MS);
	struct proc_request req = { .argv = argv, .max_output = 8192 };
	struct proc_result res;
	struct err err;

	if (proc_run(&req, &res, &soon, &err) == -1) {
		json_object_set_new(o, "loaded", json_false());
		json_object_set_new(o, "problem",
		    utf8_json(err.msg, strlen(err.msg)));
	} else {
		json_object_set_new(o, "loaded",
		    json_boolean(res.exit_code == 0));
		json_object_set_new(o, "stdout",
		    utf8_json(res.out.data, res.out.len));
		json_object_set_new(o, "stderr",
		    utf8_json(res.err.data, res.err.len));
		json_object_set_new(o, "exit_code",
		    json_integer(res.exit_code));
		proc_result_free(&res);
	}
	free(target);
	free(name);
}

const struct service_kind service_launchd = {
	.name = "launchd",
	.usable = usable,
	.label = label,
	.file = file,
	.text = text,
	.start = start,
	.stop = stop,
	.status = status,
};
