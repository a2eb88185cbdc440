/* A big file up, in pieces. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "ssh/exec.h"
#include "ssh/stream.h"
#include "sync/beneath.h"
#include "sync/far.h"
#include "sync/pieces_inside.h"
#include "sync/silence.h"

#define ASK_MS 60000
#define LIST_CHARS ((size_t)2 << 20) /* the lines of 90000 pieces */

static int
send_piece(struct pieces *p, struct stream *s, size_t i, char *chunk,
    struct err *err)
{
	int64_t at = (int64_t)i * PIECE, left = pieces_len(p, i);
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
		pieces_fail(p, &err);
		return NULL;
	}
	chunk = xmalloc(CHUNK);
	while (rc == 0 && (i = pieces_next(p)) != -1)
		rc = send_piece(p, s, (size_t)i, chunk, &err);
	if (rc == 0)
		rc = end_taker(p, s, &err);
	else if (err.code == ERR_IO && end_taker(p, s, &late) == -1)
		err = late;
	if (rc == -1)
		pieces_fail(p, &err);
	stream_free(s);
	free(chunk);
	return NULL;
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
		pieces_take_list(p, res.out.data);
	} else if (res.exit_code == 7)
		rc = 2;
	else if (res.cancelled)
		rc = err_set(err, ERR_CANCELLED, "cancelled");
	else if (res.timed_out)
		rc = err_set(err, ERR_IO,
		    "%s did not say within %d s what it has of '%.300s'",
		    link_sandbox(p->r->link)->name, ASK_MS / 1000, p->e->path);
	else if (res.connection_error)
		rc = err_set(err, ERR_IO, "the connection to %s was lost",
		    link_sandbox(p->r->link)->name);
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

/* Nobody shall go on with it: some of it is of another content. */
static void
drop_part(const struct pieces *p)
{
	struct exec_request req = {
		.timeout_ms = ASK_MS,
		.grace_ms = 1000,
		.max_chars = LIST_CHARS,
	};
	struct exec_result res;
	struct buf script;
	struct err err;

	buf_init(&script, SIZE_MAX);
	far_drop_pieces(&script, &p->r->far, p->part);
	req.command = script.data;
	if (exec_run(p->r->link, &req, &res, p->r->until, &err) == 0)
		exec_result_free(&res);
	buf_free(&script);
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
	/* What the scan saw, the part is named after. */
	if (rc == 0 && !unchanged(&p))
		rc = err_set(err, ERR_INVALID,
		    "it changed while it was sent; sync again");
	if (rc == 0)
		rc = ask_pieces(&p, err);
	if (rc == 0)
		rc = pieces_run(&p, send_pieces, err);
	if (rc == 0 && !unchanged(&p)) {
		drop_part(&p);
		rc = err_set(err, ERR_INVALID,
		    "it changed while it was sent; sync again");
	}
	if (rc == -1 && err->code == ERR_INVALID) {
		run_problem(r, e->path, err->msg);
		rc = 1;
	}
	memcpy(part, p.part, PART_NAME_MAX);
	pieces_free(&p);
	return rc;
}
