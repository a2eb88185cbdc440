#include "base/base64.h"
#include "help.h"

static void
check(const char *bytes, size_t len, const char *want)
{
	struct buf b;

	buf_init(&b, 1000);
	base64_add(&b, bytes, len);
	assert_string_equal(b.data, want);
	buf_free(&b);
}

/* RFC 4648, section 10. */
static void
gives_what_the_standard_says(void **state)
{
	(void)state;
	check(BYTES(""), "");
	check(BYTES("f"), "Zg==");
	check(BYTES("fo"), "Zm8=");
	check(BYTES("foo"), "Zm9v");
	check(BYTES("foob"), "Zm9vYg==");
	check(BYTES("fooba"), "Zm9vYmE=");
	check(BYTES("foobar"), "Zm9vYmFy");
}

static void
takes_any_byte(void **state)
{
	(void)state;
	check(BYTES("\0\0\0"), "AAAA");
	check(BYTES("\xff\xff\xff"), "////");
	check(BYTES("\xfb\xef\xbe\x00"), "++++AA==");
	check(BYTES("\x80"), "gA==");
}

static void
appends(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 100);
	buf_adds(&b, "x:");
	base64_add(&b, "foo", 3);
	assert_string_equal(b.data, "x:Zm9v");
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_what_the_standard_says),
		cmocka_unit_test(takes_any_byte),
		cmocka_unit_test(appends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
