/*
 * sync_local_to_remote: make a file or a tree on a sandbox like the local one.
 * And the same under an older name that always uses a worker.
 */
#include "tools/syncing.h"

static const struct arg args[] = {
	{ SYNC_ARG(local_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "Local file or directory." },
	{ SYNC_ARG(remote_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "Where it goes, relative to the workdir or the login "
	            "directory; a file goes into a directory that exists or "
	            "ends in a slash." },
	SYNC_COMMON_ARGS,
	{ 0 },
};

static const struct out outputs[] = {
	{ "uploaded_dirs", OUT_INT },
	{ "uploaded_files", OUT_INT },
	{ "delete_extras", OUT_BOOL },
	SYNC_COMMON_OUTPUTS,
	{ 0 },
};

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	return syncing_run(call, given, SYNC_UP, false, result, err);
}

static int
run_background(struct call *call, const void *given, json_t **result,
    struct err *err)
{
	return syncing_run(call, given, SYNC_UP, true, result, err);
}

const struct tool tool_sync_local_to_remote = {
	.name = "sync_local_to_remote",
	.title = "Upload files",
	.description =
	    "Make a file or directory on a sandbox like the local one; only "
	    "what changed is sent, and files appear whole. Much of it moves "
	    "to a worker (mode background): poll check_file_transfer_task.",
	.args = args,
	.args_size = sizeof(struct sync_args),
	.outputs = outputs,
	.hints = { .destructive = true,
	    .idempotent = true,
	    .open_world = true },
	.run = run,
};

const struct tool tool_sync_local_to_remote_background = {
	.name = "sync_local_to_remote_background",
	.title = "Upload in the background",
	.description = "As sync_local_to_remote, but always by a worker.",
	.args = args,
	.args_size = sizeof(struct sync_args),
	.outputs = outputs,
	.hints = { .destructive = true,
	    .idempotent = true,
	    .open_world = true },
	.flags = TOOL_ADVANCED,
	.run = run_background,
};
