/*
 * A part of a file on the far side, in one round trip, at a cost that follows
 * from what is asked for and not from how large the file is.
 */
#ifndef SSH_FARREAD_H
#define SSH_FARREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

enum farread_from {
	FARREAD_OFFSET, /* bytes from "start" on */
	FARREAD_LINE,   /* lines from number "start" on; the first is 1 */
	FARREAD_TAIL,   /* the last "start" lines */
};

struct farread_request {
	const char *path; /* "~" is the home; else relative to the workdir */
	enum farread_from from;
	int64_t start;
	int64_t lines;    /* FARREAD_LINE: how many; 0: all that fit */
	bool number;      /* FARREAD_TAIL: tell start_line, though all before
	                   * has to be read for it, over there */
	size_t max_bytes; /* at most; but one whole character in any case */
	size_t max_chars; /* of the content as a JSON string; 0: any */
};

/*
 * Text begins and ends between characters: at an offset within one it begins
 * with that character.  Lines that do not fit are left out as a whole, unless
 * there is but one.
 */
struct farread {
	struct buf bytes;
	bool binary;         /* a NUL, or not UTF-8; max_chars is in base64 */
	int64_t offset;      /* of the first byte */
	int64_t next_offset; /* behind the last */
	int64_t file_size;   /* -1: not known (files of /proc) */
	bool truncated;      /* there is more of what was asked for */
	/* Unless by offset; -1: not known without reading the whole file. */
	int64_t start_line, line_count, total_lines;
};

/* The errors name the path and the sandbox.  farread_free() it if it was 0. */
int farread_run(struct link *link, const struct farread_request *req,
    struct farread *out, const struct until *until, struct err *err);
void farread_free(struct farread *r);

/*
 * The two halves of it, pure.  The command prints a line "kind size offset
 * base expected before" and bytes of the file, of which "base" is the place of
 * the first and which end before "expected" of them only where the file does;
 * "before" is how many lines end before "base", if that was asked for.
 */
void farread_command(struct buf *out, const struct farread_request *req);
/* -1: that was no such thing.  ERR_INVALID: it is no file, and what it is. */
int farread_take(const struct buf *printed, const struct farread_request *req,
    struct farread *out, struct err *err);

#endif
