/* A stream made smaller on its way: zlib, in gzip's form. */
#include "sync/squeeze.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>

#define ZLIB_CONST /* what goes in is not changed */
#include <zlib.h>

#include "base/mem.h"

/* The quickest level: the line shall be what is waited for. */
#define LEVEL 1
#define WINDOW_BITS (15 + 16) /* the largest; in gzip's form */
#define MEMORY 8              /* zlib's default */

#define BUFFER_SIZE ((size_t)64 << 10)

struct squeeze {
	pack_write *write;
	void *data;
	z_stream z;
	unsigned char out[BUFFER_SIZE];
};

struct squeeze *
squeeze_new(pack_write *write, void *data)
{
	struct squeeze *s = xcalloc(1, sizeof(*s));

	s->write = write;
	s->data = data;
	/* Only for want of memory can it fail. */
	if (deflateInit2(&s->z, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY,
	        Z_DEFAULT_STRATEGY) != Z_OK)
		out_of_memory();
	s->z.next_out = s->out;
	s->z.avail_out = sizeof(s->out);
	return s;
}

void
squeeze_free(struct squeeze *s)
{
	if (s == NULL)
		return;
	deflateEnd(&s->z);
	free(s);
}

/* Hand over what has come out. */
static int
hand_over(struct squeeze *s, struct err *err)
{
	size_t len = sizeof(s->out) - s->z.avail_out;

	s->z.next_out = s->out;
	s->z.avail_out = sizeof(s->out);
	return len == 0 ? 0 : s->write(s->data, s->out, len, err);
}

int
squeeze_write(void *squeeze, const void *bytes, size_t len, struct err *err)
{
	struct squeeze *s = squeeze;

	assert(len <= UINT_MAX);
	s->z.next_in = bytes;
	s->z.avail_in = (unsigned)len;
	while (s->z.avail_in > 0) {
		deflate(&s->z, Z_NO_FLUSH);
		if (s->z.avail_out == 0 && hand_over(s, err) == -1)
			return -1;
	}
	return 0;
}

int
squeeze_end(struct squeeze *s, struct err *err)
{
	int rc;

	do {
		rc = deflate(&s->z, Z_FINISH);
		if (hand_over(s, err) == -1)
			return -1;
	} while (rc != Z_STREAM_END);
	return 0;
}
