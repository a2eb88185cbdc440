/*
 * Sync: what is meant by the two paths, a look at both sides, a plan, and its
 * guards.
 */
#include "sync/sync.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/roots.h"
#include "sync/beneath.h"
#include "sync/inside.h"
#include "sync/scan.h"
#include "sync/sums.h"

#define PROBLEMS_MAX 50
#define PLAN_SHOWN 100
#define LEFT_OVERS_MAX 10000

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
	json_t *o;

	pthread_mutex_lock(&r->lock);
	if (r->report->problem_count++ < PROBLEMS_MAX) {
		o = json_object();
		json_object_set_new(o, "path", utf8_json(path, strlen(path)));
		json_object_set_new(o, "problem", utf8_json(why, strlen(why)));
		json_array_append_new(r->report->problems, o);
	}
	r->now.problems = r->report->problem_count;
	pthread_mutex_unlock(&r->lock);
}

/* The last part of a path; "" if it ends in a slash. */
static const char *
base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* All before the last part. */
static char *
dir_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (slash == NULL)
		return xstrdup(".");
	return slash == path ? xstrdup("/")
	                     : xstrndup(path, (size_t)(slash - path));
}

static char *
absolute_local(const char *given, struct err *err)
{
	const char *home = getenv("HOME");
	char *path = path_home(given, home != NULL ? home : "/");
	char *cwd, *joined, *clean;

	if (path[0] == '/') {
		clean = path_clean(path);
		free(path);
		return clean;
	}
	cwd = getcwd(NULL, 0);
	if (cwd == NULL) {
		free(path);
		err_sys(err, "the directory this server runs in is gone");
		return NULL;
	}
	joined = path_join(cwd, path);
	clean = path_clean(joined);
	free(cwd);
	free(path);
	free(joined);
	return clean;
}

static int
make_rules(struct run *r, struct err *err)
{
	const json_t *list = r->req->excludes;
	size_t i;

	r->rules = rules_new();
	if (!str_blank(r->req->exclude_file)) {
		char *path = absolute_local(r->req->exclude_file, err);
		int rc = -1;

		if (path != NULL && roots_check(path, err) == 0)
			rc = rules_add_file(r->rules, path, err);
		free(path);
		if (rc == -1)
			return -1;
	}
	for (i = 0; i < json_array_size(list); i++)
		rules_add(r->rules, json_string_value(json_array_get(list, i)));
	return 0;
}

static void
note_left_over(void *data, const char *path, int64_t size, int64_t mtime)
{
	struct run *r = data;
	struct left_over *l;

	/* Nobody leaves so many, but a host can say anything. */
	if (++r->left_over_count > LEFT_OVERS_MAX)
		return;
	l = xcalloc(1, sizeof(*l));
	l->path = xstrdup(path);
	l->size = size;
	l->mtime = mtime;
	l->next = r->left_overs;
	r->left_overs = l;
}

/* Look at the far side; the tree below it, if "deep". */
static int
look_far(struct run *r, const char *path, bool deep, bool gitignore,
    struct err *err)
{
	struct farlist_options o = {
		.rules = r->rules,
		.recursive = deep,
		.space = r->req->direction == SYNC_UP,
		.max_entries = deep ? 0 : 1,
		.gitignore = gitignore,
		.problem = deep ? run_problem : NULL,
		.problem_data = r,
		.left_over = deep ? note_left_over : NULL,
	};

	run_tell(r, "scanning", NULL, 0, 0);
	far_root_free(&r->far);
	memset(&r->far, 0, sizeof(r->far));
	tree_free(&r->remote);
	tree_init(&r->remote);
	if (farlist_run(r->link, path, &o, &r->far, &r->remote, r->until,
	        err) == -1)
		return -1;
	if (r->far.kind != FAR_OTHER)
		return 0;
	return err_set(err, ERR_INVALID,
	    "'%.300s' on %s is neither a file nor a directory", path,
	    link_sandbox(r->link)->name);
}

static int
look_here(struct run *r, struct err *err)
{
	struct scan_options o = {
		.rules = r->rules,
		.gitignore =
		    r->req->use_gitignore && r->req->direction == SYNC_UP,
		.problem = run_problem,
		.problem_data = r,
	};

	run_tell(r, "scanning", NULL, 0, 0);
	return scan_local(r->root_fd, &o, &r->local, r->until, err);
}

/* The local scan beside the far one: both take their time. */
struct beside {
	struct run *r;
	pthread_t thread;
	bool started;
	int rc;
	struct err err;
};

