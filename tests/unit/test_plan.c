#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "sync/plan.h"

#define S INT64_C(1000000000)

/* A tree from lines "TYPE MODE SIZE MTIME PATH [TARGET]"; "k" is a directory
 * that is kept. */
static void
fill(struct tree *t, const char *const *lines)
{
	tree_init(t);
	for (; *lines != NULL; lines++) {
		char type, path[64], target[64];
		unsigned mode;
		long long size, mtime;
		int n = sscanf(*lines, "%c %o %lld %lld %63s %63s", &type,
		    &mode, &size, &mtime, path, target);
		struct entry *e = tree_add(t, path, n == 6 ? target : NULL);

		assert_true(n >= 5);
		e->type = type == 'f' ? ENTRY_FILE
		    : type == 'd'     ? ENTRY_DIR
		    : type == 'k'     ? ENTRY_DIR
		    : type == 'l'     ? ENTRY_LINK
		                      : ENTRY_OTHER;
		e->mode = (uint16_t)mode;
		e->size = size;
		e->mtime = mtime;
		e->kept = type == 'k';
	}
	tree_sort(t);
}

static void
take_problem(void *data, const char *path, const char *why)
{
	buf_addf(data, "%s: %s\n", path, why);
}

struct made {
	struct tree from, to;
	struct plan plan;
	struct buf problems, text; /* text: the plan in lines */
};

static void
make(struct made *m, const char *const *from, const char *const *to,
    const struct plan_options *o)
{
	static const char *const words[] = { "open", "delete", "rmdir", "mkdir",
		"file", "link", "meta" };
	size_t i;

	buf_init(&m->problems, SIZE_MAX);
	buf_init(&m->text, SIZE_MAX);
	fill(&m->from, from);
	fill(&m->to, to);
	plan_make(&m->plan, &m->from, &m->to, o, take_problem, &m->problems);
	for (i = 0; i < m->plan.count; i++)
		buf_addf(&m->text, "%s %s\n", words[m->plan.actions[i].kind],
		    m->plan.actions[i].entry->path);
}

static void
done(struct made *m)
{
	plan_free(&m->plan);
	tree_free(&m->from);
	tree_free(&m->to);
	buf_free(&m->problems);
	buf_free(&m->text);
}

#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define NONE ((const char *const[]){ NULL })

static const struct plan_options plain;
static const struct plan_options deleting = { .delete_extras = true };

static void
brings_everything_to_an_empty_target(void **state)
{
	struct made m;

	(void)state;
	make(&m,
	    LINES("d 755 0 1 a", "f 644 5 1 a/f", "d 500 0 1 a/e",
	        "l 777 0 1 l a/f", "f 600 7 1 z"),
	    NONE, &plain);
	assert_string_equal(m.text.data,
	    "mkdir a\nmkdir a/e\nfile a/f\nlink l\nfile z\n"
	    "meta a/e\nmeta a\n");
	assert_int_equal(m.plan.files, 2);
	assert_int_equal(m.plan.links, 1);
	assert_int_equal(m.plan.new_dirs, 2);
	assert_int_equal(m.plan.bytes, 12);
	assert_int_equal(m.plan.metas, 0);
	assert_int_equal(m.plan.target_count, 0);
	assert_false(plan_deletes_much(&m.plan));
	done(&m);
}

static void
does_nothing_if_all_is_well(void **state)
{
	const char *const *lines =
	    LINES("d 755 0 1 a", "f 644 5 1 a/f", "l 777 0 1 l t");
	struct made m;

	(void)state;
	make(&m, lines, lines, &deleting);
	assert_int_equal(m.plan.count, 0);
	assert_int_equal(m.plan.same, 2);
	done(&m);
}

static void
mends_mode_and_mtime_alone(void **state)
{
	struct plan_options o = { 0 };
	struct made m;

	(void)state;
	make(&m,
	    LINES("d 755 0 1 a", "f 755 5 1 a/f", "f 644 5 2 a/g",
	        "l 777 0 1 l t"),
	    LINES("d 755 0 2 a", "f 644 5 1 a/f", "f 644 5 2 a/g",
	        "l 755 0 1 l t"),
	    &o);
	assert_string_equal(m.text.data, "meta a/f\nmeta a\n");
	assert_int_equal(m.plan.metas, 2);
	assert_int_equal(m.plan.same, 3);
	done(&m);
}

/* A change of names in a directory changes its mtime. */
static void
sets_the_mtime_of_directories_it_changed(void **state)
{
	struct made m;

	(void)state;
	make(&m, LINES("d 755 0 1 a", "d 755 0 1 a/b", "f 644 5 9 a/b/f"),
	    LINES("d 755 0 1 a", "d 755 0 1 a/b", "f 644 4 1 a/b/f",
	        "f 644 1 1 a/x"),
	    &deleting);
	assert_string_equal(m.text.data,
	    "delete a/x\nfile a/b/f\nmeta a/b\nmeta a\n");
	assert_int_equal(m.plan.metas, 0);
	done(&m);
}

