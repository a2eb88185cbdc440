/*
 * From there to here by SFTP: the bytes of files, many requests at once.
 *
 * The host is not trusted: what comes goes to the place in the file that was
 * asked for, never more than that, and the file is written below the root.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/beneath.h"
#include "sync/distinct.h"
#include "sync/inside.h"
#include "sync/sftplist.h"

#define JOBS_MAX 32

static const char changed[] = "it changed while it was read; sync again";

/* --- A range of a file -------------------------------------------------- */

/* From "at" on to "end" nothing was asked for yet. */
struct range {
	struct run *r;
	const struct entry *e;
	const struct buf *handle;
	int fd;
	int64_t at, end;
	unsigned waiting;
	bool broken;
	bool *full; /* set if the local disk is */
	char why[256];
	/* Called when nothing is under way any more; or NULL. */
	void (*over)(void *data);
	void *data;
};

struct chunk {
	struct range *g;
	int64_t at;
	size_t len;
};

static void
fail(struct range *g, const char *why)
{
	if (!g->broken)
		snprintf(g->why, sizeof(g->why), "%.255s", why);
	g->broken = true;
}

static void take_chunk(void *data, const struct sftp_packet *reply);

static void
ask_chunk(struct chunk *c)
{
	struct sftp *s = c->g->r->sftp;
	struct buf *b = sftp_begin(s, SFTP_READ);

	sftp_put_bytes(b, c->g->handle->data, c->g->handle->len);
	sftp_put_u64(b, (uint64_t)c->at);
	sftp_put_u32(b, (uint32_t)c->len);
	sftp_end(s, take_chunk, c);
}

static void
write_chunk(struct chunk *c, const char *bytes, size_t len)
{
	struct range *g = c->g;

	if (pwrite(g->fd, bytes, len, c->at) != (ssize_t)len) {
		*g->full = errno == ENOSPC || errno == EDQUOT;
		fail(g, strerror(errno));
		return;
	}
	c->at += (int64_t)len;
	c->len -= len;
	run_tell(g->r, "downloading", g->e->path, 0, (int64_t)len);
}

static void
take_chunk(void *data, const struct sftp_packet *reply)
{
	struct chunk *c = data;
	struct range *g = c->g;
	struct sftp_in in = reply->body;
	const char *bytes;
	struct err why;
	size_t len;

	if (reply->type == SFTP_DATA) {
		bytes = sftp_get_bytes(&in, &len);
		if (in.bad || len == 0 || len > c->len)
			fail(g, "what the host sent makes no sense");
		else
			write_chunk(c, bytes, len);
	} else if (sftp_code_of(reply) == SFTP_EOF) {
		fail(g, changed);
	} else {
		sftp_why(reply, &why);
		fail(g, why.msg);
	}
	if (!g->broken && c->len > 0) {
		ask_chunk(c); /* it came short */
		return;
	}
	free(c);
	g->waiting--;
	if (g->waiting == 0 && (g->broken || g->at == g->end) &&
	    g->over != NULL)
		g->over(g->data);
}

/* Ask for more, if there is more. */
static bool
range_more(struct range *g)
{
	int64_t left = g->end - g->at;
	struct chunk *c;

	if (g->broken || left <= 0)
		return false;
	c = xcalloc(1, sizeof(*c));
	c->g = g;
	c->at = g->at;
	c->len = left < (int64_t)SFTP_CHUNK ? (size_t)left : SFTP_CHUNK;
	g->at += (int64_t)c->len;
	g->waiting++;
	ask_chunk(c);
	return true;
}

int
sftp_fetch_range(struct run *r, const struct entry *e, const struct buf *handle,
    int fd, int64_t at, int64_t len, struct err *err)
{
	bool full = false;
	struct range g = { .r = r,
		.e = e,
		.full = &full,
		.handle = handle,
		.fd = fd,
		.at = at,
		.end = at + len };

	/* Replies to other requests may have to come before there is room for
	 * the first of these. */
	while (g.waiting > 0 || (!g.broken && g.at < g.end)) {
		while (sftp_room(r->sftp) && range_more(&g))
			;
		if (sftp_turn(r->sftp, r->until, err) == -1)
			return -1;
	}
	if (!g.broken)
		return 0;
	return err_set(err, strcmp(g.why, changed) == 0 ? ERR_INVALID : ERR_IO,
	    "'%.300s': %s", e->path, g.why);
}

