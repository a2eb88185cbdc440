/*
 * Frames: one JSON message a line, in and out.
 *
 * The reader cuts a stream of bytes into lines and survives any line.  The
 * writer is a queue and a thread, because a client may stop reading: then
 * calls wait here, the main loop stops taking requests, and everything else
 * (signals, the end of stdin) goes on.
 */
#ifndef MCP_FRAME_H
#define MCP_FRAME_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* Clients drop a connection that sends them more in a line; so do we. */
#define FRAME_MAX ((size_t)10 << 20)

struct frame_in {
	struct buf data;
	size_t start;   /* first byte not handed out yet */
	size_t scanned; /* no newline before this */
	bool skipping;  /* inside a line that was too long */
};

enum frame_got {
	FRAME_NONE,     /* no whole line yet */
	FRAME_LINE,     /* a line, without its end */
	FRAME_TOO_LONG, /* a line was too long and is being skipped */
};

void frame_in_init(struct frame_in *in);
void frame_in_free(struct frame_in *in);

/* Add bytes as they came; at most FRAME_MAX at a time. */
void frame_in_add(struct frame_in *in, const char *data, size_t len);

/* The next line; it is valid until more bytes are added. */
enum frame_got frame_in_next(struct frame_in *in, const char **line,
    size_t *len);

/* After the end of the stream: what stands there without a newline. */
enum frame_got frame_in_rest(struct frame_in *in, const char **line,
    size_t *len);

struct frame_out;

/*
 * Start writing to "fd", which stays the caller's.  "wake_fd" gets a byte
 * when writing has failed for good, and when a full queue has room again.
 */
struct frame_out *frame_out_new(int fd, int wake_fd, struct err *err);

/*
 * Queue a message.  While the queue is full it waits for room if "wait" is
 * set.  Returns -1 if the message is larger than a frame may be or cannot be
 * written as JSON: nothing is queued then, the caller says something shorter.
 */
int frame_out_send(struct frame_out *out, const json_t *message, bool wait);

bool frame_out_full(struct frame_out *out);
bool frame_out_broken(struct frame_out *out);

/*
 * Write what is queued, for at most "ms", and end the thread.  Returns 0 and
 * frees everything, or -1 if the client still does not read: the thread is
 * then stuck in a write and the program should just exit.
 */
int frame_out_close(struct frame_out *out, int ms);

#endif
