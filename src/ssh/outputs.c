/* Files of output. */
#include "ssh/outputs.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "config/dirs.h"

/* Only what looks like a file of ours goes. */
static void
remove_if_old(int dir_fd, const char *name)
{
	struct stat st;

	if (!str_ends(name, ".stdout") && !str_ends(name, ".stderr"))
		return;
	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISREG(st.st_mode) && time(NULL) - st.st_mtime > OUTPUTS_KEEP_S)
		unlinkat(dir_fd, name, 0);
}

static void
remove_old(void)
{
	struct err err;
	char *path = dirs_state_sub("outputs", &err);
	DIR *dir = path != NULL ? opendir(path) : NULL;
	const struct dirent *entry;

	free(path);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL)
		remove_if_old(dirfd(dir), entry->d_name);
	closedir(dir);
}

char *
outputs_path(const char *stream)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char name[RANDOM_HEX(8)];
	struct err err;
	char *dir, *path;

	pthread_once(&once, remove_old);
	dir = dirs_state_sub("outputs", &err);
	if (dir == NULL)
		return NULL;
	random_hex(name, 8);
	path = xasprintf("%s/%s.%s", dir, name, stream);
	free(dir);
	return path;
}