/* --- Small files -------------------------------------------------------- */

struct down;

enum step {
	JOB_FREE,
	JOB_OPENING,
	JOB_READING,
	JOB_CLOSING,
};

struct job {
	struct down *d;
	struct run *r;
	enum step step;
	const struct entry *e;
	struct beneath_file file;
	struct buf handle;
	struct range g;
	struct sftp_attrs now;
};

struct down {
	struct run *r;
	bool full;                 /* the local disk */
	struct distinct *distinct; /* or NULL: no two names are one here */
	struct job jobs[JOBS_MAX];
};

static void
let_go(struct job *j)
{
	buf_free(&j->handle);
	memset(j, 0, sizeof(*j));
}

static bool
same_as_listed(const struct entry *e, const struct sftp_attrs *a)
{
	return a->has_size && a->size == (uint64_t)e->size &&
	    (!a->has_times || a->mtime == (uint32_t)(e->mtime / 1000000000));
}

/* Would it take the place of another one of this run? */
static bool
is_taken(struct job *j, struct err *why)
{
	struct distinct *x = j->d->distinct;

	if (x == NULL)
		return false;
	if (distinct_check(x, j->file.dir_fd, j->file.name, j->e->path, why) ==
	    -1)
		return true;
	distinct_add(x, j->file.fd);
	return false;
}

/* One that changed keeps a time of its own, so that the next sync brings it
 * again. */
static void
commit(struct job *j)
{
	struct run *r = j->r;
	struct entry e = *j->e;
	struct err why;

	if (!same_as_listed(&e, &j->now))
		e.mtime = 0;
	if (is_taken(j, &why)) {
		beneath_abort(&j->file);
		run_problem(r, e.path, why.msg);
	} else if (beneath_commit(&j->file, &e, &why) == -1) {
		run_problem(r, e.path, why.msg);
	} else if (e.mtime != j->e->mtime) {
		run_problem(r, e.path, changed);
	} else {
		r->report->files++;
		r->report->bytes += e.size;
		run_tell(r, "downloading", e.path, 1, 0);
	}
}

static void
closed(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;

	(void)reply;
	if (j->g.broken || sftp_broken(j->r->sftp)) {
		beneath_abort(&j->file);
		if (!sftp_broken(j->r->sftp))
			run_problem(j->r, j->e->path, j->g.why);
	} else {
		commit(j);
	}
	let_go(j);
}

static void
looked(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct sftp_in in = reply->body;

	if (reply->type == SFTP_ATTRS)
		sftp_get_attrs(&in, &j->now);
	sftp_handle(j->r->sftp, SFTP_CLOSE, &j->handle, closed, j);
}

/* All of it came, or nothing more will. */
static void
came(void *data)
{
	struct job *j = data;

	j->step = JOB_CLOSING;
	sftp_handle(j->r->sftp, SFTP_FSTAT, &j->handle, looked, j);
}

static void
opened(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct err why;

	if (sftp_take_handle(reply, &j->handle, &why) == -1) {
		beneath_abort(&j->file);
		if (!sftp_broken(j->r->sftp))
			run_problem(j->r, j->e->path, why.msg);
		let_go(j);
		return;
	}
	j->step = JOB_READING;
	if (j->e->size == 0)
		came(j);
}

static int
start(struct down *d, struct job *j, const struct entry *e, struct err *err)
{
	struct run *r = d->r;
	struct err why;
	char *path;

	if (beneath_create(r->root_fd, e->path, &j->file, &why) == -1) {
		if (errno == ENOSPC || errno == EDQUOT) {
			*err = why;
			return -1;
		}
		run_problem(r, e->path, why.msg);
		return 0;
	}
	j->d = d;
	j->r = r;
	j->e = e;
	j->step = JOB_OPENING;
	buf_init(&j->handle, SFTP_HANDLE_MAX);
	j->g = (struct range){ .r = r,
		.e = e,
		.handle = &j->handle,
		.full = &d->full,
		.fd = j->file.fd,
		.end = e->size,
		.over = came,
		.data = j };
	path = sftplist_join(r->far.path, e->path);
	sftp_open_file(r->sftp, path, SFTP_FOR_READ, opened, j);
	free(path);
	return 0;
}

