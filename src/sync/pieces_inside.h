/*
 * One big file on its way in pieces, as pieces.c, piecesup.c and piecesdown.c
 * share it.
 */
#ifndef SYNC_PIECES_INSIDE_H
#define SYNC_PIECES_INSIDE_H

#include "sync/inside.h"
#include "sync/piecelist.h"

#define CHUNK ((size_t)1 << 20)

struct pieces {
	struct run *r;
	const struct entry *e;
	char part[PART_NAME_MAX];
	int fd;      /* the local file, or the local part */
	int dir_fd;  /* where the local part is */
	int list_fd; /* which pieces of it are there */
	size_t count, streams;
	bool holes; /* what is not written to is zero: zeros need not be */

	pthread_mutex_t lock; /* guards the rest */
	bool *have;
	size_t next;
	bool failed;
	bool given_up; /* with a problem noted */
	struct err err;
};

int pieces_init(struct pieces *p, struct run *r, const struct entry *e,
    struct err *err);
void pieces_free(struct pieces *p);

/* The length of this one. */
int64_t pieces_len(const struct pieces *p, size_t i);

/* A list of pieces that are there already, which need not move. */
void pieces_take_list(struct pieces *p, char *text);

/* The next piece to move, or -1: none is left, or somebody failed. */
int64_t pieces_next(struct pieces *p);

/* The first failure counts; the others follow from it. */
void pieces_fail(struct pieces *p, const struct err *err);

/* Run it on so many threads, this one among them. */
int pieces_run(struct pieces *p, void *(*work)(void *), struct err *err);

#endif
