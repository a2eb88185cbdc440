/* A command on a compute node. */
#include "tools/exec_compute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "base/random.h"
#include "base/str.h"
#include "tools/cluster_args.h"

#define CANCEL_MS 15000

/* The allocation ends by itself some time after the command should have. */
static void
add_limit(struct buf *out, const struct submit *wish, int64_t timeout_ms)
{
	if (str_blank(wish->time))
		buf_addf(out, " --time=%d", (int)(timeout_ms / 60000 + 2));
}

/* srun that was killed, or could not be, may leave its allocation behind. */
static void
cancel(struct link *link, const char *name, struct exec_result *res)
{
	char *text = xasprintf("command -v scancel >/dev/null 2>&1 ||"
	                       " [ ! -r /etc/profile ] ||"
	                       " . /etc/profile >/dev/null 2>&1\n"
	                       "scancel --user=\"$(id -un)\" --name=%s",
	    name);
	struct exec_request req = {
		.command = text,
		.timeout_ms = CANCEL_MS,
		.max_chars = 1000,
	};
	struct until never = until_never();
	struct until limit = until_within(&never, CANCEL_MS);
	struct exec_result done;
	struct err err;

	if (exec_run(link, &req, &done, &limit, &err) == 0) {
		if (done.exit_code != 0)
			buf_adds(&res->err,
			    "\n[SLURM] its allocation could not be "
			    "cancelled\n");
		exec_result_free(&done);
	}
	free(text);
}

int
exec_compute(struct link *link, struct exec_request *req,
    const struct submit *wish, struct exec_result *res,
    const struct until *until, struct err *err)
{
	char word[RANDOM_HEX(8)], name[64];
	struct buf script;
	int rc;

	random_hex(word, 8);
	snprintf(name, sizeof(name), "rsmcp-%s", word);
	buf_init(&script, SIZE_MAX);
	buf_addf(&script,
	    "command -v srun >/dev/null 2>&1 || [ ! -r /etc/profile ] ||"
	    " . /etc/profile >/dev/null 2>&1\n"
	    "exec srun --job-name=%s",
	    name);
	rc = cluster_options(&script, link_sandbox(link), wish, false, err);
	add_limit(&script, wish, req->timeout_ms);
	buf_adds(&script, " bash -c ");
	quote_sh(&script, req->command);
	req->command = script.data;
	if (rc == 0)
		rc = exec_run(link, req, res, until, err);
	if (rc == 0 && res->state != EXEC_FINISHED)
		cancel(link, name, res);
	buf_free(&script);
	return rc;
}
