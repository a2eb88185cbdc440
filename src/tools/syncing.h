/*
 * What the sync tools have in common.
 */
#ifndef TOOLS_SYNCING_H
#define TOOLS_SYNCING_H

#include "sync/sync.h"
#include "tools/tool.h"

struct sync_args {
	const char *local_path;
	const char *remote_path;
	bool delete_extras;
	bool confirm_delete;
	json_t *excludes;
	const char *exclude_file;
	bool use_gitignore;
	bool checksum;
	bool dry_run;
	const char *sandbox_name;
};

#define SYNC_ARG(field) \
	.name = #field, .offset = offsetof(struct sync_args, field)

/* The rows behind the paths, the same for all. */
/* clang-format off */
#define SYNC_COMMON_ARGS \
	{ SYNC_ARG(delete_extras), .type = ARG_BOOL, \
	    .help = "Delete what the source does not have; excluded paths " \
	            "stay." }, \
	{ SYNC_ARG(confirm_delete), .type = ARG_BOOL, \
	    .help = "Needed if that is everything, or more than half of over " \
	            "100 entries." }, \
	{ SYNC_ARG(excludes), .type = ARG_STRINGS, \
	    .help = "Patterns to leave alone besides .git, node_modules and " \
	            "the like, such as *.log, data/ or (at the top) /out; ! " \
	            "in front includes again." }, \
	{ SYNC_ARG(exclude_file), .type = ARG_STRING, \
	    .help = "Local file with such patterns, one a line." }, \
	{ SYNC_ARG(use_gitignore), .type = ARG_BOOL, \
	    .help = "Leave alone what .gitignore files name." }, \
	{ SYNC_ARG(checksum), .type = ARG_BOOL, \
	    .help = "Compare content, not size and time." }, \
	{ SYNC_ARG(dry_run), .type = ARG_BOOL, \
	    .help = "Only tell what would be done." }, \
	{ SYNC_ARG(sandbox_name), .type = ARG_STRING, .dflt_str = "", \
	    .help = "Sandbox; the active one if empty." }
/* clang-format on */

extern const struct out sync_problem_outputs[];
extern const struct out sync_plan_outputs[];

/* What both return, beside the counts of what was made. */
/* clang-format off */
#define SYNC_COMMON_OUTPUTS \
	{ "mode", OUT_STRING, "inline, background or dry_run.", \
	    .always = true }, \
	{ "sandbox", OUT_STRING, NULL, .always = true }, \
	{ "local_path", OUT_STRING }, \
	{ "remote_path", OUT_STRING, NULL, .nullable = true }, \
	{ "synced_type", OUT_STRING, "file or directory." }, \
	{ "skipped_files", OUT_INT, "Up to date, or excluded." }, \
	{ "deleted_dirs", OUT_INT }, \
	{ "deleted_files", OUT_INT }, \
	{ "bytes", OUT_INT }, \
	{ "links", OUT_INT, "Symbolic links among the files." }, \
	{ "outside_links", OUT_STRINGS, "Of these, what points elsewhere." }, \
	{ "duration_s", OUT_NUMBER }, \
	{ "problems", OUT_OBJECTS, "What was left out, and why.", \
	    .fields = sync_problem_outputs }, \
	{ "problem_count", OUT_INT }, \
	{ "plan", OUT_OBJECTS, "dry_run: the first steps.", \
	    .fields = sync_plan_outputs }, \
	{ "auto_switched", OUT_BOOL, "It was much, so a worker does it." }, \
	{ "task_id", OUT_INT, "For check_file_transfer_task." }, \
	{ "status", OUT_STRING }, \
	{ "pid", OUT_INT }, \
	{ "log_file", OUT_STRING }, \
	{ "host_key_added", OUT_STRING, "A new host key was remembered." }
/* clang-format on */

/* Do it, here or, if it is much ("background": always), in a worker. */
int syncing_run(struct call *call, const struct sync_args *a,
    enum sync_direction direction, bool background, json_t **result,
    struct err *err);

#endif
