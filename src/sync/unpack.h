/*
 * A tar stream from the far side, written below a root.
 *
 * The stream is not trusted: only what was asked for is taken, once, at the
 * type and size that was announced, and nothing is written outside the root,
 * through a link, or over a directory.  Mode and mtime are those of the list,
 * whatever the stream says.
 */
#ifndef SYNC_UNPACK_H
#define SYNC_UNPACK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "sync/tree.h"

/* The next bytes of the stream; 0 at its end, -1 with the error. */
typedef ssize_t unpack_read(void *data, void *bytes, size_t size,
    struct err *err);

/* The callbacks may be NULL. */
struct unpack_options {
	/* What may come: sorted. */
	const struct tree *wanted;
	/* Once for each of these that came: *why is NULL, or says what went
	 * wrong with it.  For directories at the end, as they get their mtime
	 * then. */
	void (*done)(void *data, const struct entry *e, const struct err *why);
	/* Bytes of content as they are written. */
	void (*bytes)(void *data, const struct entry *e, size_t n);
	/* For what came and was not taken, by the name the stream gave it (any
	 * bytes): not asked for, or there already. */
	void (*refused)(void *data, const char *name, const char *why);
	void *data;
};

/*
 * Take the whole stream.  Names are compared with the list without "./" in
 * front and "/" behind.  Files get their name only when they are whole.  A
 * hard link to a file that came before becomes a copy of it.
 *
 * -1 if the stream broke or ended early, if there is no end to what was not
 * asked for, or if the local disk refuses to go on (full, quota); what was
 * committed stays.
 */
int unpack_stream(int root_fd, unpack_read *read, void *read_data,
    const struct unpack_options *o, struct err *err);

#endif
