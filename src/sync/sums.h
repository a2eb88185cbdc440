/*
 * Comparing content: SHA-256 sums that the system's own programs make, on both
 * sides at once.
 */
#ifndef SYNC_SUMS_H
#define SYNC_SUMS_H

#include "sync/inside.h"

struct sums;

/* Sum up all files that have the same size on both sides. */
struct sums *sums_new(struct run *r, struct err *err);
void sums_free(struct sums *s);

/* Were they equal?  For plan_make(); "data" is the sums, and one of the two
 * entries is of the local tree. */
bool sums_same(void *data, const struct entry *from, const struct entry *to);

/*
 * The reader alone, which is pure: no sums yet, and what the programs of a
 * side print, as it comes.  False: that is more than there can be.
 */
enum sums_side { SUMS_HERE, SUMS_THERE };
struct sums *sums_begin(struct run *r);
bool sums_take(struct sums *s, enum sums_side side, const char *bytes,
    size_t len);

#endif
