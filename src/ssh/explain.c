/* Reading ssh's messages. */
#include "ssh/explain.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "ssh/clean.h"

/* How much of ssh's own words an error repeats. */
#define WORDS_MAX 300

/* The line that holds "needle", printable, without its end; or false. */
static bool
line_with(const char *text, const char *needle, char *out, size_t size)
{
	const char *at = strstr(text, needle);
	struct buf b;

	if (at == NULL)
		return false;
	while (at > text && at[-1] != '\n')
		at--;
	buf_init(&b, size - 1);
	clean_text(&b, at, strcspn(at, "\r\n"));
	snprintf(out, size, "%s", b.data);
	buf_free(&b);
	return true;
}

/* The last line that says something. */
static void
last_words(const char *text, char *out, size_t size)
{
	const char *line = text, *next, *best = "";
	size_t len, best_len = 0;
	struct buf b;

	for (; *line != '\0'; line = next) {
		len = strcspn(line, "\r\n");
		next = line + len + strspn(line + len, "\r\n");
		if (len > 0) {
			best = line;
			best_len = len;
		}
	}
	buf_init(&b, size - 1);
	clean_text(&b, best, best_len);
	snprintf(out, size, "%s", b.len > 0 ? b.data : "ssh said nothing");
	buf_free(&b);
}

/* What a line says behind "needle": up to white space or a closing mark. */
static void
word_after(const char *text, const char *needle, char *out, size_t size)
{
	const char *at = strstr(text, needle);
	struct buf b;

	out[0] = '\0';
	if (at == NULL)
		return;
	at += strlen(needle);
	at += strspn(at, " \r\n");
	buf_init(&b, size - 1);
	clean_text(&b, at, strcspn(at, " \r\n"));
	snprintf(out, size, "%s", b.data);
	if (str_ends(out, "."))
		out[strlen(out) - 1] = '\0';
	buf_free(&b);
}

static int
wrong_pin(const struct sandbox *sb, const char *shown, struct err *err)
{
	return err_set(err, ERR_DENIED,
	    "%s does not show the host key that its entry pins (host_key)%s%s. "
	    "Nothing was sent. Check whether this is the right machine",
	    sb->name, shown[0] != '\0' ? ", but " : "", shown);
}

static int
changed_key(const struct sandbox *sb, const char *text, struct err *err)
{
	char print[128], old[128], place[256], line[WORDS_MAX];
	const char *at;

	word_after(text, "key sent by the remote host is", print,
	    sizeof(print));
	if (sb->host_key != NULL)
		return wrong_pin(sb, print, err);
	/* "Offending ED25519 key in FILE:LINE" */
	at = strstr(text, "Offending ");
	word_after(at != NULL ? at : "", " key in ", place, sizeof(place));
	word_after(text, "remembered key is", old, sizeof(old));
	/* With a jump host, whose key it is. */
	if (!line_with(text, "has changed and you", line, sizeof(line)))
		last_words(text, line, sizeof(line));
	return err_set(err, ERR_DENIED,
	    "the host key of %s has CHANGED: it shows %s, but %s%sis remembered "
	    "in %s. Nothing was sent. Either the machine was reinstalled or "
	    "somebody is in between: ask its owner, and if the new key is "
	    "right, remove that line (ssh: %s)",
	    sb->name, print[0] != '\0' ? print : "another key", old,
	    old[0] != '\0' ? " " : "another ",
	    place[0] != '\0' ? place : "known_hosts", line);
}

static int
unknown_key(const struct sandbox *sb, const char *text, struct err *err)
{
	char line[WORDS_MAX];

	if (!line_with(text, "host key is known", line, sizeof(line)))
		last_words(text, line, sizeof(line));
	if (sb->host_key != NULL)
		return wrong_pin(sb, "", err);
	return err_set(err, ERR_DENIED,
	    "the host key of %s is not known and its host_key_policy is "
	    "strict. Log in once with ssh to check and remember it, or set "
	    "host_key (ssh: %s)",
	    sb->name, line);
}

