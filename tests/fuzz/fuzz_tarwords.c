/*
 * What the host's tar says: a file is told of only if a line names it and
 * speaks of reading, whatever else stands there, and all of it is read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/tarwords.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "a", "a: b", "b", "d/e", "d/f: ", "\xff" };

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_named(const char *begin, const char *end, const struct entry *e)
{
	char *words = xstrndup(begin, (size_t)(end - begin));
	char *name = xasprintf("./%s: ", e->path);

	must(strstr(words, name) != NULL);
	free(name);
	free(words);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *words = xstrndup((const char *)data, size);
	const char *at = words, *before = words;
	const struct entry *e;
	struct tree t;
	bool unknown;
	size_t i;

	tree_init(&t);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		tree_add(&t, names[i], NULL);
	tree_sort(&t);
	while ((e = tarwords_unread(&at, &t, &unknown)) != NULL) {
		must(!unknown && at > before);
		check_named(before, at, e);
		before = at;
	}
	must(at >= before && at <= words + strlen(words));
	must(unknown == (*at != '\0'));
	tree_free(&t);
	free(words);
	return 0;
}
