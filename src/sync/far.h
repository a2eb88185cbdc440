/*
 * What sync runs on the far side: texts, each one line of POSIX shell.
 *
 * Files arrive in a staging directory inside the target (".rsmcp-s...") and
 * get their place by rename, in the order of a list that travels with them.
 * Pure.
 */
#ifndef SYNC_FAR_H
#define SYNC_FAR_H

#include "base/buf.h"
#include "sync/farlist.h"
#include "sync/tree.h"

/* Names in the stream, below the staging directory. */
#define FAR_DATA "d/"   /* entries, under their own path */
#define FAR_LIST "list" /* what to do */
#define FAR_LAST "end"  /* the last member: without it the stream was cut */

/* The script that takes a tar stream on stdin, as it is or through gzip, and
 * does what its list says.  Prints "p" path NUL problem NUL for each that
 * failed, then "e", how many files and how many directories were deleted, NUL.
 */
void far_take(struct buf *out, const struct far_root *root, const char *id,
    bool gzip);

/* Lines of the list, in the language the host will read it. */
void far_do_move(struct buf *list, const struct far_root *r, const char *path);
/* A file that arrived in so many pieces, with its mode and mtime. */
void far_do_part(struct buf *list, const struct far_root *r,
    const struct entry *e, const char *part, size_t pieces);
void far_do_delete(struct buf *list, const struct far_root *r, const char *path,
    bool dir);
/* Something that came along and should not have; before any move. */
void far_do_undo(struct buf *list, const struct far_root *r, const char *path);
void far_do_meta(struct buf *list, const struct far_root *r,
    const struct entry *e, bool mtime);

/* The script that gives files as a tar stream.  Their names, each with "./" in
 * front, are read from stdin, ended by NULs; or, if far_reads_list() says no,
 * are words to be added to the script (busybox may know no "-T"). */
void far_give(struct buf *out, const struct far_root *root);
bool far_reads_list(const struct far_root *root);

/* The script that takes pieces of one file: lines "offset length" on stdin,
 * each followed by that many bytes and a line "ok".  "id" names the part.
 * Another run may fill the same part; when that one gives it its name, this
 * one ends with FAR_OTHER_PART.  With "holes" zeros are not written. */
#define FAR_OTHER_PART 9
void far_take_pieces(struct buf *out, const struct far_root *root,
    const char *part, bool holes);
/*
 * Pieces that are there already: prints "offset length" lines.  Parts of other
 * versions of the file go.  If the file is
 * known to have holes, "size" is its size, and otherwise 0: a part that is new
 * is made that long, if the host's dd can leave holes in it, and the first line
 * is FAR_HOLES.
 */
#define FAR_HOLES "holes"
void far_have_pieces(struct buf *out, const struct far_root *root,
    const char *part, int64_t size);
/* And to be without them. */
void far_drop_pieces(struct buf *out, const struct far_root *root,
    const char *part);
/* Gives pieces of a file, in the same way, for lines "offset length". */
void far_give_pieces(struct buf *out, const struct far_root *root,
    const char *path);

#endif
