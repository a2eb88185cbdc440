/*
 * Big files, in pieces: on several channels at once where the way is long,
 * and after a break only what is missing.
 *
 * The pieces go into a part file (".rsmcp-p...") whose name holds what it is a
 * part of; next to it a list says which are there.  The list counts only until
 * the machine that has it is started again, since nothing is forced to disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "ssh/exec.h"
#include "ssh/stream.h"
#include "sync/beneath.h"
#include "sync/far.h"
#include "sync/inside.h"
#include "sync/silence.h"

#define CHUNK ((size_t)1 << 20)
#define ASK_MS 60000
#define LIST_CHARS ((size_t)2 << 20) /* the lines of 90000 pieces */

/* A round trip longer than this makes several channels worth while. */
#define FAR_AWAY_MS 5

/* One file on its way. */
struct pieces {
	struct run *r;
	const struct entry *e;
	char part[PART_NAME_MAX];
	int fd;      /* the local file, or the local part */
	int dir_fd;  /* where the local part is */
	int list_fd; /* which pieces of it are there */
	size_t count, streams;
	bool holes; /* what is not written to is zero: zeros need not be */

	pthread_mutex_t lock; /* guards the rest */
	bool *have;
	size_t next;
	bool failed;
	bool given_up; /* with a problem noted */
	struct err err;
};

void
part_name(char out[PART_NAME_MAX], const struct entry *e)
{
	uint64_t h = 1469598103934665603u;
	char text[64];
	const char *at;

	snprintf(text, sizeof(text), "%" PRId64 ".%" PRId64, e->size, e->mtime);
	for (at = e->path; *at != '\0'; at++)
		h = (h ^ (unsigned char)*at) * 1099511628211u;
	for (at = text; *at != '\0'; at++)
		h = (h ^ (unsigned char)*at) * 1099511628211u;
	snprintf(out, PART_NAME_MAX, ".rsmcp-p%016" PRIx64, h);
}

static int64_t
piece_len(const struct pieces *p, size_t i)
{
	int64_t left = p->e->size - (int64_t)i * PIECE;

	return left < PIECE ? left : PIECE;
}

/* More channels only help where each waits for answers. */
static size_t
streams_for(struct run *r, size_t count, struct err *err)
{
	int64_t began = clock_ms();

	/* SFTP has as much under way on one. */
	if (count < 2 || r->sftp != NULL)
		return 1;
	if (link_check(r->link, r->until, err) == -1)
		return 0;
	if (clock_ms() - began < FAR_AWAY_MS)
		return 1;
	return count < STREAMS_MAX ? count : STREAMS_MAX;
}

static int
pieces_init(struct pieces *p, struct run *r, const struct entry *e,
    struct err *err)
{
	memset(p, 0, sizeof(*p));
	p->r = r;
	p->e = e;
	p->fd = p->dir_fd = p->list_fd = -1;
	p->count = (size_t)((e->size + PIECE - 1) / PIECE);
	p->have = xcalloc(p->count + 1, sizeof(bool));
	pthread_mutex_init(&p->lock, NULL);
	part_name(p->part, e);
	p->streams = streams_for(r, p->count, err);
	return p->streams == 0 ? -1 : 0;
}

static void
pieces_free(struct pieces *p)
{
	if (p->fd != -1)
		close(p->fd);
	if (p->dir_fd != -1)
		close(p->dir_fd);
	if (p->list_fd != -1)
		close(p->list_fd);
	pthread_mutex_destroy(&p->lock);
	free(p->have);
}

