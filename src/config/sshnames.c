#include "config/sshnames.h"

#include <glob.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/utf8.h"

#define FILE_MAX ((size_t)1 << 20)
#define HOSTS_MAX 1000
#define DEPTH_MAX 8

static void
add_once(json_t *list, const char *word, size_t len)
{
	const json_t *old;
	size_t i;

	if (!utf8_valid(word, len) || json_array_size(list) >= HOSTS_MAX)
		return;
	json_array_foreach (list, i, old) {
		if (json_string_length(old) == len &&
		    memcmp(json_string_value(old), word, len) == 0)
			return;
	}
	json_array_append_new(list, json_stringn(word, len));
}

/* The next word of a line, without its quotes; NULL at the line's end. */
static const char *
next_word(const char **at, size_t *len)
{
	const char *s = *at + strspn(*at, " \t\r=");
	bool quoted = *s == '"';

	s += quoted;
	*len = strcspn(s, quoted ? "\"\r\n" : " \t\r\n");
	if (*len == 0)
		return NULL;
	*at = s + *len + (quoted && s[*len] == '"');
	return s;
}

static bool
is_word(const char *s, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(s, word, len) == 0;
}

static bool
is_pattern(const char *s, size_t len)
{
	return memchr(s, '*', len) != NULL || memchr(s, '?', len) != NULL ||
	    s[0] == '!' || s[0] == '-';
}

static void
parse_line(const char *line, json_t *hosts, json_t *includes)
{
	const char *word;
	bool host, include;
	size_t len;

	line += strspn(line, " \t");
	len = strcspn(line, " \t=\r\n");
	host = is_word(line, len, "Host");
	include = is_word(line, len, "Include");
	line += len;
	while ((host || include) && (word = next_word(&line, &len)) != NULL) {
		if (word[0] == '#')
			return;
		if (include)
			add_once(includes, word, len);
		else if (!is_pattern(word, len))
			add_once(hosts, word, len);
	}
}

void
sshnames_parse(const char *text, json_t *hosts, json_t *includes)
{
	while (*text != '\0') {
		parse_line(text, hosts, includes);
		text += strcspn(text, "\n");
		text += *text == '\n';
	}
}

static void read_file(const char *path, const char *home, int depth,
    json_t *hosts);

/* A pattern of Include: relative ones are below ~/.ssh. */
static void
read_matching(const char *pattern, const char *home, int depth, json_t *hosts)
{
	char *near = path_home(pattern, home);
	char *dir = path_join(home, ".ssh");
	char *whole = path_join(dir, near);
	glob_t found;
	size_t i;

	if (glob(whole, 0, NULL, &found) == 0) {
		for (i = 0; i < found.gl_pathc; i++)
			read_file(found.gl_pathv[i], home, depth, hosts);
		globfree(&found);
	}
	free(near);
	free(dir);
	free(whole);
}

static void
read_file(const char *path, const char *home, int depth, json_t *hosts)
{
	json_t *includes = json_array();
	const json_t *v;
	struct buf text;
	struct err err;
	size_t i;

	buf_init(&text, FILE_MAX);
	if (depth < DEPTH_MAX && fs_read(path, &text, &err) == 0)
		sshnames_parse(text.data, hosts, includes);
	json_array_foreach (includes, i, v) {
		read_matching(json_string_value(v), home, depth + 1, hosts);
	}
	buf_free(&text);
	json_decref(includes);
}

json_t *
sshnames(const char *home)
{
	json_t *hosts = json_array();
	char *path;

	if (home != NULL) {
		path = path_join(home, ".ssh/config");
		read_file(path, home, 0, hosts);
		free(path);
	}
	return hosts;
}
