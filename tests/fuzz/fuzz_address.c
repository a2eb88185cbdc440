/*
 * URLs of webhooks: what is taken is plain, and taking apart what it is put
 * together from gives the same.  An address in one is judged, and as strictly
 * if it is written in the longer form.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
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

static void
check_judged(const struct webhook_url *u, const struct addresses *a)
{
	enum address_kind kind =
	    address_judge((const struct sockaddr *)&a->list[0]);
	struct buf pin;
	struct err err = ERR_INIT;

	must((address_check(a, u->host, true, &err) == 0) ==
	    (kind != ADDRESS_NEVER));
	must((address_check(a, u->host, false, &err) == 0) ==
	    (kind == ADDRESS_PUBLIC));
	buf_init(&pin, SIZE_MAX);
	address_pin(&pin, u, a);
	must(strncmp(pin.data, u->host, strlen(u->host)) == 0);
	buf_free(&pin);
}

static void
check_address(const struct webhook_url *u)
{
	struct addresses four = { .count = 1 }, six = { .count = 1 };
	struct sockaddr_in *in = (struct sockaddr_in *)&four.list[0];
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&six.list[0];
	char mapped[64];

	in->sin_family = AF_INET;
	in6->sin6_family = AF_INET6;
	if (inet_pton(AF_INET, u->host, &in->sin_addr) == 1) {
		check_judged(u, &four);
		snprintf(mapped, sizeof(mapped), "::ffff:%s", u->host);
		must(inet_pton(AF_INET6, mapped, &in6->sin6_addr) == 1);
		must(address_judge((struct sockaddr *)in6) >=
		    address_judge((struct sockaddr *)in));
	} else if (inet_pton(AF_INET6, u->host, &in6->sin6_addr) == 1) {
		check_judged(u, &six);
	}
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
		check_address(&u);
	} else {
		must(err.msg[0] != '\0');
	}
	webhook_url_free(&u);
	free(url);
	return 0;
}
