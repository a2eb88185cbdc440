/* Directories of our own. */
#include "config/dirs.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

/* ssh adds some 17 characters while it binds, we add about 20; a socket's
 * path has 104 bytes on the narrowest system. */
#define RUNTIME_LEN_MAX 60

/* Is it a directory of ours that nobody else can enter? */
static int
check_private(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) == -1)
		return err_sys(err, "cannot look at %s", path);
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid())
		return err_set(err, ERR_DENIED,
		    "%s is not a directory of this user; remove it", path);
	if ((st.st_mode & 077) != 0)
		return err_set(err, ERR_DENIED,
		    "%s can be entered by others; run chmod 700 on it", path);
	return 0;
}

static int
make_private(const char *path, struct err *err)
{
	if (mkdir(path, 0700) == -1 && errno != EEXIST)
		return err_sys(err, "cannot make %s", path);
	return check_private(path, err);
}

char *
dirs_runtime(struct err *err)
{
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char *path;

	if (xdg != NULL && xdg[0] == '/' &&
	    strlen(xdg) + strlen("/rsmcp") <= RUNTIME_LEN_MAX &&
	    access(xdg, W_OK | X_OK) == 0)
		path = xasprintf("%s/rsmcp", xdg);
	else
		path = xasprintf("/tmp/rsmcp-%ld", (long)geteuid());
	if (make_private(path, err) == 0)
		return path;
	free(path);
	return NULL;
}

static char *
state_path(struct err *err)
{
	const char *own = getenv("REMOTE_SANDBOX_MCP_HOME");
	const char *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (!str_blank(own))
		return path_home(own, home != NULL ? home : "/");
	if (home == NULL) {
		err_set(err, ERR_NOT_FOUND,
		    "HOME is not set, so there is no place for state; set "
		    "REMOTE_SANDBOX_MCP_HOME");
		return NULL;
	}
#ifdef __APPLE__
	(void)xdg;
	return path_join(home,
	    "Library/Application Support/remote-sandbox-mcp");
#else
	if (xdg != NULL && xdg[0] == '/')
		return path_join(xdg, "remote-sandbox-mcp");
	return path_join(home, ".local/state/remote-sandbox-mcp");
#endif
}

/*
 * Close a directory of ours to others: those that the earlier Python server
 * made were open.  One that the user named as REMOTE_SANDBOX_MCP_HOME may be
 * used for more, and stays as it is.
 */
static void
tighten(const char *path)
{
	struct stat st;

	if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
	    st.st_uid == geteuid() && (st.st_mode & 077) != 0)
		(void)chmod(path, 0700);
}

char *
dirs_state(struct err *err)
{
	char *path = state_path(err);

	if (path != NULL && fs_mkdirs(path, 0700, err) == -1) {
		free(path);
		return NULL;
	}
	if (path != NULL && str_ends(path, "/remote-sandbox-mcp"))
		tighten(path);
	return path;
}

char *
dirs_state_sub(const char *name, struct err *err)
{
	char *state = dirs_state(err);
	char *path;

	if (state == NULL)
		return NULL;
	path = path_join(state, name);
	free(state);
	if (fs_mkdirs(path, 0700, err) == -1) {
		free(path);
		return NULL;
	}
	tighten(path);
	return path;
}