static void
opens_directories_that_are_shut(void **state)
{
	struct made m;

	(void)state;
	make(&m, LINES("d 555 0 1 a", "f 644 5 9 a/f", "d 555 0 1 b"),
	    LINES("d 555 0 1 a", "d 555 0 1 b", "d 500 0 1 c", "f 644 1 1 c/f"),
	    &deleting);
	assert_string_equal(m.text.data,
	    "open a\nopen c\ndelete c/f\nrmdir c\nfile a/f\nmeta a\n");
	done(&m);
}

static void
deletes_only_when_asked(void **state)
{
	const char *const *to = LINES("d 755 0 1 d", "d 755 0 1 d/e",
	    "f 644 1 1 d/e/f", "l 777 0 1 l t", "p 644 0 1 p");
	struct made m;

	(void)state;
	make(&m, NONE, to, &plain);
	assert_int_equal(m.plan.count, 0);
	done(&m);
	make(&m, NONE, to, &deleting);
	assert_string_equal(m.text.data,
	    "delete p\ndelete l\ndelete d/e/f\nrmdir d/e\nrmdir d\n");
	assert_int_equal(m.plan.deleted_files, 3);
	assert_int_equal(m.plan.deleted_dirs, 2);
	assert_true(plan_deletes_much(&m.plan));
	done(&m);
}

static void
makes_room_for_a_directory(void **state)
{
	struct made m;

	(void)state;
	make(&m, LINES("d 755 0 1 a", "f 644 1 1 a/b"), LINES("l 777 0 1 a ."),
	    &plain);
	assert_string_equal(m.text.data,
	    "delete a\nmkdir a\nfile a/b\nmeta a\n");
	assert_int_equal(m.plan.replaced, 1);
	assert_int_equal(m.plan.deleted_files, 0);
	assert_false(plan_deletes_much(&m.plan));
	done(&m);
}

static void
leaves_a_full_directory_in_the_way(void **state)
{
	const char *const *from = LINES("f 644 1 1 a"),
	                  *const *to = LINES("d 755 0 1 a", "f 644 1 1 a/b");
	struct made m;

	(void)state;
	make(&m, from, to, &plain);
	assert_int_equal(m.plan.count, 0);
	says(m.problems.data, "a: the target has a directory");
	done(&m);
	make(&m, from, to, &deleting);
	assert_string_equal(m.text.data, "delete a/b\nrmdir a\nfile a\n");
	assert_int_equal(m.problems.len, 0);
	done(&m);
	make(&m, from, LINES("d 755 0 1 a", "f 644 1 1 a.b"), &plain);
	assert_string_equal(m.text.data, "rmdir a\nfile a\n");
	done(&m);
}

static void
leaves_special_files_out(void **state)
{
	struct made m;

	(void)state;
	make(&m, LINES("p 644 0 1 p", "p 644 0 1 q"),
	    LINES("d 755 0 1 p", "f 644 1 1 p/x"), &deleting);
	assert_int_equal(m.plan.count, 0);
	says(m.problems.data, "p: a device, socket or pipe");
	says(m.problems.data, "q: a device, socket or pipe");
	done(&m);
}

/* The source may have more than could be seen. */
static void
deletes_nothing_it_is_not_sure_of(void **state)
{
	const char *const *lines =
	    LINES("d 755 0 1 a", "f 644 1 1 a/b", "f 644 1 1 c");
	struct made m;
	struct plan p;

	(void)state;
	make(&m, LINES("d 755 0 1 a"), lines, &deleting);
	assert_string_equal(m.text.data, "delete c\ndelete a/b\nmeta a\n");
	m.from.entries[0].unread = true;
	plan_make(&p, &m.from, &m.to, &deleting, NULL, NULL);
	assert_int_equal(p.count, 1);
	assert_string_equal(p.actions[0].entry->path, "c");
	plan_free(&p);
	m.from.entries[0].unread = false;
	m.from.partial = true;
	plan_make(&p, &m.from, &m.to, &deleting, NULL, NULL);
	assert_int_equal(p.count, 0);
	plan_free(&p);
	done(&m);
}

static bool
never(void *data, const struct entry *from, const struct entry *to)
{
	(void)from;
	(void)to;
	++*(int *)data;
	return false;
}

static void
compares_content_of_files_of_one_size(void **state)
{
	int asked = 0;
	struct plan_options o = { .same = never, .data = &asked };
	struct made m;

	(void)state;
	make(&m, LINES("f 644 1 1 a", "f 644 1 1 b", "l 777 0 1 l t"),
	    LINES("f 644 1 1 a", "f 644 2 1 b", "l 777 0 1 l t"), &o);
	assert_string_equal(m.text.data, "file a\nfile b\n");
	assert_int_equal(asked, 1);
	done(&m);
}

