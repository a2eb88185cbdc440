/* Listing by SFTP: many directories at once. */
#include "sync/sftplist.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/str.h"
#include "sync/beneath.h"
#include "sync/silence.h"

#define DIRS_AT_ONCE 32
#define DEPTH_MAX 2000
#define SEEN_MAX ((size_t)16 << 20) /* names: a host without end */
#define PATH_MAX_BYTES 32000
#define ROOT_MAX 4096               /* bytes: no system takes more */
#define HELD_MAX ((size_t)32 << 20) /* of names that wait for an answer */

struct walk;

/* A directory that is read, or is to be. */
struct dir {
	struct walk *w;
	char *path; /* below the root; "": the root */
	int depth;
	struct buf handle;
	struct dir *next;
};

/* An entry of which something is still to be asked. */
struct asked {
	struct walk *w;
	enum sftp_type type; /* of the request: LSTAT or READLINK */
	char *path;
	int depth;
	struct sftp_attrs a;
	struct asked *next;
};

struct walk {
	struct sftp *s;
	const char *root;
	const struct farlist_options *o;
	sftplist_take *take;
	void *data;
	struct dir *waiting;
	struct asked *unsent; /* there was no room for the request */
	size_t open;
	size_t seen;
	size_t held;    /* bytes of the paths of all "dir" and "asked" */
	bool refused;   /* whoever takes it wants no more */
	struct err err; /* why it cannot go on */
	struct buf text;
};

char *
sftplist_join(const char *root, const char *path)
{
	bool slash = str_ends(root, "/");

	if (path[0] == '\0')
		return xstrdup(root);
	return xasprintf("%s%s%s", root, slash ? "" : "/", path);
}

static void
text(struct walk *w, const char *s)
{
	if (!w->refused)
		w->refused = !w->take(w->data, s, strlen(s) + 1);
}

/* A letter and a path: what could not be had. */
static void
trouble(struct walk *w, char letter, const char *path)
{
	buf_reset(&w->text);
	buf_addf(&w->text, "%c./%s", letter, path);
	text(w, w->text.data);
}

/* More than any file has would overflow when it is added up. */
static int64_t
size_of(const struct sftp_attrs *a)
{
	return a->size <= INT64_MAX / 2 ? (int64_t)a->size : INT64_MAX / 2;
}

static void
record(struct walk *w, const char *path, const struct sftp_attrs *a)
{
	buf_reset(&w->text);
	buf_addf(&w->text, "s%x %" PRId64 " %" PRIu32 " ./%s", a->mode,
	    size_of(a), a->mtime, path);
	text(w, w->text.data);
}

/* A copy of a path that is to be held until there is an answer. */
static char *
hold(struct walk *w, const char *path)
{
	w->held += strlen(path) + sizeof(struct asked);
	if (w->held > HELD_MAX && w->err.code == ERR_NONE)
		err_set(&w->err, ERR_LIMIT, "the host lists files without end");
	return xstrdup(path);
}

static void
let_go(struct walk *w, char *path)
{
	w->held -= strlen(path) + sizeof(struct asked);
	free(path);
}

static void
add_dir(struct walk *w, const char *path, int depth)
{
	struct dir *d = xcalloc(1, sizeof(*d));

	d->w = w;
	d->path = hold(w, path);
	d->depth = depth;
	buf_init(&d->handle, SFTP_HANDLE_MAX);
	d->next = w->waiting;
	w->waiting = d;
}

static void
dir_free(struct dir *d)
{
	let_go(d->w, d->path);
	buf_free(&d->handle);
	free(d);
}

static void ask_more(struct walk *w);

/* Ask for more of an entry, or wait until there is room to: the host says how
 * many there are of them. */
static void
ask(struct walk *w, enum sftp_type type, const char *path, int depth,
    const struct sftp_attrs *a)
{
	struct asked *q = xcalloc(1, sizeof(*q));

	q->w = w;
	q->type = type;
	q->path = hold(w, path);
	q->depth = depth;
	q->a = *a;
	q->next = w->unsent;
	w->unsent = q;
	ask_more(w);
}

static void
asked_free(struct asked *q)
{
	let_go(q->w, q->path);
	free(q);
}

static void
take_target(void *data, const struct sftp_packet *reply)
{
	struct asked *q = data;
	struct sftp_in in = reply->body;
	const char *target = "";
	size_t len = 0;

	if (reply->type == SFTP_NAME) {
		sftp_get_u32(&in);
		target = sftp_get_bytes(&in, &len);
	}
	if (len == 0 || memchr(target, '\0', len) != NULL) {
		trouble(q->w, '!', q->path);
	} else {
		record(q->w, q->path, &q->a);
		buf_reset(&q->w->text);
		buf_add(&q->w->text, target, len);
		text(q->w, q->w->text.data);
	}
	asked_free(q);
}

