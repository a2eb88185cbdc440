/*
 * Whatever a host sends as its list of files, what is taken is a tree: sorted,
 * each name once and behind its directory, nothing outside the root.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/path.h"
#include "sync/listing.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
take_problem(void *data, const char *path, const char *why)
{
	must(path != NULL && why[0] != '\0');
	++*(size_t *)data;
}

static void
check_entry(const struct tree *t, size_t i, const struct rules *r)
{
	const struct entry *e = &t->entries[i];
	const char *slash = strrchr(e->path, '/');

	must(i == 0 || tree_compare(t->entries[i - 1].path, e->path) < 0);
	must(path_inside(e->path) && strstr(e->path, "//") == NULL);
	must(e->type <= ENTRY_OTHER && e->mode <= 0777 && e->size >= 0);
	must((e->target != NULL) == (e->type == ENTRY_LINK));
	must(e->type == ENTRY_FILE || e->size == 0);
	must(!e->unread || e->type == ENTRY_DIR);
	must(!e->kept || e->type == ENTRY_DIR);
	must(!rules_staging(e->path));
	must(r == NULL || !rules_cover(r, e->path, e->type == ENTRY_DIR));
	if (slash != NULL) {
		char *dir = xstrndup(e->path, (size_t)(slash - e->path));
		const struct entry *up = tree_find(t, dir);

		must(up != NULL && up->type == ENTRY_DIR);
		free(dir);
	}
}

/* The first byte says how it is read, and in which pieces it comes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t problems = 0, piece, at, i;
	struct farlist_options o = { .problem = take_problem,
		.problem_data = &problems };
	struct far_root root;
	struct listing *l;
	struct tree t;
	struct err err = ERR_INIT;

	if (size == 0)
		return 0;
	o.rules = (data[0] & 1) != 0 ? rules_new() : NULL;
	o.max_entries = (data[0] & 2) != 0 ? 2 : 0;
	o.recursive = true;
	piece = (data[0] & 4) != 0 ? 1 + (size_t)data[0] / 8 : size;
	l = listing_new(&o, &root, &t);
	for (at = 1; at < size; at += piece)
		listing_add(l, (const char *)data + at,
		    piece < size - at ? piece : size - at);
	if (listing_end(l, &err) == 0) {
		must(root.path != NULL && root.path[0] == '/');
		must(root.kind == FAR_DIR || t.count == 0);
		must(o.max_entries == 0 || t.count <= o.max_entries);
		for (i = 0; i < t.count; i++)
			check_entry(&t, i, o.rules);
	} else {
		must(err.code != ERR_NONE && err.msg[0] != '\0');
	}
	listing_free(l);
	tree_free(&t);
	far_root_free(&root);
	rules_free(o.rules);
	return 0;
}
