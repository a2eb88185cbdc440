/*
 * Which of some bytes are returned, if they may be too many: whole characters,
 * or whole lines.  Pure.
 */
#ifndef SSH_CUT_H
#define SSH_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cut_limit {
	size_t bytes;
	size_t chars; /* as a JSON string, or in base64; 0: any */
};

/* Bytes "at" up to "end" of what was given. */
struct cut {
	size_t at, end;
	bool binary; /* a NUL, or not UTF-8 */
	bool less;   /* something did not fit */
};

/* The first of the bytes from "at" on; one character at least. */
struct cut cut_bytes(const char *s, size_t len, size_t at,
    const struct cut_limit *limit);

/* The first "lines" (0: all) from "at" on; a line that does not fit is cut
 * only if it is the first. */
struct cut cut_lines(const char *s, size_t len, size_t at, int64_t lines,
    const struct cut_limit *limit);

/* The last "lines"; "whole" says that nothing came before these bytes. */
struct cut cut_tail(const char *s, size_t len, int64_t lines, bool whole,
    const struct cut_limit *limit);

/* How many lines: a last one without its end is one, too. */
int64_t cut_count(const char *s, size_t len);

#endif
