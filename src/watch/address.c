/* Where a webhook may go. */
#include "watch/address.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "base/mem.h"
#include "base/str.h"

#define URL_MAX 2000
#define HOST_MAX 253

/* --- The URL -------------------------------------------------------------- */

static int
wrong(struct err *err, const char *what)
{
	return err_set(err, ERR_INVALID, "webhook_url %s", what);
}

void
webhook_url_free(struct webhook_url *u)
{
	free(u->host);
	free(u->path);
	memset(u, 0, sizeof(*u));
}

/* An address with four plain numbers. */
static bool
is_ipv4(const char *s)
{
	struct in_addr a;
	char back[INET_ADDRSTRLEN];

	return inet_pton(AF_INET, s, &a) == 1 &&
	    inet_ntop(AF_INET, &a, back, sizeof(back)) != NULL &&
	    strcmp(s, back) == 0;
}

static bool
is_ipv6(const char *s)
{
	struct in6_addr a;

	return inet_pton(AF_INET6, s, &a) == 1;
}

/*
 * Letters, digits, dots and dashes, and not something that some programs read
 * as a number: "127.1", "0x7f000001", "2130706433".
 */
static bool
is_name(const char *s)
{
	const char *last = strrchr(s, '.');

	if (s[0] == '\0' || s[0] == '-' || s[0] == '.' ||
	    strlen(s) > HOST_MAX || strstr(s, "..") != NULL)
		return false;
	if (s[strspn(s,
	        "abcdefghijklmnopqrstuvwxyz"
	        "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")] != '\0')
		return false;
	last = last != NULL ? last + 1 : s;
	return !isdigit((unsigned char)last[0]);
}

/* "host:port" or "[address]:port" up to "end". */
static int
parse_host(const char *s, const char *end, struct webhook_url *out,
    struct err *err)
{
	char *text = xstrndup(s, (size_t)(end - s));
	char *host = text, *rest;
	bool bracket = text[0] == '[', good;
	int64_t port = out->https ? 443 : 80;

	if (bracket) {
		host++;
		rest = strchr(host, ']');
		if (rest != NULL)
			*rest++ = '\0';
	} else {
		rest = text + strcspn(text, ":");
	}
	good = rest != NULL;
	if (good && *rest == ':') {
		*rest++ = '\0';
		good = isdigit((unsigned char)*rest) &&
		    str_to_int(rest, 1, 65535, &port) == 0;
	} else if (good) {
		good = *rest == '\0';
	}
	good =
	    good && (bracket ? is_ipv6(host) : is_ipv4(host) || is_name(host));
	if (good) {
		out->host = xstrdup(host);
		out->port = (int)port;
	}
	free(text);
	if (!good)
		return wrong(err,
		    "must have a plain host name, or an address in its usual "
		    "form, and maybe a port, after the \"//\"");
	return 0;
}

static int
check_characters(const char *url, struct err *err)
{
	const unsigned char *c;

	if (strlen(url) > URL_MAX)
		return wrong(err, "is too long");
	for (c = (const unsigned char *)url; *c != '\0'; c++) {
		if (*c <= ' ' || *c >= 0x7f ||
		    strchr("\"\\<>^`{|}", *c) != NULL)
			return wrong(err,
			    "holds a character that has to be written as "
			    "%XX in a URL");
	}
	return 0;
}

int
webhook_url_parse(const char *url, struct webhook_url *out, struct err *err)
{
	const char *host, *end;

	memset(out, 0, sizeof(*out));
	if (check_characters(url, err) == -1)
		return -1;
	if (strncasecmp(url, "https://", 8) == 0) {
		out->https = true;
		host = url + 8;
	} else if (strncasecmp(url, "http://", 7) == 0) {
		host = url + 7;
	} else {
		return wrong(err, "must begin with http:// or https://");
	}
	end = host + strcspn(host, "/?#");
	if (memchr(host, '@', (size_t)(end - host)) != NULL)
		return wrong(err,
		    "must not hold a user name or password; put a token into "
		    "its path or query");
	if (parse_host(host, end, out, err) == -1)
		return -1;
	out->path = xasprintf("%s%.*s", *end == '/' ? "" : "/",
	    (int)strcspn(end, "#"), end);
	return 0;
}

/* --- Addresses ------------------------------------------------------------ */

