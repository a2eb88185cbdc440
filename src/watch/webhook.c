/* Webhooks. */
#include "watch/webhook.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "watch/address.h"
#include "watch/hmac.h"

#define CONFIG_MAX 65536
#define SECRET_MAX 4096

/* An option in the form that "curl --config -" reads. */
static void
add_option(struct buf *out, const char *name, const char *value)
{
	buf_addf(out, "%s = \"", name);
	for (; *value != '\0'; value++) {
		if (*value == '"' || *value == '\\')
			buf_addc(out, '\\');
		if (*value == '\n')
			buf_adds(out, "\\n");
		else if (*value == '\r')
			buf_adds(out, "\\r");
		else
			buf_addc(out, *value);
	}
	buf_adds(out, "\"\n");
}

static void
add_header(struct buf *out, const char *name, const char *value)
{
	char *line = xasprintf("%s: %s", name, value);

	add_option(out, "header", line);
	free(line);
}

static void
add_limits(struct buf *out)
{
	buf_adds(out,
	    "silent\ngloboff\ndisallow-username-in-url\n"
	    "proto = \"=http,https\"\nmax-redirs = 0\n"
	    "connect-timeout = 10\nmax-filesize = 1048576\n"
	    "output = \"/dev/null\"\nnoproxy = \"*\"\n");
	buf_addf(out, "max-time = %d\n", WEBHOOK_MS / 1000);
	add_option(out, "write-out", "%{http_code}\\n%{errormsg}");
}

static void
add_url(struct buf *out, const struct webhook_url *u)
{
	bool six = strchr(u->host, ':') != NULL;
	char *url = xasprintf("%s://%s%s%s:%d%s", u->https ? "https" : "http",
	    six ? "[" : "", u->host, six ? "]" : "", u->port, u->path);

	add_option(out, "url", url);
	free(url);
}

static void
make_config(struct buf *out, const struct webhook *w,
    const struct webhook_url *u, const struct addresses *a,
    const char *signature)
{
	struct in6_addr six;
	struct buf pin;
	char *value;

	add_limits(out);
	add_url(out, u);
	/* An address needs no pin, and curl does not take one for IPv6. */
	if (inet_pton(AF_INET6, u->host, &six) != 1) {
		buf_init(&pin, CONFIG_MAX);
		address_pin(&pin, u, a);
		add_option(out, "resolve", pin.data);
		buf_free(&pin);
	}
	add_header(out, "Content-Type", "application/json");
	add_header(out, "User-Agent", "remote-sandbox-mcp/" RSMCP_VERSION);
	value = xasprintf("rsmcp-event-%" PRId64, w->event_id);
	add_header(out, "Idempotency-Key", value);
	free(value);
	add_header(out, "X-RSMCP-Event", w->event_type);
	add_header(out, "Expect", ""); /* none: it costs a round trip */
	if (signature != NULL) {
		value = xasprintf("sha256=%s", signature);
		add_header(out, "X-RSMCP-Signature", value);
		free(value);
	}
	value = xasprintf("@%s", w->body_file);
	add_option(out, "data-binary", value);
	free(value);
}

/* What curl printed: the status of HTTP, and what went wrong with it. */
static int
judge(const struct proc_result *res, const char *host, struct err *err)
{
	char *line = res->out.data, *said = strchr(line, '\n');
	int64_t status = 0;

	if (said != NULL)
		*said++ = '\0';
	if (str_to_int(line, 0, 999, &status) == -1)
		status = 0;
	if (res->exit_code != 0)
		return err_set(err, ERR_IO,
		    "curl could not call the webhook on %s: %.300s (status "
		    "%d)",
		    host, said != NULL ? said : res->err.data, res->exit_code);
	if (status >= 200 && status < 300)
		return 0;
	if (status >= 300 && status < 400)
		return err_set(err, ERR_IO,
		    "the webhook on %s answers with a redirect (%d), and none "
		    "is followed; give the URL that it leads to",
		    host, (int)status);
	return err_set(err, status == 410 ? ERR_DENIED : ERR_IO,
	    "the webhook on %s answered with status %d", host, (int)status);
}

