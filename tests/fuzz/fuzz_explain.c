/*
 * Whatever ssh prints, the error made of it is one line of text with the
 * sandbox's name in it, and never more than fits.
 *
 * The first byte chooses what the sandbox has; the rest is the text.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "ssh/explain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "hunter2-hunter2"

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_text(const char *s)
{
	const unsigned char *c;

	must(utf8_valid(s, strlen(s)));
	for (c = (const unsigned char *)s; *c != '\0'; c++)
		must((*c >= ' ' && *c != 0x7f) || *c == '\t');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char name[] = "gpu1", user[] = "ann", key[] = "/id", pin[] = "ssh-x A";
	struct sandbox sb = { .name = name, .host = name };
	struct err err = ERR_INIT, other = ERR_INIT;
	char *text;

	if (size < 1)
		return 0;
	if (data[0] & 1)
		sb.user = user;
	if (data[0] & 2)
		sb.key_file = key;
	if (data[0] & 4)
		sb.host_key = pin;
	if (data[0] & 8)
		secret_set(&sb.password, SECRET, strlen(SECRET));
	text = xstrndup((const char *)data + 1, size - 1);

	must(explain_login(&sb, text, &err) == -1);
	must(err.code == ERR_IO || err.code == ERR_DENIED ||
	    err.code == ERR_TIMEOUT);
	check_text(err.msg);
	must(strstr(err.msg, name) != NULL);
	/* The password has no part in it. */
	if (data[0] & 8) {
		secret_free(&sb.password);
		secret_set(&sb.password, "another", 7);
		must(explain_login(&sb, text, &other) == -1);
		must(strcmp(err.msg, other.msg) == 0);
	}
	free(text);
	secret_free(&sb.password);
	return 0;
}
