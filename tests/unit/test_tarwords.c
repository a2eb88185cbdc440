#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "help.h"
#include "sync/tarwords.h"

static const char *const names[] = { "a", "b", "b: c", "d/e: Read error",
	"new\n", "\xc3\xa9" };

static void
fill(struct tree *t)
{
	size_t i;

	tree_init(t);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		tree_add(t, names[i], NULL);
	tree_sort(t);
}

/* The words tell of these files, in this order; then "?" if of an unknown one.
 */
static void
tell(const char *words, const char *const *files)
{
	const struct entry *e;
	struct tree t;
	bool unknown;

	fill(&t);
	while ((e = tarwords_unread(&words, &t, &unknown)) != NULL) {
		assert_non_null(*files);
		assert_string_equal(e->path, *files++);
	}
	if (unknown)
		assert_string_equal(*files++, "?");
	else
		assert_string_equal(words, "");
	assert_null(*files);
	tree_free(&t);
}

#define TELL(words, ...) tell(words, (const char *const[]){ __VA_ARGS__, NULL })

static void
files_are_told_by_their_names(void **state)
{
	(void)state;
	TELL("tar: ./a: Read error at byte 0, while reading 5 bytes: "
	     "Input/output error\n"
	     "tar: ./b: c: Cannot open: Stale file handle\n"
	     "tar: ./\xc3\xa9: Read error at byte 512\n"
	     "tar: ./d/e: Read error: Cannot stat: Input/output error\n"
	     "tar: Exiting with failure status due to previous errors",
	    "a", "b: c", "\xc3\xa9", "d/e: Read error");
	TELL("tar: ./b: Read error at byte 0", "b");
}

static void
other_words_are_none(void **state)
{
	(void)state;
	TELL("", NULL);
	TELL("\n\ntar: ./a: Cannot open: Permission denied\n"
	     "tar: ./b: file changed as we read it\n",
	    NULL);
}

static void
what_nobody_knows_is_unknown(void **state)
{
	(void)state;
	TELL("tar: ./a: Read error\ntar: -: Read error\ntar: ./b: Read error\n",
	    "a", "?");
	TELL("tar: ./x: Input/output error", "?");
	TELL("tar: ./new\n: Read error", "?");
	TELL("Read error ./", "?");
	TELL("tar: ./a:Read error", "?");
}

static void
long_lines_take_no_time(void **state)
{
	size_t i, size = (size_t)1 << 20;
	char *words = xmalloc(size + 1);

	(void)state;
	memcpy(words, "./Read error", 12);
	for (i = 12; i < size; i++)
		words[i] = i % 2 == 0 ? ':' : ' ';
	words[size] = '\0';
	TELL(words, "?");
	free(words);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files_are_told_by_their_names),
		cmocka_unit_test(other_words_are_none),
		cmocka_unit_test(what_nobody_knows_is_unknown),
		cmocka_unit_test(long_lines_take_no_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
