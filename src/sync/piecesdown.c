/* A big file down, in pieces. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ssh/stream.h"
#include "sync/beneath.h"
#include "sync/far.h"
#include "sync/pieces_inside.h"
#include "sync/silence.h"

#define OTHER "another sync is bringing it"
#define CHANGED "it changed while it was read; sync again"
#define UNREAD "the host could not read all of it; sync again"

/* A text that changes when this machine is started again. */
static void
boot_id(struct buf *out)
{
	struct err err;

	buf_init(out, 64);
	fs_read("/proc/sys/kernel/random/boot_id", out, &err);
	if (out->len == 0)
		buf_adds(out, "-\n");
}

/* The local list of pieces: made new unless it is of this boot, and of this
 * part. */
static int
open_list(struct pieces *p)
{
	char *name = xasprintf("%s.done", p->part);
	int fd = openat(p->dir_fd, name,
	    O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW |
	        (p->holes ? O_TRUNC : 0),
	    0600);
	struct buf boot, text;
	char chunk[4096];
	ssize_t n;

	free(name);
	if (fd == -1)
		return -1;
	boot_id(&boot);
	buf_init(&text, (size_t)1 << 20);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&text, chunk, (size_t)n);
	if (str_starts(text.data, boot.data)) {
		pieces_take_list(p, text.data + boot.len);
	} else if (ftruncate(fd, 0) == -1 ||
	    fs_write_all(fd, boot.data, boot.len) == -1) {
		close(fd);
		fd = -1;
	}
	buf_free(&boot);
	buf_free(&text);
	return fd;
}

/* Read exactly so many bytes. */
static int
read_all(struct pieces *p, struct stream *s, char *out, size_t len,
    struct err *err)
{
	while (len > 0) {
		ssize_t n = stream_read(s, out, len, p->r->until, err);

		if (n == -1)
			return -1;
		if (n == 0)
			return err_set(err, ERR_INVALID, UNREAD);
		out += n;
		len -= (size_t)n;
	}
	return 0;
}

/* Zeros of a part that is new stay a hole. */
static int
write_chunk(struct pieces *p, const char *chunk, size_t n, int64_t at,
    struct err *err)
{
	if (p->holes && chunk[0] == '\0' &&
	    memcmp(chunk, chunk + 1, n - 1) == 0)
		return 0;
	if (pwrite(p->fd, chunk, n, at) == (ssize_t)n)
		return 0;
	return err_sys(err, "cannot write '%.300s'", p->e->path);
}

static int
fetch_piece(struct pieces *p, struct stream *s, size_t i, char *chunk,
    struct err *err)
{
	int64_t at = (int64_t)i * PIECE, left = pieces_len(p, i);
	char line[64], said[64] = "";
	size_t n;

	snprintf(line, sizeof(line), "ok %" PRId64 "\n", at);
	while (left > 0) {
		n = left < (int64_t)CHUNK ? (size_t)left : CHUNK;
		if (read_all(p, s, chunk, n, err) == -1 ||
		    write_chunk(p, chunk, n, at, err) == -1)
			return -1;
		at += (int64_t)n;
		left -= (int64_t)n;
		run_tell(p->r, "downloading", p->e->path, 0, (int64_t)n);
	}
	if (read_all(p, s, said, strlen(line), err) == -1)
		return -1;
	if (strcmp(said, line) != 0)
		return err_set(err, ERR_INVALID, UNREAD);
	return 0;
}

static int
ask_piece(struct pieces *p, struct stream *s, int64_t i, struct err *err)
{
	struct until soon;
	char line[64];
	struct err late;

	if (i == -1)
		return 0;
	snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", i * PIECE,
	    pieces_len(p, (size_t)i));
	if (stream_write(s, line, strlen(line), p->r->until, err) == 0)
		return 0;
	/* It may have ended with the piece before. */
	soon = until_within(p->r->until, LAST_WORDS_MS);
	if (err->code == ERR_IO && stream_end(s, &soon, &late) != -1)
		return err_set(err, ERR_INVALID, UNREAD);
	return -1;
}

