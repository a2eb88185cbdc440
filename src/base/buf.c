#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

#define FIRST_CAP 64
#define KEEP_CAP 4096 /* not worth giving back */

/* What data points to before anything was added.  Shared by all buffers of
 * all threads, so never written to. */
static char nothing[1];

static void
terminate(struct buf *b)
{
	if (b->cap > 0)
		b->data[b->len] = '\0';
}

/* Make sure "n" more bytes and a NUL fit, or as many as the limit allows;
 * returns that many. */
static size_t
reserve(struct buf *b, size_t n)
{
	size_t left = b->max - b->len;
	size_t need, cap;

	if (n > left)
		n = left;
	if (n == 0)
		return 0;
	if (n > SIZE_MAX - 1 - b->len)
		out_of_memory();
	need = b->len + n + 1;
	if (need <= b->cap)
		return n;

	cap = b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2;
	if (cap < FIRST_CAP)
		cap = FIRST_CAP;
	if (cap - 1 > b->max)
		cap = b->max + 1;
	if (cap < need)
		cap = need;
	b->data = xreallocarray(b->cap > 0 ? b->data : NULL, cap, 1);
	b->cap = cap;
	terminate(b);
	return n;
}

void
buf_init(struct buf *b, size_t max)
{
	*b = (struct buf){ .data = nothing, .max = max };
}

void
buf_free(struct buf *b)
{
	if (b == NULL)
		return;
	if (b->cap > 0)
		free(b->data);
	buf_init(b, b->max);
}

void
buf_reset(struct buf *b)
{
	b->len = 0;
	b->full = false;
	terminate(b);
}

void
buf_add(struct buf *b, const void *data, size_t len)
{
	size_t fits = reserve(b, len);

	if (fits < len)
		b->full = true;
	if (fits == 0)
		return;
	memcpy(b->data + b->len, data, fits);
	b->len += fits;
	terminate(b);
}

void
buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void
buf_addc(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void
buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap;
	size_t fits;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->full = true;
		return;
	}

	fits = reserve(b, (size_t)n);
	if (fits < (size_t)n)
		b->full = true;
	if (fits == 0)
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, fits + 1, fmt, ap);
	va_end(ap);
	b->len += fits;
}

void
buf_drop(struct buf *b, size_t n)
{
	if (n > b->len)
		n = b->len;
	if (n == 0)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len);
	terminate(b);
}

char *
buf_space(struct buf *b, size_t n, size_t *room)
{
	if (reserve(b, n > 0 ? n : 1) == 0)
		*room = 0;
	else
		*room = b->cap - 1 - b->len;
	return b->data + b->len;
}

void
buf_grew(struct buf *b, size_t n)
{
	if (n == 0)
		return;
	assert(b->cap > 0 && n <= b->cap - 1 - b->len);
	b->len += n;
	terminate(b);
}

void
buf_trim(struct buf *b)
{
	if (b->cap <= KEEP_CAP || b->cap == b->len + 1)
		return;
	if (b->len == 0) {
		free(b->data);
		b->data = nothing;
		b->cap = 0;
		return;
	}
	b->cap = b->len + 1;
	b->data = xreallocarray(b->data, b->cap, 1);
}

char *
buf_take(struct buf *b)
{
	char *s = b->cap > 0 ? b->data : xstrdup("");

	buf_init(b, b->max);
	return s;
}
