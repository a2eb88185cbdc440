/* Listing the far side. */
#include "sync/farlist.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "ssh/exec.h"
#include "sync/farignore.h"
#include "sync/lister.h"
#include "sync/listing.h"
#include "sync/sftplist.h"
#include "sync/silence.h"

#define LIST_MS ((int64_t)24 * 3600 * 1000) /* the until ends it sooner */
#define ERR_CHARS 2000

void
far_root_free(struct far_root *r)
{
	free(r->path);
	memset(r, 0, sizeof(*r));
}

static bool
sink(void *data, const char *bytes, size_t len)
{
	return listing_add(data, bytes, len);
}

/* A run that did not end by itself. */
static int
explain(const struct exec_result *res, struct link *link, struct err *err)
{
	const char *name = link_sandbox(link)->name;

	if (res->cancelled)
		return err_set(err, ERR_CANCELLED,
		    "listing files on %s was cancelled", name);
	if (res->silent)
		return err_set(err, ERR_IO,
		    "%s said nothing for %d s while files were listed, and was "
		    "given up",
		    name, (int)(silence_ms() / 1000));
	if (res->timed_out)
		return err_set(err, ERR_TIMEOUT,
		    "listing files on %s took too long", name);
	return err_set(err, ERR_IO,
	    "the connection to %s was lost while files were listed", name);
}

int
farlist_feed(struct link *link, const char *script, farlist_take *take,
    void *data, struct buf *words, const struct until *until, struct err *err)
{
	struct exec_request req = {
		.command = script,
		.cwd = link_sandbox(link)->workdir,
		.timeout_ms = LIST_MS,
		.max_chars = ERR_CHARS,
		.sink = take,
		.sink_data = data,
		.silence_ms = silence_ms(),
	};
	struct exec_result res;
	int rc = 0;

	if (exec_run(link, &req, &res, until, err) == -1)
		return -1;
	if (res.state != EXEC_FINISHED && !res.refused)
		rc = explain(&res, link, err);
	else if (words != NULL)
		buf_adds(words, res.err.data);
	exec_result_free(&res);
	return rc;
}

static int
list_by_command(struct link *link, const char *path,
    const struct farlist_options *o, struct listing *l, struct tree *out,
    const struct until *until, struct err *err)
{
	char known[LINK_NOTE_MAX];
	struct buf script, words;
	int rc;

	buf_init(&script, SIZE_MAX);
	buf_init(&words, SIZE_MAX);
	link_recall(link, known);
	lister_script(&script, path, o, known[0] != '\0' ? known : NULL);
	rc = farlist_feed(link, script.data, sink, l, &words, until, err);
	if (rc == 0) {
		rc = listing_end(l, err);
		link_remember(link, listing_known(l));
	}
	if (rc == 0 && out->partial && o->problem != NULL &&
	    !str_blank(words.data))
		o->problem(o->problem_data, "", words.data);
	buf_free(&script);
	buf_free(&words);
	return rc;
}

static int
run_list(struct link *link, const char *path, const struct farlist_options *o,
    struct far_root *root, struct tree *out, const struct until *until,
    struct err *err)
{
	struct listing *l = listing_new(o, root, out);
	int rc = link_ways(link, until, err);

	if (rc == 0) {
		rc = list_by_command(link, path, o, l, out, until, err);
	} else if (rc == 1) {
		rc = sftplist_run(link, path, o, sink, l, until, err);
		if (rc == 0)
			rc = listing_end(l, err);
	}
	if (rc == -1) {
		tree_free(out);
		far_root_free(root);
	}
	listing_free(l);
	return rc;
}

int
farlist_run(struct link *link, const char *path,
    const struct farlist_options *o, struct far_root *root, struct tree *out,
    const struct until *until, struct err *err)
{
	bool ignores = o->gitignore && o->rules != NULL;
	struct farlist_options all = *o;

	if (!ignores)
		return run_list(link, path, o, root, out, until, err);
	all.max_entries = 0;
	if (run_list(link, path, &all, root, out, until, err) == -1)
		return -1;
	if (farignore_run(link, root, o->rules, out, until, err) == -1) {
		tree_free(out);
		far_root_free(root);
		return -1;
	}
	if (o->max_entries > 0 && out->count > o->max_entries) {
		out->count = o->max_entries;
		out->cut = true;
	}
	return 0;
}
