/*
 * Names that the local disk takes for one ("A" and "a" on most Macs): the
 * second must not silently take the place of the first.
 *
 * Which names those are is the file system's secret (case, accents, forms of
 * Unicode), so nothing is compared: what is about to be replaced is looked at,
 * and if it is a file that this run has written, the names are one.
 */
#ifndef SYNC_DISTINCT_H
#define SYNC_DISTINCT_H

#include <stdbool.h>

#include "base/err.h"

struct distinct;

/* Does the disk of the root take "A" for "a"?  Tried out there. */
bool distinct_needed(int root_fd);

struct distinct *distinct_new(void);
void distinct_free(struct distinct *d);

/* This file is going to get its name. */
void distinct_add(struct distinct *d, int fd);

/* -1 if "name" of the directory is a file that was added; "path" is for the
 * message. */
int distinct_check(const struct distinct *d, int dir_fd, const char *name,
    const char *path, struct err *err);

#endif