/* Lost, it only means to fetch it again. */
static void
note_piece(struct pieces *p, int64_t i)
{
	char line[64];

	snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", i * PIECE,
	    pieces_len(p, (size_t)i));
	(void)!write(p->list_fd, line, strlen(line));
}

/* One is asked for while the one before it is on its way. */
static int
fetch_all(struct pieces *p, struct stream *s, struct err *err)
{
	char *chunk = xmalloc(CHUNK);
	int64_t i = pieces_next(p), then;
	int rc = ask_piece(p, s, i, err);

	for (; rc == 0 && i != -1; i = then) {
		then = pieces_next(p);
		rc = ask_piece(p, s, then, err);
		if (rc == 0)
			rc = fetch_piece(p, s, (size_t)i, chunk, err);
		if (rc == 0)
			note_piece(p, i);
	}
	free(chunk);
	return rc;
}

static char *
far_path(const struct pieces *p)
{
	return xasprintf("%s/%s", p->r->far.path,
	    p->r->source_name != NULL ? p->r->source_name : p->e->path);
}

static void *
fetch_by_sftp(void *arg)
{
	struct pieces *p = arg;
	struct run *r = p->r;
	char *path = far_path(p);
	struct buf handle;
	struct err err;
	int64_t i;
	int rc;

	rc = sftp_open_wait(r->sftp, path, SFTP_FOR_READ, &handle, r->until,
	    &err);
	free(path);
	if (rc == -1) {
		/* Only this one, if the host had something to say. */
		if (!sftp_broken(r->sftp)) {
			run_problem(r, p->e->path, err.msg);
			p->given_up = true;
		}
		pieces_fail(p, &err);
		return NULL;
	}
	while (rc == 0 && (i = pieces_next(p)) != -1) {
		rc = sftp_fetch_range(r, p->e, &handle, p->fd, i * PIECE,
		    pieces_len(p, (size_t)i), &err);
		if (rc == 0)
			note_piece(p, i);
	}
	if (rc == -1)
		pieces_fail(p, &err);
	sftp_close(r->sftp, &handle);
	return NULL;
}

static void *
fetch_pieces(void *arg)
{
	struct pieces *p = arg;
	struct stream *s;
	struct buf script;
	struct err err;
	const char *path =
	    p->r->source_name != NULL ? p->r->source_name : p->e->path;

	buf_init(&script, SIZE_MAX);
	far_give_pieces(&script, &p->r->far, path);
	s = silence_stream(p->r->link, script.data, p->r->until, &err);
	buf_free(&script);
	if (s == NULL || fetch_all(p, s, &err) == -1)
		pieces_fail(p, &err);
	else
		stream_end(s, p->r->until, &err);
	stream_free(s);
	return NULL;
}

static int
still_listed(struct pieces *p, const char *path, struct err *err)
{
	struct sftp_attrs a;

	if (sftp_stat(p->r->sftp, SFTP_STAT, path, &a, p->r->until, err) == -1)
		return err->code == ERR_NOT_FOUND
		    ? err_set(err, ERR_INVALID, CHANGED)
		    : -1;
	if (!a.has_size || a.size != (uint64_t)p->e->size ||
	    a.mtime != (uint32_t)(p->e->mtime / 1000000000))
		return err_set(err, ERR_INVALID, CHANGED);
	return 0;
}

/* Is the far file still what the scan saw? */
static int
still_there(struct pieces *p, struct err *err)
{
	struct farlist_options o = { 0 };
	struct far_root root;
	struct tree none;
	char *path = far_path(p);
	int rc;

	if (p->r->sftp != NULL) {
		rc = still_listed(p, path, err);
		free(path);
		return rc;
	}
	memset(&root, 0, sizeof(root));
	tree_init(&none);
	rc = farlist_run(p->r->link, path, &o, &root, &none, p->r->until, err);
	if (rc == 0 &&
	    (root.kind != FAR_FILE || root.file.size != p->e->size ||
	        root.file.mtime != p->e->mtime))
		rc = err_set(err, ERR_INVALID, CHANGED);
	far_root_free(&root);
	tree_free(&none);
	free(path);
	return rc;
}