static void *
look_beside(void *arg)
{
	struct beside *b = arg;

	b->rc = look_here(b->r, &b->err);
	return NULL;
}

static int
look_both(struct run *r, const char *path, struct err *err)
{
	struct beside b = { .r = r };
	int rc;

	/* Unless one side finds rules for the other. */
	if (!r->req->use_gitignore)
		b.started =
		    pthread_create(&b.thread, NULL, look_beside, &b) == 0;
	if (!b.started)
		look_beside(&b);
	rc = b.rc == 0 || b.started ? look_far(r, path, true, false, err) : 0;
	if (b.started)
		pthread_join(b.thread, NULL);
	if (b.rc == -1)
		*err = b.err;
	return rc == -1 || b.rc == -1 ? -1 : 0;
}

/* One tree has just this file. */
static void
only_file(struct tree *t, const char *name, const struct entry *like)
{
	struct entry *e;

	tree_free(t);
	tree_init(t);
	e = tree_add(t, name, NULL);
	e->size = like->size;
	e->mtime = like->mtime;
	e->mode = like->mode;
	e->type = ENTRY_FILE;
}

static void
stat_entry(struct entry *e, const struct stat *st)
{
	memset(e, 0, sizeof(*e));
	e->size = st->st_size;
	e->mtime =
	    st->st_mtim.tv_sec * INT64_C(1000000000) + st->st_mtim.tv_nsec;
	e->mode = st->st_mode & 0777;
}

static int
open_root(struct run *r, const char *path, struct err *err)
{
	r->root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return r->root_fd == -1 ? err_sys(err, "cannot open '%.300s'", path)
	                        : 0;
}

/* Where a single file goes on the far side: makes far.path the directory and
 * the remote tree what is at the name there. */
static int
aim_file_far(struct run *r, const char *name, char **as, struct err *err)
{
	const char *given = r->req->remote_path;
	bool into = r->far.kind == FAR_DIR || str_ends(given, "/");
	struct entry file = r->far.file;
	enum far_kind kind = r->far.kind;
	char *dir, *inner;

	if (into && r->far.kind == FAR_FILE)
		return err_set(err, ERR_INVALID,
		    "'%.300s' on %s is a file, and cannot hold another", given,
		    link_sandbox(r->link)->name);
	if (!into) {
		*as = xstrdup(base_name(r->far.path));
		dir = dir_name(r->far.path);
		free(r->far.path);
		r->far.path = dir;
		tree_free(&r->remote);
		tree_init(&r->remote);
		if (kind == FAR_FILE)
			only_file(&r->remote, *as, &file);
		return 0;
	}
	*as = xstrdup(name);
	if (kind == FAR_MISSING)
		return 0;
	inner = path_join(r->far.path, name);
	dir = xstrdup(r->far.path);
	if (look_far(r, inner, false, false, err) == -1) {
		free(inner);
		free(dir);
		return -1;
	}
	kind = r->far.kind;
	file = r->far.file;
	free(inner);
	free(r->far.path);
	r->far.path = dir;
	tree_free(&r->remote);
	tree_init(&r->remote);
	if (kind == FAR_DIR)
		return err_set(err, ERR_INVALID,
		    "'%.300s/%.100s' on %s is a directory, and a file cannot "
		    "take its place",
		    dir, name, link_sandbox(r->link)->name);
	if (kind == FAR_FILE)
		only_file(&r->remote, *as, &file);
	return 0;
}

static bool
is_excluded(struct run *r, const char *given, const char *name)
{
	if (!rules_cover(r->rules, name, false) &&
	    (given[0] == '/' || !rules_cover(r->rules, given, false)))
		return false;
	r->report->skipped = 1;
	return true;
}

/* A single file from here, or what a link leads to.  1: nothing is to be
 * done. */
static int
aim_up_file(struct run *r, const struct stat *st, struct err *err)
{
	const char *name = base_name(r->report->local_path);
	char *as = NULL, *real;
	struct entry e;
	int rc;

	r->report->is_file = true;
	if (r->req->delete_extras)
		return err_set(err, ERR_INVALID,
		    "delete_extras needs a directory as local_path");
	if (is_excluded(r, r->req->local_path, name))
		return 1;
	real = realpath(r->report->local_path, NULL);
	if (real == NULL)
		return err_sys(err, "local_path '%.300s'",
		    r->report->local_path);
	r->local_dir = dir_name(real);
	rc = open_root(r, r->local_dir, err);
	if (rc == 0)
		rc = look_far(r, r->req->remote_path, false, false, err);
	if (rc == 0)
		rc = aim_file_far(r, name, &as, err);
	if (rc == 0) {
		stat_entry(&e, st);
		only_file(&r->local, as, &e);
		r->source_name = xstrdup(base_name(real));
	}
	free(as);
	free(real);
	return rc;
}

