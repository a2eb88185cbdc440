/*
 * An upload by SFTP as a whole.
 *
 * What depends on other entries (directories before what is in them) is done
 * level by level: servers need not keep the order of requests.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "sync/beneath.h"
#include "sync/sftpup.h"

/* Files that nobody has written to for so long are nobody's: ssh itself gives
 * up a connection that is silent for less.  Parts of big ones may be gone on
 * with, and wait longer. */
#define ABANDONED_S 60
#define ABANDONED_PART_S 86400

#define CLEAN_MS 5000

/* One request about one entry. */
struct request {
	struct up *u;
	const struct entry *e;
	int64_t *counter; /* of the report; or NULL */
	bool missing_ok;
};

static void
done(void *data, const struct sftp_packet *reply)
{
	struct request *q = data;
	uint32_t code = sftp_code_of(reply);
	struct err why;

	if (code == SFTP_OK || (q->missing_ok && code == SFTP_NO_SUCH_FILE)) {
		if (q->counter != NULL)
			++*q->counter;
	} else if (code != SFTP_CONNECTION_LOST) {
		sftp_why(reply, &why);
		run_problem(q->u->r, q->e->path, why.msg);
	}
	free(q);
}

static struct request *
request_new(struct up *u, const struct entry *e, int64_t *counter)
{
	struct request *q = xcalloc(1, sizeof(*q));

	q->u = u;
	q->e = e;
	q->counter = counter;
	return q;
}

/* Mode and time; or only what it takes to write into a directory. */
static void
ask_meta(struct up *u, const struct entry *e, bool whole)
{
	char *path = sftpup_path(u, e->path);
	struct sftp_attrs a;
	struct buf *b;

	if (e->type == ENTRY_LINK) {
		sftpup_date_link(u, e, path);
	} else {
		sftpup_attrs(e, &a);
		a.has_times = whole;
		a.mode |= whole ? 0 : 0700;
		b = sftp_begin(u->s, SFTP_SETSTAT);
		sftp_put_string(b, path);
		sftp_put_attrs(b, &a);
		sftp_end(u->s, done, request_new(u, e, NULL));
	}
	free(path);
}

static void
ask_mkdir(struct up *u, const struct entry *e)
{
	struct sftp_attrs a = { .has_mode = true,
		.mode = (e->mode & 0777u) | 0700u };
	char *path = sftpup_path(u, e->path);
	struct buf *b = sftp_begin(u->s, SFTP_MKDIR);

	sftp_put_string(b, path);
	sftp_put_attrs(b, &a);
	sftp_end(u->s, done, request_new(u, e, &u->r->report->dirs));
	free(path);
}

static void
ask_delete(struct up *u, const struct entry *e, bool dir)
{
	struct sync_report *p = u->r->report;
	struct request *q =
	    request_new(u, e, dir ? &p->deleted_dirs : &p->deleted_files);
	char *path = sftpup_path(u, e->path);

	q->missing_ok = true;
	sftp_path(u->s, dir ? SFTP_RMDIR : SFTP_REMOVE, path, done, q);
	free(path);
}

static int
do_action(struct up *u, const struct action *a, struct err *err)
{
	switch (a->kind) {
	case ACTION_OPEN:
		ask_meta(u, a->entry, false);
		break;
	case ACTION_DELETE:
	case ACTION_RMDIR:
		ask_delete(u, a->entry, a->kind == ACTION_RMDIR);
		break;
	case ACTION_MKDIR:
		ask_mkdir(u, a->entry);
		break;
	case ACTION_META:
		ask_meta(u, a->entry, true);
		break;
	case ACTION_FILE:
		return sftpup_file(u, a->entry, err);
	case ACTION_LINK:
		return sftpup_link(u, a->entry, err);
	}
	return 0;
}

static bool
is_file(const struct action *a)
{
	return a->kind == ACTION_FILE || a->kind == ACTION_LINK ||
	    (a->kind == ACTION_META && a->entry->type != ENTRY_DIR);
}

static bool
is_open(const struct action *a)
{
	return a->kind == ACTION_OPEN;
}

static bool
is_delete(const struct action *a)
{
	return a->kind == ACTION_DELETE;
}

static bool
is_rmdir(const struct action *a)
{
	return a->kind == ACTION_RMDIR;
}

