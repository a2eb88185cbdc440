#include <string.h>

#include "base/path.h"
#include "base/quote.h"

/* "=" is not among them: a first word with one would be an assignment. */
static const char harmless[] = "abcdefghijklmnopqrstuvwxyz"
                               "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                               "0123456789@%_+:,./-";

void
quote_sh(struct buf *out, const char *word)
{
	if (word[0] != '\0' && word[strspn(word, harmless)] == '\0') {
		buf_adds(out, word);
		return;
	}

	buf_addc(out, '\'');
	while (*word != '\0') {
		size_t n = strcspn(word, "'");

		buf_add(out, word, n);
		word += n;
		if (*word == '\'') {
			buf_adds(out, "'\\''");
			word++;
		}
	}
	buf_addc(out, '\'');
}

void
quote_path(struct buf *out, const char *path)
{
	if (path_is_home(path)) {
		buf_adds(out, "\"$HOME\"");
		path++;
		if (*path == '\0')
			return;
	} else if (path[0] != '/') {
		buf_adds(out, "./");
	}
	quote_sh(out, path);
}
