/*
 * Whatever rules and paths there are: what covers a directory covers all below
 * it, and names for elsewhere are excluded here as well.
 *
 * Input: lines; "p" a pattern, "i" a line of the root's .gitignore, "j" one of
 * the directory "a", anything else a path.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "sync/glob.h"
#include "sync/rules.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

struct check {
	const struct rules *rules;
	const char *path;
};

static void
check_name(void *data, const char *pattern)
{
	const struct check *c = data;
	const char *slash = strrchr(c->path, '/');

	if (glob_match(pattern, slash != NULL ? slash + 1 : c->path))
		must(rules_match(c->rules, c->path, false) &&
		    rules_match(c->rules, c->path, true));
}

static void
check_path(const struct rules *r, const char *path)
{
	struct check c = { r, path };
	char *below;

	if (!path_inside(path))
		return;
	must(!rules_match(r, path, true) || rules_cover(r, path, true));
	must(!rules_staging(path) || rules_match(r, path, false));
	below = xasprintf("%s/x", path);
	must(!rules_cover(r, path, true) || rules_cover(r, below, false));
	free(below);
	rules_each_name(r, check_name, &c);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rules *r = rules_new();
	char *text = xstrndup((const char *)data, size), *at = text, *line;

	while ((line = strsep(&at, "\n")) != NULL) {
		size_t n = strlen(line);

		if (*line == 'p')
			rules_add(r, line + 1);
		else if (*line == 'i')
			rules_add_gitignore(r, "", line + 1, n - 1);
		else if (*line == 'j')
			rules_add_gitignore(r, "a", line + 1, n - 1);
		else
			check_path(r, line);
	}
	free(text);
	rules_free(r);
	return 0;
}
