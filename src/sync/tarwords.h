/*
 * What the host's tar says of files that it could not read whole: it fills them
 * up with zeros and goes on, so only its words tell.  Pure.
 */
#ifndef SYNC_TARWORDS_H
#define SYNC_TARWORDS_H

#include "sync/tree.h"

/*
 * The next file of "wanted" that it speaks of so, from *at on, which moves
 * behind that line; NULL at the end, or with *unknown set if it did not say of
 * which: *at is that line then.
 */
const struct entry *tarwords_unread(const char **at, const struct tree *wanted,
    bool *unknown);

#endif
