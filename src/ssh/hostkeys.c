/* Host keys. */
#include "ssh/hostkeys.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "base/utf8.h"

#define FILE_MAX ((size_t)4 << 20)
#define KEYGEN_MS 5000

void
hostkeys_read(const char *path, struct buf *out)
{
	struct stat st;
	struct err err;

	buf_init(out, FILE_MAX);
	/* A path that stands in a message may be anything. */
	if (stat(path, &st) == 0 && S_ISREG(st.st_mode))
		fs_read(path, out, &err);
}

static bool
has_line(const char *text, const char *line, size_t len)
{
	while (*text != '\0') {
		size_t n = strcspn(text, "\n");

		if (n == len && memcmp(text, line, n) == 0)
			return true;
		text += n + (text[n] == '\n');
	}
	return false;
}

/* Is the line about this host?  A hashed name may be anybody's. */
static bool
is_about(const char *line, const char *host)
{
	size_t left = strcspn(line, " \n"), n, len;

	if (host == NULL || line[0] == '|')
		return true;
	/* "name,[other]:2222" */
	len = strlen(host);
	while (left > 0) {
		n = strcspn(line, ", \n");
		if (line[0] == '[' && n > len + 1 && line[len + 1] == ']' &&
		    memcmp(line + 1, host, len) == 0)
			return true;
		if (n == len && memcmp(line, host, len) == 0)
			return true;
		line += n + (n < left);
		left -= n + (n < left);
	}
	return false;
}

void
hostkeys_new(struct buf *out, const char *before, const char *after,
    const char *host)
{
	while (*after != '\0') {
		size_t n = strcspn(after, "\n");

		if (n > 0 && is_about(after, host) &&
		    !has_line(before, after, n)) {
			buf_add(out, after, n);
			buf_addc(out, '\n');
		}
		after += n + (after[n] == '\n');
	}
}

/* ssh-keygen's view of some lines: "256 SHA256:... host (ED25519)" each. */
static int
list_keys(const char *lines, struct proc_result *res, const struct until *until)
{
	static const char *const argv[] = { "ssh-keygen", "-l", "-f", "-",
		NULL };
	struct proc_request req = {
		.argv = argv,
		.input = lines,
		.input_len = strlen(lines),
		.max_output = 65536,
	};
	struct until soon = until_within(until, KEYGEN_MS);
	struct err err;

	return proc_run(&req, res, &soon, &err);
}

/* One line of that: "host ED25519 SHA256:...". */
static void
describe_line(struct buf *out, char *line, const char *name)
{
	char *print, *host, *type;

	strsep(&line, " ");
	print = strsep(&line, " ");
	host = strsep(&line, " ");
	type = line;
	if (print == NULL || host == NULL || type == NULL)
		return;
	if (type[0] == '(') {
		type++;
		type[strcspn(type, ")")] = '\0';
	}
	if (out->len > 0)
		buf_adds(out, ", ");
	buf_addf(out, "%s %s %s", host[0] == '|' ? name : host, type, print);
}

void
hostkeys_describe(struct buf *out, const char *lines, const char *name,
    const struct until *until)
{
	struct proc_result res;
	char *at, *line;

	if (lines[0] == '\0' || list_keys(lines, &res, until) == -1)
		return;
	at = res.out.data;
	while ((line = strsep(&at, "\n")) != NULL)
		describe_line(out, line, name);
	proc_result_free(&res);
}

/* Append the fingerprint of one line, if it holds a key. */
static void
line_fingerprint(struct buf *out, const char *at, const struct until *until)
{
	struct proc_result res;
	char *line;

	/* A marker in front, such as @revoked, is not ssh-keygen's. */
	if (*at == '@')
		at += strcspn(at, " ") + (strchr(at, ' ') != NULL);
	line = xasprintf("%.*s\n", (int)strcspn(at, "\n"), at);
	if (list_keys(line, &res, until) == 0) {
		at = strchr(res.out.data, ' ');
		if (at != NULL && str_starts(at + 1, "SHA256:"))
			buf_add(out, at + 1, strcspn(at + 1, " \n"));
		proc_result_free(&res);
	}
	free(line);
}

static const char *
next_line(const char *at)
{
	at += strcspn(at, "\n");
	return at + (*at == '\n');
}

void
hostkeys_fingerprint(struct buf *out, const char *path, long number,
    const struct until *until)
{
	struct buf text;
	const char *at;

	hostkeys_read(path, &text);
	for (at = text.data; number > 1 && *at != '\0'; number--)
		at = next_line(at);
	line_fingerprint(out, at, until);
	buf_free(&text);
}

void
hostkeys_revoked(struct buf *out, const char *path, const char *host,
    const struct until *until)
{
	static const char marker[] = "@revoked ";
	struct buf text;
	const char *at;

	hostkeys_read(path, &text);
	for (at = text.data; *at != '\0' && out->len == 0; at = next_line(at)) {
		if (str_starts(at, marker) &&
		    (at[strlen(marker)] == '*' ||
		        is_about(at + strlen(marker), host)))
			line_fingerprint(out, at, until);
	}
	buf_free(&text);
}
