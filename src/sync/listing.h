/*
 * The reader of what a host lists, fed with bytes as they come.  Pure.
 */
#ifndef SYNC_LISTING_H
#define SYNC_LISTING_H

#include "sync/farlist.h"

struct listing;

/* Initialises *root and *out. */
struct listing *listing_new(const struct farlist_options *o,
    struct far_root *root, struct tree *out);
/* False once it is known to be no use: listing_end() says why. */
bool listing_add(struct listing *l, const char *bytes, size_t len);
/* -1 if it was not whole, or made no sense. */
int listing_end(struct listing *l, struct err *err);
void listing_free(struct listing *l);

/* What the host said of its programs, for the next lister_script(); NULL if it
 * has to look again. */
const char *listing_known(const struct listing *l);

#endif
