/* Ignore files: see gitignore(5), and dir.c of git for what it leaves open. */
#include "sync/gitignore.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sync/wild.h"

/* No system takes a path that long, so a longer pattern is of no use to
 * anybody; and matching takes time and memory by the length of both. */
#define PATTERN_MAX 4096

struct pattern {
	char *literal;     /* what comes before the first wildcard */
	struct wild *rest; /* NULL: nothing */
	bool include;
	bool must_be_dir;
	bool name_only; /* no slash: the last name of the path is tried */
};

struct gitignore {
	struct pattern *list;
	size_t count, room;
};

struct gitignore *
gitignore_new(void)
{
	return xcalloc(1, sizeof(struct gitignore));
}

void
gitignore_free(struct gitignore *g)
{
	size_t i;

	if (g == NULL)
		return;
	for (i = 0; i < g->count; i++) {
		free(g->list[i].literal);
		wild_free(g->list[i].rest);
	}
	free(g->list);
	free(g);
}

static void
add(struct gitignore *g, const struct pattern *p)
{
	if (g->count == g->room) {
		g->room = g->room * 2 + 8;
		g->list = xreallocarray(g->list, g->room, sizeof(*g->list));
	}
	g->list[g->count++] = *p;
}

/* Blanks at the end do not count, unless there is a backslash before one. */
static void
trim(char *s)
{
	char *blanks = NULL;

	for (; *s != '\0'; s++) {
		if (*s == ' ') {
			if (blanks == NULL)
				blanks = s;
			continue;
		}
		if (*s == '\\') {
			s++;
			if (*s == '\0')
				return;
		}
		blanks = NULL;
	}
	if (blanks != NULL)
		*blanks = '\0';
}

/* The literal part is cut off first, as git does: stars behind it then stand
 * at the beginning of a pattern. */
static void
add_line(struct gitignore *g, char *s)
{
	struct pattern p = { 0 };
	size_t n = strcspn(s, "\r");

	if (*s == '\0' || *s == '#')
		return;
	if (s[n] == '\r' && s[n + 1] == '\0')
		s[n] = '\0';
	trim(s);
	if (*s == '!') {
		p.include = true;
		s++;
	}
	n = strlen(s);
	if (n > PATTERN_MAX)
		return;
	if (n > 0 && s[n - 1] == '/') {
		s[--n] = '\0';
		p.must_be_dir = true;
	}
	p.name_only = strchr(s, '/') == NULL;
	if (*s == '/')
		s++;
	if (*s == '\0')
		return;
	n = strcspn(s, "*?[\\");
	if (s[n] != '\0') {
		p.rest = wild_new(s + n);
		if (p.rest == NULL)
			return;
	}
	p.literal = xstrndup(s, n);
	add(g, &p);
}

void
gitignore_add(struct gitignore *g, const char *text, size_t len)
{
	char *copy = xstrndup(text, len), *at = copy, *line;

	if (str_starts(at, "\xef\xbb\xbf"))
		at += 3;
	while ((line = strsep(&at, "\n")) != NULL)
		add_line(g, line);
	free(copy);
}

static bool
match(const struct pattern *p, const char *path, const char *name, bool is_dir)
{
	size_t n = strlen(p->literal);

	if (p->must_be_dir && !is_dir)
		return false;
	if (p->name_only)
		path = name;
	if (strncmp(path, p->literal, n) != 0)
		return false;
	return p->rest == NULL ? path[n] == '\0'
	                       : wild_match(p->rest, path + n);
}

enum gitignore_says
gitignore_match(const struct gitignore *g, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	size_t i;

	for (i = g->count; i-- > 0;) {
		if (match(&g->list[i], path, name, is_dir))
			return g->list[i].include ? GITIGNORE_INCLUDE
			                          : GITIGNORE_EXCLUDE;
	}
	return GITIGNORE_NOTHING;
}
