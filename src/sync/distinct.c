#include "sync/distinct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "sync/beneath.h"

/* Inodes in an open hash table; 0 is free.  One root, one device. */
struct distinct {
	uint64_t *inodes;
	size_t count, room; /* room is a power of two */
};

#define ROOM_FIRST 1024

/* A link with a capital, looked for with a small letter. */
bool
distinct_needed(int root_fd)
{
	char digits[RANDOM_HEX(8)], upper[64], lower[64];
	struct stat st;
	bool same;

	random_hex(digits, 8);
	snprintf(upper, sizeof(upper), BENEATH_PREFIX "%s-A", digits);
	snprintf(lower, sizeof(lower), BENEATH_PREFIX "%s-a", digits);
	if (symlinkat("case", root_fd, upper) == -1)
		return false;
	same = fstatat(root_fd, lower, &st, AT_SYMLINK_NOFOLLOW) == 0;
	unlinkat(root_fd, upper, 0);
	return same;
}

struct distinct *
distinct_new(void)
{
	struct distinct *d = xcalloc(1, sizeof(*d));

	d->room = ROOM_FIRST;
	d->inodes = xcalloc(d->room, sizeof(*d->inodes));
	return d;
}

void
distinct_free(struct distinct *d)
{
	if (d == NULL)
		return;
	free(d->inodes);
	free(d);
}

/* Where the inode is, or would be. */
static size_t
place(const struct distinct *d, uint64_t inode)
{
	size_t i = (size_t)(inode * UINT64_C(0x9e3779b97f4a7c15) >> 20);

	for (i &= d->room - 1; d->inodes[i] != 0 && d->inodes[i] != inode;)
		i = (i + 1) & (d->room - 1);
	return i;
}

static void
grow(struct distinct *d)
{
	struct distinct larger = { .room = 2 * d->room, .count = d->count };
	size_t i;

	larger.inodes = xcalloc(larger.room, sizeof(*larger.inodes));
	for (i = 0; i < d->room; i++) {
		if (d->inodes[i] != 0)
			larger.inodes[place(&larger, d->inodes[i])] =
			    d->inodes[i];
	}
	free(d->inodes);
	*d = larger;
}

void
distinct_add(struct distinct *d, int fd)
{
	struct stat st;
	size_t i;

	if (fstat(fd, &st) == -1 || st.st_ino == 0)
		return;
	if (2 * d->count >= d->room)
		grow(d);
	i = place(d, st.st_ino);
	d->count += d->inodes[i] == 0;
	d->inodes[i] = st.st_ino;
}

int
distinct_check(const struct distinct *d, int dir_fd, const char *name,
    const char *path, struct err *err)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISREG(st.st_mode) || st.st_ino == 0 ||
	    d->inodes[place(d, st.st_ino)] == 0)
		return 0;
	errno = EEXIST;
	return err_set(err, ERR_INVALID,
	    "'%s' was not written: the local disk takes its name for that of "
	    "another file that was brought",
	    path);
}
