/*
 * From here to there by SFTP, for hosts that allow nothing else: files and
 * links.
 *
 * A file is written under a name of ours next to its place, gets its mode and
 * time, and is renamed when all of it was acknowledged.  Many are under way at
 * once, since each takes three round trips.
 */
#include "sync/sftpup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/beneath.h"
#include "sync/sftplist.h"

/* Of the part of a big file, what may not have reached the disk's cache in
 * order is sent again. */
#define STEP_BACK ((int64_t)4 << 20)

#define LOW_SPACE ((int64_t)1 << 20)

char *
sftpup_path(const struct up *u, const char *path)
{
	return sftplist_join(u->r->far.path, path);
}

/* A name of ours in the same directory. */
static char *
temp_path(struct up *u, const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	int n = slash != NULL ? (int)(slash - path) + 1 : 0;

	if (name != NULL)
		return xasprintf("%.*s%s", n, path, name);
	return xasprintf("%.*s" BENEATH_PREFIX "u%s%u", n, path, u->id,
	    u->count++);
}

/* --- Files -------------------------------------------------------------- */

static void
fail(struct job *j, const char *why)
{
	if (!j->broken)
		snprintf(j->why, sizeof(j->why), "%.255s", why);
	j->broken = true;
}

static void
note_orphan(struct up *u, const char *temp)
{
	struct left_over *l = xcalloc(1, sizeof(*l));

	l->path = xstrdup(temp);
	l->next = u->orphans;
	u->orphans = l;
}

static void
finish(struct job *j)
{
	if (j->fd != -1)
		close(j->fd);
	if (sftp_broken(j->u->s) && j->temp != NULL && !j->keep)
		note_orphan(j->u, j->temp);
	else if (j->broken)
		run_problem(j->u->r, j->e->path, j->why);
	free(j->temp);
	free(j->path);
	buf_free(&j->handle);
	memset(j, 0, sizeof(*j));
}

static void
cleaned(void *data, const struct sftp_packet *reply)
{
	(void)reply;
	finish(data);
}

/* It will not get its name: so it goes, unless it is a part to go on with. */
static void
clean(struct job *j)
{
	if (j->keep)
		finish(j);
	else
		sftp_path(j->u->s, SFTP_REMOVE, j->temp, cleaned, j);
}

static void placed(void *data, const struct sftp_packet *reply);

static void
made_room(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;

	(void)reply; /* the rename says whether it helped */
	sftp_rename(j->u->s, j->temp, j->path, placed, j);
}

static void
placed(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct run *r = j->u->r;
	struct err why;

	if (sftp_code_of(reply) == SFTP_OK && reply->type == SFTP_STATUS) {
		r->report->files++;
		r->report->links += j->e->type == ENTRY_LINK;
		r->report->bytes += j->now.size;
		run_tell(r, "uploading", j->e->path, 1, 0);
		finish(j);
		return;
	}
	sftp_why(reply, &why);
	/* Without OpenSSH's rename there is no other way to replace a file.
	 * Other codes than those for "it is there" tell of something else: of
	 * our file that is gone, or of what may not be done. */
	if (!j->retried && !sftp_can(j->u->s, SFTP_POSIX_RENAME) &&
	    reply->type == SFTP_STATUS &&
	    (sftp_code_of(reply) == SFTP_FAILURE ||
	        sftp_code_of(reply) == SFTP_FILE_EXISTS)) {
		j->retried = true;
		sftp_path(j->u->s, SFTP_REMOVE, j->path, made_room, j);
		return;
	}
	fail(j, why.msg);
	clean(j);
}

/* A reply came; the last one decides. */
static void
one_less(struct job *j)
{
	if (--j->waiting > 0 || j->step != JOB_CLOSING)
		return;
	j->step = JOB_PLACING;
	if (j->broken)
		clean(j);
	else
		sftp_rename(j->u->s, j->temp, j->path, placed, j);
}

static void
acknowledged(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct err why;

	if (sftp_code_of(reply) != SFTP_OK) {
		sftp_why(reply, &why);
		fail(j, why.msg);
		j->u->write_failed = true;
	}
	one_less(j);
}

/* Mode and time that cannot be set are a pity, and told, but no more. */
static void
dressed(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;

	if (sftp_code_of(reply) != SFTP_OK &&
	    sftp_code_of(reply) != SFTP_CONNECTION_LOST && !j->broken)
		run_problem(j->u->r, j->e->path,
		    "its mode and time could not be set");
	one_less(j);
}

