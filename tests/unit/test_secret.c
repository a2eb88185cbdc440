#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/secret.h"
#include "test.h"

static void
is_not_given_at_first(void **state)
{
	struct secret s = { 0 };

	(void)state;
	assert_false(secret_given(&s));
	secret_free(&s);
	secret_free(NULL);
}

static void
keeps_a_terminated_copy(void **state)
{
	char word[] = "hunter2 and more";
	struct secret s = { 0 };

	(void)state;
	secret_set(&s, word, 7);
	memset(word, 'x', sizeof(word));
	assert_true(secret_given(&s));
	assert_string_equal(s.data, "hunter2");
	assert_int_equal(s.len, 7);
	secret_free(&s);
}

static void
keeps_nul_bytes_and_empty_ones(void **state)
{
	struct secret s = { 0 };

	(void)state;
	secret_set(&s, "a\0b", 3);
	assert_int_equal(s.len, 3);
	assert_memory_equal(s.data, "a\0b", 4);
	secret_set(&s, "", 0);
	assert_true(secret_given(&s));
	assert_string_equal(s.data, "");
	secret_set(&s, NULL, 0);
	assert_string_equal(s.data, "");
	secret_free(&s);
}

static void
may_be_set_from_itself(void **state)
{
	struct secret s = { 0 };

	(void)state;
	secret_set(&s, "abcdef", 6);
	secret_set(&s, s.data + 2, 3);
	assert_string_equal(s.data, "cde");
	secret_free(&s);
}

static void
is_gone_when_freed_and_may_be_freed_again(void **state)
{
	struct secret s = { 0 };

	(void)state;
	secret_set(&s, "abc", 3);
	secret_free(&s);
	assert_null(s.data);
	assert_int_equal(s.len, 0);
	assert_false(secret_given(&s));
	secret_free(&s);
}

/* By a way that no sanitizer watches: the memory is not ours any more. */
static void
look_at(uintptr_t where, char *out, size_t size)
{
	int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);

	if (fd == -1) {
		print_message("SKIPPED: there is no /proc/self/mem\n");
		skip();
	}
	assert_int_equal(pread(fd, out, size, (off_t)where), size);
	close(fd);
}

static void
leaves_nothing_in_memory(void **state)
{
	char text[256], seen[128], zeros[128] = { 0 };
	struct secret s = { 0 };
	uintptr_t freed, replaced;

	(void)state;
	memset(text, 'x', sizeof(text));
	secret_set(&s, text, sizeof(text));
	replaced = (uintptr_t)s.data;
	secret_set(&s, text, sizeof(text));
	/* The beginning is what the allocator uses. */
	look_at(replaced + 64, seen, sizeof(seen));
	assert_memory_equal(seen, zeros, sizeof(seen));
	freed = (uintptr_t)s.data;
	look_at(freed + 64, seen, sizeof(seen));
	assert_memory_equal(seen, text, sizeof(seen));
	secret_free(&s);
	look_at(freed + 64, seen, sizeof(seen));
	assert_memory_equal(seen, zeros, sizeof(seen));
}

static void
compares_content(void **state)
{
	struct secret a = { 0 }, b = { 0 };

	(void)state;
	assert_true(secret_equal(&a, &b));
	secret_set(&a, "abc", 3);
	assert_false(secret_equal(&a, &b));
	assert_false(secret_equal(&b, &a));
	secret_set(&b, "abc", 3);
	assert_true(secret_equal(&a, &b));
	secret_set(&b, "xbc", 3);
	assert_false(secret_equal(&a, &b));
	secret_set(&b, "abx", 3);
	assert_false(secret_equal(&a, &b));
	secret_set(&b, "ab", 2);
	assert_false(secret_equal(&a, &b));
	secret_free(&a);
	secret_free(&b);
}

static void
tells_an_empty_one_from_none(void **state)
{
	struct secret none = { 0 }, empty = { 0 };

	(void)state;
	secret_set(&empty, "", 0);
	assert_false(secret_equal(&none, &empty));
	secret_free(&empty);
}

static void
compares_beyond_nul_bytes(void **state)
{
	struct secret a = { 0 }, b = { 0 };

	(void)state;
	secret_set(&a, "a\0b", 3);
	secret_set(&b, "a\0c", 3);
	assert_false(secret_equal(&a, &b));
	secret_free(&a);
	secret_free(&b);
}

static void
wipes_exactly_what_it_is_told(void **state)
{
	char data[] = "abcdef";

	(void)state;
	secret_wipe(data + 1, 3);
	assert_memory_equal(data, "a\0\0\0ef", 7);
	secret_wipe(NULL, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_not_given_at_first),
		cmocka_unit_test(keeps_a_terminated_copy),
		cmocka_unit_test(keeps_nul_bytes_and_empty_ones),
		cmocka_unit_test(may_be_set_from_itself),
		cmocka_unit_test(is_gone_when_freed_and_may_be_freed_again),
		cmocka_unit_test(leaves_nothing_in_memory),
		cmocka_unit_test(compares_content),
		cmocka_unit_test(tells_an_empty_one_from_none),
		cmocka_unit_test(compares_beyond_nul_bytes),
		cmocka_unit_test(wipes_exactly_what_it_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