static int
aim_up(struct run *r, struct err *err)
{
	const char *path = r->report->local_path;
	struct stat st;

	if (stat(path, &st) == -1)
		return err_sys(err, "local_path '%.300s'", path);
	if (S_ISREG(st.st_mode))
		return aim_up_file(r, &st, err);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ERR_INVALID,
		    "local_path '%.300s' is neither a file nor a directory",
		    path);
	if (open_root(r, path, err) == -1 ||
	    look_both(r, r->req->remote_path, err) == -1)
		return -1;
	if (r->far.kind == FAR_FILE)
		return err_set(err, ERR_INVALID,
		    "remote_path '%.300s' is a file on %s, and a directory "
		    "cannot take its place",
		    r->req->remote_path, link_sandbox(r->link)->name);
	return 0;
}

/* The local place of a single file from there: *dir and its name. */
static int
aim_file_here(struct run *r, const char *name, char **dir, char **as,
    struct err *err)
{
	const char *path = r->report->local_path;
	struct stat st;
	bool there = stat(path, &st) == 0;

	if ((there && S_ISDIR(st.st_mode)) ||
	    str_ends(r->req->local_path, "/")) {
		*dir = xstrdup(path);
		*as = xstrdup(name);
	} else {
		*dir = dir_name(path);
		*as = xstrdup(base_name(path));
	}
	/* Else root could lose a device by a file in its place. */
	if (there && !S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, ERR_INVALID,
		    "local_path '%.300s' is neither a file nor a directory",
		    path);
	return r->req->dry_run ? 0 : fs_mkdirs(*dir, 0777, err);
}

/* The local root; a dry run does without one that is not there, since nothing
 * shall be made.  1: so it is. */
static int
open_target(struct run *r, const char *path, struct err *err)
{
	if (r->req->dry_run && access(path, F_OK) == -1 && errno == ENOENT)
		return 1;
	return open_root(r, path, err);
}

static int
aim_down_file(struct run *r, struct err *err)
{
	char *name = xstrdup(base_name(r->far.path)), *dir, *as = NULL;
	char *far_dir = dir_name(r->far.path), *here = NULL;
	struct entry file = r->far.file, e;
	struct stat st;
	int rc = 0;

	r->report->is_file = true;
	if (r->req->delete_extras)
		rc = err_set(err, ERR_INVALID,
		    "delete_extras needs a directory as remote_path");
	else if (is_excluded(r, r->req->remote_path, name))
		rc = 1;
	if (rc == 0) {
		rc = aim_file_here(r, name, &here, &as, err);
		if (rc == 0 && open_target(r, here, err) == -1)
			rc = -1;
	}
	if (rc == 0 && r->root_fd != -1 &&
	    fstatat(r->root_fd, as, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (S_ISDIR(st.st_mode))
			rc = err_set(err, ERR_INVALID,
			    "'%.300s/%.100s' is a directory, and a file cannot "
			    "take its place",
			    here, as);
		stat_entry(&e, &st);
		if (S_ISREG(st.st_mode))
			only_file(&r->local, as, &e);
	}
	if (rc == 0) {
		only_file(&r->remote, as, &file);
		dir = r->far.path;
		r->far.path = far_dir;
		far_dir = dir;
		r->source_name = name;
		r->local_dir = here;
		name = here = NULL; /* live as long as the run */
	}
	free(name);
	free(far_dir);
	free(here);
	free(as);
	return rc;
}

static int
aim_down(struct run *r, struct err *err)
{
	const char *path = r->report->local_path;

	if (look_far(r, r->req->remote_path, true, r->req->use_gitignore,
	        err) == -1)
		return -1;
	if (r->far.kind == FAR_MISSING)
		return err_set(err, ERR_NOT_FOUND,
		    "remote_path '%.300s' does not exist on %s",
		    r->req->remote_path, link_sandbox(r->link)->name);
	if (r->far.kind == FAR_FILE)
		return aim_down_file(r, err);
	if (!r->req->dry_run && fs_mkdirs(path, 0777, err) == -1)
		return -1;
	switch (open_target(r, path, err)) {
	case -1:
		return -1;
	case 1:
		return 0; /* all of it is new */
	default:
		return look_here(r, err);
	}
}

/* More deletion than a slip of the pen should cause. */
static int
guard_delete(struct run *r, struct err *err)
{
	const struct plan *p = &r->plan;

	if (r->req->dry_run || r->req->confirm_delete || !plan_deletes_much(p))
		return 0;
	return err_set(err, ERR_INVALID,
	    "delete_extras would delete %zu files and %zu directories, of %zu "
	    "entries in the target; nothing was done. Look at it with dry_run: "
	    "true, and pass confirm_delete: true if it is meant",
	    p->deleted_files, p->deleted_dirs, p->target_count);
}

/* Of a big file, what an interrupted run brought to the far side. */
static int64_t
part_there(const struct run *r, const struct entry *e)
{
	const struct left_over *l;
	char part[PART_NAME_MAX];
	int64_t size = 0;

	part_name(part, e);
	for (l = r->left_overs; l != NULL; l = l->next) {
		const char *name = base_name(l->path);

		/* By SFTP it has another letter. */
		if (strncmp(name, part, strlen(BENEATH_PREFIX)) == 0 &&
		    strcmp(name + strlen(BENEATH_PREFIX) + 1,
		        part + strlen(BENEATH_PREFIX) + 1) == 0)
			size = l->size;
	}
	return size;
}

/* The same here. */
static int64_t
part_here(const struct run *r, const struct entry *e)
{
	char part[PART_NAME_MAX];
	const char *name;
	struct stat st;
	struct err err;
	int64_t size = 0;
	int fd = beneath_parent(r->root_fd, e->path, false, &name, &err);

	part_name(part, e);
	if (fd == -1)
		return 0;
	if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0)
		size = (int64_t)st.st_blocks * 512;
	close(fd);
	return size;
}

