/*
 * URIs of resources: what is taken is a name and perhaps a job or a number,
 * and what it is written as means the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tools/resource_uri.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_again(const struct resource_uri *u)
{
	char *text = resource_uri_text(u);
	struct resource_uri again;
	struct err err;

	/* It may only have become too long. */
	if (resource_uri_parse(text, &again, &err) == 0) {
		must(again.kind == u->kind && again.id == u->id);
		must(strcmp(again.sandbox, u->sandbox) == 0);
		must((u->job == NULL) == (again.job == NULL));
		must(u->job == NULL || strcmp(again.job, u->job) == 0);
	} else {
		must(strlen(text) > RESOURCE_URI_MAX);
	}
	resource_uri_free(&again);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *uri = xstrndup((const char *)data, size);
	struct resource_uri u;
	struct err err = ERR_INIT;

	if (resource_uri_parse(uri, &u, &err) == 0) {
		must(u.sandbox[0] != '\0');
		must(utf8_valid(u.sandbox, strlen(u.sandbox)));
		must((u.kind == RESOURCE_TRANSFER) == (u.id > 0));
		must((u.kind == RESOURCE_JOB || u.kind == RESOURCE_LOG) ==
		    (u.job != NULL));
		check_again(&u);
	} else {
		must(err.code == ERR_NOT_FOUND && err.msg[0] != '\0');
	}
	resource_uri_free(&u);
	free(uri);
	return 0;
}
