/*
 * Tar headers, as every tar reads them.  Pure.
 */
#ifndef SYNC_TARHEAD_H
#define SYNC_TARHEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TAR_BLOCK 512

/* Longer names have a block before the header. */
#define TAR_NAME_MAX 99

enum tar_type {
	TAR_FILE = '0',
	TAR_LINK = '2',
	TAR_DIR = '5',
	TAR_LONG_LINK = 'K', /* GNU: the target of the next */
	TAR_LONG_NAME = 'L', /* GNU: the name of the next */
	TAR_PAX = 'x',       /* POSIX: more about the next */
};

struct tar_head {
	enum tar_type type;
	const char *name;   /* cut to TAR_NAME_MAX bytes */
	const char *target; /* of a link, cut likewise; else NULL */
	int64_t size;
	int64_t mtime; /* nanoseconds; the header has whole seconds */
	uint16_t mode;
};

/* The header as a block. */
void tar_head(unsigned char block[TAR_BLOCK], const struct tar_head *h);

/* Does the header lose something of this mtime? */
bool tar_needs_pax(int64_t mtime);

/* The content of a TAR_PAX member that tells the mtime; its length. */
size_t tar_pax(char out[64], int64_t mtime);

#endif
