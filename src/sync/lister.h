/*
 * The command that lists a tree of the far side; listing.h reads what it
 * prints.  Pure.
 */
#ifndef SYNC_LISTER_H
#define SYNC_LISTER_H

#include "base/buf.h"
#include "sync/farlist.h"

/* "known" is what the last one said of the host's programs (listing_known());
 * NULL: it has to look. */
void lister_script(struct buf *out, const char *path,
    const struct farlist_options *o, const char *known);

#endif
