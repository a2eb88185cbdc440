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
 * One line of sha256sum: the sum and the name.  0, or -1 if it is none.  The
 * name is unescaped in place.  Pure; for tests.
 */
int sums_line(char *line, const char **hex, char **name);

#endif
