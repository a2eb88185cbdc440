/*
 * A tar stream from the far side, written below a root.
 *
 * libarchive takes the stream apart and touches no file.  What it says about a
 * member is compared with the list; after that only the list counts: its path,
 * its mode, its mtime, its target.
 */
#include "sync/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/beneath.h"
#include "sync/distinct.h"
#include "sync/tarhead.h"

#define CHUNK ((size_t)256 << 10)

/* How much a stream may hold beside what was asked for: files that grew since
 * they were listed, headers.  Nothing of it is written. */
#define SPARE_BYTES (INT64_C(1) << 30)
#define SPARE_PER_ENTRY 16384
#define SPARE_ENTRIES 1000

/* The same for the headers of one member, with the map of a sparse file: no
 * file that is not sent in pieces needs more.  libarchive keeps them in memory,
 * as up to twelve times as many bytes. */
#define HEADER_BYTES (INT64_C(2) << 20)

enum state { ABSENT, FAILED, WRITTEN };

struct unpack {
	const struct unpack_options *o;
	int root_fd;
	struct archive *archive;
	unsigned char *state; /* of each wanted entry: enum state */
	size_t came, refused;
	struct distinct *distinct; /* NULL: all names are */
	struct beneath_last last;
	/* The stream. */
	unpack_read *read;
	void *read_data;
	char *chunk;
	size_t chunk_len;
	int64_t total, limit; /* bytes read, and how many are too many */
	int64_t allowed;      /* the same, until the next step */
	bool ended;
	struct err *err; /* of the stream; set once */
	bool broken;
};

static int
stop(struct unpack *u)
{
	u->broken = true;
	return -1;
}

/* --- the stream -------------------------------------------------------------
 */

/* Pieces are whole blocks, so that the end mark can be looked at afterwards. */
static la_ssize_t
next_chunk(struct archive *a, void *data, const void **bytes)
{
	struct unpack *u = data;
	size_t len = 0;
	ssize_t n;

	(void)a;
	while (!u->ended && (len == 0 || len % TAR_BLOCK != 0)) {
		n = u->read(u->read_data, u->chunk + len, CHUNK - len, u->err);
		if (n == -1) {
			archive_set_error(a, EIO, "no more");
			return stop(u);
		}
		u->ended = n == 0;
		len += (size_t)n;
	}
	u->total += (int64_t)len;
	if (u->total > u->limit || u->total > u->allowed) {
		err_set(u->err, ERR_LIMIT,
		    "the host sends much more than was asked for; nothing of "
		    "it was kept");
		archive_set_error(a, EFBIG, "too much");
		return stop(u);
	}
	u->chunk_len = len;
	*bytes = u->chunk;
	return (la_ssize_t)len;
}

/* So many bytes of content, with headers, may be read from here on. */
static void
allow(struct unpack *u, int64_t bytes)
{
	int64_t most = INT64_MAX - HEADER_BYTES - u->total;

	u->allowed = bytes < most ? u->total + HEADER_BYTES + bytes : INT64_MAX;
}

static int
ended_early(struct unpack *u)
{
	err_set(u->err, ERR_IO,
	    "the stream from the host ended early, after %zu of %zu entries; "
	    "run it again for the rest",
	    u->came, u->o->wanted->count);
	return stop(u);
}

/* libarchive cannot go on. */
static int
stream_failed(struct unpack *u)
{
	const char *why = archive_error_string(u->archive);

	if (u->broken)
		return -1; /* the reason is known */
	if (u->ended)
		return ended_early(u);
	err_set(u->err, ERR_IO, "the stream from the host cannot be read: %s",
	    why == NULL ? "it is no tar archive" : why);
	return stop(u);
}

/* ARCHIVE_WARN: something is odd, as a name that is not UTF-8.  After
 * ARCHIVE_RETRY, a header that made no sense, nothing can be relied on. */
static bool
usable(int r)
{
	return r == ARCHIVE_OK || r == ARCHIVE_WARN;
}

/*
 * Did the archive end with its mark?  A stream that is cut between two members
 * looks to libarchive like one that has ended; only the blocks of zeros that
 * it steps over tell the difference.
 */
