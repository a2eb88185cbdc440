/*
 * From there to here: directories and links from the list that the scan made,
 * small files from a tar stream, big ones in pieces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/quote.h"
#include "ssh/clean.h"
#include "ssh/stream.h"
#include "sync/beneath.h"
#include "sync/far.h"
#include "sync/inside.h"
#include "sync/silence.h"
#include "sync/tarwords.h"
#include "sync/unpack.h"

/* Of names that are words of a command: far below what any system takes. */
#define WORDS_MAX ((size_t)64 << 10)

/* In place of what tar said, if that was cut. */
#define TOO_MUCH "it had too much to say"

/* The stream of small files. */
struct small {
	struct run *r;
	struct stream *stream;
	struct tree wanted;
	enum { MISSING, CAME, TOLD } * done; /* what became of each */
	size_t done_count;
};

static ssize_t
read_stream(void *data, void *bytes, size_t size, struct err *err)
{
	struct small *s = data;

	return stream_read(s->stream, bytes, size, s->r->until, err);
}

static void
one_done(void *data, const struct entry *e, const struct err *why)
{
	struct small *s = data;
	struct run *r = s->r;

	s->done[e - s->wanted.entries] = why == NULL ? CAME : TOLD;
	s->done_count++;
	if (why != NULL) {
		run_problem(r, e->path, why->msg);
		return;
	}
	r->report->files++;
	r->report->bytes += e->size;
	run_tell(r, "downloading", e->path, 1, 0);
}

static void
some_bytes(void *data, const struct entry *e, size_t n)
{
	struct small *s = data;

	run_tell(s->r, "downloading", e->path, 0, (int64_t)n);
}

static void
want(struct small *s, const struct entry *e)
{
	struct entry *w = tree_add(&s->wanted, e->path, NULL);

	w->size = e->size;
	w->mtime = e->mtime;
	w->mode = e->mode;
	w->type = e->type;
}

/* The script, and the names as the host's tar takes them. */
static void
ask(struct small *s, struct buf *script, struct buf *names)
{
	const struct far_root *far = &s->r->far;
	size_t i;

	far_give(script, far);
	for (i = 0; i < s->wanted.count; i++) {
		char *path = xasprintf("./%s", s->wanted.entries[i].path);

		if (far_reads_list(far)) {
			buf_add(names, path, strlen(path) + 1);
		} else if (strchr(path, '\n') != NULL) {
			/* Without bash the script is a line. */
			run_problem(s->r, path + 2,
			    "the host cannot be told this name");
			s->done[i] = TOLD;
		} else {
			buf_addc(script, ' ');
			quote_sh(script, path);
		}
		free(path);
	}
}

/* What came is not what is there.  It gets a time of its own, so that the next
 * sync brings it again. */
static void
not_whole(struct small *s, const struct entry *e, const char *why)
{
	struct entry odd = *e;
	struct err err;

	odd.mtime = 0;
	beneath_meta(s->r->root_fd, &odd, &err);
	run_problem(s->r, e->path, why);
	s->r->report->files--;
	s->r->report->bytes -= e->size;
}

/* Nobody knows which it was, so it may be any. */
static void
none_is_sure(struct small *s, const char *line, size_t len)
{
	struct buf said;
	char *why;
	size_t i;

	buf_init(&said, 300);
	clean_text(&said, line, len);
	why = xasprintf("the host could not read all of a file, and did not "
	                "say of which, so it may be this one; sync again: %s",
	    said.data);
	for (i = 0; i < s->wanted.count; i++) {
		if (s->done[i] == CAME)
			not_whole(s, &s->wanted.entries[i], why);
		s->done[i] = TOLD;
	}
	free(why);
	buf_free(&said);
}

static void
check_unread(struct small *s)
{
	const char *at = stream_words(s->stream);
	const struct entry *e;
	bool unknown;

	while ((e = tarwords_unread(&at, &s->wanted, &unknown)) != NULL) {
		if (s->done[e - s->wanted.entries] == CAME)
			not_whole(s, e,
			    "the host could not read all of it; sync again");
		s->done[e - s->wanted.entries] = TOLD;
	}
	if (unknown)
		none_is_sure(s, at, strcspn(at, "\n"));
	else if (stream_words_cut(s->stream))
		none_is_sure(s, TOO_MUCH, strlen(TOO_MUCH));
}

/*
 * tar was not content: files may have changed while it read them, and what
 * came is then neither the old nor the new.
 */
static int
check_changed(struct small *s, struct err *err)
{
	struct farlist_options o = { .rules = s->r->rules, .recursive = true };
	struct far_root root;
	struct tree now;
	size_t i;
	int rc;

	memset(&root, 0, sizeof(root));
	tree_init(&now);
	rc = farlist_run(s->r->link, s->r->far.path, &o, &root, &now,
	    s->r->until, err);
	for (i = 0; rc == 0 && i < s->wanted.count; i++) {
		const struct entry *e = &s->wanted.entries[i];
		const struct entry *n = tree_find(&now, e->path);

		if (s->done[i] == CAME &&
		    (n == NULL || n->size != e->size || n->mtime != e->mtime))
			not_whole(s, e,
			    "it changed while it was read; sync again");
	}
	far_root_free(&root);
	tree_free(&now);
	return rc;
}

static void
note_missing(struct small *s)
{
	const char *words = stream_words(s->stream);
	struct buf said;
	size_t i;

	buf_init(&said, 300);
	clean_text(&said, words, strlen(words));
	for (i = 0; i < s->wanted.count; i++) {
		if (s->done[i] == MISSING)
			run_problem(s->r, s->wanted.entries[i].path,
			    said.len > 0 ? said.data
			                 : "the host did not send it");
	}
	buf_free(&said);
}

