/*
 * From here to there: tar streams into a staging place, and a list of what to
 * do with it.
 *
 * Each batch is a stream of its own and is committed by its far side when all
 * of it has arrived, so a run that is cut has done whole batches, and whole
 * files only.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "ssh/clean.h"
#include "ssh/stream.h"
#include "sync/far.h"
#include "sync/inside.h"
#include "sync/pack.h"
#include "sync/piecelist.h"
#include "sync/silence.h"
#include "sync/squeeze.h"

#define BATCH_BYTES ((int64_t)64 << 20)
#define BATCH_ENTRIES 20000

/* A line that carries less than that, once its buffers are full, is slow: what
 * goes through it is worth the time to compress it, even if it was so before
 * and only the headers get smaller. */
#define SLOW_BYTES_MS 20000
#define BUFFERS ((int64_t)3 << 20)

/* What may be said about a batch: a path and a reason for each entry. */
#define SAID_MAX ((size_t)16 << 20)

struct up;

struct batch {
	struct up *up;
	struct run *r;
	struct stream *stream;
	struct squeeze *squeeze; /* behind the pack, or NULL */
	struct pack *pack;
	struct buf undo, list; /* what to do, in this order */
	int64_t began;         /* clock_ms() */
	int64_t carried;       /* bytes of the stream */
	int64_t bytes;         /* of files */
	size_t entries;
};

/* What an upload remembers from batch to batch, by place in the local tree. */
struct up {
	struct run *r;
	bool *fresh; /* a directory that is new in this batch */
	bool *sent;  /* counts as brought once its batch is committed */
	bool slow;   /* the line is */
	struct batch b;
};

static size_t
place(const struct run *r, const struct entry *e)
{
	return (size_t)(e - r->local.entries);
}

/* The directory that holds the entry; NULL for the root. */
static const struct entry *
parent(const struct run *r, const struct entry *e)
{
	const char *slash = strrchr(e->path, '/');
	const struct entry *dir;
	char *path;

	if (slash == NULL)
		return NULL;
	path = xstrndup(e->path, (size_t)(slash - e->path));
	dir = tree_find(&r->local, path);
	free(path);
	return dir;
}

static int
write_stream(void *data, const void *bytes, size_t len, struct err *err)
{
	struct batch *b = data;

	b->carried += (int64_t)len;
	return stream_write(b->stream, bytes, len, b->r->until, err);
}

/* Why the far side gave up, in words for the reader. */
static int
explain(struct batch *b, int status, struct err *err)
{
	const char *words = stream_words(b->stream);
	const char *name = link_sandbox(b->r->link)->name;
	struct buf said;

	if (strstr(words, "No space left") != NULL ||
	    strstr(words, "quota exceeded") != NULL)
		return err_set(err, ERR_IO,
		    "the disk of %s is full: free some space there and sync "
		    "again; no file is half written",
		    name);
	buf_init(&said, 300);
	clean_text(&said, words, strcspn(words, "\n"));
	if (status == 3)
		err_set(err, ERR_DENIED,
		    "cannot make or enter '%.300s' on %s: %s", b->r->far.path,
		    name, said.data);
	else if (status == 4)
		err_set(err, ERR_DENIED, "cannot write in '%.300s' on %s: %s",
		    b->r->far.path, name, said.data);
	else
		err_set(err, ERR_IO, "%s could not take the files (%d): %s",
		    name, status, said.data);
	buf_free(&said);
	return -1;
}

/* The stream broke while it was written; its end may know why. */
static int
broke(struct batch *b, struct err *err)
{
	struct until soon = until_within(b->r->until, LAST_WORDS_MS);
	struct err late;
	int status;

	if (err->code != ERR_IO)
		return -1;
	status = stream_end(b->stream, &soon, &late);
	return status > 0 ? explain(b, status, err) : -1;
}

static int
batch_open(struct up *u, struct err *err)
{
	struct batch *b = &u->b;
	struct run *r = u->r;
	char id[RANDOM_HEX(8)];
	struct buf script;

	memset(b, 0, sizeof(*b));
	b->up = u;
	b->r = r;
	random_hex(id, 8);
	buf_init(&script, SIZE_MAX);
	far_take(&script, &r->far, id, u->slow);
	b->stream = silence_stream(r->link, script.data, r->until, err);
	buf_free(&script);
	if (b->stream == NULL)
		return -1;
	if (u->slow)
		b->squeeze = squeeze_new(write_stream, b);
	b->pack = u->slow ? pack_new(r->root_fd, squeeze_write, b->squeeze)
	                  : pack_new(r->root_fd, write_stream, b);
	b->began = clock_ms();
	buf_init(&b->undo, SIZE_MAX);
	buf_init(&b->list, SIZE_MAX);
	return 0;
}

static void
batch_free(struct batch *b)
{
	stream_free(b->stream);
	pack_free(b->pack);
	squeeze_free(b->squeeze);
	buf_free(&b->undo);
	buf_free(&b->list);
	memset(b, 0, sizeof(*b));
}