static bool
has_end_mark(const struct unpack *u)
{
	static const char zeros[TAR_BLOCK];
	int64_t at = archive_filter_bytes(u->archive, 0);
	int64_t start = u->total - (int64_t)u->chunk_len;

	if (at <= archive_read_header_position(u->archive) ||
	    at - start < TAR_BLOCK || at > u->total)
		return false;
	return memcmp(u->chunk + (at - start - TAR_BLOCK), zeros, TAR_BLOCK) ==
	    0;
}

/* Whoever sends should not be stopped while it pads the end. */
static int
drain(struct unpack *u)
{
	const void *bytes;

	allow(u, INT64_MAX);
	while (!u->ended) {
		if (next_chunk(u->archive, u, &bytes) == -1)
			return -1;
	}
	return 0;
}

/* --- one member -------------------------------------------------------------
 */

/* The disk itself says no: going on would only fail again and again. */
static int
disk_failed(struct unpack *u, const struct entry *e, int why)
{
	if (why == EDQUOT)
		err_set(u->err, ERR_IO,
		    "the disk quota of this user is used up: '%s' (%lld bytes) "
		    "could not be written; make room and run it again",
		    e->path, (long long)e->size);
	else
		err_set(u->err, ERR_IO,
		    "the local disk is full: '%s' (%lld bytes) could not be "
		    "written; make room and run it again",
		    e->path, (long long)e->size);
	return stop(u);
}

static void
tell_done(struct unpack *u, const struct entry *e, const struct err *why)
{
	if (u->o->done != NULL)
		u->o->done(u->o->data, e, why);
}

static int
refuse(struct unpack *u, const char *name, const char *why)
{
	if (u->o->refused != NULL)
		u->o->refused(u->o->data, name, why);
	if (++u->refused <= u->o->wanted->count + SPARE_ENTRIES)
		return 0;
	err_set(u->err, ERR_LIMIT,
	    "the host sends one thing after another that was not asked for; "
	    "the last was '%.200s'",
	    name);
	return stop(u);
}

/* Bytes of a file.  Its members may have holes (sparse files). */
static int
put_block(int fd, const char *bytes, size_t len, int64_t offset)
{
	ssize_t n;

	while (len > 0) {
		n = pwrite(fd, bytes, len, (off_t)offset);
		if (n == -1 && errno != EINTR)
			return -1;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
			offset += n;
		}
	}
	return 0;
}

/* -1 if the stream broke; 0, and *why is set if this file failed. */
static int
put_content(struct unpack *u, const struct entry *e, int fd, struct err *why)
{
	int64_t end = 0;
	const void *bytes;
	la_int64_t offset;
	size_t len;
	int r;

	allow(u, e->size);
	for (;;) {
		r = archive_read_data_block(u->archive, &bytes, &len, &offset);
		if (r == ARCHIVE_EOF)
			break;
		if (!usable(r))
			return stream_failed(u);
		if (offset < 0 || offset > e->size ||
		    (int64_t)len > e->size - offset) {
			errno = EFBIG;
			err_set(why, ERR_IO, "'%s' has content beyond its size",
			    e->path);
			return 0;
		}
		if (put_block(fd, bytes, len, offset) == -1) {
			err_sys(why, "cannot write '%s'", e->path);
			return 0;
		}
		if (offset + (int64_t)len > end)
			end = offset + (int64_t)len;
		if (u->o->bytes != NULL && len > 0)
			u->o->bytes(u->o->data, e, len);
	}
	/* A hole at the end. */
	if (end < e->size && ftruncate(fd, (off_t)e->size) == -1)
		err_sys(why, "cannot write '%s'", e->path);
	return 0;
}

/* The content of another file of this run. */
static int
copy_content(struct unpack *u, const struct entry *e, const char *from, int to,
    struct err *why)
{
	char *space = xmalloc(CHUNK);
	struct entry now;
	int fd = beneath_open(u->root_fd, from, &now, why);
	int64_t offset = 0;
	ssize_t n = 0;
	int saved;

	while (fd != -1 && (n = read(fd, space, CHUNK)) > 0) {
		if (put_block(to, space, (size_t)n, offset) == -1)
			break;
		offset += n;
		if (u->o->bytes != NULL)
			u->o->bytes(u->o->data, e, (size_t)n);
	}
	if (fd != -1 && n != 0)
		err_sys(why, "cannot copy '%s' to '%s'", from, e->path);
	else if (fd != -1 && offset != e->size)
		err_set(why, ERR_IO, "'%s' changed while it was copied", from);
	saved = errno;
	if (fd != -1)
		close(fd);
	free(space);
	errno = saved;
	return 0;
}