static int
revoked_key(const struct sandbox *sb, const char *text, struct err *err)
{
	char line[WORDS_MAX], print[128];

	if (!line_with(text, "revoked", line, sizeof(line)))
		last_words(text, line, sizeof(line));
	word_after(text, "remembered key is", print, sizeof(print));
	return err_set(err, ERR_DENIED,
	    "the host key of %s is marked as revoked%s%s%s. Nothing was sent. "
	    "Ask its owner for the new key and remember that one (ssh: %s)",
	    sb->name, print[0] != '\0' ? " (" : "", print,
	    print[0] != '\0' ? ")" : "", line);
}

bool
explain_refused(const struct err *err)
{
	return err->code == ERR_DENIED &&
	    strstr(err->msg, "refused the login") != NULL;
}

/* What was tried, in words. */
static const char *
tried(const struct sandbox *sb)
{
	bool password =
	    secret_given(&sb->password) || sb->password_command != NULL;

	if (sb->key_file != NULL)
		return password ? "the key file and the password"
		                : "the key file";
	return password ? "the password"
	                : "the keys of your ssh configuration and agent";
}

/* The last line that tells the methods: "Permission denied (publickey)." */
static const char *
denied_line(const char *text)
{
	const char *at = NULL, *next = text;

	while ((next = strstr(next, "Permission denied (")) != NULL)
		at = next++;
	while (at != NULL && at > text && at[-1] != '\n')
		at--;
	return at;
}

/* What ssh says about keys that it could not use. */
static void
key_trouble(const char *text, char *out, size_t size)
{
	static const char *const words[] = { "Load key", "no such identity",
		"not accessible", "agent refused operation",
		"no ssh agent was found", NULL };
	size_t i;

	out[0] = '\0';
	for (i = 0; words[i] != NULL; i++) {
		if (line_with(text, words[i], out, size))
			return;
	}
}

static int
refused_login(const struct sandbox *sb, const char *text, struct err *err)
{
	const char *denied = denied_line(text);
	const char *open = strstr(denied, "denied (") + strlen("denied (");
	char line[WORDS_MAX], key[WORDS_MAX];
	struct buf methods;

	line_with(denied, "Permission denied", line, sizeof(line));
	key_trouble(text, key, sizeof(key));
	buf_init(&methods, 128);
	clean_text(&methods, open, strcspn(open, ")\r\n"));
	err_set(err, ERR_DENIED,
	    "%s refused the login%s%s: tried %s; the server accepts: %s%s%s "
	    "(ssh: %s)",
	    sb->name, sb->user != NULL ? " as " : "",
	    sb->user != NULL ? sb->user : "", tried(sb), methods.data,
	    key[0] != '\0' ? "; " : "", key, line);
	buf_free(&methods);
	return -1;
}

/* Words of ssh, and what they mean; the first that is found counts. */
static const struct cause {
	const char *words;
	enum err_code code;
	const char *advice;
} causes[] = {
	{ "Could not resolve hostname", ERR_IO,
	    "the host name is not known; check \"host\", or the network" },
	{ "Connection refused", ERR_IO,
	    "nothing listens there; check \"port\" and whether sshd runs" },
	{ "timed out", ERR_TIMEOUT,
	    "the host does not answer; it may be down or behind a firewall" },
	{ "No route to host", ERR_IO, "the host cannot be reached" },
	{ "Network is unreachable", ERR_IO, "there is no network to it" },
	{ "Operation not permitted", ERR_DENIED,
	    "this machine does not let us connect; a local sandbox may block "
	    "the network" },
	{ "Too many authentication failures", ERR_DENIED,
	    "too many keys were offered; name the right one as \"key_file\"" },
	{ "no mutual signature", ERR_DENIED,
	    "client and server share no signature algorithm for this key" },
	{ "Unable to negotiate", ERR_DENIED,
	    "client and server share no algorithm; see \"ssh_options\"" },
	{ "Bad owner or permissions", ERR_DENIED,
	    "ssh refuses a configuration file that others can write" },
	{ "kex_exchange_identification", ERR_IO,
	    "the server closed the connection at once; it may be busy "
	    "(MaxStartups) or bar this address for a while" },
	{ "Connection closed by", ERR_IO,
	    "the server closed the connection during the login" },
	{ "Connection reset", ERR_IO, "the connection was reset" },
	{ "Permission denied", ERR_DENIED,
	    "this machine does not let us open something that is needed" },
	{ NULL, ERR_IO, NULL },
};

/* A proxy that failed says so before ssh complains of a server that is not
 * there. */
