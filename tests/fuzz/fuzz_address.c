/*
 * URLs of webhooks: what is taken is plain, and taking apart what it is put
 * together from gives the same.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "watch/address.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_again(const struct webhook_url *u)
{
	const char *six = strchr(u->host, ':');
	char *url = xasprintf("%s://%s%s%s:%d%s", u->https ? "https" : "http",
	    six != NULL ? "[" : "", u->host, six != NULL ? "]" : "", u->port,
	    u->path);
	struct webhook_url again;
	struct err err;

	/* It may only have become too long. */
	if (webhook_url_parse(url, &again, &err) == 0) {
		must(again.https == u->https && again.port == u->port);
		must(strcmp(again.host, u->host) == 0);
		must(strcmp(again.path, u->path) == 0);
	} else {
		must(strstr(err.msg, "too long") != NULL);
	}
	webhook_url_free(&again);
	free(url);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *url = xstrndup((const char *)data, size);
	struct webhook_url u;
	struct err err = ERR_INIT;

	if (webhook_url_parse(url, &u, &err) == 0) {
		must(u.port >= 1 && u.port <= 65535);
		must(u.host[0] != '\0' && strpbrk(u.host, "@/\\ %") == NULL);
		must(u.path[0] == '/' && strpbrk(u.path, "# \"\\") == NULL);
		check_again(&u);
	} else {
		must(err.msg[0] != '\0');
	}
	webhook_url_free(&u);
	free(url);
	return 0;
}
