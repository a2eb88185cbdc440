/*
 * Making one tree like another.
 *
 * Both lists have the same order, so one walk along the two sees each path
 * once.  "Top" is the directory of the source that holds the path just seen: a
 * stack of them is kept, as all that is below a directory follows it.
 */
#include "sync/plan.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SECOND INT64_C(1000000000)

/* What is known of an entry of the source that is a directory. */
enum {
	DIR_META = 1,    /* new, or its mode or mtime differs */
	DIR_TOUCHED = 2, /* names in it change, and so its mtime */
};

struct actions {
	struct action *list;
	size_t count, room;
};

/* A directory that cannot be written into as it is. */
struct shut {
	size_t from;
	const struct entry *to;
};

struct planner {
	struct plan *p;
	const struct tree *from, *to;
	const struct plan_options *o;
	void (*problem)(void *data, const char *path, const char *why);
	void *problem_data;
	struct actions open, doomed, make;
	uint8_t *flags; /* for each entry of the source */
	size_t *stack, depth, stack_room;
	struct shut *shut;
	size_t shut_count, shut_room;
	/* Directories of the target: all below goes, or stays as it is. */
	const char *going, *staying;
	/* A directory of the source whose content is not known. */
	const char *unknown;
};

static void
add(struct actions *a, enum action_kind kind, const struct entry *e)
{
	if (a->count == a->room) {
		a->room = a->room == 0 ? 64 : a->room + a->room / 2;
		a->list = xreallocarray(a->list, a->room, sizeof(*a->list));
	}
	a->list[a->count++] = (struct action){ kind, e };
}

static bool
same_time(const struct tree *from, int64_t a, const struct tree *to, int64_t b)
{
	int64_t diff = a > b ? a - b : b - a;

	if (from->whole_seconds || to->whole_seconds)
		return diff <= SECOND;
	if (diff == 0)
		return true;
	/* Who set one of them had whole seconds only. */
	return diff < SECOND &&
	    ((a % SECOND == 0 && b > a) || (b % SECOND == 0 && a > b));
}

bool
plan_unchanged(const struct tree *from, const struct entry *a,
    const struct tree *to, const struct entry *b)
{
	return a->size == b->size && same_time(from, a->mtime, to, b->mtime);
}

static void
tell(struct planner *pl, const struct entry *e, const char *why)
{
	if (pl->problem != NULL)
		pl->problem(pl->problem_data, e->path, why);
}

/* Names change in the directory that holds the path just seen. */
static void
touch(struct planner *pl)
{
	if (pl->depth > 0)
		pl->flags[pl->stack[pl->depth - 1]] |= DIR_TOUCHED;
}

static void
push(struct planner *pl, size_t i)
{
	if (pl->depth == pl->stack_room) {
		pl->stack_room = pl->stack_room * 2 + 16;
		pl->stack = xreallocarray(pl->stack, pl->stack_room,
		    sizeof(*pl->stack));
	}
	pl->stack[pl->depth++] = i;
}

static void
pop_to(struct planner *pl, const char *path)
{
	while (pl->depth > 0 &&
	    !tree_below(path, pl->from->entries[pl->stack[pl->depth - 1]].path))
		pl->depth--;
}

static void
doom(struct planner *pl, const struct entry *e)
{
	bool dir = e->type == ENTRY_DIR;

	if (dir && (e->mode & 0700) != 0700)
		add(&pl->open, ACTION_OPEN, e);
	add(&pl->doomed, dir ? ACTION_RMDIR : ACTION_DELETE, e);
	touch(pl);
}

/* Does the directory hold something that is in the list? */
static bool
holds_listed(const struct tree *t, const struct entry *dir)
{
	const struct entry *next = dir + 1;

	return next != t->entries + t->count &&
	    tree_below(next->path, dir->path);
}

static void
doom_extra(struct planner *pl, const struct entry *e)
{
	if (e->kept) {
		if ((e->mode & 0700) != 0700 && holds_listed(pl->to, e))
			add(&pl->open, ACTION_OPEN, e);
		return;
	}
	doom(pl, e);
	if (e->type == ENTRY_DIR)
		pl->p->deleted_dirs++;
	else
		pl->p->deleted_files++;
}

