/*
 * Local files as a tar stream.
 *
 * There is one large buffer, a multiple of tar's blocks: headers are made in
 * it, files are read into it, and it is handed over when it is full.  So a
 * small file costs five system calls (open, stat, read, stat, close) and no
 * memory.
 */
#include "sync/pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/beneath.h"
#include "sync/tarhead.h"

#define BUFFER_SIZE ((size_t)256 << 10)

struct pack {
	int root_fd;
	pack_write *write;
	void *data;
	size_t len; /* of what is in the buffer */
	unsigned char buffer[BUFFER_SIZE];
};

struct pack *
pack_new(int root_fd, pack_write *write, void *data)
{
	struct pack *p = xmalloc(sizeof(*p));

	p->root_fd = root_fd;
	p->write = write;
	p->data = data;
	p->len = 0;
	return p;
}

void
pack_free(struct pack *p)
{
	free(p);
}

int
pack_flush(struct pack *p, struct err *err)
{
	size_t len = p->len;

	p->len = 0;
	return len == 0 ? 0 : p->write(p->data, p->buffer, len, err);
}

/* Where the next bytes go; *room, at least 1, of them fit there.  NULL if the
 * stream broke. */
static unsigned char *
space(struct pack *p, size_t *room, struct err *err)
{
	if (p->len == BUFFER_SIZE && pack_flush(p, err) == -1)
		return NULL;
	*room = BUFFER_SIZE - p->len;
	return p->buffer + p->len;
}

/* "n" bytes of "bytes", or zeros if that is NULL. */
static int
add(struct pack *p, const void *bytes, int64_t n, struct err *err)
{
	const unsigned char *from = bytes;
	unsigned char *to;
	size_t room;

	while (n > 0) {
		to = space(p, &room, err);
		if (to == NULL)
			return -1;
		if ((int64_t)room > n)
			room = (size_t)n;
		if (from == NULL)
			memset(to, 0, room);
		else
			memcpy(to, from, room);
		from = from == NULL ? NULL : from + room;
		p->len += room;
		n -= (int64_t)room;
	}
	return 0;
}

/* Up to the next block. */
static int
pad(struct pack *p, struct err *err)
{
	return add(p, NULL, (int64_t)(-p->len % TAR_BLOCK), err);
}

static int
add_head(struct pack *p, const struct tar_head *h, struct err *err)
{
	unsigned char *block;
	size_t room;

	block = space(p, &room, err);
	if (block == NULL)
		return -1;
	tar_head(block, h);
	p->len += TAR_BLOCK;
	return 0;
}

/* A member that tells more about the one after it. */
static int
add_extra(struct pack *p, enum tar_type type, const char *bytes, size_t len,
    struct err *err)
{
	struct tar_head h = {
		.type = type,
		.name = type == TAR_PAX ? "././@PaxHeader" : "././@LongLink",
		.size = (int64_t)len,
		.mode = 0644,
	};

	if (add_head(p, &h, err) == -1 ||
	    add(p, bytes, (int64_t)len, err) == -1)
		return -1;
	return pad(p, err);
}

/* A header with what has to come before it. */
static int
add_member(struct pack *p, const struct tar_head *h, struct err *err)
{
	size_t name = strlen(h->name);
	size_t target = h->target == NULL ? 0 : strlen(h->target);
	char pax[64];

	if (name > TAR_NAME_MAX &&
	    add_extra(p, TAR_LONG_NAME, h->name, name + 1, err) == -1)
		return -1;
	if (target > TAR_NAME_MAX &&
	    add_extra(p, TAR_LONG_LINK, h->target, target + 1, err) == -1)
		return -1;
	if (tar_needs_pax(h->mtime) &&
	    add_extra(p, TAR_PAX, pax, tar_pax(pax, h->mtime), err) == -1)
		return -1;
	return add_head(p, h, err);
}

/* Content, "left" bytes of it and no more.  *why is set if there were less;
 * 1 then. */
static int
add_content(struct pack *p, int fd, int64_t left, const char *path,
    struct err *why)
{
	unsigned char *to;
	size_t room;
	ssize_t n = 0;

	while (left > 0) {
		to = space(p, &room, why);
		if (to == NULL)
			return -1;
		n = read(fd, to, (int64_t)room < left ? room : (size_t)left);
		if (n == -1 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		p->len += (size_t)n;
		left -= n;
	}
	if (left == 0)
		return pad(p, why);
	if (n == -1)
		err_sys(why, "cannot read '%s'", path);
	else
		err_set(why, ERR_IO, "'%s' became shorter while it was read",
		    path);
	/* The reason stays, unless there is a worse one. */
	if (add(p, NULL, left, why) == -1 || pad(p, why) == -1)
		return -1;
	return 1;
}

/* Is it what it was when it was opened? */
static int
check_same(int fd, const struct entry *before, const char *path,
    struct err *why)
{
	struct entry now;

	if (beneath_stat(fd, path, &now, why) == -1)
		return 1;
	if (now.size == before->size && now.mtime == before->mtime)
		return 0;
	err_set(why, ERR_IO, "'%s' changed while it was read; sync again",
	    path);
	return 1;
}

static int
add_file(struct pack *p, const struct entry *e, const char *name,
    struct err *why)
{
	struct entry now;
	int fd = beneath_open(p->root_fd, e->path, &now, why);
	struct tar_head h = { .type = TAR_FILE, .name = name };
	int ret;

	if (fd == -1)
		return 1;
	h.size = now.size;
	h.mtime = now.mtime;
	h.mode = now.mode;
	ret = add_member(p, &h, why);
	if (ret == 0)
		ret = add_content(p, fd, now.size, e->path, why);
	if (ret == 0)
		ret = check_same(fd, &now, e->path, why);
	close(fd);
	return ret;
}

int
pack_entry(struct pack *p, const struct entry *e, const char *name,
    struct err *why)
{
	struct tar_head h = {
		.name = name != NULL ? name : e->path,
		.mtime = e->mtime,
		.mode = e->mode,
	};

	switch ((enum entry_type)e->type) {
	case ENTRY_FILE:
		return add_file(p, e, h.name, why);
	case ENTRY_DIR:
		h.type = TAR_DIR;
		return add_member(p, &h, why);
	case ENTRY_LINK:
		h.type = TAR_LINK;
		h.target = e->target;
		return add_member(p, &h, why);
	case ENTRY_OTHER:
		break;
	}
	err_set(why, ERR_INVALID, "'%s' is neither file, directory nor link",
	    e->path);
	return 1;
}

int
pack_text(struct pack *p, const char *name, const void *bytes, size_t len,
    struct err *err)
{
	struct tar_head h = {
		.type = TAR_FILE,
		.name = name,
		.size = (int64_t)len,
		/* GNU tar warns of files from 1970. */
		.mtime = (int64_t)time(NULL) * 1000000000,
		.mode = 0600,
	};

	if (add_member(p, &h, err) == -1 ||
	    add(p, bytes, (int64_t)len, err) == -1)
		return -1;
	return pad(p, err);
}

int
pack_end(struct pack *p, struct err *err)
{
	if (add(p, NULL, (int64_t)2 * TAR_BLOCK, err) == -1)
		return -1;
	return pack_flush(p, err);
}
