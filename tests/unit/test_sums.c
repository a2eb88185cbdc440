#include <stdlib.h>
#include <string.h>

#include "help.h"
#include "sync/sums.h"

#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

/* Both sides have these files, all of one size. */
struct sides {
	struct run r;
	struct sync_request req;
	struct sums *sums;
};

static void
begin(struct sides *x, const char *const *names)
{
	memset(x, 0, sizeof(*x));
	x->r.req = &x->req;
	tree_init(&x->r.local);
	tree_init(&x->r.remote);
	for (; *names != NULL; names++) {
		tree_add(&x->r.local, *names, NULL)->size = 3;
		tree_add(&x->r.remote, *names, NULL)->size = 3;
	}
	tree_sort(&x->r.local);
	tree_sort(&x->r.remote);
	x->sums = sums_begin(&x->r);
}

static void
end(struct sides *x)
{
	sums_free(x->sums);
	tree_free(&x->r.local);
	tree_free(&x->r.remote);
}

static void
says_of(struct sides *x, enum sums_side side, const char *text, size_t len)
{
	assert_true(sums_take(x->sums, side, text, len));
}

static bool
same(struct sides *x, const char *name)
{
	const struct entry *from = tree_find(&x->r.local, name);
	const struct entry *to = tree_find(&x->r.remote, name);

	assert_non_null(from);
	return sums_same(x->sums, from, to);
}

static void
equal_sums_are_the_same_file(void **state)
{
	static const char *const names[] = { "a", "b", "c\nd\\e", NULL };
	struct sides x;

	(void)state;
	begin(&x, names);
	says_of(&x, SUMS_HERE,
	    BYTES(A "  ./a\n" B " *./b\n\\" A "  ./c\\nd\\\\e\n"));
	says_of(&x, SUMS_THERE,
	    BYTES(A " ./a\n" A "  ./b\n\\" A "  ./c\\nd\\\\e\n"));
	assert_true(same(&x, "a"));
	assert_false(same(&x, "b"));
	assert_true(same(&x, "c\nd\\e"));
	end(&x);
}

/* It counts as soon as its end is there. */
static void
a_line_that_is_cut_off_says_nothing(void **state)
{
	static const char *const names[] = { "a", "b", NULL };
	struct sides x;

	(void)state;
	begin(&x, names);
	says_of(&x, SUMS_HERE, BYTES(A "  ./a\n" A "  ./b\n"));
	says_of(&x, SUMS_THERE, BYTES(A "  ./a"));
	assert_false(same(&x, "a"));
	says_of(&x, SUMS_THERE, BYTES("\n" A "  ./"));
	assert_true(same(&x, "a"));
	assert_false(same(&x, "b"));
	end(&x);
}

/* What is kept of the longer name is the shorter one. */
static void
a_name_that_is_too_long_is_no_other_one(void **state)
{
	size_t room = 16384 - strlen(A "  ./");
	char *name = repeated("n", room), *longer = repeated("n", room + 9);
	const char *const names[] = { name, longer, NULL };
	struct sides x;
	struct buf b;

	(void)state;
	buf_init(&b, SIZE_MAX);
	begin(&x, names);
	buf_addf(&b, A "  ./%s\n", name);
	says_of(&x, SUMS_HERE, b.data, b.len);
	says_of(&x, SUMS_THERE, BYTES(""));
	buf_reset(&b);
	buf_addf(&b, A "  ./%s\n", longer);
	says_of(&x, SUMS_THERE, b.data, b.len);
	assert_false(same(&x, name));
	end(&x);
	buf_free(&b);
	free(name);
	free(longer);
}

/* Busybox and the BSDs write the name "a\nb" as it is. */
static void
a_name_that_is_not_escaped_is_no_other_one(void **state)
{
	static const char *const names[] = { "a", "a\nb", NULL };
	struct sides x;

	(void)state;
	begin(&x, names);
	says_of(&x, SUMS_HERE, BYTES(A "  ./a\n\\" B "  ./a\\nb\n"));
	says_of(&x, SUMS_THERE, BYTES(B "  ./a\n" A "  ./a\nb\n"));
	assert_false(same(&x, "a"));
	assert_false(same(&x, "a\nb"));
	end(&x);
}

static void
what_is_no_line_of_theirs_says_nothing(void **state)
{
	static const char *const names[] = { "a", "xa", NULL };
	struct sides x;

	(void)state;
	begin(&x, names);
	says_of(&x, SUMS_HERE, BYTES(A "  ./a\n" A "  ./xa\n"));
	says_of(&x, SUMS_THERE, BYTES(A "  ./a\0b\n"));
	says_of(&x, SUMS_THERE, BYTES("\\" A "  ./\\xa\n"));
	says_of(&x, SUMS_THERE, BYTES(A "  a\nnonsense\n\n"));
	assert_false(same(&x, "a"));
	assert_false(same(&x, "xa"));
	end(&x);
}

static void
more_than_there_can_be_is_refused(void **state)
{
	static const char *const names[] = { "a", NULL };
	struct sides x;
	int i;

	(void)state;
	begin(&x, names);
	for (i = 0; i < 1000 && sums_take(x.sums, SUMS_THERE, "y\n", 2); i++)
		;
	assert_in_range(i, 1, 200);
	end(&x);
}

/* Its source has one name, its target another. */
static void
a_single_file_goes_by_its_name(void **state)
{
	static const char *const names[] = { "target", NULL };
	struct sides x;

	(void)state;
	begin(&x, names);
	sums_free(x.sums);
	x.r.source_name = (char *)"source";
	x.req.direction = SYNC_UP;
	x.sums = sums_begin(&x.r);
	says_of(&x, SUMS_HERE, BYTES(A "  ./source\n"));
	says_of(&x, SUMS_THERE, BYTES(A "  ./other\n"));
	assert_false(same(&x, "target"));
	says_of(&x, SUMS_THERE, BYTES(A "  ./target\n"));
	assert_true(same(&x, "target"));
	end(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_sums_are_the_same_file),
		cmocka_unit_test(a_line_that_is_cut_off_says_nothing),
		cmocka_unit_test(a_name_that_is_too_long_is_no_other_one),
		cmocka_unit_test(a_name_that_is_not_escaped_is_no_other_one),
		cmocka_unit_test(what_is_no_line_of_theirs_says_nothing),
		cmocka_unit_test(more_than_there_can_be_is_refused),
		cmocka_unit_test(a_single_file_goes_by_its_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
