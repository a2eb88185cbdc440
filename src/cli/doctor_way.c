/*
 * The doctor's look at the way to a sandbox: one step after the other, as a
 * login goes.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/quote.h"
#include "base/str.h"
#include "cli/doctor_inside.h"
#include "cli/report.h"
#include "config/dirs.h"
#include "ssh/explain.h"
#include "watch/address.h"

#define SAID_MAX ((size_t)256 << 10)

/* --- the way there --------------------------------------------------------
 */

static int
check_address(struct visit *v)
{
	struct err err;

	v->runtime_dir = dirs_runtime(&err);
	if (v->runtime_dir == NULL ||
	    login_target(&v->target, v->sb, v->runtime_dir, v->until, &err) ==
	        -1)
		return visit_failed(v, "address",
		    "'ssh -G HOST' shows what ssh makes of it; look at "
		    "~/.ssh/config and the entry",
		    err.msg);
	if (v->target.hostname == NULL || v->target.host == NULL)
		return visit_failed(v, "address",
		    "see what 'ssh -G HOST' prints",
		    "ssh does not tell the host's name");
	report_add(v->list, "address", REPORT_OK, NULL, "%s%s%s port %d%s",
	    v->target.user != NULL ? v->target.user : "",
	    v->target.user != NULL ? "@" : "", v->target.hostname,
	    v->target.port,
	    v->target.proxied ? ", by way of a jump host or proxy" : "");
	return 0;
}

static int
check_dns(struct visit *v, struct addresses *found)
{
	struct until limit =
	    until_within(v->until, (int64_t)v->sb->connect_timeout_s * 1000);
	struct buf names;
	struct err err;
	size_t i;

	if (v->target.proxied) {
		report_add(v->list, "dns", REPORT_OK, NULL,
		    "%s is looked up by the jump host or proxy",
		    v->target.hostname);
		return 0;
	}
	if (address_resolve(v->target.hostname, found, &limit, &err) == -1)
		return visit_failed(v, "dns",
		    "correct \"host\" of the entry, or HostName in "
		    "~/.ssh/config; if the name is right, check the network "
		    "and its VPN",
		    err.msg);
	buf_init(&names, 512);
	for (i = 0; i < found->count; i++) {
		buf_adds(&names, i > 0 ? ", " : "");
		address_text(&names, &found->list[i]);
	}
	report_add(v->list, "dns", REPORT_OK, NULL, "%s", names.data);
	buf_free(&names);
	return 0;
}

/* 0 once the socket is connected. */
static int
wait_connected(int fd, const struct until *until, struct err *err)
{
	struct pollfd pfd = { fd, POLLOUT, 0 };
	socklen_t len = sizeof(errno);
	int error = 0;

	if (until_poll(until, &pfd, 1, err) == -1)
		return -1;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1 ||
	    error == 0)
		return 0;
	errno = error;
	return err_sys(err, "cannot connect");
}

static int
connect_to(struct sockaddr_storage *sa, int port, const struct until *until,
    struct err *err)
{
	socklen_t len = sizeof(struct sockaddr_in6);
	int fd, rc = 0;

	if (sa->ss_family == AF_INET) {
		((struct sockaddr_in *)sa)->sin_port = htons((uint16_t)port);
		len = sizeof(struct sockaddr_in);
	} else {
		((struct sockaddr_in6 *)sa)->sin6_port = htons((uint16_t)port);
	}
	fd = socket(sa->ss_family, SOCK_STREAM, 0);
	if (fd == -1)
		return err_sys(err, "cannot make a socket");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ||
	    fcntl(fd, F_SETFL, O_NONBLOCK) == -1 ||
	    (connect(fd, (struct sockaddr *)sa, len) == -1 &&
	        errno != EINPROGRESS))
		rc = err_sys(err, "cannot connect");
	else
		rc = wait_connected(fd, until, err);
	close(fd);
	return rc;
}

