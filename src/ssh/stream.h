/*
 * A command on the far side with its streams to ourselves: bytes go in and
 * come out as they are.
 *
 * It runs in a pre-started shell, so the first byte costs one round trip, and
 * ends with the link's lease like any other command.  One thread per stream.
 */
#ifndef SSH_STREAM_H
#define SSH_STREAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

struct stream;

/* Start "script", which is one line of POSIX shell. */
struct stream *stream_open(struct link *link, const char *script,
    const struct until *until, struct err *err);
/* Give it up (ERR_TIMEOUT) when it neither takes what is written to it nor
 * prints what is waited for, for so long; 0, as it is at first: never. */
void stream_patience(struct stream *s, int64_t ms);
/* Ends the command if it still runs. */
void stream_free(struct stream *s);

/* Write all of it.  ERR_IO if the command is gone or the link is lost. */
int stream_write(struct stream *s, const void *data, size_t len,
    const struct until *until, struct err *err);
/* The same, but later, while it is read or ended; its stdin ends behind it.
 * For input that is not wanted before the output is taken.  "data" must stay.
 */
void stream_feed(struct stream *s, const void *data, size_t len);
/* Its stdin ends here. */
void stream_close_in(struct stream *s);

/* What it printed: some bytes; 0 at its end; -1. */
ssize_t stream_read(struct stream *s, void *data, size_t size,
    const struct until *until, struct err *err);

/*
 * Wait for its end; output that nobody read is dropped.  Returns its exit
 * status, or -1: lost link, until.  What it wrote to stderr is in
 * stream_words(), up to a megabyte.
 */
int stream_end(struct stream *s, const struct until *until, struct err *err);
const char *stream_words(const struct stream *s);
bool stream_words_cut(const struct stream *s);

#endif