/* Is the part still the file that we wrote?  Another run may have given that
 * one its name, and begun anew. */
static bool
is_ours(const struct pieces *p)
{
	struct stat named, open;

	return fstat(p->fd, &open) == 0 &&
	    fstatat(p->dir_fd, p->part, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    named.st_dev == open.st_dev && named.st_ino == open.st_ino;
}

static void
drop_part(const struct pieces *p)
{
	char *done = xasprintf("%s.done", p->part);

	unlinkat(p->dir_fd, done, 0);
	unlinkat(p->dir_fd, p->part, 0);
	free(done);
}

/* -1 if it is no longer what the scan saw, or nobody knows.  Nobody shall go on
 * with a part that is of two contents. */
static int
has_changed(struct pieces *p, struct err *err)
{
	int rc = still_there(p, err);

	if (rc == -1 && err->code == ERR_INVALID && is_ours(p))
		drop_part(p);
	return rc;
}

/* Give the part its mode, its time and its name. */
static int
put_in_place(struct pieces *p, const char *name, struct err *err)
{
	const struct entry *e = p->e;
	struct timespec times[2];
	char *done = xasprintf("%s.done", p->part);
	int rc = 0;

	beneath_times(e, times);
	if (!is_ours(p))
		rc = err_set(err, ERR_INVALID, OTHER);
	else if (ftruncate(p->fd, e->size) == -1 || /* a hole at its end */
	    fchmod(p->fd, e->mode & 0777) == -1 ||
	    futimens(p->fd, times) == -1 ||
	    /* Some file systems say only now that the disk is full. */
	    close(dup(p->fd)) == -1 ||
	    renameat(p->dir_fd, p->part, p->dir_fd, name) == -1)
		rc = err_sys(err, "cannot put '%.300s' in place", e->path);
	else
		unlinkat(p->dir_fd, done, 0);
	free(done);
	return rc;
}

static int
open_part(struct pieces *p, int flags)
{
	p->fd = openat(p->dir_fd, p->part,
	    O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
	return p->fd;
}

static int
fetch_file(struct pieces *p, const char *name, struct err *err)
{
	struct err now;
	int rc;

	p->holes = open_part(p, O_CREAT | O_EXCL) != -1;
	if (!p->holes && open_part(p, O_CREAT) == -1)
		return err_sys(err, "cannot write next to '%.300s'",
		    p->e->path);
	/* Of two only one writes it: the other would write on into what is in
	 * place by then.  Not every disk has locks. */
	if ((flock(p->fd, LOCK_EX | LOCK_NB) == -1 && errno == EWOULDBLOCK) ||
	    !is_ours(p))
		return err_set(err, ERR_INVALID, OTHER);
	beneath_drop_parts(p->dir_fd, p->part, PART_FILE_LEN);
	p->list_fd = open_list(p);
	if (p->list_fd == -1)
		return err_sys(err, "cannot write next to '%.300s'",
		    p->e->path);
	rc = pieces_run(p, p->r->sftp != NULL ? fetch_by_sftp : fetch_pieces,
	    err);
	if (rc == 0)
		rc = has_changed(p, err);
	else if (err->code == ERR_INVALID && has_changed(p, &now) == -1)
		*err = now; /* else the host's disk fails */
	return rc == 0 ? put_in_place(p, name, err) : rc;
}

int
pieces_down(struct run *r, const struct entry *e, struct err *err)
{
	struct pieces p;
	const char *name;
	int rc;

	run_tell(r, "downloading", e->path, 0, 0);
	rc = pieces_init(&p, r, e, err);
	if (rc == 0) {
		p.dir_fd =
		    beneath_parent(r->root_fd, e->path, true, &name, err);
		rc = p.dir_fd == -1 ? -1 : fetch_file(&p, name, err);
	}
	pieces_free(&p);
	if (p.given_up)
		return 1;
	if (rc == -1 && err->code == ERR_INVALID) {
		run_problem(r, e->path, err->msg);
		return 1;
	}
	return rc;
}
