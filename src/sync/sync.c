/*
 * Sync: both ends are looked at (aim.c), a plan is made, guarded (guard.c) and
 * done.
 */
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "ssh/clean.h"
#include "sync/beneath.h"
#include "sync/inside.h"
#include "sync/silence.h"
#include "sync/sums.h"

#define PROBLEMS_MAX 50
#define WHY_MAX 1000 /* bytes: some are words of the host */

void
run_tell(struct run *r, const char *phase, const char *path, int64_t files,
    int64_t bytes)
{
	pthread_mutex_lock(&r->lock);
	if (phase != NULL)
		r->now.phase = phase;
	r->now.path = path != NULL ? path : "";
	r->now.files_done += files;
	r->now.bytes_done += bytes;
	r->now.elapsed_ms = clock_ms() - r->began;
	if (r->progress != NULL)
		r->progress(r->data, &r->now);
	pthread_mutex_unlock(&r->lock);
}

void
run_problem(void *data, const char *path, const char *why)
{
	struct run *r = data;
	struct buf said;
	json_t *o;

	pthread_mutex_lock(&r->lock);
	if (r->report->problem_count++ < PROBLEMS_MAX) {
		buf_init(&said, WHY_MAX);
		clean_text(&said, why, strlen(why));
		o = json_object();
		json_object_set_new(o, "path", utf8_json(path, strlen(path)));
		json_object_set_new(o, "problem",
		    utf8_json(said.data, said.len));
		json_array_append_new(r->report->problems, o);
		buf_free(&said);
	}
	r->now.problems = r->report->problem_count;
	pthread_mutex_unlock(&r->lock);
}

static bool
too_large(const struct run *r)
{
	const struct sync_request *q = r->req;

	return (q->max_files > 0 &&
	           (int64_t)(r->plan.files + r->plan.links) > q->max_files) ||
	    (q->max_bytes > 0 && r->plan.bytes > q->max_bytes);
}

/* Does the link lead out of the tree?  As text: nothing is followed. */
static bool
leads_out(const struct entry *e)
{
	char *dir = path_dir(e->path), *joined, *clean;
	bool out;

	if (e->target[0] == '/') {
		free(dir);
		return true;
	}
	joined = path_join(dir, e->target);
	clean = path_clean(joined);
	out = strcmp(clean, "..") == 0 || str_starts(clean, "../");
	free(dir);
	free(joined);
	free(clean);
	return out;
}

static void
note_outside(struct run *r)
{
	size_t i;

	for (i = 0; i < r->plan.count; i++) {
		const struct entry *e = r->plan.actions[i].entry;

		if (r->plan.actions[i].kind == ACTION_LINK && leads_out(e) &&
		    json_array_size(r->report->outside) < PROBLEMS_MAX)
			json_array_append_new(r->report->outside,
			    utf8_json(e->path, strlen(e->path)));
	}
}

/* Files that arrived are in place, and pieces of big ones are kept. */
static void
tell_to_go_on(struct err *err)
{
	struct err was = *err;

	err_set(err, was.code,
	    "%s; the same sync again goes on where it stopped", was.msg);
}

static int
do_plan(struct run *r, bool up, struct err *err)
{
	unsigned losses = link_losses(r->link);
	int rc = link_ways(r->link, r->until, err);
	bool lost;

	if (rc == -1)
		return -1;
	if (rc == 1) {
		r->sftp = silence_sftp(r->link, r->until, err);
		if (r->sftp == NULL)
			return -1;
	}
	if (!up)
		rc = download(r, err);
	else
		rc = r->sftp != NULL ? sftp_upload(r, err) : upload(r, err);
	lost = link_losses(r->link) != losses ||
	    (r->sftp != NULL && sftp_broken(r->sftp));
	if (rc == -1 && err->code != ERR_CANCELLED &&
	    (lost || err->code == ERR_TIMEOUT))
		tell_to_go_on(err);
	sftp_free(r->sftp);
	r->sftp = NULL;
	return rc;
}

/* Where no sums can be made, the bytes have to come. */
static int
plan_by_sftp(struct run *r, bool up, struct plan_options *o, struct err *err)
{
	int rc;

	r->sftp = silence_sftp(r->link, r->until, err);
	if (r->sftp == NULL)
		return -1;
	run_tell(r, "comparing", NULL, 0, 0);
	o->same = sftp_same;
	o->data = r;
	plan_make(&r->plan, up ? &r->local : &r->remote,
	    up ? &r->remote : &r->local, o, run_problem, r);
	/* A file that could not be read is another one; a lost link is not. */
	rc = until_check(r->until, err);
	if (rc == 0 && sftp_broken(r->sftp))
		rc = err_set(err, ERR_IO, "the connection to %s was lost",
		    link_sandbox(r->link)->name);
	sftp_free(r->sftp);
	r->sftp = NULL;
	return rc;
}

static bool
never_same(void *data, const struct entry *from, const struct entry *to)
{
	(void)data;
	(void)from;
	(void)to;
	return false;
}

