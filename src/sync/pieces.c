/*
 * Big files, in pieces: on several channels at once where the way is long,
 * and after a break only what is missing.
 *
 * The pieces go into a part file (".rsmcp-p...") whose name holds what it is a
 * part of: first which file, then which version of it.  Who begins one removes
 * those of other versions, also if another run is at it: that one is told, as
 * it is when its part gets its name.  Next to it a list says which pieces are
 * there.  The list counts only until
 * the machine that has it is started again, since nothing is forced to disk.
 *
 * Here is what both directions share.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "sync/beneath.h"
#include "sync/pieces_inside.h"

/* A round trip longer than this makes several channels worth while. */
#define FAR_AWAY_MS 5

/* 256 TiB; a host may say anything of its files. */
#define PIECES_MAX ((size_t)1 << 24)

static uint64_t
hash(uint64_t h, const char *text)
{
	for (; *text != '\0'; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211u;
	return h;
}

void
part_name(char out[PART_NAME_MAX], const struct entry *e)
{
	uint64_t path = hash(1469598103934665603u, e->path);
	char text[64];

	snprintf(text, sizeof(text), "%" PRId64 ".%" PRId64, e->size, e->mtime);
	snprintf(out, PART_NAME_MAX, BENEATH_PREFIX "p%08" PRIx32 "%016" PRIx64,
	    (uint32_t)(path ^ path >> 32), hash(path, text));
}

int64_t
pieces_len(const struct pieces *p, size_t i)
{
	return piece_len(p->e->size, i);
}

/* More channels only help where each waits for answers. */
static size_t
streams_for(struct run *r, size_t count, struct err *err)
{
	int64_t began = clock_ms();

	/* SFTP has as much under way on one. */
	if (count < 2 || r->sftp != NULL)
		return 1;
	if (link_check(r->link, r->until, err) == -1)
		return 0;
	if (clock_ms() - began < FAR_AWAY_MS)
		return 1;
	return count < STREAMS_MAX ? count : STREAMS_MAX;
}

int
pieces_init(struct pieces *p, struct run *r, const struct entry *e,
    struct err *err)
{
	memset(p, 0, sizeof(*p));
	p->r = r;
	p->e = e;
	p->fd = p->dir_fd = p->list_fd = -1;
	p->count = piece_count(e->size);
	pthread_mutex_init(&p->lock, NULL);
	part_name(p->part, e);
	if (p->count > PIECES_MAX)
		return err_set(err, ERR_LIMIT,
		    "'%.300s' is larger than any file that can be synced",
		    e->path);
	p->have = xcalloc(p->count + 1, sizeof(bool));
	p->streams = streams_for(r, p->count, err);
	return p->streams == 0 ? -1 : 0;
}

void
pieces_free(struct pieces *p)
{
	if (p->fd != -1)
		close(p->fd);
	if (p->dir_fd != -1)
		close(p->dir_fd);
	if (p->list_fd != -1)
		close(p->list_fd);
	pthread_mutex_destroy(&p->lock);
	free(p->have);
}

void
pieces_take_list(struct pieces *p, char *text)
{
	int64_t bytes = piecelist_read(text, p->e->size, p->have);

	run_tell(p->r, NULL, p->e->path, 0, bytes);
}

int64_t
pieces_next(struct pieces *p)
{
	int64_t found = -1;

	pthread_mutex_lock(&p->lock);
	while (!p->failed && p->next < p->count && p->have[p->next])
		p->next++;
	if (!p->failed && p->next < p->count)
		found = (int64_t)p->next++;
	pthread_mutex_unlock(&p->lock);
	return found;
}

void
pieces_fail(struct pieces *p, const struct err *err)
{
	pthread_mutex_lock(&p->lock);
	if (!p->failed)
		p->err = *err;
	p->failed = true;
	pthread_mutex_unlock(&p->lock);
}

int
pieces_run(struct pieces *p, void *(*work)(void *), struct err *err)
{
	pthread_t threads[STREAMS_MAX];
	size_t i, started = 0;

	while (started + 1 < p->streams &&
	    pthread_create(&threads[started], NULL, work, p) == 0)
		started++;
	work(p);
	for (i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	if (!p->failed)
		return 0;
	*err = p->err;
	return -1;
}
