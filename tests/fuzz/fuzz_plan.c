/*
 * Whatever two trees look like, the plan can be carried out step by step, by
 * somebody who may write only where the modes allow it, and then the target is
 * like the source.  What the trees do not show (it is excluded) is not touched.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = { "a", "a/a", "a/a/a", "a/a/b", "a/b",
	"a/b/a", "a/b/a/a", "a b", "a.b", "a.b/c", "b", "b/a", "b/a/c", "c" };

#define PATHS (sizeof(paths) / sizeof(paths[0]))
#define NOW INT64_C(123456789123456789)

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* A place of the target, as it is while the plan is carried out. */
struct place {
	bool there;
	bool hidden; /* excluded: not in the tree */
	bool fresh;  /* has the source's content */
	uint8_t type;
	uint16_t mode;
	int64_t mtime;
	const char *link;
};

struct world {
	struct place now[PATHS];
	bool blocked[PATHS]; /* a problem was told */
	bool told;           /* the tree knows of what is hidden */
};

static size_t
index_of(const char *path)
{
	size_t i;

	for (i = 0; i < PATHS; i++) {
		if (strcmp(paths[i], path) == 0)
			return i;
	}
	abort();
}

/* The place of the directory that holds it; PATHS is the root. */
static size_t
parent_of(size_t i)
{
	const char *slash = strrchr(paths[i], '/');
	char *dir;
	size_t p;

	if (slash == NULL)
		return PATHS;
	dir = xstrndup(paths[i], (size_t)(slash - paths[i]));
	p = index_of(dir);
	free(dir);
	return p;
}

/* --- Trees out of bytes --------------------------------------------------- */

static bool
dir_there(const struct place *p, size_t i)
{
	size_t up = parent_of(i);

	return up == PATHS ||
	    (p[up].there && p[up].type == ENTRY_DIR && !p[up].hidden);
}

static void
read_side(struct tree *t, struct place *places, const uint8_t *data,
    bool may_hide)
{
	static const int64_t times[] = { 1000000000, 2500000000, 2000000000,
		-1750000000 };
	static const uint16_t modes[] = { 0755, 0500, 0644, 0700 };
	size_t i;

	tree_init(t);
	for (i = 0; i < PATHS; i++) {
		uint8_t a = data[i * 2], b = data[i * 2 + 1];
		struct place *p = &places[i];
		struct entry *e;

		if ((a & 1) == 0 || !dir_there(places, i))
			continue;
		/* Nobody sees what is in a directory without r and x. */
		if (may_hide && parent_of(i) != PATHS &&
		    (places[parent_of(i)].mode & 0500) != 0500)
			continue;
		p->there = true;
		p->type = (a & 2) != 0 ? ENTRY_DIR : (a >> 2 & 3);
		p->mode = modes[b & 3];
		p->mtime = times[b >> 2 & 3];
		p->link = p->type == ENTRY_LINK ? (b & 16) ? "x" : "y" : NULL;
		p->hidden = may_hide && (b & 0xe0) == 0xe0;
		if (p->hidden)
			continue;
		e = tree_add(t, paths[i], p->link);
		e->type = p->type;
		e->mode = p->mode;
		e->mtime = p->mtime;
		if (p->type == ENTRY_FILE)
			e->size = b >> 4 & 1;
		e->unread = p->type == ENTRY_DIR && !may_hide && (b & 0x80);
	}
	tree_sort(t);
}

/* --- Carrying it out ------------------------------------------------------ */

/* Let the tree know of what is hidden. */
static void
tell_hidden(struct tree *t, const struct place *places)
{
	size_t i, k;

	for (i = 0; i < PATHS; i++) {
		for (k = 0; k < t->count; k++) {
			if (places[i].hidden &&
			    tree_below(paths[i], t->entries[k].path))
				t->entries[k].kept = true;
		}
	}
}

