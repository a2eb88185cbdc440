#include "sync/tarwords.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* The file in "tar: ./name: ...", or NULL.  A name may have a colon in it: of
 * those that fit the longest is meant. */
static const struct entry *
named(const struct tree *wanted, const char *line)
{
	const char *name = strstr(line, "./"), *at;
	const struct entry *e = NULL, *found;
	char *path;

	if (name == NULL)
		return NULL;
	name += 2;
	for (at = name; (at = strstr(at, ": ")) != NULL; at++) {
		if (at - name > PATH_MAX)
			break;
		path = xstrndup(name, (size_t)(at - name));
		found = tree_find(wanted, path);
		if (found != NULL)
			e = found;
		free(path);
	}
	return e;
}

static bool
speaks_of_reading(const char *line)
{
	static const char *const words[] = { "ead error", "nput/output error",
		"tale file handle", NULL };
	size_t i;

	for (i = 0; words[i] != NULL; i++) {
		if (strstr(line, words[i]) != NULL)
			return true;
	}
	return false;
}

const struct entry *
tarwords_unread(const char **at, const struct tree *wanted, bool *unknown)
{
	*unknown = false;
	while (**at != '\0') {
		size_t len = strcspn(*at, "\n");
		char *line = xstrndup(*at, len);
		bool bad = speaks_of_reading(line);
		const struct entry *e = bad ? named(wanted, line) : NULL;

		free(line);
		*unknown = bad && e == NULL;
		if (*unknown)
			return NULL;
		*at += len + ((*at)[len] == '\n');
		if (e != NULL)
			return e;
	}
	return NULL;
}
