/*
 * Lists of the pieces of a big file, "offset length" a line, as the far side or
 * an earlier run of ours wrote them.
 */
#ifndef SYNC_PIECELIST_H
#define SYNC_PIECELIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIECE ((int64_t)16 << 20)

/* Of a file of this size. */
size_t piece_count(int64_t size);
int64_t piece_len(int64_t size, size_t i);

/* Notes in "have" which pieces the list has, and returns how many bytes that
 * were not noted before.  What is no piece is passed over.  Cuts up "text". */
int64_t piecelist_read(char *text, int64_t size, bool *have);

#endif
