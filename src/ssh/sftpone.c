/* SFTP, one thing at a time: requests whose reply is waited for. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "ssh/sftp.h"

struct answer {
	bool came;
	uint8_t type;
	int rc;
	struct sftp_attrs attrs;
	uint64_t numbers[5];
	char *name;
	struct err err;
};

static void
take_answer(void *data, const struct sftp_packet *reply)
{
	struct answer *a = data;
	struct sftp_in in = reply->body;
	const char *name;
	size_t len, i;

	a->came = true;
	a->type = reply->type;
	switch (reply->type) {
	case SFTP_ATTRS:
		sftp_get_attrs(&in, &a->attrs);
		break;
	case SFTP_NAME:
		sftp_get_u32(&in);
		name = sftp_get_bytes(&in, &len);
		a->name = xstrndup(name, len);
		break;
	case SFTP_EXTENDED_REPLY:
		for (i = 0; i < 5; i++)
			a->numbers[i] = sftp_get_u64(&in);
		break;
	default:
		if (reply->type != SFTP_STATUS ||
		    sftp_code_of(reply) != SFTP_OK)
			a->rc = sftp_why(reply, &a->err);
	}
	if (a->rc == 0 && in.bad)
		a->rc = sftp_no_sense(&a->err);
}

/* On success a->name is the caller's to free. */
static int
await(struct sftp *s, struct answer *a, const struct until *until,
    struct err *err)
{
	while (!a->came) {
		/* It may have come, with nonsense behind it. */
		if (sftp_turn(s, until, err) == -1) {
			free(a->name);
			return -1;
		}
	}
	if (a->rc == -1) {
		free(a->name);
		*err = a->err;
	}
	return a->rc;
}

int
sftp_stat(struct sftp *s, enum sftp_type type, const char *path,
    struct sftp_attrs *attrs, const struct until *until, struct err *err)
{
	struct answer a = { 0 };

	sftp_path(s, type, path, take_answer, &a);
	if (await(s, &a, until, err) == -1)
		return -1;
	free(a.name);
	if (!a.attrs.has_mode)
		return err_set(err, ERR_IO,
		    "the host's SFTP server does not tell what it is");
	*attrs = a.attrs;
	return 0;
}

int
sftp_do(struct sftp *s, enum sftp_type type, const char *path,
    const struct until *until, struct err *err)
{
	struct answer a = { 0 };
	struct sftp_attrs none = { 0 };
	struct buf *b = sftp_begin(s, type);

	sftp_put_string(b, path);
	if (type == SFTP_MKDIR)
		sftp_put_attrs(b, &none);
	sftp_end(s, take_answer, &a);
	if (await(s, &a, until, err) == -1)
		return -1;
	free(a.name);
	return a.type == SFTP_STATUS ? 0 : sftp_no_sense(err);
}

char *
sftp_realpath(struct sftp *s, const char *path, const struct until *until,
    struct err *err)
{
	struct answer a = { 0 };

	sftp_path(s, SFTP_REALPATH, path, take_answer, &a);
	if (await(s, &a, until, err) == -1)
		return NULL;
	if (a.name != NULL && a.name[0] == '/')
		return a.name;
	free(a.name);
	sftp_no_sense(err);
	return NULL;
}

int64_t
sftp_free_bytes(struct sftp *s, const char *path, const struct until *until)
{
	struct answer a = { 0 };
	struct buf *b;
	struct err err;

	if (!sftp_can(s, SFTP_STATVFS))
		return -1;
	b = sftp_begin(s, SFTP_EXTENDED);
	sftp_put_string(b, "statvfs@openssh.com");
	sftp_put_string(b, path);
	sftp_end(s, take_answer, &a);
	if (await(s, &a, until, &err) == -1)
		return -1;
	free(a.name);
	/* f_bsize, f_frsize, f_blocks, f_bfree, f_bavail */
	if (a.numbers[1] == 0 || a.numbers[4] > INT64_MAX / a.numbers[1])
		return -1;
	return (int64_t)(a.numbers[1] * a.numbers[4]);
}

/* --- Reading in a row --------------------------------------------------- */

/* Several requests at once; what comes short is asked for again. */
struct reading {
	char *to;
	size_t got; /* without a gap, from the first byte on */
	bool ended;
	int rc;
	struct err err;
};

struct chunk {
	struct reading *r;
	size_t at, want, got;
	bool over;
};

#define CHUNKS 32

