#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

void
out_of_memory(void)
{
	static const char line[] = "remote-sandbox-mcp: out of memory\n";
	ssize_t n = write(STDERR_FILENO, line, sizeof(line) - 1);

	(void)n;
	_exit(1);
}

/* malloc(0) may return NULL; ours may not. */
static size_t
at_least_one(size_t size)
{
	return size > 0 ? size : 1;
}

void *
xmalloc(size_t size)
{
	void *p = malloc(at_least_one(size));

	if (p == NULL)
		out_of_memory();
	return p;
}

void *
xcalloc(size_t count, size_t size)
{
	void *p = calloc(at_least_one(count), at_least_one(size));

	if (p == NULL)
		out_of_memory();
	return p;
}

void *
xreallocarray(void *old, size_t count, size_t size)
{
	void *p;

	if (size > 0 && count > SIZE_MAX / size)
		out_of_memory();
	p = realloc(old, at_least_one(count * size));
	if (p == NULL)
		out_of_memory();
	return p;
}

char *
xstrdup(const char *s)
{
	return xstrndup(s, strlen(s));
}

char *
xstrndup(const char *s, size_t len)
{
	size_t n = strnlen(s, len);
	char *copy = xmalloc(n + 1);

	memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}

char *
xasprintf(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0)
		out_of_memory();
	return s;
}
