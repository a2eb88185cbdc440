/*
 * One stream of a command's output, as it comes: up to the trailer that our
 * wrapper writes behind it, within bounded memory.  Pure but for the file.
 *
 * The trailer is "NONCE status flag pids...\n".  The nonce is random and the
 * command cannot know it, so output that looks like a trailer is output.
 */
#ifndef SSH_CAPTURE_H
#define SSH_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define NONCE_LEN 32

struct capture {
	char nonce[NONCE_LEN + 1];
	struct buf held;    /* may be the beginning of the trailer */
	struct buf trailer; /* behind the nonce, up to its newline */
	size_t trailer_len; /* how long it is in truth */
	bool in_trailer;
	bool ended; /* the trailer was read */
	bool bad;   /* it was no trailer after all */

	uint64_t total;  /* bytes of output */
	struct buf head; /* the first of them */
	struct buf tail; /* the last of them, as a ring */
	size_t tail_at;  /* where the ring begins */

	char *file; /* where all of it goes once it is too long; or NULL */
	const char *stream; /* a file is named then, for this; or NULL */
	int file_fd;
	bool file_wanted; /* all of it belongs there */
	bool lacking;     /* the text is not all of it */
	uint64_t file_len;
	uint64_t file_max;

	/* Takes all of it in place of the above, as it comes; or NULL.  Once it
	 * returns false the rest is dropped. */
	bool (*sink)(void *data, const char *bytes, size_t len);
	void *sink_data;
	bool refused; /* it did */
};

/*
 * Keep the first and the last "keep" bytes.  With a "file" (copied), output
 * that is longer goes there whole, up to "file_max" bytes.
 */
void capture_init(struct capture *c, const char *nonce, size_t keep,
    const char *file, uint64_t file_max);
void capture_free(struct capture *c);

/*
 * Add bytes as they came.  Returns how many were used: all of them, or, once
 * the trailer is there, those up to its end.
 */
size_t capture_add(struct capture *c, const char *data, size_t len);

/* What the trailer said. */
struct trailer {
	int status;
	char flag[8]; /* "-", "sig", "cwd", "stale" */
	int64_t pids[64];
	size_t count;
};

/* -1 if it is no trailer of ours. */
int trailer_parse(const char *text, struct trailer *t);

/*
 * The output as clean text of at most "max" characters: all of it, or head
 * and tail with a line between that says what is missing.  Returns how many
 * characters were left out (0: none; a guess, if they were never kept).
 * Where the text lacks more than colours and the like, all is in the file, too.
 */
uint64_t capture_text(struct capture *c, struct buf *out, size_t max);

/* How many bytes its file lacks, of an output that belongs into one. */
uint64_t capture_missing(const struct capture *c);

/* The last line that has something on it, cleaned, for progress. */
void capture_last_line(struct capture *c, struct buf *out);

#endif
