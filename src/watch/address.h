/*
 * Where a webhook may go: its URL taken apart, and the addresses that its name
 * has, judged.  All but address_resolve() is pure.
 */
#ifndef WATCH_ADDRESS_H
#define WATCH_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"

struct webhook_url {
	bool https;
	char *host; /* name or address, without brackets */
	int port;
	char *path; /* with the query, begins with a slash */
};

/*
 * Take a URL apart.  Only what every program reads alike is taken: http or
 * https, a plain name or an address in its usual form, no user name, no
 * fragment.  webhook_url_free() it in every case.
 */
int webhook_url_parse(const char *url, struct webhook_url *out,
    struct err *err);
void webhook_url_free(struct webhook_url *u);

enum address_kind {
	ADDRESS_PUBLIC,
	ADDRESS_PRIVATE, /* loopback, private networks: if it is allowed */
	ADDRESS_NEVER,   /* link-local, cloud metadata, multicast, none */
};

enum address_kind address_judge(const struct sockaddr *sa);

/* A list of addresses, at least one. */
#define ADDRESSES_MAX 16

struct addresses {
	struct sockaddr_storage list[ADDRESSES_MAX];
	size_t count;
};

/* Ask the system for the addresses of a name.  Ends with the until, though
 * the system's own function may go on for a while in a thread. */
int address_resolve(const char *host, struct addresses *out,
    const struct until *until, struct err *err);

/* Append an address as people write it; IPv6 in brackets. */
void address_text(struct buf *out, const struct sockaddr_storage *ss);

/* 0 if all of them may be called, else ERR_DENIED. */
int address_check(const struct addresses *a, const char *host,
    bool allow_private, struct err *err);

/* "host:port:address,address" for curl's --resolve. */
void address_pin(struct buf *out, const struct webhook_url *u,
    const struct addresses *a);

#endif