void
sftpup_attrs(const struct entry *e, struct sftp_attrs *a)
{
	int64_t s = e->mtime / 1000000000;

	memset(a, 0, sizeof(*a));
	a->has_mode = e->type != ENTRY_LINK;
	a->mode = e->mode & 0777;
	a->has_times = true;
	a->mtime = s < 0 ? 0 : s > UINT32_MAX ? UINT32_MAX : (uint32_t)s;
}

/* Is the local file still what was opened? */
static bool
unchanged(const struct job *j)
{
	struct entry e;
	struct err err;

	return beneath_stat(j->fd, j->e->path, &e, &err) == 0 &&
	    e.size == j->now.size && e.mtime == j->now.mtime;
}

static void
end_writing(struct job *j)
{
	struct sftp *s = j->u->s;
	struct sftp_attrs a;
	struct buf *b;

	j->step = JOB_CLOSING;
	if (!j->broken && !unchanged(j)) {
		fail(j, "it changed while it was sent; sync again");
		j->keep = false;
	}
	sftpup_attrs(&j->now, &a);
	j->waiting += 2;
	b = sftp_begin(s, SFTP_FSETSTAT);
	sftp_put_bytes(b, j->handle.data, j->handle.len);
	sftp_put_attrs(b, &a);
	sftp_end(s, dressed, j);
	sftp_handle(s, SFTP_CLOSE, &j->handle, acknowledged, j);
}

/* The next bytes of one file; at its end, the rest. */
static void
write_chunk(struct job *j)
{
	int64_t left = j->now.size - j->at;
	struct up *u = j->u;
	struct buf *b;
	ssize_t n;

	if (left <= 0 || j->broken) {
		end_writing(j);
		return;
	}
	n = pread(j->fd, u->chunk,
	    left < (int64_t)SFTP_CHUNK ? (size_t)left : SFTP_CHUNK, j->at);
	if (n <= 0) {
		fail(j,
		    n == 0 ? "it changed while it was sent; sync again"
		           : strerror(errno));
		j->keep = false;
		return;
	}
	j->waiting++;
	b = sftp_begin(u->s, SFTP_WRITE);
	sftp_put_bytes(b, j->handle.data, j->handle.len);
	sftp_put_u64(b, (uint64_t)j->at);
	sftp_put_bytes(b, u->chunk, (size_t)n);
	sftp_end(u->s, acknowledged, j);
	j->at += n;
	run_tell(u->r, "uploading", j->e->path, 0, n);
}

/* How much of a part is there. */
static void
measured(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct sftp_in in = reply->body;
	struct sftp_attrs a = { 0 };

	if (reply->type == SFTP_ATTRS)
		sftp_get_attrs(&in, &a);
	if (a.has_size && a.size <= (uint64_t)j->now.size &&
	    (int64_t)a.size > STEP_BACK) {
		j->at = (int64_t)a.size - STEP_BACK;
		run_tell(j->u->r, "uploading", j->e->path, 0, j->at);
	}
	j->step = JOB_WRITING;
	if (sftp_code_of(reply) == SFTP_CONNECTION_LOST)
		acknowledged(data, reply);
	else
		one_less(j);
}

static void
opened(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct err why;

	if (sftp_take_handle(reply, &j->handle, &why) == -1) {
		fail(j, why.msg);
		j->u->write_failed = true;
		finish(j);
		return;
	}
	if (j->keep) {
		j->waiting++;
		sftp_handle(j->u->s, SFTP_FSTAT, &j->handle, measured, j);
	} else {
		j->step = JOB_WRITING;
	}
}

static struct job *
free_job(struct up *u)
{
	size_t i;

	for (i = 0; i < SFTPUP_JOBS; i++) {
		if (u->jobs[i].step == JOB_FREE)
			return &u->jobs[i];
	}
	return NULL;
}

/* Files that are open get more bytes, the first ones first. */
static void
write_more(struct up *u)
{
	bool some = true;
	size_t i;

	while (some && sftp_room(u->s)) {
		some = false;
		for (i = 0; i < SFTPUP_JOBS && sftp_room(u->s); i++) {
			if (u->jobs[i].step != JOB_WRITING)
				continue;
			write_chunk(&u->jobs[i]);
			some = true;
		}
	}
}

/* A server says no more than "Failure" of a disk that is full. */
static int
check_space(struct up *u, struct err *err)
{
	struct run *r = u->r;
	int64_t left;

	if (!u->write_failed)
		return 0;
	u->write_failed = false;
	left = sftp_free_bytes(u->s, r->far.path, r->until);
	if (left == -1 || left >= LOW_SPACE)
		return 0;
	return err_set(err, ERR_IO,
	    "the disk of %s is full: free some space there and sync again; "
	    "files that were there are as they were",
	    link_sandbox(r->link)->name);
}

