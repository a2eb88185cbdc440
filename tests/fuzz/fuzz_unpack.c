/*
 * Whatever a host sends as a tar stream, nothing outside the root changes, and
 * inside there is nothing but what was asked for: those names, of that type
 * and size, with that mode and target.
 *
 * The input is the stream; its pieces have the sizes of its own first bytes.
 * The list is always the same.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sync/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "nobody changes this"

static const struct entry asked[] = {
	{ .path = "a", .type = ENTRY_FILE, .size = 1, .mode = 0640 },
	{ .path = "big", .type = ENTRY_FILE, .size = 1000, .mode = 0644 },
	{ .path = "copy", .type = ENTRY_FILE, .size = 1, .mode = 0600 },
	{ .path = "dir", .type = ENTRY_DIR, .mode = 0755 },
	{ .path = "dir/in", .type = ENTRY_FILE, .size = 3, .mode = 0644 },
	{ .path = "empty", .type = ENTRY_FILE, .mode = 0644 },
	{ .path = "link", .type = ENTRY_LINK, .target = "../outside" },
	{ .path = "link/x", .type = ENTRY_FILE, .size = 1, .mode = 0644 },
	{ .path = "other", .type = ENTRY_OTHER },
	{ .path = "../outside/new", .type = ENTRY_FILE, .size = 1 },
};

static char top[] = "/tmp/rsmcp-fuzz.XXXXXX";
static int top_fd, outside, root;
static struct tree list;

struct input {
	const uint8_t *data;
	size_t size, at, turn;
};

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	return at->level == 0 ? 0 : remove(path);
}

static void
leave(void)
{
	nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	rmdir(top);
}

static void
prepare(void)
{
	struct entry *e;
	size_t i;
	int fd;

	must(mkdtemp(top) != NULL);
	atexit(leave);
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	must(mkdirat(top_fd, "outside", 0755) == 0);
	outside = openat(top_fd, "outside", O_RDONLY | O_CLOEXEC);
	fd = openat(outside, "secret", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	must(write(fd, SECRET, strlen(SECRET)) == (ssize_t)strlen(SECRET));
	close(fd);
	tree_init(&list);
	for (i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		e = tree_add(&list, asked[i].path, asked[i].target);
		e->type = asked[i].type;
		e->size = asked[i].size;
		e->mode = asked[i].mode;
	}
	tree_sort(&list);
}

static ssize_t
take(void *data, void *to, size_t size, struct err *err)
{
	struct input *in = data;
	size_t n = in->size - in->at;

	(void)err;
	if (n == 0)
		return 0;
	if (in->turn < 4 && in->turn < in->size)
		size = 1 + (size_t)in->data[in->turn++] * 16 % size;
	if (n > size)
		n = size;
	memcpy(to, in->data + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

/* Only what lies below the root is looked at, relative to it. */
static int
check_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	const struct entry *e;
	char target[64];
	ssize_t n;

	(void)type;
	if (at->level == 0)
		return 0;
	e = tree_find(&list, path + strlen(top) + strlen("/inside/"));
	must(e != NULL);
	if (e->type == ENTRY_FILE) {
		must(S_ISREG(st->st_mode) && st->st_size == e->size);
		must(st->st_nlink == 1);
	} else if (e->type == ENTRY_DIR || S_ISDIR(st->st_mode)) {
		/* It may be one that was made on the way, in place of the link
		 * that did not come. */
		must(S_ISDIR(st->st_mode));
		must(e->type == ENTRY_DIR || strcmp(e->path, "link") == 0);
		return 0;
	} else {
		must(e->type == ENTRY_LINK && S_ISLNK(st->st_mode));
		n = readlink(path, target, sizeof(target));
		must(n == (ssize_t)strlen(e->target));
		must(memcmp(target, e->target, (size_t)n) == 0);
		return 0;
	}
	must((st->st_mode & 07777) == e->mode && st->st_mtime == 0);
	return 0;
}

static size_t
count_names(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	size_t n = 0;

	must(dir != NULL);
	rewinddir(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 2;
}

static void
check_outside(void)
{
	char got[64];
	int fd = openat(outside, "secret", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, got, sizeof(got));

	close(fd);
	must(n == (ssize_t)strlen(SECRET) &&
	    memcmp(got, SECRET, (size_t)n) == 0);
	must(count_names(outside) == 1);
	must(count_names(top_fd) == 2);
}

static void
check_told(void *data, const struct entry *e, const struct err *why)
{
	(void)data;
	must(e >= list.entries && e < list.entries + list.count);
	must(why == NULL || why->code != ERR_NONE);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct unpack_options o = { .wanted = &list, .done = check_told };
	struct input in = { .data = data, .size = size };
	struct err err = ERR_INIT;
	char inner[sizeof(top) + 8];

	if (list.count == 0)
		prepare();
	must(mkdirat(top_fd, "inside", 0755) == 0);
	root = openat(top_fd, "inside", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (unpack_stream(root, take, &in, &o, &err) == -1)
		must(err.code != ERR_NONE && err.msg[0] != '\0');
	else
		must(in.at == in.size);
	snprintf(inner, sizeof(inner), "%s/inside", top);
	must(nftw(inner, check_one, 16, FTW_PHYS) == 0);
	check_outside();
	must(nftw(inner, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	must(unlinkat(top_fd, "inside", AT_REMOVEDIR) == 0);
	close(root);
	return 0;
}