static bool
is_mkdir(const struct action *a)
{
	return a->kind == ACTION_MKDIR;
}

static bool
is_dir_meta(const struct action *a)
{
	return a->kind == ACTION_META && a->entry->type == ENTRY_DIR;
}

static int
depth_of(const struct entry *e)
{
	const char *at = e->path;
	int n = 0;

	while ((at = strchr(at, '/')) != NULL) {
		at++;
		n++;
	}
	return n;
}

/* There may be more to ask for than is sent at once. */
static int
wait_room(struct up *u, struct err *err)
{
	while (!sftp_room(u->s)) {
		if (sftpup_turn(u, err) == -1)
			return -1;
	}
	return 0;
}

/* All actions of a kind (of one level, unless -1), and their replies. */
static int
do_level(struct up *u, bool (*kind)(const struct action *a), int level,
    struct err *err)
{
	const struct plan *p = &u->r->plan;
	size_t i;

	for (i = 0; i < p->count; i++) {
		const struct action *a = &p->actions[i];

		if (!kind(a) || (level != -1 && depth_of(a->entry) != level))
			continue;
		if (wait_room(u, err) == -1 || do_action(u, a, err) == -1)
			return -1;
	}
	return sftpup_drain(u, err);
}

/* Level by level, from the root on or to it. */
static int
do_levels(struct up *u, bool (*kind)(const struct action *a), bool down,
    struct err *err)
{
	const struct plan *p = &u->r->plan;
	int deepest = -1, level, d;
	size_t i;

	for (i = 0; i < p->count; i++) {
		d = kind(&p->actions[i]) ? depth_of(p->actions[i].entry) : -1;
		if (d > deepest)
			deepest = d;
	}
	for (level = 0; level <= deepest; level++) {
		if (do_level(u, kind, down ? level : deepest - level, err) ==
		    -1)
			return -1;
	}
	return 0;
}

static int
make_root(struct up *u, struct err *err)
{
	struct run *r = u->r;
	struct sftp_attrs a;
	struct err why;
	char *path = xstrdup(r->far.path), *at;
	int rc;

	rc = sftp_stat(u->s, SFTP_STAT, path, &a, r->until, err);
	if (rc == -1 && err->code == ERR_NOT_FOUND) {
		for (at = path + 1; (at = strchr(at, '/')) != NULL; at++) {
			*at = '\0';
			/* Most are there; the last one tells. */
			sftp_do(u->s, SFTP_MKDIR, path, r->until, &why);
			*at = '/';
		}
		rc = sftp_do(u->s, SFTP_MKDIR, path, r->until, err);
		a.mode = S_IFDIR;
	}
	free(path);
	if (rc == 0 && S_ISDIR(a.mode))
		return 0;
	return err_set(err, rc == -1 ? err->code : ERR_INVALID,
	    "cannot make or enter '%.300s' on %s: %s", r->far.path,
	    link_sandbox(r->link)->name,
	    rc == -1 ? err->msg : "Not a directory");
}

/* The far side's time: that of a file which is new. */
static int64_t
far_now(struct up *u)
{
	const struct until *until = u->r->until;
	char *name = xasprintf(BENEATH_PREFIX "u%s", u->id);
	char *path = sftpup_path(u, name);
	struct sftp_attrs a = { 0 };
	struct buf handle;
	struct err err;

	if (sftp_open_wait(u->s, path, SFTP_FOR_WRITE | SFTP_CREAT, &handle,
	        until, &err) == 0) {
		sftp_close(u->s, &handle);
		if (sftp_stat(u->s, SFTP_LSTAT, path, &a, until, &err) == -1)
			a.mtime = 0;
		sftp_path(u->s, SFTP_REMOVE, path, sftpup_ignore, NULL);
	}
	free(name);
	free(path);
	return a.mtime;
}

/* Is it the part of another version of a file that is to be brought? */
static bool
is_outdated(const struct up *u, const char *name)
{
	const struct plan *p = &u->r->plan;
	size_t i, from = strlen(BENEATH_PREFIX "r");

	for (i = 0; i < p->count; i++) {
		const struct entry *e = p->actions[i].entry;
		char part[PART_NAME_MAX];

		if (p->actions[i].kind != ACTION_FILE || e->size < BIG_FILE)
			continue;
		part_name(part, e);
		if (strncmp(part + from, name + from, PART_FILE_LEN - from) ==
		        0 &&
		    strcmp(part + from, name + from) != 0)
			return true;
	}
	return false;
}

