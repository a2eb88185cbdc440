/*
 * sync_local_to_remote: make a file or a tree on a sandbox like the local one.
 * And the same under an older name that always uses a worker.
 */
#include "tools/syncing.h"

static const struct arg args[] = {
	{ SYNC_ARG(local_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "Local file or directory." },
	{ SYNC_ARG(remote_path), .type = ARG_STRING, .dflt_str = ".",
	    .help = "Where it goes, relative to the login directory; a file "
	            "goes into a directory that exists or ends in a slash." },
	SYNC_COMMON_ARGS,
	{ 0 },
};

static const struct out outputs[] = {
	{ "mode", OUT_STRING, "inline, background or dry_run.",
	    .always = true },
	{ "sandbox", OUT_STRING, NULL, .always = true },
	{ "local_path", OUT_STRING },
	{ "remote_path", OUT_STRING, NULL, .nullable = true },
	{ "synced_type", OUT_STRING, "file or directory." },
	{ "uploaded_dirs", OUT_INT },
	{ "uploaded_files", OUT_INT },
	{ "skipped_files", OUT_INT, "Up to date, or excluded." },
	{ "deleted_dirs", OUT_INT },
	{ "deleted_files", OUT_INT },
	{ "delete_extras", OUT_BOOL },
	{ "bytes", OUT_INT },
	{ "links", OUT_INT, "Symbolic links among the files." },
	{ "outside_links", OUT_STRINGS, "Of these, what points elsewhere." },
	{ "duration_s", OUT_NUMBER },
	{ "problems", OUT_OBJECTS, "What was left out, and why.",
	    .fields = sync_problem_outputs },
	{ "problem_count", OUT_INT },
	{ "plan", OUT_OBJECTS, "dry_run: the first steps.",
	    .fields = sync_plan_outputs },
	{ "auto_switched", OUT_BOOL, "It was much, so a worker does it." },
	{ "task_id", OUT_INT, "For check_file_transfer_task." },
	{ "status", OUT_STRING },
	{ "pid", OUT_INT },
	{ "log_file", OUT_STRING },
	{ "host_key_added", OUT_STRING, "A new host key was remembered." },
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
