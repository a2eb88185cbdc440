/*
 * A growing string of bytes with a limit.  There is always a NUL after the
 * last byte (data is never NULL after buf_init), and bytes inside may be NUL.
 *
 * Adding never fails loudly: past "max" the rest is dropped and "full" is
 * set, so a caller adds freely and asks once, at the end.  Running out of
 * memory is fatal.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct buf {
	char *data;
	size_t len;
	size_t cap; /* bytes allocated; 0 while data is the shared "" */
	size_t max; /* len never exceeds this */
	bool full;  /* something was dropped */
};

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b);  /* also for a zeroed struct, and twice */
void buf_reset(struct buf *b); /* empty again; keeps the memory */

void buf_add(struct buf *b, const void *data, size_t len);
void buf_adds(struct buf *b, const char *s);
void buf_addc(struct buf *b, char c);
void buf_addf(struct buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Forget the first "n" bytes (at most all of them). */
void buf_drop(struct buf *b, size_t n);

/* Make room for "n" more bytes and return where they go.  *room is how many fit
 * there: more than "n" if the memory is there already, fewer near the limit, 0
 * only at the limit.  buf_grew() then says how many were written. */
char *buf_space(struct buf *b, size_t n, size_t *room);
void buf_grew(struct buf *b, size_t n);

/* Give memory back that a large content left behind. */
void buf_trim(struct buf *b);

/* Take the content out as a NUL-terminated string; the caller frees it. */
char *buf_take(struct buf *b);

#endif