static bool
proxy_failed(const char *text)
{
	const char *kex = strstr(text, "kex_exchange_identification");
	const char *nl = strchr(text, '\n');

	return strstr(text, "UNKNOWN port 65535") != NULL ||
	    (kex != NULL && nl != NULL && nl < kex);
}

/* A mistake in the configuration: the first line tells, what follows is
 * noise. */
static bool
first_line_tells(const char *text)
{
	static const char *const words[] = { "bad configuration options",
		"Bad configuration option",
		"command-line line 0:", "UNKNOWN port 65535", NULL };
	size_t i;

	for (i = 0; words[i] != NULL; i++) {
		if (strstr(text, words[i]) != NULL)
			return true;
	}
	return false;
}

static int
first_line(const struct sandbox *sb, const char *text, struct err *err)
{
	bool proxy = proxy_failed(text);
	struct buf b;

	text += strspn(text, "\r\n");
	buf_init(&b, WORDS_MAX);
	clean_text(&b, text, strcspn(text, "\r\n"));
	err_set(err, proxy ? ERR_IO : ERR_DENIED,
	    "cannot connect to %s: %s (ssh: %s)", sb->name,
	    proxy ? "the way to it, a jump host or ProxyCommand, failed"
	          : "there is a mistake in the ssh configuration",
	    b.data);
	buf_free(&b);
	return -1;
}

static int
other_cause(const struct sandbox *sb, const char *own, const char *text,
    struct err *err)
{
	char line[WORDS_MAX];
	const struct cause *c;

	for (c = causes; c->words != NULL; c++) {
		if (line_with(own, c->words, line, sizeof(line)))
			return err_set(err, c->code,
			    "cannot connect to %s: %s (ssh: %s)", sb->name,
			    c->advice, line);
	}
	if (str_blank(text))
		return err_set(err, ERR_IO,
		    "cannot connect to %s: the connection was closed during "
		    "the login (ssh said nothing)",
		    sb->name);
	last_words(text, line, sizeof(line));
	return err_set(err, ERR_IO, "cannot connect to %s (ssh: %s)", sb->name,
	    line);
}

/*
 * What ssh says by itself.  The reason of a disconnect is the server's, in
 * whatever words; the one that sshd has for too many keys is believed.
 */
static void
own_words(struct buf *out, const char *text)
{
	static const char theirs[] = "Received disconnect from ";
	static const char many[] = ": Too many authentication failures";
	const char *line, *reason;
	size_t len, whole;

	for (line = text; *line != '\0'; line += whole) {
		len = strcspn(line, "\r\n");
		whole = len + strspn(line + len, "\r\n");
		reason = memmem(line, len, ": ", 2);
		if (!str_starts(line, theirs) ||
		    (reason != NULL && str_starts(reason, many) &&
		        reason + strlen(many) == line + len))
			buf_add(out, line, whole);
	}
}

/* "own" is what is judged, "text" all that can be shown. */
static int
explain_words(const struct sandbox *sb, const char *own, const char *text,
    struct err *err)
{
	if (strstr(own, "REVOKED HOST KEY") != NULL ||
	    (strstr(own, "Host key") != NULL && strstr(own, "revoked") != NULL))
		return revoked_key(sb, own, err);
	if (strstr(own, "IDENTIFICATION HAS CHANGED") != NULL)
		return changed_key(sb, own, err);
	if (strstr(own, "Host key verification failed") != NULL)
		return unknown_key(sb, own, err);
	if (strstr(own, "UNPROTECTED PRIVATE KEY FILE") != NULL)
		return err_set(err, ERR_DENIED,
		    "ssh does not use the key file of %s because others can "
		    "read it; run chmod 600 %s",
		    sb->name, sb->key_file != NULL ? sb->key_file : "on it");
	if (first_line_tells(own))
		return first_line(sb, own, err);
	if (denied_line(own) != NULL)
		return refused_login(sb, own, err);
	if (proxy_failed(own))
		return first_line(sb, own, err);
	return other_cause(sb, own, text, err);
}

int
explain_login(const struct sandbox *sb, const char *text, struct err *err)
{
	struct buf own;

	buf_init(&own, SIZE_MAX);
	own_words(&own, text);
	explain_words(sb, own.data, text, err);
	buf_free(&own);
	return -1;
}
