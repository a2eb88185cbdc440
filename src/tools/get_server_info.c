/*
 * get_server_info: this server, and the ssh client it will use.
 *
 * The first thing to ask when something local is in doubt: it needs no
 * sandbox and sends nothing over the network.
 */
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/proc.h"
#include "base/utf8.h"
#include "tools/tool.h"

#define SSH_WAIT_MS 5000

static const struct out ssh_outputs[] = {
	{ "found", OUT_BOOL, "An ssh program is on the PATH.", .always = true },
	{ "version", OUT_STRING, "What it says of itself.", .always = true,
	    .nullable = true },
	{ "problem", OUT_STRING, "Why it cannot be used, and what to do." },
	{ 0 },
};

static const struct out outputs[] = {
	{ "version", OUT_STRING, "Version of this server.", .always = true },
	{ "platform", OUT_STRING, "System it runs on.", .always = true },
	{ "pid", OUT_INT, "Its process id.", .always = true },
	{ "ssh", OUT_OBJECT, "The local OpenSSH client.", .always = true,
	    .fields = ssh_outputs },
	{ 0 },
};

/* The first line of what "ssh -V" wrote, without its end. */
static json_t *
first_line(const struct buf *b)
{
	return utf8_json(b->data, strcspn(b->data, "\r\n"));
}

/* Only giving up is an error; a missing or broken ssh is an answer. */
static int
ask_ssh(struct call *call, json_t *ssh, struct err *err)
{
	static const char *const argv[] = { "ssh", "-V", NULL };
	struct proc_request req = { .argv = argv, .max_output = 4096 };
	struct until until = until_within(&call->until, SSH_WAIT_MS);
	struct proc_result res;

	if (proc_run(&req, &res, &until, err) == -1) {
		if (err->code == ERR_CANCELLED)
			return -1;
		json_object_set_new(ssh, "found",
		    json_boolean(err->code != ERR_NOT_FOUND));
		json_object_set_new(ssh, "version", json_null());
		json_object_set_new(ssh, "problem",
		    json_sprintf("%s; install the OpenSSH client and make "
		                 "sure the PATH of this server has it",
		        err->msg));
		return 0;
	}
	json_object_set_new(ssh, "found", json_true());
	json_object_set_new(ssh, "version", first_line(&res.err));
	if (res.exit_code != 0)
		json_object_set_new(ssh, "problem",
		    json_sprintf("'ssh -V' ended with status %d; try it in "
		                 "a terminal",
		        res.exit_code));
	proc_result_free(&res);
	return 0;
}

static int
run(struct call *call, const void *args, json_t **result, struct err *err)
{
	json_t *o = json_object();
	json_t *ssh = json_object();
	struct utsname u;

	(void)args;
	json_object_set_new(o, "version", json_string(RSMCP_VERSION));
	if (uname(&u) == 0)
		json_object_set_new(o, "platform",
		    json_sprintf("%s %s %s", u.sysname, u.release, u.machine));
	else
		json_object_set_new(o, "platform", json_string("unknown"));
	json_object_set_new(o, "pid", json_integer(getpid()));
	json_object_set_new(o, "ssh", ssh);
	if (ask_ssh(call, ssh, err) == -1) {
		json_decref(o);
		return -1;
	}
	*result = o;
	return 0;
}

const struct tool tool_get_server_info = {
	.name = "get_server_info",
	.title = "Server information",
	.description =
	    "Version and process of this MCP server, and which local OpenSSH "
	    "client it uses. Needs no sandbox; call it when a connection "
	    "fails for a reason that may lie on this machine.",
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true },
	.run = run,
};