/* A range of IPv4 addresses. */
struct range {
	uint32_t address;
	int bits;
};

#define IP(a, b, c, d)                                                    \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | \
	    (uint32_t)(d))

static const struct range never4[] = {
	{ IP(0, 0, 0, 0), 8 },
	{ IP(169, 254, 0, 0), 16 },
	{ IP(100, 100, 100, 200), 32 }, /* metadata of Alibaba */
	{ IP(168, 63, 129, 16), 32 },   /* of Azure */
	{ IP(192, 0, 0, 192), 32 },     /* of Oracle */
	{ IP(224, 0, 0, 0), 3 },        /* multicast, reserved, broadcast */
	{ 0, 0 },
};

static const struct range private4[] = {
	{ IP(10, 0, 0, 0), 8 },
	{ IP(100, 64, 0, 0), 10 },
	{ IP(127, 0, 0, 0), 8 },
	{ IP(172, 16, 0, 0), 12 },
	{ IP(192, 0, 0, 0), 24 },
	{ IP(192, 168, 0, 0), 16 },
	{ IP(198, 18, 0, 0), 15 },
	{ 0, 0 },
};

static bool
in_ranges(uint32_t a, const struct range *r)
{
	for (; r->bits > 0; r++) {
		if ((a ^ r->address) >> (32 - r->bits) == 0)
			return true;
	}
	return false;
}

static enum address_kind
judge4(uint32_t a)
{
	if (in_ranges(a, never4))
		return ADDRESS_NEVER;
	return in_ranges(a, private4) ? ADDRESS_PRIVATE : ADDRESS_PUBLIC;
}

static uint32_t
four_bytes(const unsigned char *b)
{
	return IP(b[0], b[1], b[2], b[3]);
}

/* An IPv4 address inside an IPv6 one: mapped, compatible, translated, 6to4. */
static const unsigned char *
inner4(const unsigned char *b)
{
	static const unsigned char zeros[16];
	static const unsigned char nat64[12] = { 0, 0x64, 0xff, 0x9b };

	if (memcmp(b, zeros, 10) == 0 &&
	    ((b[10] == 0xff && b[11] == 0xff) || (b[10] | b[11]) == 0) &&
	    memcmp(b, zeros, 15) != 0)
		return b + 12;
	if (memcmp(b, nat64, sizeof(nat64)) == 0)
		return b + 12;
	if (b[0] == 0x20 && b[1] == 0x02)
		return b + 2;
	return NULL;
}

static enum address_kind
judge6(const unsigned char *b)
{
	static const unsigned char one[16] = { [15] = 1 };
	static const unsigned char none[16];
	static const unsigned char aws[16] = { 0xfd, 0, 0x0e,
		0xc2, [14] = 0x02, [15] = 0x54 };

	if (memcmp(b, none, 16) == 0 || memcmp(b, aws, 16) == 0 ||
	    b[0] == 0xff || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80))
		return ADDRESS_NEVER;
	if (memcmp(b, one, 16) == 0)
		return ADDRESS_PRIVATE;
	if (inner4(b) != NULL)
		return judge4(four_bytes(inner4(b)));
	if ((b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && (b[1] & 0xc0) == 0xc0))
		return ADDRESS_PRIVATE;
	return ADDRESS_PUBLIC;
}

enum address_kind
address_judge(const struct sockaddr *sa)
{
	const void *any = sa;
	const struct sockaddr_in *four = any;
	const struct sockaddr_in6 *six = any;

	if (sa->sa_family == AF_INET)
		return judge4(ntohl(four->sin_addr.s_addr));
	if (sa->sa_family == AF_INET6)
		return judge6(six->sin6_addr.s6_addr);
	return ADDRESS_NEVER;
}

void
address_text(struct buf *out, const struct sockaddr_storage *ss)
{
	const void *any = ss;
	const struct sockaddr_in *four = any;
	const struct sockaddr_in6 *six = any;
	char text[INET6_ADDRSTRLEN] = "?";

	if (ss->ss_family == AF_INET)
		inet_ntop(AF_INET, &four->sin_addr, text, sizeof(text));
	else
		inet_ntop(AF_INET6, &six->sin6_addr, text, sizeof(text));
	if (ss->ss_family == AF_INET)
		buf_adds(out, text);
	else
		buf_addf(out, "[%s]", text);
}