/* The host says that it did not do this. */
static void
not_done(struct batch *b, const char *path, const char *why)
{
	struct run *r = b->r;
	const struct entry *e = tree_find(&r->local, path);

	run_problem(r, path, why);
	if (e != NULL && e->type != ENTRY_DIR)
		b->up->sent[place(r, e)] = false;
}

/* All that was sent is in place now, but for what was not done. */
static void
count_done(struct batch *b)
{
	struct run *r = b->r;
	size_t i;

	for (i = 0; i < r->local.count; i++) {
		const struct entry *e = &r->local.entries[i];

		if (!b->up->sent[i])
			continue;
		b->up->sent[i] = false;
		r->report->dirs += e->type == ENTRY_DIR;
		r->report->files += e->type != ENTRY_DIR;
		r->report->links += e->type == ENTRY_LINK;
		r->report->bytes += e->size;
	}
}

/* "12 3": files and directories that were deleted. */
static int
count_deleted(struct run *r, const char *text)
{
	char *copy = xstrdup(text), *dirs = strchr(copy, ' ');
	int64_t file_count, dir_count;
	int rc = -1;

	if (dirs != NULL)
		*dirs++ = '\0';
	if (dirs != NULL && str_to_int(copy, 0, INT32_MAX, &file_count) == 0 &&
	    str_to_int(dirs, 0, INT32_MAX, &dir_count) == 0) {
		r->report->deleted_files += file_count;
		r->report->deleted_dirs += dir_count;
		rc = 0;
	}
	free(copy);
	return rc;
}

/* "p" path NUL problem NUL ... "e12 3" NUL */
static int
read_problems(struct batch *b, const struct buf *said, struct err *err)
{
	const char *at = said->data, *end = said->data + said->len;

	while (at < end && *at == 'p') {
		const char *path = at + 1;
		const char *why = path + strlen(path) + 1;

		if (why >= end)
			break;
		not_done(b, path, why);
		at = why + strlen(why) + 1;
	}
	if (at < end && *at == 'e' && count_deleted(b->r, at + 1) == 0) {
		count_done(b);
		return 0;
	}
	return err_set(err, ERR_IO,
	    "%s did not say that it put the files in place; sync again",
	    link_sandbox(b->r->link)->name);
}

static int
batch_commit(struct batch *b, struct err *err)
{
	struct run *r = b->r;
	const struct buf *list = &b->list;
	struct buf said;
	char chunk[4096];
	ssize_t n = 0;
	int status, rc;

	run_tell(r, "committing", NULL, 0, 0);
	if (b->undo.len > 0) {
		buf_add(&b->undo, b->list.data, b->list.len);
		list = &b->undo;
	}
	if (pack_text(b->pack, FAR_LIST, list->data, list->len, err) == -1 ||
	    pack_text(b->pack, FAR_LAST, "", 0, err) == -1 ||
	    pack_end(b->pack, err) == -1 ||
	    (b->squeeze != NULL && squeeze_end(b->squeeze, err) == -1))
		return broke(b, err);
	stream_close_in(b->stream);
	buf_init(&said, SAID_MAX);
	while ((n = stream_read(b->stream, chunk, sizeof(chunk), r->until,
	            err)) > 0) {
		buf_add(&said, chunk, (size_t)n);
		if (said.full) {
			n = err_set(err, ERR_LIMIT,
			    "the far side prints without end");
			break;
		}
	}
	status = n == -1 ? -1 : stream_end(b->stream, r->until, err);
	if (status > 0)
		rc = explain(b, status, err);
	else
		rc = status == -1 ? -1 : read_problems(b, &said, err);
	buf_free(&said);
	return rc;
}

/* What is not below a directory that moves as a whole moves by itself. */
static void
move(struct up *u, const struct entry *e)
{
	const struct entry *dir = parent(u->r, e);

	if (dir != NULL && u->fresh[place(u->r, dir)])
		return;
	far_do_move(&u->b.list, &u->r->far, e->path);
}

/* Pack the entry under its place in the staging directory. */
static int
add(struct up *u, const struct entry *e, struct err *err)
{
	struct entry copy = *e;
	char *name = xasprintf("%s%s", FAR_DATA, e->path);
	int rc;

	if (u->r->source_name != NULL)
		copy.path = u->r->source_name;
	if (e->type == ENTRY_DIR)
		copy.mode |= 0700; /* else nothing could be put into it */
	rc = pack_entry(u->b.pack, &copy, name, err);
	free(name);
	u->b.entries++;
	u->b.bytes += e->size;
	return rc;
}