static void
take_entry(struct walk *w, const char *path, int depth,
    const struct sftp_attrs *a)
{
	if (S_ISLNK(a->mode)) {
		ask(w, SFTP_READLINK, path, depth, a);
		return;
	}
	record(w, path, a);
	if (S_ISDIR(a->mode) && w->o->recursive && depth < DEPTH_MAX &&
	    (w->o->rules == NULL || !rules_match(w->o->rules, path, true)))
		add_dir(w, path, depth);
}

static void
take_attrs(void *data, const struct sftp_packet *reply)
{
	struct asked *q = data;
	struct sftp_in in = reply->body;
	struct sftp_attrs a = { 0 };

	if (reply->type == SFTP_ATTRS)
		sftp_get_attrs(&in, &a);
	if (a.has_mode)
		take_entry(q->w, q->path, q->depth, &a);
	else
		trouble(q->w, '!', q->path);
	asked_free(q);
}

/* Requests that wait are sent while there is room. */
static void
ask_more(struct walk *w)
{
	while (w->unsent != NULL && sftp_room(w->s)) {
		struct asked *q = w->unsent;
		char *whole = sftplist_join(w->root, q->path);

		w->unsent = q->next;
		sftp_path(w->s, q->type, whole,
		    q->type == SFTP_LSTAT ? take_attrs : take_target, q);
		free(whole);
	}
}

/* One that we left ourselves is told to who wants to clean up. */
static bool
is_ours(struct walk *w, const char *path, const char *name,
    const struct sftp_attrs *a)
{
	if (!str_starts(name, BENEATH_PREFIX))
		return false;
	if (w->o->left_over != NULL && S_ISREG(a->mode))
		w->o->left_over(w->o->problem_data, path,
		    a->has_size ? size_of(a) : 0, a->mtime);
	return true;
}

/* Is it what lstat(2) would say?  Some servers list a link as what it leads
 * to; with a directory that would be the way out of the tree. */
static bool
trusted(const struct sftp_attrs *a)
{
	return a->has_mode && !S_ISDIR(a->mode) &&
	    (a->has_size || !S_ISREG(a->mode));
}

static void
take_name(struct dir *d, const char *name, size_t len,
    const struct sftp_attrs *a)
{
	struct walk *w = d->w;
	char *path, *last;

	if ((len == 1 && name[0] == '.') ||
	    (len == 2 && name[0] == '.' && name[1] == '.'))
		return;
	if (len == 0 || memchr(name, '\0', len) != NULL ||
	    memchr(name, '/', len) != NULL) {
		err_set(&w->err, ERR_IO,
		    "the host's list of files makes no sense (name)");
		return;
	}
	last = xstrndup(name, len);
	path = d->path[0] == '\0' ? xstrdup(last)
	                          : xasprintf("%s/%s", d->path, last);
	if (++w->seen > SEEN_MAX)
		err_set(&w->err, ERR_LIMIT, "the host lists files without end");
	else if (strlen(path) > PATH_MAX_BYTES)
		trouble(w, '!', d->path);
	else if (is_ours(w, path, last, a))
		;
	else if (trusted(a))
		take_entry(w, path, d->depth + 1, a);
	else
		ask(w, SFTP_LSTAT, path, d->depth + 1, a);
	free(last);
	free(path);
}

static void
closed(void *data, const struct sftp_packet *reply)
{
	struct dir *d = data;

	(void)reply;
	d->w->open--;
	dir_free(d);
}

static void
take_names(void *data, const struct sftp_packet *reply)
{
	struct dir *d = data;
	struct sftp_in in = reply->body;
	uint32_t count, i;

	if (reply->type != SFTP_NAME) {
		if (sftp_code_of(reply) != SFTP_EOF)
			trouble(d->w, '-', d->path);
		sftp_handle(d->w->s, SFTP_CLOSE, &d->handle, closed, d);
		return;
	}
	count = sftp_get_u32(&in);
	for (i = 0; i < count && d->w->err.code == ERR_NONE; i++) {
		struct sftp_attrs a;
		size_t len, long_len;
		const char *name = sftp_get_bytes(&in, &len);

		sftp_get_bytes(&in, &long_len); /* as ls prints it */
		sftp_get_attrs(&in, &a);
		if (in.bad) {
			err_set(&d->w->err, ERR_IO,
			    "the host's list of files makes no sense");
			break;
		}
		take_name(d, name, len, &a);
	}
	sftp_handle(d->w->s, SFTP_READDIR, &d->handle, take_names, d);
}

