#include "base/sha1.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint32_t
rotate(uint32_t x, int n)
{
	return x << n | x >> (32 - n);
}

static void
mix(uint32_t h[5], const unsigned char block[64])
{
	uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];
	uint32_t w[80], f, k, t;
	size_t i;

	for (i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 |
		    (uint32_t)block[4 * i + 1] << 16 |
		    (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (i = 0; i < 80; i++) {
		if (i < 20) {
			f = (b & c) | (~b & d);
			k = 0x5a827999;
		} else if (i < 40) {
			f = b ^ c ^ d;
			k = 0x6ed9eba1;
		} else if (i < 60) {
			f = (b & c) | (b & d) | (c & d);
			k = 0x8f1bbcdc;
		} else {
			f = b ^ c ^ d;
			k = 0xca62c1d6;
		}
		t = rotate(a, 5) + f + e + k + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

void
sha1_hex(char out[SHA1_HEX], const void *data, size_t len)
{
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
		0xc3d2e1f0 };
	const unsigned char *at = data;
	unsigned char last[128] = { 0 };
	uint64_t bits = (uint64_t)len * 8;
	size_t rest, size;
	int i;

	for (rest = len; rest >= 64; rest -= 64, at += 64)
		mix(h, at);
	if (rest > 0)
		memcpy(last, at, rest);
	last[rest] = 0x80;
	size = rest < 56 ? 64 : 128;
	for (i = 0; i < 8; i++)
		last[size - 1 - (size_t)i] = (unsigned char)(bits >> (8 * i));
	mix(h, last);
	if (size == 128)
		mix(h, last + 64);
	for (i = 0; i < 5; i++)
		snprintf(out + (size_t)8 * (size_t)i, 9, "%08x", h[i]);
}
