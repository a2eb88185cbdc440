/*
 * A change to a file of the user's: shown before it is made, with a copy of
 * what was there, whole or not at all.
 */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct change {
	char *path;        /* links resolved */
	bool there;        /* the file exists */
	mode_t mode;       /* it has, or is to have */
	struct buf before; /* its content */
	struct buf after;  /* what it shall be: the caller's to fill */
};

/* Read the file; one that does not exist is empty.  change_free() in every
 * case. */
int change_init(struct change *c, const char *path, struct err *err);
void change_free(struct change *c);

bool change_needed(const struct change *c);
void change_show(const struct change *c);

/* May it be made, as far as that can be seen beforehand? */
int change_allowed(const struct change *c, struct err *err);

/* Make it.  *backup is the path of the copy, or NULL if there was no file;
 * caller frees. */
int change_make(const struct change *c, char **backup, struct err *err);

#endif