/* What has to find room: not what is in its part already. */
static int64_t
bytes_needed(const struct run *r, bool up)
{
	int64_t bytes = r->plan.bytes, part;
	size_t i;

	for (i = 0; i < r->plan.count; i++) {
		const struct entry *e = r->plan.actions[i].entry;

		if (r->plan.actions[i].kind != ACTION_FILE ||
		    e->size < BIG_FILE)
			continue;
		part = up ? part_there(r, e) : part_here(r, e);
		bytes -= part < e->size ? part : e->size;
	}
	return bytes;
}

static int
guard_space(struct run *r, struct err *err)
{
	int64_t room = r->far.free_bytes, bytes;
	bool up = r->req->direction == SYNC_UP;
	struct statvfs vfs;

	if (!up && r->root_fd != -1 && fstatvfs(r->root_fd, &vfs) == 0)
		room = (int64_t)(vfs.f_bavail * vfs.f_frsize);
	if (room < 0 || r->plan.bytes <= room || r->req->dry_run)
		return 0;
	bytes = bytes_needed(r, up);
	if (bytes <= room)
		return 0;
	return err_set(err, ERR_IO,
	    "%s has %lld MB free, and this needs %lld MB; nothing was done",
	    up ? link_sandbox(r->link)->name : "the local disk",
	    (long long)(room >> 20), (long long)(bytes >> 20));
}

static const char *
action_name(enum action_kind kind)
{
	static const char *const names[] = {
		[ACTION_OPEN] = "unlock",
		[ACTION_DELETE] = "delete",
		[ACTION_RMDIR] = "delete",
		[ACTION_MKDIR] = "make_dir",
		[ACTION_FILE] = "copy",
		[ACTION_LINK] = "link",
		[ACTION_META] = "set_mode_and_time",
	};

	return names[kind];
}

