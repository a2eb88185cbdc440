/*
 * A part of a file, by SFTP.
 *
 * What comes out is what the command of farread.c would have printed, so that
 * one reader takes both.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "ssh/farread_inside.h"

#define STEP ((size_t)1 << 20) /* to find a line */

static const char *
kind_of(uint32_t mode)
{
	if (S_ISREG(mode))
		return "file";
	if (S_ISDIR(mode))
		return "dir";
	if (S_ISFIFO(mode))
		return "fifo";
	if (S_ISSOCK(mode))
		return "socket";
	return S_ISCHR(mode) || S_ISBLK(mode) ? "device" : "other";
}

/* Where line number "line" begins, or the end of the file. */
static int64_t
find_line(struct sftp *s, const struct buf *handle, int64_t line,
    const struct until *until, struct err *err)
{
	struct buf bytes;
	int64_t at = 0, n = 1, left = line - 1;
	const char *nl, *from;

	buf_init(&bytes, STEP);
	while (left > 0 && n > 0) {
		buf_reset(&bytes);
		n = sftp_read(s, handle, at, STEP, &bytes, until, err);
		for (from = bytes.data; n > 0 && left > 0; from = nl + 1) {
			nl = memchr(from, '\n',
			    bytes.len - (size_t)(from - bytes.data));
			if (nl == NULL) {
				from = bytes.data + bytes.len;
				break;
			}
			left--;
		}
		if (n > 0)
			at += from - bytes.data;
	}
	buf_free(&bytes);
	return n == -1 ? -1 : at;
}

/* How many lines end before this byte; -1 on failure. */
static int64_t
count_lines(struct sftp *s, const struct buf *handle, int64_t end,
    const struct until *until, struct err *err)
{
	struct buf bytes;
	int64_t at = 0, n = 1, lines = 0;
	size_t i;

	buf_init(&bytes, STEP);
	while (at < end && n > 0) {
		buf_reset(&bytes);
		n = sftp_read(s, handle, at,
		    end - at < (int64_t)STEP ? (size_t)(end - at) : STEP,
		    &bytes, until, err);
		for (i = 0; n > 0 && i < bytes.len; i++)
			lines += bytes.data[i] == '\n';
		at += (int64_t)bytes.len;
	}
	buf_free(&bytes);
	return n == -1 ? -1 : lines;
}

/* The part that is to be read: its first byte, and how many. */
static int
choose(struct sftp *s, const struct buf *handle,
    const struct farread_request *req, int64_t size, int64_t *at, size_t *want,
    const struct until *until, struct err *err)
{
	*at = 0;
	*want = req->max_bytes + FARREAD_CHAR_MAX;
	switch (req->from) {
	case FARREAD_OFFSET:
		if (req->start > FARREAD_CHAR_MAX)
			*at = req->start - FARREAD_CHAR_MAX;
		*want += (size_t)(req->start - *at);
		break;
	case FARREAD_LINE:
		*at = find_line(s, handle, req->start, until, err);
		break;
	case FARREAD_TAIL:
		if (size > (int64_t)*want)
			*at = size - (int64_t)*want;
		*want += SFTP_CHUNK; /* it may grow */
		break;
	}
	return *at == -1 ? -1 : 0;
}

static int
print_part(struct sftp *s, const struct farread_request *req, const char *path,
    int64_t size, struct buf *out, const struct until *until, struct err *err)
{
	struct buf handle;
	size_t want;
	int64_t at, before = 0;
	int rc;

	memset(&handle, 0, sizeof(handle));
	rc = sftp_open_wait(s, path, SFTP_FOR_READ, &handle, until, err);
	if (rc == 0)
		rc = choose(s, &handle, req, size, &at, &want, until, err);
	if (rc == 0 && req->from == FARREAD_TAIL && req->number)
		before = count_lines(s, &handle, at, until, err);
	if (before == -1)
		rc = -1;
	if (rc == 0) {
		buf_addf(out, "file %" PRId64 " %" PRId64 " %" PRId64 " %zu",
		    size, at, at, want);
		if (req->from == FARREAD_TAIL && req->number)
			buf_addf(out, " %" PRId64, before);
		buf_addc(out, '\n');
		if (sftp_read(s, &handle, at, want, out, until, err) == -1)
			rc = -1;
	}
	if (handle.data != NULL)
		sftp_close(s, &handle);
	return rc;
}

int
sftpread_print(struct sftp *s, const struct farread_request *req,
    const char *workdir, struct buf *out, const struct until *until,
    struct err *err)
{
	char *path = sftp_absolute(s, req->path, workdir, until, err);
	struct sftp_attrs a;
	int rc = -1;

	if (path == NULL)
		return -1;
	if (sftp_stat(s, SFTP_STAT, path, &a, until, err) == 0) {
		rc = 0;
		if (!S_ISREG(a.mode))
			buf_addf(out, "%s 0 0 0 0\n", kind_of(a.mode));
		else
			rc = print_part(s, req, path,
			    a.size < INT64_MAX / 4 ? (int64_t)a.size : 0, out,
			    until, err);
	}
	free(path);
	return rc;
}