static int
check_tcp(struct visit *v, struct addresses *found)
{
	struct until limit =
	    until_within(v->until, (int64_t)v->sb->connect_timeout_s * 1000);
	int64_t began = clock_ms();
	struct err err = ERR_INIT;
	int rc = -1;
	size_t i;

	if (v->target.proxied) {
		report_add(v->list, "tcp", REPORT_OK, NULL,
		    "by way of a jump host or proxy");
		return 0;
	}
	for (i = 0; rc == -1 && i < found->count; i++) {
		began = clock_ms();
		rc = connect_to(&found->list[i], v->target.port, &limit, &err);
	}
	if (rc == -1 && err.code == ERR_TIMEOUT)
		return visit_failed(v, "tcp",
		    "check that the machine is up and that no firewall or VPN "
		    "stands in between",
		    "nobody answers");
	if (rc == -1)
		return visit_failed(v, "tcp",
		    "check \"port\" of the entry, and that sshd runs there "
		    "(systemctl status ssh)",
		    err.msg);
	v->rtt_ms = clock_ms() - began;
	report_add(v->list, "tcp", REPORT_OK, NULL,
	    "port %d answers in %lld ms", v->target.port, (long long)v->rtt_ms);
	return 0;
}

/* --- who is there ---------------------------------------------------------
 */

/* "Offending ED25519 key in FILE:LINE" as a command that removes it. */
static char *
forget_key(const struct visit *v, const char *said)
{
	const char *at = strstr(said, "Offending ");
	const char *file = at != NULL ? strstr(at, " key in ") : NULL;
	char *path, *colon;
	struct buf b;

	if (file == NULL)
		return xstrdup("ask the owner of the machine for its key");
	file += strlen(" key in ");
	path = xstrndup(file, strcspn(file, "\r\n"));
	colon = strrchr(path, ':');
	if (colon != NULL)
		*colon = '\0';
	buf_init(&b, 8192);
	buf_addf(&b, "ask its owner whether %s is right; if so: ssh-keygen -R ",
	    v->hello.host_key);
	if (v->target.port == 22)
		buf_addf(&b, "'%s'", v->target.host);
	else
		buf_addf(&b, "'[%s]:%d'", v->target.host, v->target.port);
	buf_adds(&b, " -f ");
	quote_sh(&b, path);
	free(path);
	return buf_take(&b);
}

static char *
host_key_todo(const struct visit *v, const char *said)
{
	const char *print = strchr(v->hello.host_key, ' ');
	char *line, *todo;

	if (v->sb->host_key != NULL)
		return xasprintf(
		    "if this is the right machine, set \"host_key\" "
		    "of its entry to \"%s\"",
		    print != NULL ? print + 1 : "its fingerprint");
	if (strstr(said, "IDENTIFICATION HAS CHANGED") != NULL)
		return forget_key(v, said);
	line = visit_line(v, "ssh", "");
	todo = xasprintf("if %s is its key, log in once by hand (%s), or set "
	                 "\"host_key\" of its entry to \"%s\"",
	    v->hello.host_key, line, print != NULL ? print + 1 : "");
	free(line);
	return todo;
}

static int
check_host_key(struct visit *v, const char *said)
{
	bool refused = strstr(said, "Host key verification failed") != NULL;
	struct err err;
	struct buf words;
	char *todo;

	if (!refused) {
		report_add(v->list, "host key", REPORT_OK, NULL, "%s%s",
		    v->hello.host_key,
		    v->sb->host_key != NULL ? ", pinned"
		        : strstr(said, "Permanently added") != NULL
		        ? ", new"
		        : ", known");
		return 0;
	}
	/* A server has several; the login asks for one that fits. */
	if (v->sb->host_key != NULL && str_starts(v->sb->host_key, "SHA256:"))
		return 1;
	buf_init(&words, SAID_MAX);
	handshake_words(&words, said);
	explain_login(v->sb, words.data, &err);
	buf_free(&words);
	todo = host_key_todo(v, said);
	visit_failed(v, "host key", todo, err.msg);
	free(todo);
	return -1;
}