int
sftpup_turn(struct up *u, struct err *err)
{
	write_more(u);
	if (sftp_turn(u->s, u->r->until, err) == -1)
		return err_wrap(err, "uploading to %s",
		    link_sandbox(u->r->link)->name);
	return check_space(u, err);
}

static bool
busy(const struct up *u)
{
	size_t i;

	for (i = 0; i < SFTPUP_JOBS; i++) {
		if (u->jobs[i].step != JOB_FREE)
			return true;
	}
	return false;
}

int
sftpup_drain(struct up *u, struct err *err)
{
	while (busy(u) || sftp_pending(u->s) > 0) {
		if (sftpup_turn(u, err) == -1)
			return -1;
	}
	return 0;
}

static int
wait_job(struct up *u, struct job **j, struct err *err)
{
	while ((*j = free_job(u)) == NULL || !sftp_room(u->s)) {
		if (sftpup_turn(u, err) == -1)
			return -1;
	}
	(*j)->u = u;
	(*j)->fd = -1;
	buf_init(&(*j)->handle, SFTP_HANDLE_MAX);
	return 0;
}

int
sftpup_file(struct up *u, const struct entry *e, struct err *err)
{
	struct run *r = u->r;
	const char *source = r->source_name != NULL ? r->source_name : e->path;
	char part[PART_NAME_MAX];
	struct err why;
	struct job *j;

	if (wait_job(u, &j, err) == -1)
		return -1;
	j->e = e;
	run_tell(r, "uploading", e->path, 0, 0);
	j->fd = beneath_open(r->root_fd, source, &j->now, &why);
	if (j->fd == -1) {
		fail(j, why.msg);
		finish(j);
		return 0;
	}
	j->now.type = ENTRY_FILE;
	j->keep = j->now.size >= BIG_FILE;
	j->path = sftpup_path(u, e->path);
	if (j->keep) {
		struct entry named = j->now;

		named.path = e->path;
		part_name(part, &named);
		/* Another letter: it has no list of pieces. */
		part[strlen(BENEATH_PREFIX)] = 'r';
	}
	j->temp = temp_path(u, j->path, j->keep ? part : NULL);
	j->step = JOB_OPENING;
	sftp_open_file(u->s, j->temp,
	    SFTP_FOR_WRITE | SFTP_CREAT | (j->keep ? 0 : SFTP_EXCL), opened, j);
	return 0;
}

/* --- Links -------------------------------------------------------------- */

void
sftpup_ignore(void *data, const struct sftp_packet *reply)
{
	(void)data;
	(void)reply;
}

/* The mtime of a link is nobody's loss. */
void
sftpup_date_link(struct up *u, const struct entry *e, const char *path)
{
	struct sftp_attrs a;
	struct buf *b;

	if (!sftp_can(u->s, SFTP_LSETSTAT))
		return;
	sftpup_attrs(e, &a);
	b = sftp_begin(u->s, SFTP_EXTENDED);
	sftp_put_string(b, "lsetstat@openssh.com");
	sftp_put_string(b, path);
	sftp_put_attrs(b, &a);
	sftp_end(u->s, sftpup_ignore, NULL);
}

static void
linked(void *data, const struct sftp_packet *reply)
{
	struct job *j = data;
	struct err why;

	if (sftp_code_of(reply) != SFTP_OK) {
		sftp_why(reply, &why);
		fail(j, why.msg);
		finish(j);
		return;
	}
	sftpup_date_link(j->u, j->e, j->temp);
	sftp_rename(j->u->s, j->temp, j->path, placed, j);
}

int
sftpup_link(struct up *u, const struct entry *e, struct err *err)
{
	struct job *j;
	struct buf *b;

	if (wait_job(u, &j, err) == -1)
		return -1;
	j->e = e;
	j->step = JOB_OPENING;
	j->path = sftpup_path(u, e->path);
	j->temp = temp_path(u, j->path, NULL);
	/* The order of OpenSSH, which everybody follows: target first. */
	b = sftp_begin(u->s, SFTP_SYMLINK);
	sftp_put_string(b, e->target);
	sftp_put_string(b, j->temp);
	sftp_end(u->s, linked, j);
	return 0;
}

void
sftpup_drop(struct up *u)
{
	size_t i;

	for (i = 0; i < SFTPUP_JOBS; i++) {
		if (u->jobs[i].step != JOB_FREE)
			finish(&u->jobs[i]);
	}
}
