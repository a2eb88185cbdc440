/* Sync, for the tools. */
#include "tools/syncing.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "tools/app.h"
#include "tools/remote.h"
#include "tools/transfer.h"

/* More than this moves to a worker. */
#define INLINE_FILES 200
#define INLINE_BYTES ((int64_t)64 << 20)

#define MEGABYTE 1000000
#define WORDS_MAX ((size_t)8192) /* of a message: a path is in it */

#define FILES_ENV "REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES"
#define BYTES_ENV "REMOTE_SANDBOX_INLINE_SYNC_MAX_BYTES"

const struct out sync_problem_outputs[] = {
	{ "path", OUT_STRING, NULL, .always = true },
	{ "problem", OUT_STRING, NULL, .always = true },
	{ 0 },
};

const struct out sync_plan_outputs[] = {
	{ "action", OUT_STRING,
	    "copy, link, make_dir, delete or set_mode_and_time.",
	    .always = true },
	{ "path", OUT_STRING, NULL, .always = true },
	{ "size", OUT_INT },
	{ 0 },
};

static int64_t
limit(const char *name, int64_t dflt)
{
	const char *text = getenv(name);
	int64_t n;

	if (text != NULL && str_to_int(text, 0, INT64_MAX, &n) == 0)
		return n == 0 ? -1 : n; /* 0: always a worker */
	return dflt;
}

static void
tell(void *data, const struct sync_progress *p)
{
	struct call *call = data;
	struct buf words;

	buf_init(&words, WORDS_MAX);
	buf_adds(&words, p->phase);
	if (p->files_total > 0)
		buf_addf(&words, ", %" PRId64 " of %" PRId64 " files",
		    p->files_done, p->files_total);
	if (p->bytes_total >= MEGABYTE)
		buf_addf(&words, ", %.1f of %.1f MB",
		    (double)p->bytes_done / MEGABYTE,
		    (double)p->bytes_total / MEGABYTE);
	if (p->path[0] != '\0')
		buf_addf(&words, ": %s", p->path);
	/* "done" must rise: bytes, and a little for each file. */
	call_progress(call, (double)p->bytes_done + (double)p->files_done,
	    (double)p->bytes_total + (double)p->files_total, words.data);
	buf_free(&words);
}

/* Fails with what was done until then in the result. */
static int
run_inline(struct call *call, struct link *link, struct sync_request *q,
    bool *too_large, json_t **result, struct err *err)
{
	struct sync_report report;
	int rc;

	q->max_files = limit(FILES_ENV, INLINE_FILES);
	q->max_bytes = limit(BYTES_ENV, INLINE_BYTES);
	*too_large = !q->dry_run && (q->max_files < 0 || q->max_bytes < 0);
	if (*too_large)
		return 0;
	rc = sync_run(link, q, call->progress != NULL ? tell : NULL, call,
	    &report, &call->until, err);
	*too_large = rc == 0 && report.too_large;
	if (!*too_large &&
	    (rc == 0 || report.files + report.dirs + report.deleted_files > 0))
		*result = sync_report_json(&report, q);
	sync_report_free(&report);
	return rc;
}

int
syncing_run(struct call *call, const struct sync_args *a,
    enum sync_direction direction, bool background, json_t **result,
    struct err *err)
{
	struct sync_request q = {
		.direction = direction,
		.local_path = a->local_path,
		.remote_path = a->remote_path,
		.delete_extras = a->delete_extras,
		.confirm_delete = a->confirm_delete,
		.checksum = a->checksum,
		.dry_run = a->dry_run,
		.use_gitignore = a->use_gitignore,
		.excludes = a->excludes,
		.exclude_file = a->exclude_file,
	};
	const struct sandbox *sb = app_sandbox(call->app, a->sandbox_name, err);
	bool worker = background && !a->dry_run;
	struct link *link;
	int rc = 0;

	if (sb == NULL)
		return -1;
	link = links_get(call->app->links, sb);
	if (!worker)
		rc = run_inline(call, link, &q, &worker, result, err);
	if (rc == 0 && worker) {
		q.max_files = q.max_bytes = 0;
		rc = transfer_start(call->app, sb, &q, result, err);
		if (rc == 0 && !background)
			json_object_set_new(*result, "auto_switched",
			    json_true());
	}
	if (rc == 0) {
		json_object_set_new(*result, "sandbox", json_string(sb->name));
		remote_set_news(*result, link);
	}
	return rc;
}
