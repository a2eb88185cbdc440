/* Randomness from the system. */
#include "base/random.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif

#define HEX_MAX 64

void
random_bytes(void *out, size_t len)
{
	assert(len <= 256);
	if (getentropy(out, len) == -1) {
		fprintf(stderr, "remote-sandbox-mcp: no random numbers\n");
		abort();
	}
}

void
random_hex(char *out, size_t n)
{
	unsigned char bytes[HEX_MAX];
	size_t i;

	assert(n <= HEX_MAX);
	out[0] = '\0';
	random_bytes(bytes, n);
	for (i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}