static void
show_plan(struct run *r)
{
	const struct plan *p = &r->plan;
	size_t i;

	r->report->plan = json_array();
	for (i = 0; i < p->count && i < PLAN_SHOWN; i++) {
		const struct action *a = &p->actions[i];
		json_t *o = json_object();

		json_object_set_new(o, "action",
		    json_string(action_name(a->kind)));
		json_object_set_new(o, "path",
		    utf8_json(a->entry->path, strlen(a->entry->path)));
		if (a->kind == ACTION_FILE)
			json_object_set_new(o, "size",
			    json_integer(a->entry->size));
		json_array_append_new(r->report->plan, o);
	}
	r->report->dirs = (int64_t)p->new_dirs;
	r->report->files = (int64_t)(p->files + p->links);
	r->report->links = (int64_t)p->links;
	r->report->deleted_files = (int64_t)p->deleted_files;
	r->report->deleted_dirs = (int64_t)p->deleted_dirs;
	r->report->bytes = p->bytes;
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
	char *dir = dir_name(e->path), *joined, *clean;
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

static int
do_plan(struct run *r, bool up, struct err *err)
{
	int rc = link_ways(r->link, r->until, err);

	if (rc == -1)
		return -1;
	if (rc == 1) {
		r->sftp = link_sftp(r->link, r->until, err);
		if (r->sftp == NULL)
			return -1;
	}
	if (!up)
		rc = download(r, err);
	else
		rc = r->sftp != NULL ? sftp_upload(r, err) : upload(r, err);
	sftp_free(r->sftp);
	r->sftp = NULL;
	return rc;
}

/* Where no sums can be made, the bytes have to come. */
static int
plan_by_sftp(struct run *r, bool up, struct plan_options *o, struct err *err)
{
	int rc;

	r->sftp = link_sftp(r->link, r->until, err);
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
		const char *name = base_name(l->path);

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
	r->now.files_total = (int64_t)(r->plan.files + r->plan.links);
	r->now.bytes_total = r->plan.bytes;
	if (guard_delete(r, err) == -1 || guard_space(r, err) == -1)
		return -1;
	if (r->req->dry_run) {
		show_plan(r);
		return 0;
	}
	if (too_large(r)) {
		r->report->too_large = true;
		return 0;
	}
	if (r->plan.count == 0 && !(up && r->far.kind == FAR_MISSING) &&
	    !left_something(r, up))
		return 0;
	return do_plan(r, up, err);
}

static int
check_request(struct run *r, struct err *err)
{
	const struct sync_request *q = r->req;

	if (str_blank(q->local_path) || str_blank(q->remote_path))
		return err_set(err, ERR_INVALID,
		    "local_path and remote_path must not be empty");
	r->report->local_path = absolute_local(q->local_path, err);
	if (r->report->local_path == NULL ||
	    roots_check(r->report->local_path, err) == -1)
		return -1;
	return make_rules(r, err);
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
	rc = check_request(&r, err);
	if (rc == 0)
		rc = req->direction == SYNC_UP ? aim_up(&r, err)
		                               : aim_down(&r, err);
	if (rc == 0)
		rc = run_plan(&r, err);
	if (r.far.path != NULL)
		report->remote_path = xstrdup(r.far.path);
	report->duration_ms = clock_ms() - r.began;
	if (rc == 0)
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

void
sync_report_free(struct sync_report *r)
{
	free(r->local_path);
	free(r->remote_path);
	json_decref(r->problems);
	json_decref(r->outside);
	json_decref(r->plan);
	memset(r, 0, sizeof(*r));
}

static void
set_int(json_t *o, const char *name, int64_t n)
{
	json_object_set_new(o, name, json_integer((json_int_t)n));
}

json_t *
sync_report_json(const struct sync_report *r, const struct sync_request *req)
{
	bool up = req->direction == SYNC_UP;
	json_t *o = json_object();

	json_object_set_new(o, "mode",
	    json_string(req->dry_run ? "dry_run" : "inline"));
	json_object_set_new(o, "local_path",
	    utf8_json(r->local_path, strlen(r->local_path)));
	json_object_set_new(o, "remote_path",
	    r->remote_path != NULL
	        ? utf8_json(r->remote_path, strlen(r->remote_path))
	        : json_null());
	json_object_set_new(o, "synced_type",
	    json_string(r->is_file ? "file" : "directory"));
	set_int(o, up ? "uploaded_dirs" : "created_dirs", r->dirs);
	set_int(o, up ? "uploaded_files" : "downloaded_files", r->files);
	set_int(o, "skipped_files", r->skipped);
	if (up || req->delete_extras) {
		set_int(o, "deleted_dirs", r->deleted_dirs);
		set_int(o, "deleted_files", r->deleted_files);
	}
	if (up)
		json_object_set_new(o, "delete_extras",
		    json_boolean(req->delete_extras));
	set_int(o, "bytes", r->bytes);
	json_object_set_new(o, "duration_s",
	    json_real((double)r->duration_ms / 1000));
	if (r->links > 0)
		set_int(o, "links", r->links);
	if (json_array_size(r->outside) > 0)
		json_object_set(o, "outside_links", r->outside);
	if (r->problem_count > 0) {
		json_object_set(o, "problems", r->problems);
		set_int(o, "problem_count", r->problem_count);
	}
	if (r->plan != NULL)
		json_object_set(o, "plan", r->plan);
	return o;
}