/* It can be asked only if it introduced itself. */
static int
check_kex(struct visit *v, const char *said)
{
	struct buf words;
	struct err err;

	if (v->hello.kex[0] != '\0' && v->hello.host_key[0] != '\0') {
		report_add(v->list, "key exchange", REPORT_OK, NULL, "%s; %s",
		    v->hello.software, v->hello.kex);
		return 0;
	}
	buf_init(&words, SAID_MAX);
	handshake_words(&words, said);
	explain_login(v->sb, words.data, &err);
	buf_free(&words);
	return visit_failed(v, "key exchange",
	    v->hello.software[0] != '\0'
	        ? "allow an algorithm that both have: \"ssh_options\" of the "
	          "entry, as [\"KexAlgorithms=+NAME\"], or update the server"
	        : "check that this port is an SSH server's and not busy "
	          "(MaxStartups) or barred (fail2ban); try again in a minute",
	    err.msg);
}

static int
check_methods(struct visit *v)
{
	const struct sandbox *sb = v->sb;
	const char *m = v->hello.methods;
	bool password =
	    secret_given(&sb->password) || sb->password_command != NULL;

	if (m[0] == '\0')
		report_add(v->list, "methods", REPORT_WARNING,
		    "see whether the login works",
		    "the server did not tell how one may log in");
	else if (password && sb->key_file == NULL &&
	    strstr(m, "password") == NULL &&
	    strstr(m, "keyboard-interactive") == NULL)
		report_add(v->list, "methods", REPORT_WARNING,
		    "use a key: leave the password out of the entry and name "
		    "\"key_file\"",
		    "%s: passwords are not taken there", m);
	else if (!password && strstr(m, "publickey") == NULL &&
	    strstr(m, "gssapi") == NULL && strstr(m, "hostbased") == NULL)
		report_add(v->list, "methods", REPORT_WARNING,
		    "give \"password_command\" in the entry",
		    "%s: keys are not taken there", m);
	else
		report_add(v->list, "methods", REPORT_OK, NULL, "%s", m);
	return 0;
}

/* How the server introduces itself. */
static int
check_hello(struct visit *v)
{
	struct buf said;
	struct err err;
	int rc;

	buf_init(&said, SAID_MAX);
	rc = login_hello(v->sb, v->runtime_dir, &said, v->until, &err);
	if (rc == -1) {
		visit_failed(v, "key exchange",
		    "check that this port is an SSH server's", err.msg);
	} else {
		handshake_parse(&v->hello, said.data);
		rc = check_kex(v, said.data);
	}
	if (rc == 0)
		rc = check_host_key(v, said.data);
	if (rc == 0)
		rc = check_methods(v);
	buf_free(&said);
	return rc == -1 ? -1 : 0;
}

static int
check_login(struct visit *v)
{
	int64_t began = clock_ms();
	struct err err;
	char *todo;
	bool pin; /* it shows another key than the entry says */

	master_try_again(v->sb);
	if (master_ensure(&v->master, v->sb, 0, v->until, &err) == 0) {
		if (v->master.found)
			report_add(v->list, "login", REPORT_OK, NULL,
			    "one that is kept: what has changed there since "
			    "shows after 'remote-sandbox-mcp disconnect'");
		else
			report_add(v->list, "login", REPORT_OK, NULL,
			    "in %lld ms", (long long)(clock_ms() - began));
		return 0;
	}
	pin = strstr(err.msg, "(host_key)") != NULL;
	todo = pin ? host_key_todo(v, "") : visit_login_todo(v, &err);
	visit_failed(v, pin ? "host key" : "login", todo, err.msg);
	free(todo);
	return -1;
}

int
visit_way(struct visit *v)
{
	struct addresses found = { .count = 0 };

	if (check_address(v) == -1 || check_dns(v, &found) == -1 ||
	    check_tcp(v, &found) == -1 || check_hello(v) == -1)
		return -1;
	return check_login(v);
}
