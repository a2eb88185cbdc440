/* Looking for an agent. */
#include "ssh/agent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "config/dirs.h"

#define ENV "SSH_AUTH_SOCK"
#define FILE_NAME "ssh-agent" /* in the state directory: the path of it */
#define PATH_MAX_BYTES 4096

static bool
is_socket(const char *path, bool ours)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    (!ours || st.st_uid == geteuid());
}

static bool
is_our_socket(const char *path)
{
	return is_socket(path, true);
}

/* The one in one of the usual places, or NULL. */
static char *
find_usual(void)
{
	static const char *const names[] = { "ssh-agent.socket",
		"openssh_agent", "gcr/ssh", "keyring/ssh",
		"gnupg/S.gpg-agent.ssh", NULL };
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char *dir, *path;
	size_t i;

	dir = xdg != NULL ? xstrdup(xdg)
	                  : xasprintf("/run/user/%ld", (long)geteuid());
	for (i = 0; names[i] != NULL; i++) {
		path = xasprintf("%s/%s", dir, names[i]);
		if (is_our_socket(path)) {
			free(dir);
			return path;
		}
		free(path);
	}
	free(dir);
	return NULL;
}

/* What was remembered, or NULL; it may be gone by now. */
static char *
read_remembered(const char *file)
{
	struct buf text;
	struct err err;

	buf_init(&text, PATH_MAX_BYTES);
	if (fs_read(file, &text, &err) == 0 && text.len > 0)
		return buf_take(&text);
	buf_free(&text);
	return NULL;
}

static char *
remembered_file(struct err *err)
{
	char *dir = dirs_state(err), *file = NULL;

	if (dir != NULL)
		file = path_join(dir, FILE_NAME);
	free(dir);
	return file;
}

static char *
find_remembered(void)
{
	struct err err;
	char *file = remembered_file(&err);
	char *path = file != NULL ? read_remembered(file) : NULL;

	free(file);
	if (path != NULL && is_our_socket(path))
		return path;
	free(path);
	return NULL;
}

char *
agent_find(void)
{
	const char *given = getenv(ENV);
	char *path;

	/* An empty one is a wish for none. */
	if (given != NULL && (given[0] == '\0' || is_socket(given, false)))
		return NULL;
	path = find_remembered();
	return path == NULL && given == NULL ? find_usual() : path;
}

int
agent_remember(struct err *err)
{
	const char *given = getenv(ENV);
	char *file, *old;
	int rc = 0;

	if (given == NULL || given[0] != '/' || !is_our_socket(given))
		return 0;
	file = remembered_file(err);
	if (file == NULL)
		return -1;
	old = read_remembered(file);
	if (old == NULL || strcmp(old, given) != 0)
		rc = fs_replace(file, given, strlen(given), 0600, err);
	free(old);
	free(file);
	return rc;
}

void
agent_forget(void)
{
	struct err err;
	char *file = remembered_file(&err);

	if (file != NULL)
		unlink(file);
	free(file);
}
