/*
 * What is meant by the two paths of a sync, and a look at both sides.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "config/roots.h"
#include "sync/beneath.h"
#include "sync/inside.h"
#include "sync/scan.h"

#define LEFT_OVERS_MAX 10000
#define LEFT_OVER_PATH 1024 /* bytes; longer ones stay */

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
	if (strlen(path) > LEFT_OVER_PATH ||
	    ++r->left_over_count > LEFT_OVERS_MAX)
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
	rc = b.started || b.rc == 0 ? look_far(r, path, true, false, err) : 0;
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
	if (r->root_fd == -1)
		return err_sys(err, "cannot open '%.300s'", path);
	return roots_check_fd(r->root_fd, path, err);
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
		*as = xstrdup(path_base(r->far.path));
		dir = path_dir(r->far.path);
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
	const char *name = path_base(r->report->local_path);
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
	r->local_dir = path_dir(real);
	rc = open_root(r, r->local_dir, err);
	if (rc == 0)
		rc = look_far(r, r->req->remote_path, false, false, err);
	if (rc == 0)
		rc = aim_file_far(r, name, &as, err);
	if (rc == 0) {
		stat_entry(&e, st);
		only_file(&r->local, as, &e);
		r->source_name = xstrdup(path_base(real));
	}
	free(as);
	free(real);
	return rc;
}

int
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
		*dir = path_dir(path);
		*as = xstrdup(path_base(path));
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

/*
 * The name of a single file from there: the last one of the path that was asked
 * for.  What the host makes of that path is its own business, but it does not
 * choose which file of a local directory is replaced.  NULL if there is none,
 * as in "~" or "..".
 */
static char *
asked_name(const char *path)
{
	size_t len = strlen(path);
	char *whole, *name;

	while (len > 0 && path[len - 1] == '/')
		len--;
	whole = xstrndup(path, len);
	name = xstrdup(path_base(whole));
	/* Not "", "." or "..". */
	if (!path_inside(name) || strcmp(whole, "~") == 0) {
		free(name);
		name = NULL;
	}
	free(whole);
	return name;
}

static int
aim_down_file(struct run *r, struct err *err)
{
	char *name = asked_name(r->req->remote_path), *dir, *as = NULL;
	char *far_dir = path_dir(r->far.path), *here = NULL;
	struct entry file = r->far.file, e;
	struct stat st;
	int rc = 0;

	r->report->is_file = true;
	if (name == NULL)
		rc = err_set(err, ERR_INVALID,
		    "remote_path '%.300s' is a file on %s, and has no name "
		    "that it could get here; name the file itself",
		    r->req->remote_path, link_sandbox(r->link)->name);
	else if (r->req->delete_extras)
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
		r->source_name = xstrdup(path_base(r->far.path));
		dir = r->far.path;
		r->far.path = far_dir;
		far_dir = dir;
		r->local_dir = here;
		here = NULL; /* lives as long as the run */
	}
	free(name);
	free(far_dir);
	free(here);
	free(as);
	return rc;
}

int
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

int
aim_check(struct run *r, struct err *err)
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