/* -1 if the run is over; 0, and *why is set if this file failed. */
static int
put_file(struct unpack *u, const struct entry *e, const struct entry *copy_of,
    struct err *why)
{
	struct beneath_file f;
	int ret, saved;

	if (beneath_create_next(u->root_fd, &u->last, e->path, &f, why) == -1)
		return 0;
	ret = copy_of != NULL ? copy_content(u, e, copy_of->path, f.fd, why)
	                      : put_content(u, e, f.fd, why);
	if (ret == 0 && why->code == ERR_NONE && u->distinct != NULL)
		distinct_check(u->distinct, f.dir_fd, f.name, e->path, why);
	if (ret == -1 || why->code != ERR_NONE) {
		saved = errno;
		beneath_abort(&f);
		errno = saved;
		return ret;
	}
	if (u->distinct != NULL)
		distinct_add(u->distinct, f.fd);
	beneath_commit(&f, e, why);
	return 0;
}

static void
put_link(struct unpack *u, const struct entry *e, struct err *why)
{
	const char *name;
	int dir_fd;

	if (u->distinct != NULL) {
		dir_fd = beneath_parent(u->root_fd, e->path, true, &name, why);
		if (dir_fd == -1)
			return;
		distinct_check(u->distinct, dir_fd, name, e->path, why);
		close(dir_fd);
		if (why->code != ERR_NONE)
			return;
	}
	if (beneath_symlink(u->root_fd, e->path, e->target, why) == 0)
		beneath_meta(u->root_fd, e, why);
}

/* The wanted entry of this name, or NULL. */
static struct entry *
find(const struct unpack *u, const char *name)
{
	const struct tree *t = u->o->wanted;
	const struct entry *e;
	char *path;
	size_t len;

	while (name[0] == '.' && name[1] == '/')
		name += 2 + strspn(name + 2, "/");
	len = strlen(name);
	while (len > 1 && name[len - 1] == '/')
		len--;
	path = xstrndup(name, len);
	e = tree_find(t, path);
	free(path);
	return e == NULL ? NULL : &t->entries[e - t->entries];
}

static unsigned char *
state_of(const struct unpack *u, const struct entry *e)
{
	return &u->state[e - u->o->wanted->entries];
}

/* What a member is, in our terms. */
static enum entry_type
type_of(struct archive_entry *m)
{
	switch (archive_entry_filetype(m)) {
	case AE_IFREG:
		return ENTRY_FILE;
	case AE_IFDIR:
		return ENTRY_DIR;
	case AE_IFLNK:
		return ENTRY_LINK;
	default:
		return ENTRY_OTHER;
	}
}

static int
changed(const struct entry *e, struct err *why)
{
	errno = 0;
	return err_set(why, ERR_IO,
	    "'%s' changed on the host after it was listed; sync again",
	    e->path);
}

/* -1 if the run is over; 0, and *why is set if this one failed. */
static int
take(struct unpack *u, struct archive_entry *m, const struct entry *e,
    struct err *why)
{
	const char *link = archive_entry_hardlink(m);
	const struct entry *first;
	const char *target;

	if (link != NULL) {
		first = find(u, link);
		if (e->type != ENTRY_FILE || first == NULL ||
		    *state_of(u, first) != WRITTEN ||
		    first->type != ENTRY_FILE || first->size != e->size) {
			errno = 0;
			err_set(why, ERR_DENIED,
			    "'%s' came as a hard link to '%.200s', which did "
			    "not come before",
			    e->path, link);
			return 0;
		}
		return put_file(u, e, first, why);
	}
	if (type_of(m) != e->type) {
		changed(e, why);
		return 0;
	}
	switch ((enum entry_type)e->type) {
	case ENTRY_FILE:
		if (archive_entry_size(m) == e->size)
			return put_file(u, e, NULL, why);
		changed(e, why);
		break;
	case ENTRY_DIR:
		beneath_mkdir(u->root_fd, e->path, why);
		break;
	case ENTRY_LINK:
		target = archive_entry_symlink(m);
		if (target != NULL && strcmp(target, e->target) == 0)
			put_link(u, e, why);
		else
			changed(e, why);
		break;
	case ENTRY_OTHER:
		errno = 0;
		err_set(why, ERR_INVALID,
		    "'%s' is neither file, directory nor link", e->path);
		break;
	}
	return 0;
}