static void
opened(void *data, const struct sftp_packet *reply)
{
	struct dir *d = data;
	struct err why;

	if (sftp_take_handle(reply, &d->handle, &why) == -1) {
		trouble(d->w, '-', d->path);
		closed(d, reply);
		return;
	}
	sftp_handle(d->w->s, SFTP_READDIR, &d->handle, take_names, d);
}

/* Directories that wait are opened while there is room. */
static void
open_more(struct walk *w)
{
	while (
	    w->waiting != NULL && w->open < DIRS_AT_ONCE && sftp_room(w->s)) {
		struct dir *d = w->waiting;
		char *whole = sftplist_join(w->root, d->path);

		w->waiting = d->next;
		w->open++;
		sftp_path(w->s, SFTP_OPENDIR, whole, opened, d);
		free(whole);
	}
}

static int
walk(struct walk *w, const struct until *until, struct err *err)
{
	struct asked *q;
	struct dir *d;
	int rc = 0;

	add_dir(w, "", 0);
	while (rc == 0 && !w->refused &&
	    (w->waiting != NULL || w->unsent != NULL ||
	        sftp_pending(w->s) > 0)) {
		ask_more(w);
		open_more(w);
		rc = sftp_turn(w->s, until, err);
		if (rc == 0 && w->err.code != ERR_NONE) {
			*err = w->err;
			rc = -1;
		}
	}
	while ((d = w->waiting) != NULL) {
		w->waiting = d->next;
		dir_free(d);
	}
	while ((q = w->unsent) != NULL) {
		w->unsent = q->next;
		asked_free(q);
	}
	return rc;
}

/* --- The header --------------------------------------------------------- */

/* Free space at the nearest directory that is there. */
static int64_t
free_bytes(struct sftp *s, const char *path, const struct until *until)
{
	char *at = xstrdup(path), *slash;
	int64_t n = sftp_free_bytes(s, at, until);

	while (n == -1 && sftp_can(s, SFTP_STATVFS) &&
	    (slash = strrchr(at, '/')) != NULL && slash != at) {
		*slash = '\0';
		n = sftp_free_bytes(s, at, until);
	}
	free(at);
	return n;
}

static void
header(struct walk *w, char kind, int64_t room)
{
	char letter[2] = { kind, '\0' };
	char df[64];

	text(w, "RSMCP1");
	text(w, letter);
	text(w, w->root);
	text(w, "rw"); /* what may not be done shows when it is done */
	text(w, "");
	text(w, "sftp");
	snprintf(df, sizeof(df), "=- 0 0 %" PRId64 " 0%% /", room / 1024);
	if (room >= 0)
		text(w, df);
}

static int
list(struct walk *w, const struct until *until, struct err *err)
{
	const char *slash = strrchr(w->root, '/');
	struct sftp_attrs a;
	char kind;

	if (sftp_stat(w->s, SFTP_STAT, w->root, &a, until, err) == 0)
		kind = S_ISDIR(a.mode) ? 'd' : S_ISREG(a.mode) ? 'f' : 'o';
	else if (err->code == ERR_NOT_FOUND)
		kind = 'm';
	else if (err->code == ERR_DENIED)
		kind = 'x';
	else
		return -1;
	header(w, kind, w->o->space ? free_bytes(w->s, w->root, until) : -1);
	if (kind == 'f')
		record(w, slash != NULL ? slash + 1 : w->root, &a);
	if (kind == 'd' && walk(w, until, err) == -1)
		return -1;
	text(w, "E0");
	return 0;
}

/* "dir/" is the directory.  The host says where its home is, and it becomes a
 * part of every request. */
static int
take_root(struct walk *w, char *root, struct err *err)
{
	size_t len = strlen(root);

	while (len > 1 && root[len - 1] == '/')
		root[--len] = '\0';
	if (len > ROOT_MAX)
		return err_set(err, ERR_LIMIT,
		    "the path there would be too long: '%.100s...'", root);
	w->root = root;
	return 0;
}

int
sftplist_run(struct link *link, const char *path,
    const struct farlist_options *o, sftplist_take *take, void *data,
    const struct until *until, struct err *err)
{
	struct walk w = { .o = o, .take = take, .data = data };
	char *root = NULL;
	int rc = -1;

	w.s = silence_sftp(link, until, err);
	if (w.s == NULL)
		return -1;
	buf_init(&w.text, SIZE_MAX);
	root =
	    sftp_absolute(w.s, path, link_sandbox(link)->workdir, until, err);
	if (root != NULL && take_root(&w, root, err) == 0)
		rc = list(&w, until, err);
	if (rc == -1)
		err_wrap(err, "listing files on %s", link_sandbox(link)->name);
	sftp_free(w.s);
	buf_free(&w.text);
	free(root);
	return rc;
}