/* It makes room for something of another type. */
static void
doom_replaced(struct planner *pl, const struct entry *e)
{
	doom(pl, e);
	pl->p->replaced++;
}

/* The target has it, the source does not. */
static void
take_extra(struct planner *pl, const struct entry *e)
{
	if (pl->staying != NULL && tree_below(e->path, pl->staying))
		return;
	if (pl->going != NULL && tree_below(e->path, pl->going)) {
		doom_extra(pl, e);
		return;
	}
	if (!pl->o->delete_extras || pl->from->partial)
		return;
	if (pl->unknown != NULL && tree_below(e->path, pl->unknown))
		return;
	doom_extra(pl, e);
}

/* A host may say of any number of files that they are immense. */
static void
add_bytes(struct plan *p, int64_t size)
{
	p->bytes = size < INT64_MAX - p->bytes ? p->bytes + size : INT64_MAX;
}

static void
make(struct planner *pl, enum action_kind kind, const struct entry *e)
{
	add(&pl->make, kind, e);
	touch(pl);
	if (kind == ACTION_MKDIR)
		pl->p->new_dirs++;
	else if (kind == ACTION_FILE)
		pl->p->files++;
	else
		pl->p->links++;
	if (kind == ACTION_FILE)
		add_bytes(pl->p, e->size);
}

/* The content is right; the rest may not be. */
static void
take_same(struct planner *pl, const struct entry *e, const struct entry *t)
{
	pl->p->same++;
	if (same_time(pl->from, e->mtime, pl->to, t->mtime) &&
	    (e->type == ENTRY_LINK || e->mode == t->mode))
		return;
	add(&pl->make, ACTION_META, e);
	pl->p->metas++;
}

static bool
same_content(struct planner *pl, const struct entry *e, const struct entry *t)
{
	if (e->type != t->type)
		return false;
	if (e->type == ENTRY_LINK)
		return strcmp(e->target, t->target) == 0;
	if (pl->o->same != NULL)
		return e->size == t->size && pl->o->same(pl->o->data, e, t);
	return plan_unchanged(pl->from, e, pl->to, t);
}

/* A file or link of the source; "j" is the target's entry or its count. */
static void
take_file(struct planner *pl, const struct entry *e, size_t j)
{
	const struct entry *t = j < pl->to->count ? &pl->to->entries[j] : NULL;

	if (t != NULL && same_content(pl, e, t)) {
		take_same(pl, e, t);
		return;
	}
	if (t != NULL && t->type == ENTRY_DIR) {
		if (t->kept) {
			pl->staying = t->path;
			tell(pl, e,
			    "the target has a directory of this name, which "
			    "stays because of what is excluded in it");
			return;
		}
		if (!pl->o->delete_extras &&
		    (t->unread || holds_listed(pl->to, t))) {
			pl->staying = t->path;
			tell(pl, e,
			    "the target has a directory of this name, which is "
			    "replaced only with delete_extras");
			return;
		}
		pl->going = t->path;
		doom_replaced(pl, t);
	}
	make(pl, e->type == ENTRY_LINK ? ACTION_LINK : ACTION_FILE, e);
}

static void
remember_shut(struct planner *pl, size_t i, const struct entry *t)
{
	if (pl->shut_count == pl->shut_room) {
		pl->shut_room = pl->shut_room * 2 + 16;
		pl->shut =
		    xreallocarray(pl->shut, pl->shut_room, sizeof(*pl->shut));
	}
	pl->shut[pl->shut_count++] = (struct shut){ i, t };
}

static void
take_dir(struct planner *pl, size_t i, const struct entry *t)
{
	const struct entry *e = &pl->from->entries[i];

	if (t != NULL && t->type == ENTRY_DIR) {
		if (e->mode != t->mode ||
		    !same_time(pl->from, e->mtime, pl->to, t->mtime)) {
			pl->flags[i] |= DIR_META;
			pl->p->metas++;
		}
		if ((t->mode & 0700) != 0700)
			remember_shut(pl, i, t);
	} else {
		if (t != NULL)
			doom_replaced(pl, t);
		make(pl, ACTION_MKDIR, e);
		pl->flags[i] |= DIR_META;
	}
	if (e->unread &&
	    (pl->unknown == NULL || !tree_below(e->path, pl->unknown)))
		pl->unknown = e->path;
	push(pl, i);
}

