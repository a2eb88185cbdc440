/* Looking for an agent. */
#include "ssh/agent.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/ident.h"
#include "base/mem.h"

char *
agent_find(void)
{
	static const char *const names[] = { "ssh-agent.socket",
		"openssh_agent", "gcr/ssh", "keyring/ssh",
		"gnupg/S.gpg-agent.ssh", NULL };
	const char *xdg = getenv("XDG_RUNTIME_DIR");
	char *dir, *path;
	size_t i;

	if (getenv("SSH_AUTH_SOCK") != NULL)
		return NULL;
	path = ident_inherited("SSH_AUTH_SOCK");
	if (path != NULL && fs_own_socket(path))
		return path;
	free(path);
	dir = xdg != NULL ? xstrdup(xdg)
	                  : xasprintf("/run/user/%ld", (long)geteuid());
	for (i = 0; names[i] != NULL; i++) {
		path = xasprintf("%s/%s", dir, names[i]);
		if (fs_own_socket(path)) {
			free(dir);
			return path;
		}
		free(path);
	}
	free(dir);
	return NULL;
}