/* Send, receive, see whether it can go on. */
static int
turn(struct down *d, struct err *err)
{
	struct run *r = d->r;
	size_t i;

	for (i = 0; i < JOBS_MAX; i++) {
		struct job *j = &d->jobs[i];

		while (j->step == JOB_READING && sftp_room(r->sftp) &&
		    range_more(&j->g))
			;
	}
	if (sftp_turn(r->sftp, r->until, err) == -1)
		return err_wrap(err, "downloading from %s",
		    link_sandbox(r->link)->name);
	if (d->full)
		return err_set(err, ERR_IO,
		    "the local disk is full: free some space and sync again; "
		    "files that were there are as they were");
	return 0;
}

static struct job *
find_job(struct down *d, bool free)
{
	size_t i;

	for (i = 0; i < JOBS_MAX; i++) {
		if ((d->jobs[i].step == JOB_FREE) == free)
			return &d->jobs[i];
	}
	return NULL;
}

static int
bring(struct down *d, struct err *err)
{
	struct run *r = d->r;
	struct job *j;
	size_t i;

	for (i = 0; i < r->plan.count; i++) {
		const struct action *a = &r->plan.actions[i];

		if (a->kind != ACTION_FILE || a->entry->size >= BIG_FILE)
			continue;
		while ((j = find_job(d, true)) == NULL || !sftp_room(r->sftp)) {
			if (turn(d, err) == -1)
				return -1;
		}
		if (start(d, j, a->entry, err) == -1)
			return -1;
	}
	while (find_job(d, false) != NULL) {
		if (turn(d, err) == -1)
			return -1;
	}
	return 0;
}

int
sftp_bring_small(struct run *r, struct err *err)
{
	struct down *d = xcalloc(1, sizeof(*d));
	struct job *j;
	int rc;

	d->r = r;
	if (distinct_needed(r->root_fd))
		d->distinct = distinct_new();
	rc = bring(d, err);
	if (rc == -1)
		sftp_break(r->sftp);
	while ((j = find_job(d, false)) != NULL) {
		beneath_abort(&j->file);
		let_go(j);
	}
	distinct_free(d->distinct);
	free(d);
	return rc;
}

/* --- Comparing ---------------------------------------------------------- */

#define COMPARED ((size_t)1 << 20)

/* Both files, from the first byte on. */
static bool
same_bytes(struct run *r, int fd, const struct buf *handle, int64_t size)
{
	char *here = xmalloc(COMPARED);
	struct buf there;
	struct err err;
	int64_t at = 0, n = 1;

	buf_init(&there, COMPARED);
	while (at < size && n > 0) {
		buf_reset(&there);
		n = sftp_read(r->sftp, handle, at, COMPARED, &there, r->until,
		    &err);
		if (n <= 0 || pread(fd, here, (size_t)n, at) != n ||
		    memcmp(here, there.data, (size_t)n) != 0)
			break;
		at += n;
	}
	buf_free(&there);
	free(here);
	return at >= size;
}

bool
sftp_same(void *data, const struct entry *from, const struct entry *to)
{
	struct run *r = data;
	char *path = sftplist_join(r->far.path, from->path);
	struct buf handle;
	struct entry now;
	struct err err;
	bool same = false;
	int fd = beneath_open(r->root_fd, from->path, &now, &err);

	(void)to;
	if (fd != -1 &&
	    sftp_open_wait(r->sftp, path, SFTP_FOR_READ, &handle, r->until,
	        &err) == 0) {
		same = same_bytes(r, fd, &handle, from->size);
		sftp_close(r->sftp, &handle);
	}
	if (fd != -1)
		close(fd);
	free(path);
	return same;
}
