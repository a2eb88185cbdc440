/* The .gitignore files of the far side. */
#include "sync/farignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/quote.h"
#include "sync/sftplist.h"
#include "sync/silence.h"

#define IGNORE_MAX ((size_t)1 << 20) /* of one file */
#define ALL_MAX ((size_t)4 << 20)    /* of all of them */
#define LINES_MAX ((size_t)100000)   /* the same: each becomes a pattern */

/* How many bytes of paths and patterns may be compared, at the worst, before a
 * look at the until. */
#define CHECK_EVERY ((size_t)1 << 28)

/* Their texts as they come, each ended by a NUL, and "E" behind the last. */
struct ignores {
	const struct tree *tree;
	struct rules *rules;
	size_t next; /* entry to look at */
	struct buf text;
	size_t total, lines; /* bytes, and lines that are not empty */
	bool ended;
	bool much; /* that is more than we take */
	bool bad;  /* that is not what was asked for */
};

static bool
is_ignore_file(const struct entry *e)
{
	const char *slash = strrchr(e->path, '/');

	return e->type == ENTRY_FILE &&
	    strcmp(slash != NULL ? slash + 1 : e->path, ".gitignore") == 0;
}

static const struct entry *
next_ignore(const struct tree *t, size_t *at)
{
	while (*at < t->count) {
		const struct entry *e = &t->entries[(*at)++];

		if (is_ignore_file(e))
			return e;
	}
	return NULL;
}

/* NULL if there are none. */
static char *
ignore_script(const struct far_root *root, const struct tree *t)
{
	const struct entry *e;
	struct buf b;
	size_t at = 0;

	e = next_ignore(t, &at);
	if (e == NULL)
		return NULL;
	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "export LC_ALL=C; unset CDPATH; cd ");
	quote_sh(&b, root->path);
	buf_addf(&b,
	    " || exit 1\ng() { head -c %zu <\"./$1\" 2>/dev/null | "
	    "tr -d '\\000'; printf '\\000'; }\n",
	    IGNORE_MAX);
	for (; e != NULL; e = next_ignore(t, &at)) {
		buf_adds(&b, "g ");
		quote_sh(&b, e->path);
		buf_adds(&b, "\n");
	}
	buf_adds(&b, "printf 'E\\000'\n");
	return buf_take(&b);
}

static size_t
count_lines(const char *text)
{
	size_t n = 0;

	for (text += strspn(text, "\n"); *text != '\0';
	     text += strspn(text, "\n")) {
		text += strcspn(text, "\n");
		n++;
	}
	return n;
}

static void
take_ignore(struct ignores *g)
{
	const struct entry *e = next_ignore(g->tree, &g->next);
	const char *slash;
	size_t lines;
	char *dir;

	if (e == NULL) {
		g->bad = g->ended || strcmp(g->text.data, "E") != 0;
		g->ended = true;
		return;
	}
	lines = count_lines(g->text.data);
	g->lines += lines;
	g->much = g->lines > LINES_MAX;
	if (g->much || lines == 0)
		return;
	slash = strrchr(e->path, '/');
	dir = xstrndup(e->path, slash != NULL ? (size_t)(slash - e->path) : 0);
	rules_add_gitignore(g->rules, dir, g->text.data, g->text.len);
	free(dir);
}

static bool
ignore_sink(void *data, const char *bytes, size_t len)
{
	struct ignores *g = data;

	g->total += len;
	g->much = g->much || g->total > ALL_MAX;
	while (len > 0 && !g->bad && !g->much) {
		const char *end = memchr(bytes, '\0', len);
		size_t n = end != NULL ? (size_t)(end - bytes) : len;

		buf_add(&g->text, bytes, n);
		g->bad = g->text.full;
		if (end == NULL || g->bad)
			break;
		take_ignore(g);
		buf_reset(&g->text);
		bytes += n + 1;
		len -= n + 1;
	}
	return !g->bad && !g->much;
}

/* Drop what is excluded by now.  The host has made both the names and the
 * patterns, so it may take long. */
static int
drop_excluded(struct tree *t, const struct ignores *g,
    const struct until *until, struct err *err)
{
	const char *dir = NULL; /* that was dropped */
	size_t i, n = 0, work = CHECK_EVERY;

	for (i = 0; i < t->count; i++) {
		const struct entry *e = &t->entries[i];
		bool is_dir = e->type == ENTRY_DIR;

		work += strlen(e->path) * (g->total + 1024);
		if (work > CHECK_EVERY) {
			work = 0;
			if (until_check(until, err) == -1)
				return -1;
		}
		if (dir != NULL && tree_below(e->path, dir))
			continue;
		if (!rules_match(g->rules, e->path, is_dir))
			t->entries[n++] = *e;
		else if (is_dir)
			dir = e->path;
	}
	t->count = n;
	return 0;
}

/* All has come: is it what was asked for? */
static int
check_ignores(const struct ignores *g, const char *root, struct err *err)
{
	if (g->much)
		return err_set(err, ERR_LIMIT,
		    "the .gitignore files below '%.300s' have more than %zu "
		    "lines or %zu bytes: sync without use_gitignore, and name "
		    "in excludes what is to be left alone",
		    root, LINES_MAX, ALL_MAX);
	if (g->bad)
		return err_set(err, ERR_IO,
		    "what the host says of the .gitignore files below '%.300s' "
		    "makes no sense",
		    root);
	if (!g->ended)
		return err_set(err, ERR_IO,
		    "the .gitignore files below '%.300s' could not be read on "
		    "the host",
		    root);
	return 0;
}

/* By SFTP; those that cannot be read are taken for empty. */
static int
get_ignores(struct link *link, const struct far_root *root, struct ignores *g,
    const struct until *until, struct err *err)
{
	struct sftp *s = silence_sftp(link, until, err);
	const struct entry *e;
	struct buf text;
	size_t at = 0;
	int rc = s == NULL ? -1 : 0;

	buf_init(&text, IGNORE_MAX);
	while (rc == 0 && !g->bad && !g->much &&
	    (e = next_ignore(g->tree, &at)) != NULL) {
		char *path = sftplist_join(root->path, e->path);

		buf_reset(&text);
		if (sftp_get(s, path, IGNORE_MAX, &text, until, err) == -1 &&
		    err->code != ERR_DENIED && err->code != ERR_NOT_FOUND)
			rc = -1;
		text.len = strlen(text.data);
		ignore_sink(g, text.data, text.len + 1);
		free(path);
	}
	if (rc == 0)
		ignore_sink(g, "E", 2);
	buf_free(&text);
	sftp_free(s);
	return rc;
}

int
farignore_run(struct link *link, const struct far_root *root,
    struct rules *rules, struct tree *t, const struct until *until,
    struct err *err)
{
	struct ignores g = { .tree = t, .rules = rules };
	char *script = ignore_script(root, t);
	int rc;

	if (script == NULL)
		return 0;
	buf_init(&g.text, IGNORE_MAX);
	rc = link_ways(link, until, err);
	if (rc == 0)
		rc = farlist_feed(link, script, ignore_sink, &g, NULL, until,
		    err);
	else if (rc == 1)
		rc = get_ignores(link, root, &g, until, err);
	if (rc == 0)
		rc = check_ignores(&g, root->path, err);
	if (rc == 0)
		rc = drop_excluded(t, &g, until, err);
	buf_free(&g.text);
	free(script);
	return rc;
}
