/*
 * Local files as a tar stream.
 *
 * Every tar there is in use reads it: plain ustar headers, GNU's for long
 * names (busybox knows no other) and for sizes over 8 GiB, and a pax header
 * for the part of the mtime below a second (busybox skips it).  Names are
 * bytes; read them with LC_ALL=C, for in other locales GNU tar may convert
 * them.  Owner is 0/0 without names, so extract with --no-same-owner.
 */
#ifndef SYNC_PACK_H
#define SYNC_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "sync/tree.h"

struct pack;

/* Takes the stream, in large pieces; -1 with the error ends it. */
typedef int pack_write(void *data, const void *bytes, size_t len,
    struct err *err);

/* The root stays the caller's. */
struct pack *pack_new(int root_fd, pack_write *write, void *data);
void pack_free(struct pack *p);

/*
 * Add an entry under "name" (NULL: its own path).  Content is read from below
 * root_fd, never through a link.  Size, mtime and mode of a file are those it
 * has now, which may be newer than the entry's; if it changes while it is
 * read, it is padded or cut to the size that was announced.
 *
 * 0; 1 if this one could not be read or changed while it was read (the stream
 * goes on; *why says it; what was packed for it, if anything, must not be
 * used); -1 if the stream broke.
 */
int pack_entry(struct pack *p, const struct entry *e, const char *name,
    struct err *why);

/* A small file from memory: a list, or the sentinel at the end. */
int pack_text(struct pack *p, const char *name, const void *bytes, size_t len,
    struct err *err);

/* Hand over what is still in the buffer: somebody waits for it. */
int pack_flush(struct pack *p, struct err *err);

/* The end of the archive. */
int pack_end(struct pack *p, struct err *err);

#endif
