/*
 * What ssh asks and prints at a login: a secret is given for the exact prompts
 * alone, new lines of known_hosts are those that were not there, and what "ssh
 * -G" says is read as far as it makes sense.
 *
 * The input is three texts with NULs between them: before, after, prompt.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ssh/askpass.h"
#include "ssh/hostkeys.h"
#include "ssh/login.h"
#include "ssh/sshrun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PASSWORD "ann@box's password: "
#define PASSPHRASE "Enter passphrase for key '/k': "
#define INTERACTIVE "(ann@box) "

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static char *
take(const char **at, const char *end)
{
	size_t n = strnlen(*at, (size_t)(end - *at));
	char *text = xstrndup(*at, n);

	*at += n;
	*at += *at < end;
	return text;
}

static void
check_prompt(const char *prompt)
{
	struct askpass_login login = { .user = "ann", .host = "box" };
	char without = askpass_match(&login, prompt), with;

	login.key_file = "/k";
	with = askpass_match(&login, prompt);
	must((with == 'k') == (strcmp(prompt, PASSPHRASE) == 0));
	must(without == (with == 'k' ? 0 : with));
	if (with == 'p')
		must(strcmp(prompt, PASSWORD) == 0 ||
		    strncmp(prompt, INTERACTIVE, strlen(INTERACTIVE)) == 0);
	login.user = "eve";
	must(askpass_match(&login, prompt) != 'p' || with == 0);
}

static bool
has_line(const char *text, const char *line, size_t len)
{
	for (; text != NULL; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (strcspn(text, "\n") == len && strncmp(text, line, len) == 0)
			return true;
	}
	return false;
}

static void
check_new(const char *before, const char *after, const char *host)
{
	struct buf out;
	const char *at;
	size_t n;

	buf_init(&out, SIZE_MAX);
	hostkeys_new(&out, before, after, host);
	for (at = out.data; *at != '\0'; at += n + 1) {
		n = strcspn(at, "\n");
		must(n > 0 && at[n] == '\n');
		must(has_line(after, at, n) && !has_line(before, at, n));
	}
	if (host == NULL) {
		for (at = after; *at != '\0'; at += n + (at[n] == '\n')) {
			n = strcspn(at, "\n");
			must(n == 0 || has_line(before, at, n) ||
			    has_line(out.data, at, n));
		}
	}
	buf_free(&out);
}

static void
check_target(const char *text)
{
	struct login_target t;

	login_target_parse(&t, text);
	must(t.port >= 0 && t.port <= 65535);
	must(t.hostname == NULL || t.host != NULL);
	must(t.user == NULL || strchr(t.user, '\n') == NULL);
	must(t.control == NULL || strchr(t.control, '\n') == NULL);
	login_target_free(&t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = size > 0 ? (const char *)data : "", *end = at + size;
	char *before = take(&at, end), *after = take(&at, end);
	char *prompt = take(&at, end);
	int version = sshrun_version(before);

	must(version >= 0 && version <= 100099);
	check_new(before, after, NULL);
	check_new(before, after, "box");
	check_target(before);
	check_prompt(prompt);
	free(before);
	free(after);
	free(prompt);
	return 0;
}