/* "offset length" lines of pieces that are there. */
static void
take_list(struct pieces *p, char *text)
{
	char *save = NULL, *line;

	for (line = strtok_r(text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		char *end;
		long long at = strtoll(line, &end, 10), len;
		size_t i;

		if (end == line || *end != ' ' || at < 0 || at % PIECE != 0 ||
		    at >= p->e->size)
			continue;
		i = (size_t)(at / PIECE);
		len = strtoll(end, NULL, 10);
		if (len != piece_len(p, i) || p->have[i])
			continue;
		p->have[i] = true;
		run_tell(p->r, NULL, p->e->path, 0, len);
	}
}

/* The next piece to move, or -1: none is left, or somebody failed. */
static int64_t
next_piece(struct pieces *p)
{
	int64_t found = -1;

	pthread_mutex_lock(&p->lock);
	while (!p->failed && p->next < p->count && p->have[p->next])
		p->next++;
	if (!p->failed && p->next < p->count)
		found = (int64_t)p->next++;
	pthread_mutex_unlock(&p->lock);
	return found;
}

/* The first failure counts; the others follow from it. */
static void
fail(struct pieces *p, const struct err *err)
{
	pthread_mutex_lock(&p->lock);
	if (!p->failed)
		p->err = *err;
	p->failed = true;
	pthread_mutex_unlock(&p->lock);
}

static int
send_piece(struct pieces *p, struct stream *s, size_t i, char *chunk,
    struct err *err)
{
	int64_t at = (int64_t)i * PIECE, left = piece_len(p, i);
	char line[64];
	ssize_t n;

	snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", at, left);
	if (stream_write(s, line, strlen(line), p->r->until, err) == -1)
		return -1;
	snprintf(line, sizeof(line), "ok %" PRId64 "\n", at);
	while (left > 0) {
		n = pread(p->fd, chunk,
		    left < (int64_t)CHUNK ? (size_t)left : CHUNK, at);
		if (n == 0)
			return err_set(err, ERR_INVALID,
			    "it became shorter while it was sent; sync again");
		if (n == -1)
			return err_sys(err, "cannot read '%.300s'", p->e->path);
		if (stream_write(s, chunk, (size_t)n, p->r->until, err) == -1)
			return -1;
		at += n;
		left -= n;
		run_tell(p->r, "uploading", p->e->path, 0, n);
	}
	return stream_write(s, line, strlen(line), p->r->until, err);
}

/* What a stream that took pieces has to say at its end. */
static int
end_taker(struct pieces *p, struct stream *s, struct err *err)
{
	int status = stream_end(s, p->r->until, err);

	if (status == -1 || status == 0)
		return status;
	if (status == FAR_OTHER_PART)
		return err_set(err, ERR_INVALID,
		    "another sync wrote it at the same time; sync again");
	return err_set(err, ERR_IO,
	    "%s could not write '%.300s' (%d); is its disk full?",
	    link_sandbox(p->r->link)->name, p->e->path, status);
}

static void *
send_pieces(void *arg)
{
	struct pieces *p = arg;
	struct stream *s;
	struct buf script;
	struct err err, late;
	char *chunk;
	int64_t i;
	int rc = 0;

	buf_init(&script, SIZE_MAX);
	far_take_pieces(&script, &p->r->far, p->part, p->holes);
	s = silence_stream(p->r->link, script.data, p->r->until, &err);
	buf_free(&script);
	if (s == NULL) {
		fail(p, &err);
		return NULL;
	}
	chunk = xmalloc(CHUNK);
	while (rc == 0 && (i = next_piece(p)) != -1)
		rc = send_piece(p, s, (size_t)i, chunk, &err);
	if (rc == 0)
		rc = end_taker(p, s, &err);
	else if (err.code == ERR_IO && end_taker(p, s, &late) == -1)
		err = late;
	if (rc == -1)
		fail(p, &err);
	stream_free(s);
	free(chunk);
	return NULL;
}

/* Run it on so many threads, this one among them. */
static int
run_streams(struct pieces *p, void *(*work)(void *), struct err *err)
{
	pthread_t threads[STREAMS_MAX];
	size_t i, started = 0;

	while (started + 1 < p->streams &&
	    pthread_create(&threads[started], NULL, work, p) == 0)
		started++;
	work(p);
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (!p->failed)
		return 0;
	*err = p->err;
	return -1;
}

static bool
has_holes(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (off_t)st.st_blocks * 512 < st.st_size;
}

/* Ask the far side to make the part, and which pieces it has. */
static int
ask_pieces(struct pieces *p, struct err *err)
{
	struct exec_request req = {
		.timeout_ms = ASK_MS,
		.grace_ms = 1000,
		.max_chars = LIST_CHARS,
		.cwd = link_sandbox(p->r->link)->workdir,
	};
	struct exec_result res;
	struct buf script;
	int rc;

	buf_init(&script, SIZE_MAX);
	far_have_pieces(&script, &p->r->far, p->part,
	    has_holes(p->fd) ? p->e->size : 0);
	req.command = script.data;
	rc = exec_run(p->r->link, &req, &res, p->r->until, err);
	buf_free(&script);
	if (rc == -1)
		return -1;
	if (res.exit_code == 0 && res.state == EXEC_FINISHED) {
		p->holes = str_starts(res.out.data, FAR_HOLES);
		take_list(p, res.out.data);
	} else if (res.exit_code == 7)
		rc = 2;
	else if (res.cancelled)
		rc = err_set(err, ERR_CANCELLED, "cancelled");
	else if (res.timed_out)
		rc = err_set(err, ERR_IO,
		    "%s did not say within %d s what it has of '%.300s'",
		    link_sandbox(p->r->link)->name, ASK_MS / 1000, p->e->path);
	else if (res.exit_code == -1)
		rc = err_set(err, ERR_IO, "%s", res.problem);
	else
		rc = err_set(err, ERR_DENIED,
		    "cannot write in '%.300s' on %s: %.300s", p->r->far.path,
		    link_sandbox(p->r->link)->name, res.err.data);
	exec_result_free(&res);
	return rc;
}

/* Is the local file still what the scan saw? */
static bool
unchanged(const struct pieces *p)
{
	struct stat st;

	return fstat(p->fd, &st) == 0 && st.st_size == p->e->size &&
	    st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec ==
	    p->e->mtime;
}

int
pieces_up(struct run *r, const struct entry *e, char part[PART_NAME_MAX],
    struct err *err)
{
	struct pieces p;
	struct entry now;
	const char *path = r->source_name != NULL ? r->source_name : e->path;
	int rc;

	run_tell(r, "uploading", e->path, 0, 0);
	rc = pieces_init(&p, r, e, err);
	if (rc == 0) {
		p.fd = beneath_open(r->root_fd, path, &now, err);
		if (p.fd == -1) {
			run_problem(r, e->path, err->msg);
			rc = 1;
		}
	}
	if (rc == 0)
		rc = ask_pieces(&p, err);
	if (rc == 0)
		rc = run_streams(&p, send_pieces, err);
	if (rc == 0 && !unchanged(&p))
		rc = err_set(err, ERR_INVALID,
		    "it changed while it was sent; sync again");
	if (rc == -1 && err->code == ERR_INVALID) {
		run_problem(r, e->path, err->msg);
		rc = 1;
	}
	memcpy(part, p.part, PART_NAME_MAX);
	pieces_free(&p);
	return rc;
}

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
		take_list(p, text.data + boot.len);
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
			return err_set(err, ERR_INVALID, "it became shorter");
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
	int64_t at = (int64_t)i * PIECE, left = piece_len(p, i);
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
		return err_set(err, ERR_INVALID, "its length changed");
	return 0;
}

