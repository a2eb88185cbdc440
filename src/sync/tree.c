/* Trees as lists. */
#include "sync/tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BLOCK_SIZE ((size_t)64 << 10)

struct tree_block {
	struct tree_block *next;
	size_t used, size;
	char text[];
};

void
tree_init(struct tree *t)
{
	memset(t, 0, sizeof(*t));
}

void
tree_free(struct tree *t)
{
	struct tree_block *b, *next;

	for (b = t->blocks; b != NULL; b = next) {
		next = b->next;
		free(b);
	}
	free(t->entries);
	tree_init(t);
}

/* Room for a text.  One that fills a block gets its own, behind the first, so
 * that the rest of that one is not lost. */
static char *
text_space(struct tree *t, size_t size)
{
	struct tree_block *b = t->blocks;
	bool large = size > BLOCK_SIZE / 4;

	if (b == NULL || size > b->size - b->used) {
		size_t room = large ? size : BLOCK_SIZE - sizeof(*b);

		b = xmalloc(sizeof(*b) + room);
		b->used = 0;
		b->size = room;
		if (large && t->blocks != NULL) {
			b->next = t->blocks->next;
			t->blocks->next = b;
		} else {
			b->next = t->blocks;
			t->blocks = b;
		}
	}
	b->used += size;
	return b->text + b->used - size;
}

static const char *
text_copy(struct tree *t, const char *s)
{
	size_t size = strlen(s) + 1;

	return memcpy(text_space(t, size), s, size);
}

struct entry *
tree_add(struct tree *t, const char *path, const char *target)
{
	struct entry *e;

	if (t->count == t->room) {
		t->room = t->room == 0 ? 64 : t->room + t->room / 2;
		t->entries =
		    xreallocarray(t->entries, t->room, sizeof(*t->entries));
	}
	e = &t->entries[t->count++];
	memset(e, 0, sizeof(*e));
	e->path = text_copy(t, path);
	if (target != NULL)
		e->target = text_copy(t, target);
	return e;
}

/* The rank of a byte: the end, '/', then all others. */
static int
rank(char c)
{
	return c == '\0' ? 0 : c == '/' ? 1 : (unsigned char)c + 2;
}

int
tree_compare(const char *a, const char *b)
{
	while (*a == *b && *a != '\0') {
		a++;
		b++;
	}
	return rank(*a) - rank(*b);
}

/* Entries with the same path stay in the order in which they were added. */
static int
compare_entries(const void *a, const void *b)
{
	const struct entry *x = *(const struct entry *const *)a;
	const struct entry *y = *(const struct entry *const *)b;
	int c = tree_compare(x->path, y->path);

	return c != 0 ? c : (x > y) - (x < y);
}

static bool
is_sorted(const struct tree *t)
{
	size_t i;

	for (i = 1; i < t->count; i++) {
		if (tree_compare(t->entries[i - 1].path, t->entries[i].path) >=
		    0)
			return false;
	}
	return true;
}

/* Move entries to where "order" wants them, in place: each belongs to one
 * ring of moves. */
static void
put_in_order(struct entry *entries, const struct entry **order, size_t count)
{
	size_t i, at, next;

	for (i = 0; i < count; i++) {
		struct entry first = entries[i];

		for (at = i; order[at] != &entries[i]; at = next) {
			next = (size_t)(order[at] - entries);
			entries[at] = entries[next];
			order[at] = &entries[at];
		}
		entries[at] = first;
		order[at] = &entries[at];
	}
}

void
tree_sort(struct tree *t)
{
	const struct entry **order;
	size_t i, n = 0;

	if (is_sorted(t))
		return;
	order = xreallocarray(NULL, t->count, sizeof(struct entry *));
	for (i = 0; i < t->count; i++)
		order[i] = &t->entries[i];
	qsort(order, t->count, sizeof(struct entry *), compare_entries);
	put_in_order(t->entries, order, t->count);
	free(order);
	for (i = 0; i < t->count; i++) {
		if (n == 0 ||
		    strcmp(t->entries[n - 1].path, t->entries[i].path) != 0)
			t->entries[n++] = t->entries[i];
	}
	t->count = n;
}

static int
compare_path(const void *path, const void *entry)
{
	return tree_compare(path, ((const struct entry *)entry)->path);
}

const struct entry *
tree_find(const struct tree *t, const char *path)
{
	if (t->count == 0)
		return NULL;
	return bsearch(path, t->entries, t->count, sizeof(*t->entries),
	    compare_path);
}

void
tree_spread_kept(struct tree *t)
{
	size_t i;

	/* Directories come before what is in them. */
	for (i = t->count; i-- > 0;) {
		const char *path = t->entries[i].path;
		const char *slash = strrchr(path, '/');
		const struct entry *up;
		char *dir;

		if (!t->entries[i].kept || slash == NULL)
			continue;
		dir = xstrndup(path, (size_t)(slash - path));
		up = tree_find(t, dir);
		free(dir);
		if (up != NULL)
			t->entries[up - t->entries].kept = true;
	}
}

bool
tree_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 0)
		return path[0] != '\0';
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}
