/*
 * A stream made smaller on its way, as gzip does it.
 *
 * For a slow line: headers of tar become a tenth, source code a fourth.  Every
 * host with gzip (or busybox) reads it.
 */
#ifndef SYNC_SQUEEZE_H
#define SYNC_SQUEEZE_H

#include <stddef.h>

#include "base/err.h"
#include "sync/pack.h"

struct squeeze;

/* "write" takes what comes out. */
struct squeeze *squeeze_new(pack_write *write, void *data);
void squeeze_free(struct squeeze *s);

/* A pack_write, for a struct squeeze.  What goes in comes out sooner or later,
 * and all of it by squeeze_end(). */
int squeeze_write(void *squeeze, const void *bytes, size_t len,
    struct err *err);
int squeeze_end(struct squeeze *s, struct err *err);

#endif
