/* Which paths are left alone. */
#include "sync/rules.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "sync/gitignore.h"
#include "sync/glob.h"

#define FILE_MAX ((size_t)4 << 20)

/* Ours, in the making or left by a run that was interrupted. */
#define STAGING ".rsmcp-"

static const char *const defaults[] = { ".git", ".idea", ".vscode",
	"__pycache__", "node_modules", "*.pyc" };

struct rule {
	char *pattern;
	bool include;
	bool any_depth; /* no slash: each name of the path is tried */
	/* For speed, as most are one of these: */
	bool literal; /* no wildcard */
	bool suffix;  /* none but a star in front */
	size_t len;   /* without that star */
};

/* The .gitignore file of a directory. */
struct ignore {
	char *dir;
	struct gitignore *file;
};

struct rules {
	struct rule *list;
	size_t count, room;
	bool has_include;
	struct ignore *ignores; /* sorted by dir */
	size_t ignore_count, ignore_room;
};

struct rules *
rules_new(void)
{
	struct rules *r = xcalloc(1, sizeof(*r));
	size_t i;

	for (i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		rules_add(r, defaults[i]);
	return r;
}

void
rules_free(struct rules *r)
{
	size_t i;

	if (r == NULL)
		return;
	for (i = 0; i < r->count; i++)
		free(r->list[i].pattern);
	free(r->list);
	for (i = 0; i < r->ignore_count; i++) {
		free(r->ignores[i].dir);
		gitignore_free(r->ignores[i].file);
	}
	free(r->ignores);
	free(r);
}

/* The pattern without blanks around it, with slashes for backslashes, not
 * anchored; "dir/" is what is in it.  NULL if nothing is left. */
static char *
normal(const char *s, size_t len)
{
	struct buf b;
	size_t i;

	while (len > 0 && isspace((unsigned char)s[0]))
		s++, len--;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	buf_init(&b, SIZE_MAX);
	buf_add(&b, s, len);
	for (i = 0; i < len; i++) {
		if (b.data[i] == '\\')
			b.data[i] = '/';
	}
	while (str_starts(b.data, "./") || b.data[0] == '/')
		buf_drop(&b, b.data[0] == '/' ? 1 : 2);
	if (b.len > 0 && b.data[b.len - 1] == '/')
		buf_addc(&b, '*');
	return b.len > 0 ? buf_take(&b) : (buf_free(&b), NULL);
}

static void
add(struct rules *r, const char *s, size_t len)
{
	struct rule *rule;
	bool include;
	char *pattern;

	while (len > 0 && isspace((unsigned char)s[0]))
		s++, len--;
	include = len > 0 && s[0] == '!';
	pattern = normal(s + include, len - include);
	if (pattern == NULL)
		return;
	if (r->count == r->room) {
		r->room = r->room == 0 ? 16 : r->room * 2;
		r->list = xreallocarray(r->list, r->room, sizeof(*r->list));
	}
	rule = &r->list[r->count++];
	rule->pattern = pattern;
	rule->include = include;
	rule->any_depth = strchr(pattern, '/') == NULL;
	rule->literal = strpbrk(pattern, "*?[") == NULL;
	rule->suffix = pattern[0] == '*' && strpbrk(pattern + 1, "*?[") == NULL;
	rule->len = strlen(pattern) - rule->suffix;
	r->has_include = r->has_include || include;
}

void
rules_add(struct rules *r, const char *pattern)
{
	add(r, pattern, strlen(pattern));
}

int
rules_add_file(struct rules *r, const char *path, struct err *err)
{
	struct buf text;
	char *at, *line;

	buf_init(&text, FILE_MAX);
	if (fs_read(path, &text, err) == -1) {
		buf_free(&text);
		return err_wrap(err, "cannot read the exclude file");
	}
	at = text.data;
	while ((line = strsep(&at, "\n")) != NULL) {
		while (isspace((unsigned char)*line))
			line++;
		if (*line != '#')
			rules_add(r, line);
	}
	buf_free(&text);
	return 0;
}

/* "name" is a part of a path, "len" bytes of it. */
static bool
match_name(const struct rule *rule, const char *name, size_t len)
{
	char small[256], *copy = small;
	bool yes;

	if (rule->literal)
		return rule->len == len &&
		    memcmp(rule->pattern, name, len) == 0;
	if (rule->suffix)
		return rule->len <= len &&
		    memcmp(rule->pattern + 1, name + len - rule->len,
		        rule->len) == 0;
	if (name[len] == '\0')
		return glob_match(rule->pattern, name);
	if (len >= sizeof(small))
		copy = xmalloc(len + 1);
	memcpy(copy, name, len);
	copy[len] = '\0';
	yes = glob_match(rule->pattern, copy);
	if (copy != small)
		free(copy);
	return yes;
}

static bool
match_any_name(const struct rule *rule, const char *path)
{
	for (;;) {
		size_t n = 0;

		/* Names are short: strcspn() would take longer to begin. */
		while (path[n] != '/' && path[n] != '\0')
			n++;
		if (match_name(rule, path, n))
			return true;
		if (path[n] == '\0')
			return false;
		path += n + 1;
	}
}

/* "slashed" is the path with a slash behind it if it is a directory. */
static bool
match_rule(const struct rule *rule, const char *path, const char *slashed)
{
	if (rule->any_depth && match_any_name(rule, path))
		return true;
	if (rule->any_depth && (rule->literal || rule->suffix))
		return false; /* the whole path can match no better */
	return glob_match(rule->pattern, path) ||
	    (slashed != NULL && glob_match(rule->pattern, slashed));
}

bool
rules_staging(const char *path)
{
	const char *at;

	for (at = path; at != NULL; at = strchr(at, '/')) {
		at += *at == '/';
		if (str_starts(at, STAGING))
			return true;
	}
	return false;
}

/* What the patterns say: 1 excluded, 0 included by "!", -1 nothing. */
static int
ask_patterns(const struct rules *r, const char *path, bool is_dir)
{
	char *slashed = is_dir ? xasprintf("%s/", path) : NULL;
	int says = -1;
	size_t i;

	for (i = r->count; i-- > 0 && says == -1;) {
		if (match_rule(&r->list[i], path, slashed))
			says = r->list[i].include ? 0 : 1;
	}
	free(slashed);
	return says;
}

/* Where the ignore file of this directory is, or should be; "len" bytes of
 * "dir" count. */
static size_t
ignore_place(const struct rules *r, const char *dir, size_t len, bool *there)
{
	size_t low = 0, high = r->ignore_count;

	*there = false;
	while (low < high && !*there) {
		size_t mid = low + (high - low) / 2;
		const char *d = r->ignores[mid].dir;
		int c = strncmp(d, dir, len);

		if (c == 0 && d[len] != '\0')
			c = 1;
		if (c < 0)
			low = mid + 1;
		else
			high = mid;
		if (c == 0) {
			*there = true;
			low = mid;
		}
	}
	return low;
}

/* The innermost file that has something to say decides. */
static bool
ask_ignores(const struct rules *r, const char *path, bool is_dir)
{
	size_t len = strlen(path);

	while (r->ignore_count > 0 && len > 0) {
		bool there;
		size_t at;

		while (len > 0 && path[len - 1] != '/')
			len--;
		/* "len" is behind the directory's slash, or 0. */
		at = ignore_place(r, path, len > 0 ? len - 1 : 0, &there);
		if (there) {
			enum gitignore_says says =
			    gitignore_match(r->ignores[at].file, path + len,
			        is_dir);

			if (says != GITIGNORE_NOTHING)
				return says == GITIGNORE_EXCLUDE;
		}
		if (len > 0)
			len--;
	}
	return false;
}

bool
rules_match(const struct rules *r, const char *path, bool is_dir)
{
	int says;

	if (rules_staging(path))
		return true;
	says = ask_patterns(r, path, is_dir);
	return says != -1 ? says == 1 : ask_ignores(r, path, is_dir);
}

bool
rules_cover(const struct rules *r, const char *path, bool is_dir)
{
	char *part = xstrdup(path), *slash;
	bool yes = false;

	for (slash = strchr(part, '/'); slash != NULL && !yes;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		yes = rules_match(r, part, true);
		*slash = '/';
	}
	free(part);
	return yes || rules_match(r, path, is_dir);
}

void
rules_each_name(const struct rules *r,
    void (*each)(void *data, const char *pattern), void *data)
{
	size_t i;

	if (r->has_include)
		return;
	for (i = 0; i < r->count; i++) {
		const struct rule *rule = &r->list[i];

		if (rule->any_depth && strpbrk(rule->pattern, "?[") == NULL)
			each(data, rule->pattern);
	}
}

void
rules_add_gitignore(struct rules *r, const char *dir, const char *text,
    size_t len)
{
	bool there;
	size_t at = ignore_place(r, dir, strlen(dir), &there);

	if (!there) {
		if (r->ignore_count == r->ignore_room) {
			r->ignore_room = r->ignore_room * 2 + 4;
			r->ignores = xreallocarray(r->ignores, r->ignore_room,
			    sizeof(*r->ignores));
		}
		memmove(r->ignores + at + 1, r->ignores + at,
		    (r->ignore_count - at) * sizeof(*r->ignores));
		r->ignore_count++;
		r->ignores[at] =
		    (struct ignore){ xstrdup(dir), gitignore_new() };
	}
	gitignore_add(r->ignores[at].file, text, len);
}
