#include "base/sha1.h"

#include "help.h"

/* The examples of RFC 3174, and lengths around the end of a block. */
static void
texts_have_their_known_digests(void **state)
{
	static const struct {
		const char *unit;
		size_t times;
		const char *digest;
	} known[] = {
		{ "", 0, "da39a3ee5e6b4b0d3255bfef95601890afd80709" },
		{ "abc", 1, "a9993e364706816aba3e25717850c26c9cd0d89d" },
		{ "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
		    "84983e441c3bd26ebaae4aa1f95129e5e54670f1" },
		{ "a", 55, "c1c8bbdc22796e28c0e15163d20899b65621d65a" },
		{ "a", 56, "c2db330f6083854c99d4b5bfb6e8f29f201be699" },
		{ "a", 63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5" },
		{ "a", 64, "0098ba824b5c16427bd7a1122a5a442a25ec644d" },
		{ "a", 65, "11655326c708d70319be2610e8a57d9a5b959d3b" },
		{ "a", 119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56" },
		{ "a", 120, "f34c1488385346a55709ba056ddd08280dd4c6d6" },
		{ "a", 1000000, "34aa973cd4c4daa4f61eeb2bdbad27316534016f" },
	};
	char out[SHA1_HEX];
	char *text;
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		text = repeated(known[i].unit, known[i].times);
		sha1_hex(out, text, strlen(text));
		assert_string_equal(out, known[i].digest);
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_have_their_known_digests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