/* What runs left that were interrupted. */
static int
sweep(struct up *u, struct err *err)
{
	struct left_over *l = u->r->left_overs;
	int64_t now = l != NULL ? far_now(u) : 0, age;

	for (; l != NULL; l = l->next) {
		const char *slash = strrchr(l->path, '/');
		const char *name = slash != NULL ? slash + 1 : l->path;
		char *path;

		if (str_starts(name, BENEATH_PREFIX "u"))
			age = ABANDONED_S;
		else if (str_starts(name, BENEATH_PREFIX "r"))
			age = is_outdated(u, name) ? ABANDONED_S
			                           : ABANDONED_PART_S;
		else
			continue;
		if (l->mtime + age > now)
			continue;
		if (wait_room(u, err) == -1)
			return -1;
		l->swept = true;
		path = sftpup_path(u, l->path);
		sftp_path(u->s, SFTP_REMOVE, path, sftpup_ignore, NULL);
		free(path);
	}
	return sftpup_drain(u, err);
}

/* Sweeping changed the mtime of directories, which the plan cannot know. */
static int
date_swept(struct up *u, struct err *err)
{
	const struct left_over *l;

	for (l = u->r->left_overs; l != NULL; l = l->next) {
		const char *slash = strrchr(l->path, '/');
		const struct entry *e = NULL;
		char *dir;

		if (!l->swept || slash == NULL)
			continue;
		dir = xstrndup(l->path, (size_t)(slash - l->path));
		e = tree_find(&u->r->local, dir);
		free(dir);
		if (e == NULL || e->type != ENTRY_DIR)
			continue;
		if (wait_room(u, err) == -1)
			return -1;
		ask_meta(u, e, true);
	}
	return sftpup_drain(u, err);
}

static int
do_all(struct up *u, struct err *err)
{
	if (make_root(u, err) == -1 || sweep(u, err) == -1 ||
	    do_levels(u, is_open, true, err) == -1)
		return -1;
	run_tell(u->r, "deleting", NULL, 0, 0);
	if (do_level(u, is_delete, -1, err) == -1 ||
	    do_levels(u, is_rmdir, false, err) == -1)
		return -1;
	run_tell(u->r, "uploading", NULL, 0, 0);
	if (do_levels(u, is_mkdir, true, err) == -1 ||
	    do_level(u, is_file, -1, err) == -1)
		return -1;
	run_tell(u->r, "committing", NULL, 0, 0);
	if (date_swept(u, err) == -1)
		return -1;
	return do_levels(u, is_dir_meta, false, err);
}

/* Whoever cancelled has no session left, but the link may well be there.  The
 * session makes what it was asked for before it comes to its end. */
static void
clean_orphans(struct up *u)
{
	struct until soon = until_in(CLEAN_MS);
	const struct left_over *l;
	struct sftp *s;
	struct err err;

	sftp_finish(u->s, &soon);
	soon = until_in(CLEAN_MS);
	s = link_sftp(u->r->link, &soon, &err);
	if (s == NULL)
		return;
	for (l = u->orphans; l != NULL; l = l->next)
		sftp_path(s, SFTP_REMOVE, l->path, sftpup_ignore, NULL);
	sftp_drain(s, &soon, &err);
	sftp_free(s);
}

static void
drop_orphans(struct up *u)
{
	struct left_over *l;

	while ((l = u->orphans) != NULL) {
		u->orphans = l->next;
		free(l->path);
		free(l);
	}
}

int
sftp_upload(struct run *r, struct err *err)
{
	struct up *u = xcalloc(1, sizeof(*u));
	bool alive;
	int rc;

	u->r = r;
	u->s = r->sftp;
	u->chunk = xmalloc(SFTP_CHUNK);
	random_hex(u->id, 4);
	rc = do_all(u, err);
	/* Is there somebody to clean up for us? */
	alive = !sftp_broken(u->s) ||
	    (rc == -1 &&
	        (err->code == ERR_CANCELLED || err->code == ERR_TIMEOUT));
	if (rc == -1)
		sftp_break(u->s);
	sftpup_drop(u);
	if (u->orphans != NULL && alive)
		clean_orphans(u);
	drop_orphans(u);
	free(u->chunk);
	free(u);
	return rc;
}
