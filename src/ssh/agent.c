/* Looking for an agent. */
#include "ssh/agent.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/path.h"
#include "config/dirs.h"

#define ENV "SSH_AUTH_SOCK"
#define FILE_NAME "ssh-agent" /* in the state directory: the path of it */
#define PATH_MAX_BYTES 4096

/* Does the variable name an agent, or say that there is to be none?  What a
 * client could not fill in ("$SSH_AUTH_SOCK") and what is left of an agent that
 * has ended do neither. */
static bool
tells(const char *variable)
{
	struct stat st;

	return variable != NULL &&
	    (variable[0] == '\0' ||
	        (stat(variable, &st) == 0 && S_ISSOCK(st.st_mode)));
}

/* The path if it is a socket of ours; else it is freed. */
static char *
usable(char *path)
{
	if (path != NULL && fs_own_socket(path))
		return path;
	free(path);
	return NULL;
}

/* That of who started us, or NULL. */
static char *
find_inherited(void)
{
	return usable(ident_inherited(ENV));
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
	char *path = file != NULL ? usable(read_remembered(file)) : NULL;

	free(file);
	return path;
}

/* The one in one of the usual places, or NULL. */
static char *
find_usual(void)
{
	static const char *const names[] = { "ssh-agent.socket",
		"openssh_agent", "gcr/ssh", "keyring/ssh",
		"gnupg/S.gpg-agent.ssh", NULL };
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char *dir, *path = NULL;
	size_t i;

	dir = xdg != NULL ? xstrdup(xdg)
	                  : xasprintf("/run/user/%ld", (long)geteuid());
	for (i = 0; names[i] != NULL && path == NULL; i++)
		path = usable(xasprintf("%s/%s", dir, names[i]));
	free(dir);
	return path;
}

char *
agent_find(void)
{
	char *path;

	if (tells(getenv(ENV)))
		return NULL;
	path = find_inherited();
	if (path == NULL)
		path = find_remembered();
	return path != NULL ? path : find_usual();
}

bool
agent_there(void)
{
	const char *variable = getenv(ENV);
	char *found;
	bool there;

	if (variable != NULL && tells(variable))
		return variable[0] != '\0';
	found = agent_find();
	there = found != NULL;
	free(found);
	return there;
}

int
agent_remember(struct err *err)
{
	const char *variable = getenv(ENV);
	char *path, *file, *old = NULL;
	int rc = 0;

	path = tells(variable) ? usable(xstrdup(variable)) : find_inherited();
	if (path == NULL || path[0] != '/') {
		free(path);
		return 0;
	}
	file = remembered_file(err);
	if (file == NULL)
		rc = -1;
	else
		old = read_remembered(file);
	if (rc == 0 && (old == NULL || strcmp(old, path) != 0))
		rc = fs_replace(file, path, strlen(path), 0600, err);
	free(old);
	free(file);
	free(path);
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