/* The secret as it is, or as its command prints it. */
static int
get_secret(const struct allow *allow, struct secret *out,
    const struct until *until, struct err *err)
{
	const json_t *command = allow->webhook_secret_command;
	const char **argv;
	struct proc_request req = { .max_output = SECRET_MAX };
	struct proc_result res;
	size_t i, n = json_array_size(command);
	int rc;

	if (secret_given(&allow->webhook_secret)) {
		secret_set(out, allow->webhook_secret.data,
		    allow->webhook_secret.len);
		return 0;
	}
	if (allow->secret_refused)
		return err_set(err, ERR_IO,
		    "the configuration file names a webhook secret, and others "
		    "can write it; run chmod 600 on it");
	if (n == 0)
		return 0;
	argv = xcalloc(n + 1, sizeof(*argv));
	for (i = 0; i < n; i++)
		argv[i] = json_string_value(json_array_get(command, i));
	req.argv = argv;
	rc = proc_run(&req, &res, until, err);
	free(argv);
	if (rc == -1) {
		if (err->code != ERR_CANCELLED)
			err->code = ERR_IO; /* it may be there the next time */
		return err_wrap(err, "webhook_secret_command");
	}
	n = strcspn(res.out.data, "\r\n");
	if (res.exit_code != 0 || n == 0)
		rc = err_set(err, ERR_IO,
		    "webhook_secret_command printed no secret (status %d)",
		    res.exit_code);
	else
		secret_set(out, res.out.data, n);
	secret_wipe(res.out.data, res.out.cap);
	proc_result_free(&res);
	return rc;
}

/* *signature is "" if there is no secret. */
static int
sign(const struct webhook *w, const struct allow *allow,
    char signature[HMAC_HEX_SIZE], const struct until *until, struct err *err)
{
	struct secret key = { 0 };
	int rc = get_secret(allow, &key, until, err);

	signature[0] = '\0';
	if (rc == 0 && secret_given(&key))
		rc = hmac_sha256(&key, w->body, w->body_len, signature, until,
		    err);
	secret_free(&key);
	return rc;
}

static int
run_curl(const struct buf *config, const char *host, const struct until *until,
    struct err *err)
{
	/* -q first: nothing of the user's own configuration. */
	static const char *const argv[] = { "curl", "-q", "--config", "-",
		NULL };
	struct proc_request req = { .argv = argv,
		.input = config->data,
		.input_len = config->len,
		.max_output = 4096 };
	struct proc_result res;
	int rc;

	if (proc_run(&req, &res, until, err) == -1) {
		if (err->code == ERR_NOT_FOUND)
			err_set(err, ERR_IO,
			    "webhooks need the curl program; install it");
		return -1;
	}
	rc = judge(&res, host, err);
	proc_result_free(&res);
	return rc;
}

static bool
is_address(const char *host)
{
	unsigned char room[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, room) == 1 ||
	    inet_pton(AF_INET6, host, room) == 1;
}

static int
find_addresses(const struct webhook_url *u, const struct allow *allow,
    struct addresses *a, const struct until *until, struct err *err)
{
	if (address_resolve(u->host, a, until, err) == -1)
		return -1;
	if (address_check(a, u->host, allow->private_webhooks, err) == 0)
		return 0;
	/* The network of a hotel gives its own address for every name. */
	if (!is_address(u->host))
		err->code = ERR_IO;
	return -1;
}

int
webhook_send(const struct webhook *w, const struct allow *allow,
    const struct until *until, struct err *err)
{
	/* curl keeps its own time; this is for when it does not. */
	struct until soon = until_within(until, (int64_t)2 * WEBHOOK_MS);
	char signature[HMAC_HEX_SIZE];
	struct webhook_url u;
	struct addresses a;
	struct buf config;
	int rc = -1;

	if (webhook_url_parse(w->url, &u, err) == 0 &&
	    find_addresses(&u, allow, &a, &soon, err) == 0 &&
	    sign(w, allow, signature, &soon, err) == 0) {
		buf_init(&config, CONFIG_MAX);
		make_config(&config, w, &u, &a,
		    signature[0] != '\0' ? signature : NULL);
		rc = run_curl(&config, u.host, &soon, err);
		buf_free(&config);
	}
	webhook_url_free(&u);
	return rc;
}

int
webhook_check(const char *url, const struct allow *allow, struct err *err)
{
	struct webhook_url u;
	struct addresses a = { .count = 1 };
	void *any = &a.list[0];
	struct sockaddr_in *four = any;
	struct sockaddr_in6 *six = any;
	int rc = webhook_url_parse(url, &u, err);

	if (rc == 0 && inet_pton(AF_INET, u.host, &four->sin_addr) == 1)
		a.list[0].ss_family = AF_INET;
	else if (rc == 0 && inet_pton(AF_INET6, u.host, &six->sin6_addr) == 1)
		a.list[0].ss_family = AF_INET6;
	else
		a.count = 0;
	if (rc == 0)
		rc = address_check(&a, u.host, allow->private_webhooks, err);
	webhook_url_free(&u);
	return rc;
}
