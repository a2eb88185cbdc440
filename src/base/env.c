/* Environments. */
#include "base/env.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

extern char **environ;

void
env_init(struct env *e)
{
	size_t n = 0, i;

	while (environ[n] != NULL)
		n++;
	e->list = xcalloc(n + 1, sizeof(*e->list));
	e->count = n;
	for (i = 0; i < n; i++)
		e->list[i] = xstrdup(environ[i]);
}

void
env_free(struct env *e)
{
	size_t i;

	for (i = 0; i < e->count; i++)
		free(e->list[i]);
	free(e->list);
	memset(e, 0, sizeof(*e));
}

static size_t
find(const struct env *e, const char *name)
{
	size_t len = strlen(name), i;

	for (i = 0; i < e->count; i++) {
		if (strncmp(e->list[i], name, len) == 0 &&
		    e->list[i][len] == '=')
			break;
	}
	return i;
}

void
env_set(struct env *e, const char *name, const char *value)
{
	size_t i = find(e, name);

	if (i < e->count) {
		free(e->list[i]);
		e->list[i] = e->list[--e->count];
	}
	if (value != NULL) {
		e->list =
		    xreallocarray(e->list, e->count + 2, sizeof(*e->list));
		e->list[e->count++] = xasprintf("%s=%s", name, value);
	}
	e->list[e->count] = NULL;
}

const char *
env_get(const struct env *e, const char *name)
{
	size_t i = find(e, name);

	return i < e->count ? e->list[i] + strlen(name) + 1 : NULL;
}

void
env_session(struct env *e)
{
	char *dir = xasprintf("/run/user/%ld", (long)geteuid());
	struct stat st;

	if (env_get(e, "XDG_RUNTIME_DIR") == NULL && stat(dir, &st) == 0 &&
	    S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		env_set(e, "XDG_RUNTIME_DIR", dir);
	free(dir);
}
