/* Reading what "ssh -v" says. */
#include "ssh/handshake.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "ssh/clean.h"

#define DEBUG "debug1: "

/* What follows "prefix" on a line, up to one of "stop", if it has it. */
static void
take(const char *line, const char *prefix, const char *stop, char *out,
    size_t size)
{
	struct buf b;

	if (!str_starts(line, prefix))
		return;
	line += strlen(prefix);
	buf_init(&b, size - 1);
	clean_text(&b, line, strcspn(line, stop));
	snprintf(out, size, "%s", b.data);
	buf_free(&b);
}

/* "user@host: Permission denied (publickey,password)." ends a login that was
 * not meant to succeed. */
static void
take_methods(const char *line, char *out, size_t size)
{
	static const char words[] = "Permission denied (";
	const char *at = strstr(line, words);

	if (at != NULL && at < line + strcspn(line, "\n"))
		take(at, words, ")\r\n", out, size);
}

void
handshake_parse(struct handshake *h, const char *text)
{
	const char *line = text;

	memset(h, 0, sizeof(*h));
	for (; *line != '\0';
	     line += strcspn(line, "\n"), line += *line == '\n') {
		take(line,
		    DEBUG
		    "Remote protocol version 2.0, remote software version ",
		    "\r\n", h->software, sizeof(h->software));
		take(line, DEBUG "kex: algorithm: ", " \r\n", h->kex,
		    sizeof(h->kex));
		take(line, DEBUG "Server host key: ", "\r\n", h->host_key,
		    sizeof(h->host_key));
		take(line, DEBUG "Authentications that can continue: ", "\r\n",
		    h->methods, sizeof(h->methods));
		take_methods(line, h->methods, sizeof(h->methods));
	}
}

void
handshake_words(struct buf *out, const char *text)
{
	size_t n;

	for (; *text != '\0'; text += n) {
		n = strcspn(text, "\n");
		n += text[n] == '\n';
		if (!str_starts(text, DEBUG) && !str_starts(text, "OpenSSH_"))
			buf_add(out, text, n);
	}
}
