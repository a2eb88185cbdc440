/*
 * sync_remote_to_local: make a local file or tree like the one on a sandbox.
 */
#include "tools/syncing.h"

static const struct arg args[] = {
	{ SYNC_ARG(remote_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "File or directory on the sandbox, relative to the workdir "
	            "or the login directory." },
	{ SYNC_ARG(local_path), .type = ARG_STRING,
	    .dflt_str = "./remote_mirror",
	    .help = "Where it goes; a file goes into a directory that exists "
	            "or ends in a slash." },
	SYNC_COMMON_ARGS,
	{ 0 },
};

static const struct out outputs[] = {
	{ "created_dirs", OUT_INT },
	{ "downloaded_files", OUT_INT },
	SYNC_COMMON_OUTPUTS,
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	return syncing_run(call, given, SYNC_DOWN, false, result, err);
}

const struct tool tool_sync_remote_to_local = {
	.name = "sync_remote_to_local",
	.title = "Download files",
	.description =
	    "Make a local file or directory like the one on a sandbox; only "
	    "what changed is fetched, and files appear whole. Much of it "
	    "moves to a worker (mode background): poll "
	    "check_file_transfer_task.",
	.args = args,
	.args_size = sizeof(struct sync_args),
	.outputs = outputs,
	.hints = { .destructive = true,
	    .idempotent = true,
	    .open_world = true },
	.run = run,
};
