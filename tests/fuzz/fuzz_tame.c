/*
 * A command that counts as tame holds nothing that a shell would expand, group
 * or put into the background, found here by a second reader; it stays tame
 * among others of its kind, and is not with one that is wild.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ssh/tame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

/* Signs that mean something to a shell, where they stand in no quotes. */
static void
check_plain(const char *at)
{
	must(strchr("$`\\(){}!#\n", *at) == NULL);
	if (*at == '&')
		must(at[1] == '&' || at[-1] == '&' || at[-1] == '>');
}

static void
check_signs(const char *text)
{
	const char *at;
	char quote = '\0';

	for (at = text; *at != '\0'; at++) {
		if (quote == '\0' && (*at == '\'' || *at == '"'))
			quote = *at;
		else if (quote == '\0')
			check_plain(at);
		else if (*at == quote)
			quote = '\0';
		else
			must(quote == '\'' || strchr("$`\\", *at) == NULL);
	}
	must(quote == '\0');
}

static bool
is_tame(const char *before, const char *text, const char *behind)
{
	char *all = xasprintf("%s%s%s", before, text, behind);
	bool tame = tame_command(all);

	free(all);
	return tame;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = xstrndup(size > 0 ? (const char *)data : "", size);

	if (tame_command(text)) {
		check_signs(text);
		must(is_tame(" \t", text, " \t"));
		must(is_tame("echo a; ", text, " && cd /"));
		must(is_tame("ls | ", text, " >x 2>&1"));
		must(!is_tame("", text, "; exit 1"));
		must(!is_tame("trap - 0; ", text, ""));
		must(!is_tame("", text, " &"));
		must(!is_tame("a=b ", text, ""));
	} else {
		must(!is_tame("ls; ", text, ""));
	}
	free(text);
	return 0;
}