static int
ask_piece(struct pieces *p, struct stream *s, int64_t i, struct err *err)
{
	char line[64];

	if (i == -1)
		return 0;
	snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", i * PIECE,
	    piece_len(p, (size_t)i));
	return stream_write(s, line, strlen(line), p->r->until, err);
}

/* Lost, it only means to fetch it again. */
static void
note_piece(struct pieces *p, int64_t i)
{
	char line[64];

	snprintf(line, sizeof(line), "%" PRId64 " %" PRId64 "\n", i * PIECE,
	    piece_len(p, (size_t)i));
	(void)!write(p->list_fd, line, strlen(line));
}

/* One is asked for while the one before it is on its way. */
static int
fetch_all(struct pieces *p, struct stream *s, struct err *err)
{
	char *chunk = xmalloc(CHUNK);
	int64_t i = next_piece(p), then;
	int rc = ask_piece(p, s, i, err);

	for (; rc == 0 && i != -1; i = then) {
		then = next_piece(p);
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
		fail(p, &err);
		return NULL;
	}
	while (rc == 0 && (i = next_piece(p)) != -1) {
		rc = sftp_fetch_range(r, p->e, &handle, p->fd, i * PIECE,
		    piece_len(p, (size_t)i), &err);
		if (rc == 0)
			note_piece(p, i);
	}
	if (rc == -1)
		fail(p, &err);
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
		fail(p, &err);
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
		    ? err_set(err, ERR_INVALID, "changed")
		    : -1;
	if (!a.has_size || a.size != (uint64_t)p->e->size ||
	    a.mtime != (uint32_t)(p->e->mtime / 1000000000))
		return err_set(err, ERR_INVALID, "changed");
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
		rc = err_set(err, ERR_INVALID, "changed");
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
		rc = err_set(err, ERR_INVALID, "another sync has it");
	else if (ftruncate(p->fd, e->size) == -1 || /* a hole at its end */
	    fchmod(p->fd, e->mode & 0777) == -1 ||
	    futimens(p->fd, times) == -1 ||
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
	int rc;

	p->holes = open_part(p, O_CREAT | O_EXCL) != -1;
	if (!p->holes && open_part(p, O_CREAT) == -1)
		return err_sys(err, "cannot write next to '%.300s'",
		    p->e->path);
	p->list_fd = open_list(p);
	if (p->list_fd == -1)
		return err_sys(err, "cannot write next to '%.300s'",
		    p->e->path);
	rc = run_streams(p, p->r->sftp != NULL ? fetch_by_sftp : fetch_pieces,
	    err);
	if (rc == 0)
		rc = still_there(p, err);
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
		run_problem(r, e->path,
		    "it changed while it was read; sync again");
		return 1;
	}
	return rc;
}
