/* Looking for an agent. */
#include "ssh/agent.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static bool
is_our_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    st.st_uid == geteuid();
}

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

char *
agent_find(void)
{
	static const char *const names[] = { "ssh-agent.socket",
		"openssh_agent", "gcr/ssh", "keyring/ssh",
		"gnupg/S.gpg-agent.ssh", NULL };
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char *dir, *path;
	size_t i;

	if (tells(getenv("SSH_AUTH_SOCK")))
		return NULL;
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

bool
agent_there(void)
{
	const char *variable = getenv("SSH_AUTH_SOCK");
	char *found;
	bool there;

	if (variable != NULL && tells(variable))
		return variable[0] != '\0';
	found = agent_find();
	there = found != NULL;
	free(found);
	return there;
}