/* "i" of the source; "j" the same path of the target, or its count. */
static void
take(struct planner *pl, size_t i, size_t j)
{
	const struct entry *e = &pl->from->entries[i];
	const struct entry *t = j < pl->to->count ? &pl->to->entries[j] : NULL;

	if (e->type == ENTRY_OTHER) {
		pl->p->specials++;
		tell(pl, e, "a device, socket or pipe; left out");
		if (t != NULL)
			pl->staying = t->path;
	} else if (e->type == ENTRY_DIR) {
		take_dir(pl, i, t);
	} else {
		take_file(pl, e, j);
	}
}

static void
walk(struct planner *pl)
{
	const struct tree *from = pl->from, *to = pl->to;
	size_t i = 0, j = 0;

	while (i < from->count || j < to->count) {
		int c = i == from->count ? 1
		    : j == to->count
		    ? -1
		    : tree_compare(from->entries[i].path, to->entries[j].path);

		pop_to(pl,
		    c <= 0 ? from->entries[i].path : to->entries[j].path);
		if (c <= 0)
			take(pl, i, c == 0 ? j : to->count);
		else
			take_extra(pl, &to->entries[j]);
		i += c <= 0;
		j += c >= 0;
	}
}

/* Put it together; what is needed no more is freed on the way. */
static void
assemble(struct planner *pl)
{
	struct actions all = { 0 };
	size_t i;

	for (i = 0; i < pl->shut_count; i++) {
		if (pl->flags[pl->shut[i].from] & DIR_TOUCHED) {
			add(&pl->open, ACTION_OPEN, pl->shut[i].to);
			pl->flags[pl->shut[i].from] |= DIR_META;
		}
	}
	all = pl->open;
	for (i = pl->doomed.count; i-- > 0;)
		add(&all, pl->doomed.list[i].kind, pl->doomed.list[i].entry);
	free(pl->doomed.list);
	for (i = 0; i < pl->make.count; i++)
		add(&all, pl->make.list[i].kind, pl->make.list[i].entry);
	free(pl->make.list);
	for (i = pl->from->count; i-- > 0;) {
		if (pl->flags[i] != 0)
			add(&all, ACTION_META, &pl->from->entries[i]);
	}
	pl->p->actions = all.list;
	pl->p->count = all.count;
	pl->p->room = all.room;
}

static int
by_path(const void *a, const void *b)
{
	const struct action *x = a, *y = b;

	return tree_compare(x->entry->path, y->entry->path);
}

void
plan_make(struct plan *p, const struct tree *from, const struct tree *to,
    const struct plan_options *o,
    void (*problem)(void *data, const char *path, const char *why),
    void *problem_data)
{
	struct planner pl = {
		.p = p,
		.from = from,
		.to = to,
		.o = o,
		.problem = problem,
		.problem_data = problem_data,
	};
	size_t opens, i;

	memset(p, 0, sizeof(*p));
	p->target_count = to->count;
	for (i = 0; i < to->count; i++)
		p->target_dirs += to->entries[i].type == ENTRY_DIR;
	pl.flags = xcalloc(from->count + 1, 1);
	walk(&pl);
	assemble(&pl);
	/* Those to be opened come from two lists; parents first. */
	for (opens = 0;
	     opens < p->count && p->actions[opens].kind == ACTION_OPEN;)
		opens++;
	if (opens > 1)
		qsort(p->actions, opens, sizeof(*p->actions), by_path);
	free(pl.flags);
	free(pl.stack);
	free(pl.shut);
}

void
plan_free(struct plan *p)
{
	free(p->actions);
	memset(p, 0, sizeof(*p));
}

bool
plan_deletes_much(const struct plan *p)
{
	size_t gone = p->deleted_files + p->deleted_dirs;
	size_t files = p->target_count - p->target_dirs;

	return gone > 0 &&
	    ((files > 0 && p->deleted_files >= files) ||
	        gone >= p->target_count ||
	        (p->target_count > 100 && gone > p->target_count / 2));
}
