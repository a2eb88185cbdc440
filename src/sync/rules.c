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
	char *deep;        /* "*" and a slash, and then: */
	const char *whole; /* what the whole path is tried with */
	char *name;        /* without a slash inside; else NULL */
	bool include;
	bool below;     /* "**" and a slash in front: "deep" is tried, too */
	bool any_depth; /* each name of the path is tried */
	bool top;       /* only the first one is */
	bool dir;       /* a slash behind it: directories' names alone */
	/* For speed, as most names are one of these: */
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
	for (i = 0; i < r->count; i++) {
		free(r->list[i].deep);
		free(r->list[i].name);
	}
	free(r->list);
	for (i = 0; i < r->ignore_count; i++) {
		free(r->ignores[i].dir);
		gitignore_free(r->ignores[i].file);
	}
	free(r->ignores);
	free(r);
}

/* Slashes in front, and "./", which means the same. */
static const char *
skip_top(const char *p)
{
	while (*p == '/' || str_starts(p, "./"))
		p += *p == '/' ? 1 : 2;
	return p;
}

/* What makes it match at any depth, if anything is behind that. */
static const char *
skip_deep(const char *p)
{
	while (str_starts(p, "**/") && p[3 + strspn(p + 3, "/")] != '\0')
		p += 3 + strspn(p + 3, "/");
	return p;
}

/* The pattern without blanks, "!" and backslashes.  -1 if nothing is left. */
static int
read_rule(struct rule *rule, const char *text)
{
	const char *top = skip_top(text), *p = skip_deep(top);
	size_t len = strlen(p), n = len;

	while (n > 0 && p[n - 1] == '/')
		n--;
	if (n == 0)
		return -1;
	rule->dir = n < len;
	rule->below = p > top;
	rule->deep = xasprintf("*/%.*s%s", (int)n, p, rule->dir ? "/*" : "");
	rule->whole = rule->deep + 2;
	if (memchr(p, '/', n) != NULL)
		return 0;
	rule->top = top > text && !rule->below;
	rule->any_depth = !rule->top;
	rule->name = xstrndup(p, n);
	rule->literal = strpbrk(rule->name, "*?[") == NULL;
	rule->suffix = p[0] == '*' && strpbrk(rule->name + 1, "*?[") == NULL;
	rule->len = n - rule->suffix;
	return 0;
}

static void
add(struct rules *r, const char *s, size_t len)
{
	struct rule rule = { 0 };
	char *text, *at;

	while (len > 0 && isspace((unsigned char)s[0]))
		s++, len--;
	rule.include = len > 0 && s[0] == '!';
	s += rule.include;
	len -= rule.include;
	while (len > 0 && isspace((unsigned char)s[0]))
		s++, len--;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	text = xstrndup(s, len);
	for (at = text; (at = strchr(at, '\\')) != NULL;)
		*at = '/';
	if (read_rule(&rule, text) == 0) {
		if (r->count == r->room) {
			r->room = r->room == 0 ? 16 : r->room * 2;
			r->list =
			    xreallocarray(r->list, r->room, sizeof(*r->list));
		}
		r->list[r->count++] = rule;
		r->has_include = r->has_include || rule.include;
	}
	free(text);
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
		return rule->len == len && memcmp(rule->name, name, len) == 0;
	if (rule->suffix)
		return rule->len <= len &&
		    memcmp(rule->name + 1, name + len - rule->len, rule->len) ==
		    0;
	if (name[len] == '\0')
		return glob_match(rule->name, name);
	if (len >= sizeof(small))
		copy = xmalloc(len + 1);
	memcpy(copy, name, len);
	copy[len] = '\0';
	yes = glob_match(rule->name, copy);
	if (copy != small)
		free(copy);
	return yes;
}

/* Is one of the path's names meant, or, with "top", its first one?  Those with
 * a slash behind them are directories. */
static bool
match_names(const struct rule *rule, const char *path)
{
	for (;;) {
		size_t n = 0;

		/* Names are short: strcspn() would take longer to begin. */
		while (path[n] != '/' && path[n] != '\0')
			n++;
		if (rule->dir && path[n] == '\0')
			return false;
		if (n > 0 && match_name(rule, path, n))
			return true;
		if (path[n] == '\0' || rule->top)
			return false;
		path += n + 1;
	}
}

static bool
match_whole(const struct rule *rule, const char *path)
{
	return glob_match(rule->whole, path) ||
	    (rule->below && glob_match(rule->deep, path));
}

/* "slashed" is the path with a slash behind it if it is a directory. */
static bool
match_rule(const struct rule *rule, const char *path, const char *slashed)
{
	const char *names = rule->dir && slashed != NULL ? slashed : path;

	if (rule->name != NULL && match_names(rule, names))
		return true;
	if (rule->top || rule->literal || rule->suffix)
		return false; /* the whole path can match no better */
	return match_whole(rule, path) ||
	    (slashed != NULL && match_whole(rule, slashed));
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

		if (rule->any_depth && !rule->dir &&
		    strpbrk(rule->name, "?[") == NULL)
			each(data, rule->name);
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
