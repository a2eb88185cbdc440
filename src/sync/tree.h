/*
 * A tree of files as a list: what a scan found on one side, sorted.
 *
 * Paths are relative to the root ("" is the root itself and never in the
 * list), with single slashes, without "." and ".."; they may hold any other
 * byte.  A directory comes before what is below it, and all of that before the
 * next name ('/' sorts before every other byte).  100 000 entries have to fit
 * in a few megabytes, so texts lie one behind the other in large blocks.
 */
#ifndef SYNC_TREE_H
#define SYNC_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum entry_type {
	ENTRY_FILE,
	ENTRY_DIR,
	ENTRY_LINK,  /* symbolic */
	ENTRY_OTHER, /* device, socket, FIFO: never moved */
};

struct entry {
	const char *path;
	const char *target; /* of a link; else NULL */
	int64_t size;       /* of a file; else 0 */
	int64_t mtime;      /* nanoseconds since 1970 */
	uint16_t mode;      /* permission bits: 0777 at most */
	uint8_t type;       /* enum entry_type */
	bool unread;        /* a directory whose content could not be read:
	                     * what is below it is not known */
	bool kept;          /* a directory that stays, as something below it is
	                     * excluded and so not in the list */
};

struct tree_block;

struct tree {
	struct entry *entries;
	size_t count, room;
	struct tree_block *blocks; /* the texts */
	bool whole_seconds;        /* mtimes are no finer than that */
	bool partial;              /* something is missing, nobody knows what;
	                            * so nothing is extra on the other side */
	bool cut;                  /* there was more than was asked for */
	bool left_overs;           /* a scan saw files of interrupted runs */
};

void tree_init(struct tree *t);
void tree_free(struct tree *t);

/* A new entry with a copy of these texts ("target" may be NULL); the caller
 * sets the rest, which is zero.  The pointer holds until the next one is added
 * or the tree is sorted; the texts stay where they are. */
struct entry *tree_add(struct tree *t, const char *path, const char *target);

/* Sort, and drop all but the first that was added of entries with the same
 * path.  A tree that is sorted already costs one look. */
void tree_sort(struct tree *t);

/* The order of paths: as strcmp(), but '/' is the smallest byte. */
int tree_compare(const char *a, const char *b);

/* In a sorted tree; NULL if it is not there. */
const struct entry *tree_find(const struct tree *t, const char *path);

/* What holds a directory that is kept is kept, too.  Of a sorted tree. */
void tree_spread_kept(struct tree *t);

/* Is "path" strictly below the directory "dir" ("": the root)? */
bool tree_below(const char *path, const char *dir);

#endif
