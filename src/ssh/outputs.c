/* Files of output. */
#include "ssh/outputs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "base/until.h"
#include "config/dirs.h"

#define TIDY_MS 1000

/* One that is there. */
struct file {
	char *name;
	time_t mtime;
	int64_t size;
};

struct files {
	struct file *list;
	size_t count, room;
	int64_t bytes;
};

/* Only what looks like a file of ours counts. */
static void
add_file(struct files *f, int dir_fd, const char *name)
{
	struct stat st;

	if (!str_ends(name, ".stdout") && !str_ends(name, ".stderr"))
		return;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == -1 ||
	    !S_ISREG(st.st_mode))
		return;
	if (f->count == f->room) {
		f->room = f->room > 0 ? f->room * 2 : 64;
		f->list = xreallocarray(f->list, f->room, sizeof(*f->list));
	}
	f->list[f->count++] = (struct file){ .name = xstrdup(name),
		.mtime = st.st_mtime,
		.size = st.st_size };
	f->bytes += st.st_size;
}

static int
older_first(const void *a, const void *b)
{
	const struct file *x = a, *y = b;

	return (x->mtime > y->mtime) - (x->mtime < y->mtime);
}

/* Unless somebody writes it. */
static bool
remove_file(int dir_fd, const char *name)
{
	/* NFS wants to write what it locks. */
	int fd =
	    openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool gone;

	if (fd == -1)
		return false;
	gone = (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) &&
	    unlinkat(dir_fd, name, 0) == 0;
	close(fd);
	return gone;
}

static void
tidy(int dir_fd, struct files *f)
{
	time_t now = time(NULL);
	size_t i, count = f->count;

	qsort(f->list, f->count, sizeof(*f->list), older_first);
	for (i = 0; i < f->count; i++) {
		if (now - f->list[i].mtime <= OUTPUTS_KEEP_S &&
		    count <= OUTPUTS_FILES_MAX && f->bytes <= OUTPUTS_BYTES_MAX)
			break;
		if (remove_file(dir_fd, f->list[i].name)) {
			count--;
			f->bytes -= f->list[i].size;
		}
	}
}

static void
tidy_dir(const char *path)
{
	struct files f = { 0 };
	const struct dirent *entry;
	DIR *dir = opendir(path);

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		add_file(&f, dirfd(dir), entry->d_name);
	if (f.count > 0)
		tidy(dirfd(dir), &f);
	closedir(dir);
	while (f.count > 0)
		free(f.list[--f.count].name);
	free(f.list);
}

/* Is it time to?  Not for each of many calls at once. */
static bool
tidy_is_due(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static int64_t last = -TIDY_MS;
	int64_t now = clock_ms();
	bool due;

	pthread_mutex_lock(&lock);
	due = now - last >= TIDY_MS;
	if (due)
		last = now;
	pthread_mutex_unlock(&lock);
	return due;
}

char *
outputs_path(const char *stream)
{
	char name[RANDOM_HEX(8)];
	struct err err;
	char *dir = dirs_state_sub("outputs", &err), *path;

	if (dir == NULL)
		return NULL;
	if (tidy_is_due())
		tidy_dir(dir);
	random_hex(name, 8);
	path = xasprintf("%s/%s.%s", dir, name, stream);
	free(dir);
	return path;
}
