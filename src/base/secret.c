#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"

/* The compiler cannot know what this points to, so it must call it. */
static void *(*const volatile overwrite)(void *, int, size_t) = memset;

void
secret_wipe(void *data, size_t len)
{
	if (len > 0)
		overwrite(data, 0, len);
}

void
secret_set(struct secret *s, const char *data, size_t len)
{
	char *copy = xmalloc(len + 1);

	if (len > 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	secret_free(s);
	s->data = copy;
	s->len = len;
}

void
secret_free(struct secret *s)
{
	if (s == NULL || s->data == NULL)
		return;
	secret_wipe(s->data, s->len);
	free(s->data);
	s->data = NULL;
	s->len = 0;
}

bool
secret_given(const struct secret *s)
{
	return s->data != NULL;
}

bool
secret_equal(const struct secret *a, const struct secret *b)
{
	volatile unsigned char differ = 0;
	size_t i;

	if (secret_given(a) != secret_given(b) || a->len != b->len)
		return false;
	for (i = 0; i < a->len; i++)
		differ |= (unsigned char)(a->data[i] ^ b->data[i]);
	return differ == 0;
}