/* Are there two sides whose content can be compared? */
static bool
compares(const struct run *r)
{
	return r->req->checksum && r->root_fd != -1 && r->local.count > 0 &&
	    r->remote.count > 0;
}

static int
make_plan(struct run *r, bool up, struct err *err)
{
	struct plan_options o = { .delete_extras = r->req->delete_extras };
	int sftp = compares(r) ? link_ways(r->link, r->until, err) : 0;
	struct sums *sums = NULL;

	if (sftp == -1)
		return -1;
	if (sftp == 1 && r->source_name == NULL)
		return plan_by_sftp(r, up, &o, err);
	/* A single file is brought then: comparing it costs as much. */
	if (sftp == 1) {
		o.same = never_same;
	} else if (compares(r)) {
		sums = sums_new(r, err);
		if (sums == NULL)
			return -1;
		o.same = sums_same;
		o.data = sums;
	}
	plan_make(&r->plan, up ? &r->local : &r->remote,
	    up ? &r->remote : &r->local, &o, run_problem, r);
	sums_free(sums);
	return 0;
}

/* Did an interrupted run leave something that is to be cleaned up, even if
 * there is nothing else to do?  Parts of an upload are not: they may be gone on
 * with, and the next one sees to old ones. */
static bool
left_something(const struct run *r, bool up)
{
	const struct left_over *l;

	if (!up)
		return r->local.left_overs;
	for (l = r->left_overs; l != NULL; l = l->next) {
		const char *name = path_base(l->path);

		if (str_starts(name, BENEATH_PREFIX "s") ||
		    str_starts(name, BENEATH_PREFIX "u"))
			return r->far.writable;
	}
	return false;
}

static int
run_plan(struct run *r, struct err *err)
{
	bool up = r->req->direction == SYNC_UP;

	if (make_plan(r, up, err) == -1)
		return -1;
	note_outside(r);
	r->report->skipped = (int64_t)r->plan.same;
	r->report->specials = (int64_t)r->plan.specials;
	if (guard_delete(r, err) == -1 || guard_space(r, err) == -1)
		return -1;
	if (r->req->dry_run) {
		report_plan(r);
		return 0;
	}
	if (too_large(r)) {
		r->report->too_large = true;
		return 0;
	}
	r->now.files_total = (int64_t)(r->plan.files + r->plan.links);
	r->now.bytes_total = r->plan.bytes;
	if (r->plan.count == 0 && !(up && r->far.kind == FAR_MISSING) &&
	    !left_something(r, up))
		return 0;
	return do_plan(r, up, err);
}

/* What was synced with what; of a single file that is the file. */
static void
tell_paths(struct run *r)
{
	bool up = r->req->direction == SYNC_UP;
	const struct tree *from = up ? &r->local : &r->remote;
	struct sync_report *report = r->report;
	const char *as;

	if (r->far.path == NULL)
		return;
	if (!report->is_file || r->source_name == NULL || from->count != 1) {
		report->remote_path = xstrdup(r->far.path);
		return;
	}
	as = from->entries[0].path;
	report->remote_path = path_join(r->far.path, up ? as : r->source_name);
	if (!up && r->local_dir != NULL) {
		free(report->local_path);
		report->local_path = path_join(r->local_dir, as);
	}
}

int
sync_run(struct link *link, const struct sync_request *req,
    void (*progress)(void *data, const struct sync_progress *p), void *data,
    struct sync_report *report, const struct until *until, struct err *err)
{
	struct run r = {
		.link = link,
		.req = req,
		.report = report,
		.until = until,
		.progress = progress,
		.data = data,
		.root_fd = -1,
		.began = clock_ms(),
		.now = { .phase = "connecting", .path = "" },
	};
	int rc;

	memset(report, 0, sizeof(*report));
	report->problems = json_array();
	report->outside = json_array();
	pthread_mutex_init(&r.lock, NULL);
	tree_init(&r.local);
	tree_init(&r.remote);
	rc = aim_check(&r, err);
	if (rc == 0)
		rc = req->direction == SYNC_UP ? aim_up(&r, err)
		                               : aim_down(&r, err);
	if (rc == 0)
		rc = run_plan(&r, err);
	tell_paths(&r);
	report->duration_ms = clock_ms() - r.began;
	if (rc == 0 && !req->dry_run && !report->too_large)
		run_tell(&r, "complete", NULL, 0, 0);
	free(r.source_name);
	free(r.local_dir);
	while (r.left_overs != NULL) {
		struct left_over *l = r.left_overs;

		r.left_overs = l->next;
		free(l->path);
		free(l);
	}
	plan_free(&r.plan);
	rules_free(r.rules);
	tree_free(&r.local);
	tree_free(&r.remote);
	far_root_free(&r.far);
	if (r.root_fd != -1)
		close(r.root_fd);
	pthread_mutex_destroy(&r.lock);
	return rc == -1 ? -1 : 0;
}