/* Names in the directory of "i" change. */
static void
change_in(struct world *w, size_t i)
{
	size_t up = parent_of(i);

	if (up == PATHS)
		return;
	must(w->now[up].there && w->now[up].type == ENTRY_DIR);
	must((w->now[up].mode & 0300) == 0300);
	w->now[up].mtime = NOW;
}

static bool
is_empty(const struct world *w, size_t dir)
{
	size_t i;

	for (i = 0; i < PATHS; i++) {
		if (w->now[i].there && parent_of(i) == dir)
			return false;
	}
	return true;
}

static bool
holds_hidden(const struct world *w, size_t dir)
{
	size_t i;

	for (i = 0; i < PATHS; i++) {
		if (w->now[i].hidden && w->now[i].there &&
		    tree_below(paths[i], paths[dir]))
			return true;
	}
	return false;
}

/* A directory that holds something excluded stays, and what should replace it
 * cannot come: that is no fault of the plan. */
static bool
put(struct world *w, size_t i, const struct entry *e)
{
	struct place *p = &w->now[i];

	if (p->there && (p->hidden || holds_hidden(w, i))) {
		w->blocked[i] = true;
		return false;
	}
	must(!p->there || p->type != ENTRY_DIR);
	change_in(w, i);
	*p = (struct place){ .there = true,
		.fresh = true,
		.type = e->type,
		.mode = e->mode,
		.mtime = e->mtime,
		.link = e->target };
	return true;
}

static void
carry_out(struct world *w, const struct action *a)
{
	size_t i = index_of(a->entry->path);
	struct place *p = &w->now[i];
	size_t up = parent_of(i);

	/* Below something that is blocked nothing can be done. */
	if (up != PATHS && w->blocked[up]) {
		w->blocked[i] = true;
		return;
	}
	for (; up != PATHS; up = parent_of(up))
		must((w->now[up].mode & 0100) != 0);
	switch (a->kind) {
	case ACTION_OPEN:
		must(p->there && p->type == ENTRY_DIR);
		p->mode |= 0700;
		break;
	case ACTION_DELETE:
		must(p->there && p->type != ENTRY_DIR && !p->hidden);
		change_in(w, i);
		p->there = false;
		break;
	case ACTION_RMDIR:
		must(p->there && p->type == ENTRY_DIR && !p->hidden);
		if (holds_hidden(w, i)) {
			must(!w->told);
			break;
		}
		must(is_empty(w, i));
		change_in(w, i);
		p->there = false;
		break;
	case ACTION_MKDIR:
		if (!p->there || p->hidden) {
			if (put(w, i, a->entry)) {
				p->mode = 0700;
				p->mtime = NOW;
			}
			break;
		}
		abort();
	case ACTION_FILE:
	case ACTION_LINK:
		put(w, i, a->entry);
		break;
	case ACTION_META:
		if (w->blocked[i])
			break;
		must(p->there && p->type == a->entry->type);
		p->mode = a->entry->mode;
		p->mtime = a->entry->mtime;
		break;
	}
}

/* --- What should have come of it ------------------------------------------ */

struct task {
	struct tree from, to;
	struct place before[PATHS];
	struct world w;
	struct plan_options o;
};

static bool
is_blocked(const struct task *t, const char *path)
{
	size_t i;

	for (i = 0; i < PATHS; i++) {
		if (t->w.blocked[i] &&
		    (strcmp(paths[i], path) == 0 || tree_below(path, paths[i])))
			return true;
	}
	return false;
}

