#include "base/base64.h"

void
base64_add(struct buf *out, const void *bytes, size_t len)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                              "abcdefghijklmnopqrstuvwxyz"
	                              "0123456789+/";
	const unsigned char *s = bytes;
	size_t i, k;

	for (i = 0; i < len; i += 3) {
		unsigned long three = (unsigned long)s[i] << 16;
		char four[4] = "====";

		if (i + 1 < len)
			three |= (unsigned long)s[i + 1] << 8;
		if (i + 2 < len)
			three |= s[i + 2];
		for (k = 0; k < 4 && i + k <= len; k++)
			four[k] = letters[three >> (18 - 6 * k) & 63];
		buf_add(out, four, sizeof(four));
	}
}