int
address_check(const struct addresses *a, const char *host, bool allow_private,
    struct err *err)
{
	enum address_kind kind;
	size_t i;

	for (i = 0; i < a->count; i++) {
		const void *any = &a->list[i];
		struct buf text;

		kind = address_judge(any);
		if (kind == ADDRESS_PUBLIC ||
		    (kind == ADDRESS_PRIVATE && allow_private))
			continue;
		buf_init(&text, 128);
		address_text(&text, &a->list[i]);
		err_set(err, ERR_DENIED,
		    "the host %s of webhook_url has the address %s, %s", host,
		    text.data,
		    kind == ADDRESS_PRIVATE
		        ? "which is private to this machine or its network; "
		          "the user can allow such with "
		          "\"allow_private_webhooks\": true in config.json"
		        : "which webhooks may never call");
		buf_free(&text);
		return -1;
	}
	return 0;
}

void
address_pin(struct buf *out, const struct webhook_url *u,
    const struct addresses *a)
{
	size_t i;

	buf_addf(out, "%s:%d:", u->host, u->port);
	for (i = 0; i < a->count; i++) {
		if (i > 0)
			buf_addc(out, ',');
		address_text(out, &a->list[i]);
	}
}

/* --- Asking the system ---------------------------------------------------- */

/*
 * The system's function cannot be told how long it may take, so it runs in a
 * thread.  Who ends last, that thread or who waits for it, frees this.
 */
struct asking {
	pthread_mutex_t lock;
	struct gate done_gate;
	bool done, left;
	char *host;
	int failure; /* as getaddrinfo() gives it */
	struct addresses found;
};

static void
asking_free(struct asking *a)
{
	pthread_mutex_destroy(&a->lock);
	free(a->host);
	free(a);
}

static void
collect(struct addresses *out, const struct addrinfo *info)
{
	for (; info != NULL && out->count < ADDRESSES_MAX;
	     info = info->ai_next) {
		if (info->ai_addrlen > sizeof(out->list[0]))
			continue;
		memcpy(&out->list[out->count++], info->ai_addr,
		    info->ai_addrlen);
	}
}

static void *
ask(void *arg)
{
	struct asking *a = arg;
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *info = NULL;
	int failure = getaddrinfo(a->host, NULL, &hints, &info);
	bool last;

	pthread_mutex_lock(&a->lock);
	a->failure = failure;
	if (failure == 0)
		collect(&a->found, info);
	a->done = true;
	last = a->left;
	gate_open(&a->done_gate);
	pthread_mutex_unlock(&a->lock);
	if (failure == 0)
		freeaddrinfo(info);
	if (last)
		asking_free(a);
	return NULL;
}

static int
start_asking(struct asking *a, struct err *err)
{
	pthread_attr_t attr;
	pthread_t thread;
	int failed;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	failed = pthread_create(&thread, &attr, ask, a);
	pthread_attr_destroy(&attr);
	if (failed == 0)
		return 0;
	errno = failed;
	return err_sys(err, "cannot start a thread");
}

int
address_resolve(const char *host, struct addresses *out,
    const struct until *until, struct err *err)
{
	struct asking *a;
	bool last;
	int rc = 0;

	if (until_check(until, err) == -1) {
		err_wrap(err, "asking for the address of %s", host);
		return -1;
	}
	a = xcalloc(1, sizeof(*a));
	pthread_mutex_init(&a->lock, NULL);
	a->host = xstrdup(host);
	if (start_asking(a, err) == -1) {
		asking_free(a);
		return -1;
	}
	pthread_mutex_lock(&a->lock);
	while (!a->done && rc == 0)
		rc = gate_wait(&a->done_gate, &a->lock, until, err);
	if (rc == -1)
		err_wrap(err, "asking for the address of %s", host);
	else if (a->failure != 0)
		rc = err_set(err, ERR_IO, "cannot find the address of %s: %s",
		    host, gai_strerror(a->failure));
	else if (a->found.count == 0)
		rc = err_set(err, ERR_IO, "%s has no address", host);
	else
		*out = a->found;
	a->left = true;
	last = a->done;
	pthread_mutex_unlock(&a->lock);
	if (last)
		asking_free(a);
	return rc;
}
