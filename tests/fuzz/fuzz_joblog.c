/*
 * Whatever is in a log comes out as clean lines, as many as it had; whatever
 * is asked to be looked for is an expression or refused.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tools/expression.h"
#include "tools/jobs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static size_t
newlines(const char *s, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += s[i] == '\n';
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = size > 0 ? (const char *)data : "";
	char *text = xstrndup(s, size), *expression;
	struct buf out;
	struct err err;

	buf_init(&out, SIZE_MAX);
	jobs_log_text(&out, s, size);
	must(utf8_valid(out.data, out.len));
	must(memchr(out.data, '\r', out.len) == NULL);
	must(newlines(out.data, out.len) == newlines(s, size));
	buf_free(&out);
	expression = expression_new(text, &err);
	must(expression != NULL || err.code == ERR_INVALID);
	must(expression == NULL || strchr(expression, '\n') == NULL);
	free(expression);
	free(text);
	return 0;
}
