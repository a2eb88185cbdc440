/*
 * What has to be done to make one tree like another.  Pure.
 */
#ifndef SYNC_PLAN_H
#define SYNC_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sync/tree.h"

enum action_kind {
	ACTION_OPEN,   /* a directory of the target that its owner may not write
	                * into: give it u+rwx until its META */
	ACTION_DELETE, /* a file, link or other thing of the target */
	ACTION_RMDIR,  /* a directory of the target, empty by then but for what
	                * is excluded and was not known of */
	ACTION_MKDIR,  /* with u+rwx; its META comes later */
	ACTION_FILE,   /* bring its content, over whatever but a directory */
	ACTION_LINK,   /* the same for a link */
	ACTION_META,   /* only set mode and mtime (of a link the mtime) */
};

struct action {
	enum action_kind kind;
	const struct entry *entry; /* of the source tree; of the target's for
	                            * OPEN, DELETE and RMDIR */
};

struct plan_options {
	bool delete_extras;
	/* With checksums: is this pair of files, of the same size, equal? */
	bool (*same)(void *data, const struct entry *from,
	    const struct entry *to);
	void *data;
};

/*
 * In the order in which it can be done: directories opened (parents first),
 * deletions (deepest first), then directories, files and links (parents first)
 * with what needs only META among them, then META of the directories, deepest
 * first: of new ones, of those that differ, and of those in which names
 * changed, as that changes their mtime.
 */
struct plan {
	struct action *actions;
	size_t count, room;
	size_t new_dirs, files, links;
	size_t metas;    /* entries that need only that */
	size_t replaced; /* what makes room for another type */
	size_t deleted_files, deleted_dirs; /* without those */
	size_t same;         /* files and links whose content is right */
	size_t specials;     /* of the source: never moved */
	int64_t bytes;       /* of the files to bring */
	size_t target_count; /* entries that the target has now */
	size_t target_dirs;  /* of these, directories */
};

/*
 * Both trees are sorted and free of excluded paths, each entry behind its
 * directory; they have to live as long as the plan.  The outcome is that of
 * "rsync -a", with delete_extras of "rsync -a --delete".
 *
 * "problem" is called for entries that are left out: special files, and files
 * and links in whose place the target has a directory that is not empty (it
 * goes only with delete_extras) or holds something excluded.  A file or link of
 * the target where the source has a directory is deleted.  Nothing is deleted
 * that may be there in a part of the source that could not be read ("unread",
 * "partial").
 */
void plan_make(struct plan *p, const struct tree *from, const struct tree *to,
    const struct plan_options *o,
    void (*problem)(void *data, const char *path, const char *why),
    void *problem_data);
void plan_free(struct plan *p);

/*
 * Is this more deletion than a slip should be able to cause: every file that
 * the target has (or every entry), or more than half if it has over 100?
 */
bool plan_deletes_much(const struct plan *p);

/* Same content, as far as size and mtime tell: to the nanosecond, or within a
 * second if one of the trees knows no better.  An mtime without a fraction is
 * any time within that second: some tools can set no other. */
bool plan_unchanged(const struct tree *from, const struct entry *a,
    const struct tree *to, const struct entry *b);

#endif
