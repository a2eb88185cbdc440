/*
 * Looks at a command's text as bash would, as far as it needs to.
 *
 * What could change the shell: a builtin or keyword in the place of a command
 * (also one that quotes or a pattern spell), an assignment there, a function,
 * an expansion, a background job.  None of these can be written with what is
 * let through here.
 */
#include "ssh/tame.h"

#include <stddef.h>
#include <string.h>

#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define NAME LETTERS "0123456789_./+-"
#define ARGUMENT NAME "=:,@%^*?[]~"
#define LONGEST_NAME 64

/* Builtins and keywords of bash, but for those that do no harm: these are
 * "echo", "pwd", "cd", "true" and "false".  A subscript after "test -v" is
 * computed, and may assign. */
static const char *const wild[] = { ".", "alias", "bg", "bind", "break",
	"builtin", "caller", "case", "command", "compgen", "complete",
	"compopt", "continue", "coproc", "declare", "dirs", "disown", "do",
	"done", "elif", "else", "enable", "esac", "eval", "exec", "exit",
	"export", "fc", "fg", "fi", "for", "function", "getopts", "hash",
	"help", "history", "if", "in", "jobs", "kill", "let", "local", "logout",
	"mapfile", "popd", "printf", "pushd", "read", "readarray", "readonly",
	"return", "select", "set", "shift", "shopt", "source", "suspend",
	"test", "then", "time", "times", "trap", "type", "typeset", "ulimit",
	"umask", "unalias", "unset", "until", "wait", "while" };

static const char *
blanks(const char *p)
{
	return p + strspn(p, " \t");
}

static bool
ends_word(char c)
{
	return c == '\0' || strchr(" \t;|&<>", c) != NULL;
}

/* Behind the word in the place of a command, or NULL. */
static const char *
command_word(const char *p)
{
	char name[LONGEST_NAME];
	size_t i, n = strspn(p, NAME);

	if (n == 0 || n >= sizeof(name))
		return NULL;
	memcpy(name, p, n);
	name[n] = '\0';
	for (i = 0; i < sizeof(wild) / sizeof(*wild); i++) {
		if (strcmp(name, wild[i]) == 0)
			return NULL;
	}
	p += n;
	/* A number there is no name: the command comes behind it. */
	if ((*p == '<' || *p == '>') && strspn(name, "0123456789") == n)
		return NULL;
	return ends_word(*p) ? p : NULL;
}

/* Behind a quoted text, or NULL. */
static const char *
quoted(const char *p)
{
	const char *end = p + 1 + strcspn(p + 1, *p == '"' ? "\"$`\\" : "'");

	return *end == *p ? end + 1 : NULL;
}

/* Behind "<", ">", ">>", "<>", or ">&" and a number; or NULL.  After ">&1-" the
 * shell itself may be without that descriptor. */
static const char *
redirection(const char *p)
{
	const char *end;

	if (p[0] == '<')
		return p[1] == '<' || p[1] == '&' ? NULL : p + 1;
	if (p[1] != '&')
		return p[1] == '>' ? p + 2 : p + 1;
	end = p + 2 + strspn(p + 2, "0123456789");
	return end > p + 2 && ends_word(*end) ? end : NULL;
}

/* Behind all that belongs to a command whose name has been read, or NULL. */
static const char *
arguments(const char *p)
{
	while (p != NULL && *p != '\0' && strchr(";|&", *p) == NULL) {
		size_t n = strspn(p, ARGUMENT " \t");

		if (n > 0)
			p += n;
		else if (*p == '\'' || *p == '"')
			p = quoted(p);
		else if (*p == '<' || *p == '>')
			p = redirection(p);
		else
			return NULL;
	}
	return p;
}

/* Behind the operator between two commands, or NULL. */
static const char *
joint(const char *p)
{
	if (strncmp(p, "&&", 2) == 0 || strncmp(p, "||", 2) == 0)
		return p + 2;
	return (p[0] == ';' || p[0] == '|') && p[1] != p[0] && p[1] != '&'
	    ? p + 1
	    : NULL;
}

bool
tame_command(const char *text)
{
	const char *p = blanks(text);

	do {
		p = command_word(p);
		p = arguments(p);
		if (p == NULL)
			return false;
		if (*p == '\0')
			return true;
		p = joint(p);
		p = p == NULL ? NULL : blanks(p);
	} while (p != NULL && *p != '\0');
	return false;
}
