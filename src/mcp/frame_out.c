/*
 * The writer: the only code that writes to the client.
 *
 * A short message for a client that takes it at once is written by its sender,
 * which spares a change of threads.  All others go into "queue"; the thread
 * takes the whole queue at once and writes it, so a burst of small messages is
 * one write(2), and waits for the client if need be.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/decode.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/until.h"
#include "mcp/frame.h"

/* Beyond this calls wait, and no further requests are read. */
#define QUEUE_FULL ((size_t)8 << 20)

struct frame_out {
	int fd;
	int wake_fd;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* any of the below */
	struct buf queue;
	bool writing;  /* the thread is at it */
	bool was_full; /* somebody was told to hold back */
	bool closing;  /* no more messages will come */
	bool broken;   /* the client is gone */
	bool ended;    /* the thread writes no more */
	int end[2];    /* a pipe; readable (at its end) once ended */
};

static void
wake(struct frame_out *out)
{
	/* A full pipe already holds a wake-up. */
	(void)!write(out->wake_fd, "w", 1);
}

/* One turn of the thread: take all there is and write it. */
static void
write_queue(struct frame_out *out, struct buf *taken)
{
	struct buf swap = out->queue;
	bool was_full;

	out->queue = *taken;
	*taken = swap;
	was_full = out->was_full;
	out->was_full = false;
	out->writing = true;
	pthread_cond_broadcast(&out->changed);
	pthread_mutex_unlock(&out->lock);
	if (was_full)
		wake(out);
	if (fs_write_all(out->fd, taken->data, taken->len) == -1) {
		pthread_mutex_lock(&out->lock);
		out->broken = true;
		pthread_mutex_unlock(&out->lock);
	}
	buf_reset(taken);
	buf_trim(taken);
	pthread_mutex_lock(&out->lock);
	out->writing = false;
}

static void *
writer(void *arg)
{
	struct frame_out *out = arg;
	struct buf taken;

	buf_init(&taken, SIZE_MAX);
	pthread_mutex_lock(&out->lock);
	while (!out->broken) {
		if (out->queue.len > 0)
			write_queue(out, &taken);
		else if (out->closing)
			break;
		else
			pthread_cond_wait(&out->changed, &out->lock);
	}
	out->ended = true;
	pthread_cond_broadcast(&out->changed);
	pthread_mutex_unlock(&out->lock);
	wake(out);
	buf_free(&taken);
	close(out->end[1]);
	return NULL;
}

struct frame_out *
frame_out_new(int fd, int wake_fd, struct err *err)
{
	struct frame_out *out = xcalloc(1, sizeof(*out));
	int rc;

	if (fs_pipe(out->end, err) == -1) {
		free(out);
		return NULL;
	}
	out->fd = fd;
	out->wake_fd = wake_fd;
	buf_init(&out->queue, SIZE_MAX);
	pthread_mutex_init(&out->lock, NULL);
	pthread_cond_init(&out->changed, NULL);
	rc = pthread_create(&out->thread, NULL, writer, out);
	if (rc != 0) {
		errno = rc;
		err_sys(err, "cannot start the writer thread");
		close(out->end[0]);
		close(out->end[1]);
		free(out);
		return NULL;
	}
	return out;
}

/*
 * With the lock held: write the message now, if nothing is before it and it
 * cannot block.  How much of it was written.  A pipe or socket that says it
 * can be written to takes PIPE_BUF bytes.
 */
static size_t
write_now(struct frame_out *out, const char *text, size_t len)
{
	struct pollfd p = { .fd = out->fd, .events = POLLOUT };
	ssize_t n;

	if (out->queue.len > 0 || out->writing || len > PIPE_BUF ||
	    poll(&p, 1, 0) != 1 || p.revents != POLLOUT)
		return 0;
	n = write(out->fd, text, len);
	return n > 0 ? (size_t)n : 0; /* an error will meet the thread, too */
}

int
frame_out_send(struct frame_out *out, const json_t *message, bool wait)
{
	char *text = json_dumps(message, JSON_COMPACT | JSON_SHORT_REALS);
	size_t len, n;

	if (text == NULL)
		return -1;
	len = strlen(text);
	if (len >= FRAME_MAX) {
		free(text);
		return -1;
	}
	pthread_mutex_lock(&out->lock);
	while (wait && out->queue.len > QUEUE_FULL && !out->ended)
		pthread_cond_wait(&out->changed, &out->lock);
	if (!out->ended && !out->broken) {
		text[len++] = '\n'; /* in place of the NUL */
		n = write_now(out, text, len);
		buf_add(&out->queue, text + n, len - n);
		if (out->queue.len > 0)
			pthread_cond_broadcast(&out->changed);
	}
	pthread_mutex_unlock(&out->lock);
	free(text);
	return 0;
}

bool
frame_out_full(struct frame_out *out)
{
	bool full;

	pthread_mutex_lock(&out->lock);
	full = out->queue.len > QUEUE_FULL && !out->ended;
	if (full)
		out->was_full = true;
	pthread_mutex_unlock(&out->lock);
	return full;
}

bool
frame_out_broken(struct frame_out *out)
{
	bool broken;

	pthread_mutex_lock(&out->lock);
	broken = out->broken;
	pthread_mutex_unlock(&out->lock);
	return broken;
}

int
frame_out_close(struct frame_out *out, int ms)
{
	struct until until = until_in(ms);
	struct pollfd end = { .fd = out->end[0], .events = POLLIN };
	struct err err;

	pthread_mutex_lock(&out->lock);
	out->closing = true;
	pthread_cond_broadcast(&out->changed);
	pthread_mutex_unlock(&out->lock);
	if (until_poll(&until, &end, 1, &err) == -1)
		return -1;
	pthread_join(out->thread, NULL);
	close(out->end[0]);
	pthread_cond_destroy(&out->changed);
	pthread_mutex_destroy(&out->lock);
	buf_free(&out->queue);
	free(out);
	return 0;
}