static int
do_file(struct up *u, const struct entry *e, struct err *err)
{
	const struct entry *dir = parent(u->r, e);
	int rc;

	run_tell(u->r, "uploading", e->path, 0, 0);
	rc = add(u, e, err);
	if (rc == -1)
		return broke(&u->b, err);
	if (rc == 1) {
		run_problem(u->r, e->path, err->msg);
		/* It may have come along with its new directory. */
		if (dir != NULL && u->fresh[place(u->r, dir)])
			far_do_undo(&u->b.undo, &u->r->far, e->path);
		return 0;
	}
	move(u, e);
	u->sent[place(u->r, e)] = true;
	run_tell(u->r, "uploading", e->path, 1, e->size);
	return 0;
}

static int
do_dir(struct up *u, const struct entry *e, struct err *err)
{
	if (add(u, e, err) == -1)
		return broke(&u->b, err);
	move(u, e);
	u->fresh[place(u->r, e)] = true;
	u->sent[place(u->r, e)] = true;
	return 0;
}

static int
do_action(struct up *u, const struct action *a, struct err *err)
{
	const struct entry *e = a->entry;
	struct entry open = *e;

	switch (a->kind) {
	case ACTION_OPEN:
		open.mode |= 0700;
		far_do_meta(&u->b.list, &u->r->far, &open, false);
		return 0;
	case ACTION_DELETE:
	case ACTION_RMDIR:
		far_do_delete(&u->b.list, &u->r->far, e->path,
		    a->kind == ACTION_RMDIR);
		return 0;
	case ACTION_META:
		far_do_meta(&u->b.list, &u->r->far, e, true);
		return 0;
	case ACTION_MKDIR:
		return do_dir(u, e, err);
	case ACTION_FILE:
	case ACTION_LINK:
		return do_file(u, e, err);
	}
	return 0;
}

static int
next_batch(struct up *u, struct err *err)
{
	int rc = batch_commit(&u->b, err);

	batch_free(&u->b);
	memset(u->fresh, 0, u->r->local.count * sizeof(bool));
	return rc == -1 ? -1 : batch_open(u, err);
}

/* Is this batch to be the last?  When one shows that the line is slow, all
 * after it are compressed. */
static bool
batch_is_full(struct up *u)
{
	const struct batch *b = &u->b;

	if (!u->slow && u->r->far.gzip && b->carried > BUFFERS &&
	    b->carried / (clock_ms() - b->began + 1) < SLOW_BYTES_MS) {
		u->slow = true;
		return true;
	}
	return b->bytes > BATCH_BYTES || b->entries > BATCH_ENTRIES;
}

/* A big file: its pieces first, then a line in the list. */
struct part {
	const struct entry *entry;
	char name[PART_NAME_MAX];
};

static bool
is_big(const struct action *a)
{
	return a->kind == ACTION_FILE && a->entry->size >= BIG_FILE;
}

static int
do_parts(struct up *u, struct part *parts, size_t *count, struct err *err)
{
	struct run *r = u->r;
	size_t i;
	int rc;

	for (i = 0; i < r->plan.count; i++) {
		const struct action *a = &r->plan.actions[i];

		if (!is_big(a))
			continue;
		rc = pieces_up(r, a->entry, parts[*count].name, err);
		if (rc == -1)
			return -1;
		if (rc == 2)
			return 2;
		if (rc == 1)
			continue;
		parts[(*count)++].entry = a->entry;
		run_tell(r, "uploading", a->entry->path, 1, 0);
	}
	return 0;
}

/* The parts get their names before the directories get their times. */
static void
add_parts(struct up *u, const struct part *parts, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct entry *e = parts[i].entry;

		far_do_part(&u->b.list, &u->r->far, e, parts[i].name,
		    piece_count(e->size));
		u->sent[place(u->r, e)] = true;
	}
}

/* All but the big files, unless "all"; of these the parts. */
static int
do_batches(struct up *u, bool all, const struct part *parts, size_t count,
    struct err *err)
{
	struct run *r = u->r;
	size_t i;

	if (batch_open(u, err) == -1)
		return -1;
	for (i = 0; i < r->plan.count; i++) {
		const struct action *a = &r->plan.actions[i];

		if (is_big(a) && !all)
			continue;
		if (a->kind == ACTION_META && a->entry->type == ENTRY_DIR) {
			add_parts(u, parts, count);
			count = 0;
		}
		if (batch_is_full(u) && next_batch(u, err) == -1)
			return -1;
		if (do_action(u, a, err) == -1)
			return -1;
	}
	add_parts(u, parts, count);
	return batch_commit(&u->b, err);
}

int
upload(struct run *r, struct err *err)
{
	struct up u = { .r = r };
	struct part *parts = xcalloc(r->plan.files + 1, sizeof(*parts));
	size_t count = 0;
	int rc;

	u.fresh = xcalloc(r->local.count + 1, sizeof(bool));
	u.sent = xcalloc(r->local.count + 1, sizeof(bool));
	rc = do_parts(&u, parts, &count, err);
	if (rc != -1)
		rc = do_batches(&u, rc == 2, parts, count, err);
	batch_free(&u.b);
	free(u.fresh);
	free(u.sent);
	free(parts);
	return rc;
}