static void
check_arrived(const struct task *t, const struct entry *e)
{
	const struct place *p = &t->w.now[index_of(e->path)];
	const struct entry *old = tree_find(&t->to, e->path);
	struct entry now = { .size = e->size, .mtime = p->mtime };

	if (e->type == ENTRY_OTHER || is_blocked(t, e->path))
		return;
	must(p->there && p->type == e->type);
	must(plan_unchanged(&t->from, e, &t->to, &now));
	if (e->type == ENTRY_LINK) {
		must(strcmp(p->link, e->target) == 0);
		return;
	}
	must(p->mode == e->mode);
	if (e->type == ENTRY_FILE && !p->fresh)
		must(old != NULL && old->type == ENTRY_FILE &&
		    old->size == e->size &&
		    (t->o.same != NULL ||
		        plan_unchanged(&t->from, e, &t->to, old)));
}

/* Something that only the target has, or had. */
static void
check_extra(const struct task *t, size_t i)
{
	const struct place *old = &t->before[i], *p = &t->w.now[i];
	bool unsure = t->from.partial, replaced = false;
	size_t up;

	for (up = parent_of(i); up != PATHS; up = parent_of(up)) {
		const struct entry *e = tree_find(&t->from, paths[up]);

		if (e == NULL)
			continue;
		if (e->type == ENTRY_OTHER ||
		    (e->type == ENTRY_DIR && e->unread))
			unsure = true;
		if (e->type != ENTRY_DIR && e->type != ENTRY_OTHER)
			replaced = true;
	}
	if (old->hidden) {
		must(p->there && p->type == old->type && p->mode == old->mode);
		return;
	}
	if (!t->o.delete_extras || (unsure && !replaced))
		must(p->there && !p->fresh && p->type == old->type &&
		    p->mode == old->mode);
	else
		must(!p->there || holds_hidden(&t->w, i) ||
		    is_blocked(t, paths[i]));
}

static void
note_problem(void *data, const char *path, const char *why)
{
	struct task *t = data;

	must(why[0] != '\0');
	t->w.blocked[index_of(path)] = true;
}

static bool
all_same(void *data, const struct entry *from, const struct entry *to)
{
	(void)data;
	must(from->size == to->size && strcmp(from->path, to->path) == 0);
	return true;
}

static void
check_counts(const struct plan *p)
{
	size_t n[ACTION_META + 1] = { 0 }, i;

	for (i = 0; i < p->count; i++)
		n[p->actions[i].kind]++;
	must(n[ACTION_DELETE] + n[ACTION_RMDIR] ==
	    p->deleted_files + p->deleted_dirs + p->replaced);
	must(n[ACTION_MKDIR] == p->new_dirs && n[ACTION_FILE] == p->files &&
	    n[ACTION_LINK] == p->links && n[ACTION_META] >= p->metas);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct place source[PATHS];
	struct task t;
	struct plan p;
	size_t i;

	if (size < 1 + PATHS * 4)
		return 0;
	memset(&t, 0, sizeof(t));
	memset(source, 0, sizeof(source));
	read_side(&t.from, source, data + 1, false);
	read_side(&t.to, t.before, data + 1 + PATHS * 2, true);
	t.o.delete_extras = (data[0] & 1) != 0;
	t.o.same = (data[0] & 2) != 0 ? all_same : NULL;
	t.from.partial = (data[0] & 12) == 12;
	t.to.whole_seconds = (data[0] & 48) == 48;
	t.w.told = (data[0] & 64) != 0;
	if (t.w.told)
		tell_hidden(&t.to, t.before);
	memcpy(t.w.now, t.before, sizeof(t.before));

	plan_make(&p, &t.from, &t.to, &t.o, note_problem, &t);
	check_counts(&p);
	must(!plan_deletes_much(&p) || t.o.delete_extras);
	for (i = 0; i < p.count; i++)
		carry_out(&t.w, &p.actions[i]);
	for (i = 0; i < t.from.count; i++)
		check_arrived(&t, &t.from.entries[i]);
	for (i = 0; i < PATHS; i++) {
		if (t.before[i].there && tree_find(&t.from, paths[i]) == NULL)
			check_extra(&t, i);
	}
	plan_free(&p);
	tree_free(&t.from);
	tree_free(&t.to);
	return 0;
}