static int
take_member(struct unpack *u, struct archive_entry *m)
{
	const char *name = archive_entry_pathname(m);
	struct err why = ERR_INIT;
	const struct entry *e;

	if (name == NULL)
		return refuse(u, "", "it has no name");
	if (strcmp(name, ".") == 0 || strcmp(name, "./") == 0)
		return 0; /* the root is there */
	e = find(u, name);
	if (e == NULL)
		return refuse(u, name, "it was not asked for");
	if (*state_of(u, e) != ABSENT)
		return refuse(u, name, "it came before");
	*state_of(u, e) = FAILED;
	u->came++;
	errno = 0;
	if (take(u, m, e, &why) == -1)
		return -1;
	if (why.code != ERR_NONE) {
		int number = errno;

		tell_done(u, e, &why);
		if (number == ENOSPC || number == EDQUOT)
			return disk_failed(u, e, number);
		return 0;
	}
	*state_of(u, e) = WRITTEN;
	if (e->type != ENTRY_DIR)
		tell_done(u, e, NULL);
	return 0;
}

/* --- all of it --------------------------------------------------------------
 */

/* To the end of a member: one that grew since it was listed may have much that
 * nobody wants. */
static int
skip_rest(struct unpack *u)
{
	allow(u, INT64_MAX);
	return usable(archive_read_data_skip(u->archive)) ? 0
	                                                  : stream_failed(u);
}

static int
take_all(struct unpack *u)
{
	struct archive_entry *m;
	int r;

	for (;;) {
		allow(u, 0);
		r = archive_read_next_header(u->archive, &m);
		if (r == ARCHIVE_EOF)
			break;
		if (!usable(r))
			return stream_failed(u);
		if (take_member(u, m) == -1 || skip_rest(u) == -1)
			return -1;
	}
	if (u->came < u->o->wanted->count && !has_end_mark(u))
		return ended_early(u);
	return drain(u);
}

/* Modes and mtimes of directories, the inner ones first: what is written into
 * one changes its mtime, and a mode may forbid writing. */
static void
finish_dirs(struct unpack *u)
{
	const struct tree *t = u->o->wanted;
	size_t i;

	for (i = t->count; i-- > 0;) {
		const struct entry *e = &t->entries[i];
		struct err why = ERR_INIT;

		if (e->type != ENTRY_DIR || u->state[i] != WRITTEN)
			continue;
		if (beneath_meta(u->root_fd, e, &why) == -1)
			tell_done(u, e, &why);
		else
			tell_done(u, e, NULL);
	}
}

static int64_t
limit_of(const struct tree *t)
{
	int64_t sum = SPARE_BYTES;
	size_t i;

	for (i = 0; i < t->count; i++) {
		if (t->entries[i].size >
		    (INT64_MAX - sum) / 2 - SPARE_PER_ENTRY)
			return INT64_MAX;
		sum += 2 * t->entries[i].size + SPARE_PER_ENTRY;
	}
	return sum;
}

/* Tar alone, with nothing around it; and no files of Apple's beside others. */
static int
open_archive(struct unpack *u)
{
	u->archive = archive_read_new();
	if (u->archive == NULL)
		out_of_memory();
	archive_read_support_format_tar(u->archive);
	archive_read_set_format_option(u->archive, "tar", "mac-ext", NULL);
	if (archive_read_open(u->archive, u, NULL, next_chunk, NULL) ==
	    ARCHIVE_OK)
		return 0;
	/* It has looked at the first blocks by now. */
	return stream_failed(u);
}

int
unpack_stream(int root_fd, unpack_read *read, void *read_data,
    const struct unpack_options *o, struct err *err)
{
	struct unpack u = {
		.o = o,
		.root_fd = root_fd,
		.read = read,
		.read_data = read_data,
		.limit = limit_of(o->wanted),
		.allowed = INT64_MAX,
		.err = err,
		.last = BENEATH_NO_LAST,
	};
	int ret;

	u.chunk = xmalloc(CHUNK);
	u.state = xcalloc(o->wanted->count + 1, 1);
	if (distinct_needed(root_fd))
		u.distinct = distinct_new();
	ret = open_archive(&u);
	if (ret == 0)
		ret = take_all(&u);
	finish_dirs(&u);
	archive_read_free(u.archive);
	beneath_last_free(&u.last);
	distinct_free(u.distinct);
	free(u.state);
	free(u.chunk);
	return ret;
}
