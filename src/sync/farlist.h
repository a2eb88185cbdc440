/*
 * The far side of a tree, listed in one round trip.
 */
#ifndef SYNC_FARLIST_H
#define SYNC_FARLIST_H

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"
#include "sync/rules.h"
#include "sync/tree.h"

enum far_kind { FAR_MISSING, FAR_FILE, FAR_DIR, FAR_OTHER };

/* What is at a path of the far side (links followed for the path itself). */
struct far_root {
	enum far_kind kind;
	char *path;         /* absolute, "~" expanded, no "//" or "/." in it */
	struct entry file;  /* FAR_FILE: its size, mtime, mode; "path" is its
	                     * name, within the path above */
	bool writable;      /* the directory; else the nearest one above */
	int64_t free_bytes; /* there; -1: not asked for, or not known */
	/* The best of what is there: */
	bool gnu_tar, bsd_tar, perl, python, gzip;
};

struct farlist_options {
	struct rules *rules; /* NULL: none, and no defaults either */
	bool recursive;      /* else one level */
	bool space;          /* tell how much is free there */
	size_t max_entries;  /* the first of the sorted list; 0: all */
	bool gitignore;      /* add the .gitignore files found to "rules", and
	                      * leave out what they exclude (one more round
	                      * trip if there are any) */
	/* For what is left out: it cannot be read, or its name cannot be told.
	 * "path" is "" if nobody knows which. */
	void (*problem)(void *data, const char *path, const char *why);
	void *problem_data;
	const char *lister; /* NULL; for tests: find, perl, python, stat */
	/* Or NULL: what interrupted runs left, and when it was last written
	 * to, in seconds of the far side's clock; "data" is problem_data.
	 * Directories of ours are told only with "space". */
	void (*left_over)(void *data, const char *path, int64_t size,
	    int64_t mtime);
};

/*
 * Look at "path" and, if it is a directory, below it: everything that is not
 * excluded, sorted, each entry behind its directory.  Any host: GNU find,
 * perl, python3, or what busybox and BSD have (names with a newline then go to
 * "problem"), or SFTP where nothing can be run.  Our own staging places
 * (".rsmcp-*") are never in the list. A relative path is relative to the
 * sandbox's workdir or the login directory.
 *
 * Nothing there is no error (FAR_MISSING); a directory that may not be entered
 * or read is one (ERR_DENIED).  On failure *root and *out are empty; both are
 * always safe to free.
 */
int farlist_run(struct link *link, const char *path,
    const struct farlist_options *o, struct far_root *root, struct tree *out,
    const struct until *until, struct err *err);
void far_root_free(struct far_root *r);

/* Run a script of ours there: its stdout goes to "take" as it comes, the end
 * of its stderr to "words" (or NULL).  If "take" returns false the script is
 * ended, which is no failure: who takes knows why. */
typedef bool farlist_take(void *data, const char *bytes, size_t len);
int farlist_feed(struct link *link, const char *script, farlist_take *take,
    void *data, struct buf *words, const struct until *until, struct err *err);

#endif