static void
take_chunk(void *data, const struct sftp_packet *reply)
{
	struct chunk *c = data;
	struct sftp_in in = reply->body;
	const char *bytes;
	size_t len;

	c->over = true;
	if (reply->type != SFTP_DATA) {
		c->r->ended = true;
		if (sftp_code_of(reply) != SFTP_EOF && c->r->rc == 0)
			c->r->rc = sftp_why(reply, &c->r->err);
		return;
	}
	bytes = sftp_get_bytes(&in, &len);
	if (in.bad || len > c->want || len == 0) {
		c->r->rc = sftp_no_sense(&c->r->err);
		return;
	}
	memcpy(c->r->to + c->at, bytes, len);
	c->got = len;
}

/* One round: chunks side by side, and how far they reach without a gap. */
static int
read_round(struct sftp *s, const struct buf *handle, int64_t at, size_t len,
    struct reading *r, const struct until *until, struct err *err)
{
	struct chunk chunks[CHUNKS] = { 0 };
	size_t i, n = 0, end = r->got;

	for (; n < CHUNKS && end < len; n++) {
		struct chunk *c = &chunks[n];
		struct buf *b = sftp_begin(s, SFTP_READ);

		c->r = r;
		c->at = end;
		c->want = len - end < SFTP_CHUNK ? len - end : SFTP_CHUNK;
		end += c->want;
		sftp_put_bytes(b, handle->data, handle->len);
		sftp_put_u64(b, (uint64_t)at + c->at);
		sftp_put_u32(b, (uint32_t)c->want);
		sftp_end(s, take_chunk, c);
	}
	for (i = 0; i < n; i++) {
		while (!chunks[i].over) {
			if (sftp_turn(s, until, err) == -1)
				return -1;
		}
	}
	for (i = 0; i < n && chunks[i].at == r->got; i++)
		r->got += chunks[i].got;
	if (r->rc == -1)
		*err = r->err;
	return r->rc;
}

int64_t
sftp_read(struct sftp *s, const struct buf *handle, int64_t at, size_t len,
    struct buf *out, const struct until *until, struct err *err)
{
	struct reading r = { .to = xmalloc(len + 1) };
	size_t before;
	int rc = 0;

	while (rc == 0 && r.got < len) {
		before = r.got;
		r.ended = false;
		rc = read_round(s, handle, at, len, &r, until, err);
		/* A short chunk before the end leaves a gap; go on there. */
		if (r.ended && r.got == before)
			break;
	}
	if (rc == 0)
		buf_add(out, r.to, r.got);
	free(r.to);
	return rc == 0 ? (int64_t)r.got : -1;
}

struct opened {
	struct buf handle;
	bool came;
	int rc;
	struct err err;
};

static void
take_handle(void *data, const struct sftp_packet *reply)
{
	struct opened *o = data;

	o->came = true;
	o->rc = sftp_take_handle(reply, &o->handle, &o->err);
}

int
sftp_open_wait(struct sftp *s, const char *path, uint32_t flags,
    struct buf *handle, const struct until *until, struct err *err)
{
	struct opened o = { 0 };

	buf_init(&o.handle, SFTP_HANDLE_MAX);
	sftp_open_file(s, path, flags, take_handle, &o);
	while (!o.came) {
		if (sftp_turn(s, until, err) == -1) {
			buf_free(&o.handle);
			return -1;
		}
	}
	if (o.rc == -1) {
		buf_free(&o.handle);
		*err = o.err;
		return -1;
	}
	*handle = o.handle;
	return 0;
}

static void
ignore(void *data, const struct sftp_packet *reply)
{
	(void)data;
	(void)reply;
}

void
sftp_close(struct sftp *s, struct buf *handle)
{
	sftp_handle(s, SFTP_CLOSE, handle, ignore, NULL);
	buf_free(handle);
}

int
sftp_get(struct sftp *s, const char *path, size_t max, struct buf *out,
    const struct until *until, struct err *err)
{
	struct buf handle;
	int64_t n;

	if (sftp_open_wait(s, path, SFTP_FOR_READ, &handle, until, err) == -1)
		return -1;
	n = sftp_read(s, &handle, 0, max, out, until, err);
	sftp_close(s, &handle);
	return n == -1 ? -1 : 0;
}

char *
sftp_absolute(struct sftp *s, const char *path, const char *workdir,
    const struct until *until, struct err *err)
{
	char *home, *dir, *joined, *whole;

	if (path[0] == '/')
		return xstrdup(path);
	home = sftp_realpath(s, ".", until, err);
	if (home == NULL)
		return NULL;
	if (path_is_home(path)) {
		whole = path_home(path, home);
		free(home);
		return whole;
	}
	dir = path_home(workdir != NULL ? workdir : "~", home);
	joined = path_join(home, dir);
	whole = path_join(joined, path);
	free(home);
	free(dir);
	free(joined);
	return whole;
}