static bool
unchanged(int64_t a, int64_t b, bool whole)
{
	struct tree x = { 0 }, y = { .whole_seconds = whole };
	struct entry e = { .mtime = a }, f = { .mtime = b };
	bool yes = plan_unchanged(&x, &e, &y, &f);

	assert_true(plan_unchanged(&y, &f, &x, &e) == yes);
	return yes;
}

static void
compares_times(void **state)
{
	struct tree t = { 0 };
	struct entry a = { .size = 1 }, b = { .size = 2 };

	(void)state;
	assert_true(unchanged(5 * S + 1, 5 * S + 1, false));
	assert_false(unchanged(5 * S + 1, 5 * S + 2, false));
	assert_true(unchanged(5 * S, 5 * S + 2, false));
	assert_false(unchanged(5 * S, 6 * S, false));
	assert_false(unchanged(5 * S, 4 * S + 999999999, false));
	assert_true(unchanged(-2 * S, -2 * S + 1, false));
	assert_true(unchanged(5 * S + 1, 6 * S, true));
	assert_true(unchanged(5 * S, 6 * S, true));
	assert_false(unchanged(5 * S, 6 * S + 1, true));
	assert_false(plan_unchanged(&t, &a, &t, &b));
}

static void
knows_a_slip(void **state)
{
	struct plan p = { .target_count = 100, .deleted_files = 60 };

	(void)state;
	assert_false(plan_deletes_much(&p));
	p.target_count = 101;
	assert_true(plan_deletes_much(&p));
	p.deleted_files = 50;
	assert_false(plan_deletes_much(&p));
	p.deleted_dirs = 1;
	assert_true(plan_deletes_much(&p));
	p = (struct plan){ .target_count = 1, .deleted_files = 1 };
	assert_true(plan_deletes_much(&p));
	/* Directories that stay are no comfort. */
	p = (struct plan){ .target_count = 50,
		.target_dirs = 10,
		.deleted_files = 40 };
	assert_true(plan_deletes_much(&p));
	p.deleted_files = 39;
	assert_false(plan_deletes_much(&p));
	p = (struct plan){ .target_count = 3,
		.target_dirs = 3,
		.deleted_dirs = 1 };
	assert_false(plan_deletes_much(&p));
	p = (struct plan){ 0 };
	assert_false(plan_deletes_much(&p));
}

static void
says_no_less_than_there_is_of_immense_files(void **state)
{
	static const struct plan_options o = { 0 };
	struct made m;

	(void)state;
	make(&m,
	    LINES("f 644 4611686018427387903 1 a",
	        "f 644 4611686018427387903 1 b",
	        "f 644 4611686018427387903 1 c",
	        "f 644 4611686018427387903 1 d", "f 644 4 1 e"),
	    LINES("f 644 1 1 a"), &o);
	assert_int_equal(m.plan.files, 5);
	assert_true(m.plan.bytes == INT64_MAX);
	done(&m);
}

static void
what_holds_something_excluded_stays_and_is_not_counted(void **state)
{
	struct made m;

	(void)state;
	make(&m, NONE,
	    LINES("k 500 0 1 a", "k 755 0 1 a/b", "f 644 1 1 a/f",
	        "k 500 0 1 c", "d 755 0 1 d"),
	    &deleting);
	assert_string_equal(m.text.data, "open a\nrmdir d\ndelete a/f\n");
	assert_int_equal(m.plan.deleted_dirs, 1);
	assert_int_equal(m.plan.deleted_files, 1);
	assert_string_equal(m.problems.data, "");
	done(&m);
	make(&m, LINES("f 644 1 1 a", "l 777 0 1 b x"),
	    LINES("k 755 0 1 a", "f 644 1 1 a/f", "k 755 0 1 b"), &deleting);
	assert_string_equal(m.text.data, "");
	says(m.problems.data, "a: the target has a directory of this name");
	says(m.problems.data, "b: the target has a directory of this name");
	done(&m);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(brings_everything_to_an_empty_target),
		cmocka_unit_test(does_nothing_if_all_is_well),
		cmocka_unit_test(mends_mode_and_mtime_alone),
		cmocka_unit_test(sets_the_mtime_of_directories_it_changed),
		cmocka_unit_test(opens_directories_that_are_shut),
		cmocka_unit_test(deletes_only_when_asked),
		cmocka_unit_test(makes_room_for_a_directory),
		cmocka_unit_test(leaves_a_full_directory_in_the_way),
		cmocka_unit_test(leaves_special_files_out),
		cmocka_unit_test(deletes_nothing_it_is_not_sure_of),
		cmocka_unit_test(compares_content_of_files_of_one_size),
		cmocka_unit_test(compares_times),
		cmocka_unit_test(knows_a_slip),
		cmocka_unit_test(says_no_less_than_there_is_of_immense_files),
		cmocka_unit_test(
		    what_holds_something_excluded_stays_and_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