static int
take_stream(struct small *s, struct err *err)
{
	struct unpack_options o = {
		.wanted = &s->wanted,
		.done = one_done,
		.bytes = some_bytes,
		.data = s,
	};
	int rc, status;

	rc = unpack_stream(s->r->root_fd, read_stream, s, &o, err);
	if (rc == -1)
		return -1;
	status = stream_end(s->stream, s->r->until, err);
	if (status == -1)
		return -1;
	note_missing(s);
	if (status == 0)
		return 0;
	check_unread(s);
	return check_changed(s, err);
}

/* The next files of the plan, from *at on, which moves behind them. */
static void
want_next(struct small *s, size_t *at)
{
	const struct plan *p = &s->r->plan;
	bool all = far_reads_list(&s->r->far);
	size_t room = WORDS_MAX;

	for (; *at < p->count; ++*at) {
		const struct action *a = &p->actions[*at];
		size_t len = strlen(a->entry->path) + 8;

		if (a->kind != ACTION_FILE || a->entry->size >= BIG_FILE)
			continue;
		if (!all && len > room && s->wanted.count > 0)
			break;
		room -= len < room ? len : room;
		want(s, a->entry);
	}
	tree_sort(&s->wanted);
}

static int
bring_some(struct small *s, struct err *err)
{
	struct buf script, names;
	int rc = -1;

	s->done = xcalloc(s->wanted.count, sizeof(*s->done));
	buf_init(&names, SIZE_MAX);
	buf_init(&script, SIZE_MAX);
	ask(s, &script, &names);
	s->stream = silence_stream(s->r->link, script.data, s->r->until, err);
	if (s->stream != NULL) {
		if (names.len > 0)
			stream_feed(s->stream, names.data, names.len);
		else
			stream_close_in(s->stream);
		rc = take_stream(s, err);
	}
	stream_free(s->stream);
	buf_free(&names);
	buf_free(&script);
	free(s->done);
	return rc;
}

static int
bring_small(struct run *r, struct err *err)
{
	size_t at = 0;
	int rc = 0;

	while (rc == 0 && at < r->plan.count) {
		struct small s = { .r = r };

		tree_init(&s.wanted);
		want_next(&s, &at);
		if (s.wanted.count > 0)
			rc = bring_some(&s, err);
		tree_free(&s.wanted);
	}
	return rc;
}

static int
bring_big(struct run *r, struct err *err)
{
	size_t i;
	int rc;

	for (i = 0; i < r->plan.count; i++) {
		const struct action *a = &r->plan.actions[i];

		/* A single file needs no tar, and may have another name. */
		if (a->kind != ACTION_FILE ||
		    (a->entry->size < BIG_FILE && r->source_name == NULL))
			continue;
		rc = pieces_down(r, a->entry, err);
		if (rc == -1)
			return -1;
		if (rc == 1)
			continue;
		r->report->files++;
		r->report->bytes += a->entry->size;
		run_tell(r, "downloading", a->entry->path, 1, 0);
	}
	return 0;
}

/* What needs no bytes from there. */
static void
do_local(struct run *r, const struct action *a)
{
	const struct entry *e = a->entry;
	struct sync_report *p = r->report;
	struct entry open = *e;
	struct err err;
	int rc = 0;

	switch (a->kind) {
	case ACTION_OPEN:
		open.mode |= 0700;
		rc = beneath_meta(r->root_fd, &open, &err);
		break;
	case ACTION_DELETE:
		rc = beneath_delete(r->root_fd, e->path, false, &err);
		p->deleted_files += rc == 0;
		break;
	case ACTION_RMDIR:
		rc = beneath_delete(r->root_fd, e->path, true, &err);
		p->deleted_dirs += rc == 0;
		/* What is excluded stays, and so does what holds it. */
		if (rc == -1 && (errno == ENOTEMPTY || errno == EEXIST))
			rc = 0;
		break;
	case ACTION_MKDIR:
		rc = beneath_mkdir(r->root_fd, e->path, &err);
		p->dirs += rc == 0;
		break;
	case ACTION_LINK:
		rc = beneath_symlink(r->root_fd, e->path, e->target, &err);
		if (rc == 0)
			rc = beneath_meta(r->root_fd, e, &err);
		p->files += rc == 0;
		p->links += rc == 0;
		run_tell(r, NULL, e->path, 1, 0);
		break;
	case ACTION_META:
		rc = beneath_meta(r->root_fd, e, &err);
		break;
	case ACTION_FILE:
		break;
	}
	if (rc == -1)
		run_problem(r, e->path, err.msg);
}

/* Modes and times of directories come when all is in them. */
static bool
is_last(const struct action *a)
{
	return a->kind == ACTION_META && a->entry->type == ENTRY_DIR;
}

int
download(struct run *r, struct err *err)
{
	size_t i, last = r->plan.count;
	int rc = 0;

	run_tell(r, "downloading", NULL, 0, 0);
	beneath_sweep(r->root_fd, &r->local);
	while (last > 0 && is_last(&r->plan.actions[last - 1]))
		last--;
	for (i = 0; i < last; i++)
		do_local(r, &r->plan.actions[i]);
	if (r->source_name == NULL)
		rc = r->sftp != NULL ? sftp_bring_small(r, err)
		                     : bring_small(r, err);
	if (rc == 0)
		rc = bring_big(r, err);
	for (i = last; i < r->plan.count; i++)
		do_local(r, &r->plan.actions[i]);
	return rc;
}
