/*
 * completion: what a shell offers for the word at hand.
 *
 * The scripts only ask this program ("completion --words -- WORD ...") and
 * show what it prints: a word and perhaps, behind a tab, what it means.  The
 * answers come from the tables that the program has anyway: a command's usage
 * line tells what its words are, its help text which options there are.
 */
#include <ctype.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/clients.h"
#include "cli/command.h"
#include "config/config.h"
#include "config/sshnames.h"
#include "tools/tool.h"

extern const struct command command_completion;

/* The words of a line so far; the last one is being typed. */
struct typing {
	char **words;
	size_t count;
	const char *last;
	const struct command *command;
};

static void
offer(const struct typing *t, const char *word, const char *meaning)
{
	if (!str_starts(word, t->last))
		return;
	printf("%s%s%s\n", word, meaning != NULL ? "\t" : "",
	    meaning != NULL ? meaning : "");
}

/* --- lists ----------------------------------------------------------------
 */

static void
offer_commands(const struct typing *t)
{
	const struct command *const *c;

	for (c = command_table; *c != NULL; c++) {
		if (!(*c)->hidden)
			offer(t, (*c)->name, (*c)->summary);
	}
}

static void
offer_tools(const struct typing *t)
{
	const struct tool *const *tool;

	for (tool = tool_table; *tool != NULL; tool++)
		offer(t, (*tool)->name, (*tool)->title);
}

static void
offer_clients(const struct typing *t)
{
	const struct client *c;

	for (c = client_table; c->name != NULL; c++)
		offer(t, c->name, c->title);
	offer(t, "all", "those that are here");
	offer(t, "none", NULL);
}

/* Those that ssh knows. */
static void
offer_hosts(const struct typing *t)
{
	json_t *hosts = sshnames(getenv("HOME"));
	const json_t *v;
	size_t i;

	json_array_foreach (hosts, i, v) {
		offer(t, json_string_value(v), NULL);
	}
	json_decref(hosts);
}

/* The names of all sandboxes between two texts. */
static void
offer_sandboxes(const struct typing *t, const char *before, const char *after)
{
	struct config_sources src;
	const char *file = NULL;
	struct config c;
	char *path, *word;
	size_t i;

	for (i = 1; i + 1 < t->count; i++) {
		if (strcmp(t->words[i], "--config") == 0)
			file = t->words[i + 1];
	}
	config_sources(&src, file, &path);
	config_load(&c, &src);
	for (i = 0; i < c.count; i++) {
		word = xasprintf("%s%s%s", before, c.sandboxes[i].name, after);
		offer(t, word, c.sandboxes[i].host);
		free(word);
	}
	config_free(&c);
	free(path);
}

static void
offer_value(const struct typing *t, const struct arg *a, const char *value)
{
	char *word = xasprintf("%s=%s", a->name, value);

	offer(t, word, NULL);
	free(word);
}

/* What may stand behind "NAME=" of an argument that takes few values. */
static void
offer_values(const struct typing *t, const struct arg *a)
{
	size_t i;

	for (i = 0; a->type == ARG_ENUM && a->choices[i] != NULL; i++)
		offer_value(t, a, a->choices[i]);
	if (a->type == ARG_BOOL) {
		offer_value(t, a, "true");
		offer_value(t, a, "false");
	}
}

/* The arguments of the tool that the line names, or values of one. */
static void
offer_arguments(const struct typing *t, const char *tool_name)
{
	const struct tool *tool = tool_find(tool_table, tool_name);
	const struct arg *a;
	char *word;

	if (str_starts(t->last, "sandbox_name=")) {
		offer_sandboxes(t, "sandbox_name=", "");
		return;
	}
	for (a = tool != NULL ? tool->args : NULL;
	     a != NULL && a->type != ARG_END; a++) {
		word = xasprintf("%s=", a->name);
		if (str_starts(t->last, word))
			offer_values(t, a);
		else
			offer(t, word, a->help);
		free(word);
	}
}

/* --- what the texts say ---------------------------------------------------
 */

/* Is the word in capitals, so that it stands for something? */
static bool
is_placeholder(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len && (isupper((unsigned char)s[i]) || s[i] == '_');
	     i++)
		;
	return len > 0 && i == len;
}

/* How long the word at "s" is, in a text for people. */
static size_t
word_len(const char *s)
{
	return strcspn(s, " \t\n[],;.()");
}

/* An option that a text mentions, and what stands for its value. */
struct mention {
	char name[40];
	char value[40]; /* "" if it takes none */
};

static bool
next_mention(const char **at, struct mention *m)
{
	const char *s = *at;
	size_t n, k;

	while ((s = strstr(s, "--")) != NULL) {
		n = 2 + strspn(s + 2, "abcdefghijklmnopqrstuvwxyz-");
		if (n > 2 && n < sizeof(m->name))
			break;
		s += n;
	}
	if (s == NULL)
		return false;
	snprintf(m->name, sizeof(m->name), "%.*s", (int)n, s);
	s += n;
	k = *s == ' ' ? word_len(s + 1) : 0;
	snprintf(m->value, sizeof(m->value), "%.*s",
	    is_placeholder(s + 1, k) ? (int)k : 0, s + (k > 0));
	*at = s;
	return true;
}

/* Find this option in what a command says of itself. */
static bool
find_option(const struct command *c, const char *name, struct mention *m)
{
	const char *texts[] = { c->usage, c->help != NULL ? c->help : "" };
	size_t i;

	for (i = 0; i < 2; i++) {
		const char *at = texts[i];

		while (next_mention(&at, m)) {
			if (strcmp(m->name, name) == 0)
				return true;
		}
	}
	return false;
}

static void
offer_options(const struct typing *t)
{
	const struct command *c = t->command;
	char *both =
	    xasprintf("%s %s --help", c->usage, c->help != NULL ? c->help : "");
	const char *at = both, *before;
	struct mention m, seen;
	bool again;

	while (next_mention(&at, &m)) {
		again = false;
		for (before = both;
		     !again && next_mention(&before, &seen) && before < at;)
			again = strcmp(seen.name, m.name) == 0;
		if (!again)
			offer(t, m.name, NULL);
	}
	free(both);
}

/* What a word in capitals stands for; files are the shell's business. */
static void
offer_for(const struct typing *t, const char *placeholder)
{
	static const char *const states[] = { "active", "completed", "failed",
		"cancelled", NULL };
	size_t i;

	if (strcmp(placeholder, "SANDBOX") == 0)
		offer_sandboxes(t, "", "");
	else if (strcmp(placeholder, "FROM") == 0 ||
	    strcmp(placeholder, "TO") == 0)
		offer_sandboxes(t, "", ":");
	else if (strcmp(placeholder, "TOOL") == 0)
		offer_tools(t);
	else if (strcmp(placeholder, "COMMAND") == 0)
		offer_commands(t);
	else if (strcmp(placeholder, "HOST") == 0)
		offer_hosts(t);
	else if (strcmp(placeholder, "CLIENT") == 0)
		offer_clients(t);
	for (i = 0; strcmp(placeholder, "STATUS") == 0 && states[i] != NULL;
	     i++)
		offer(t, states[i], NULL);
}

/* "install|status" */
static void
offer_choice(const struct typing *t, const char *choice, size_t len)
{
	char *copy = xstrndup(choice, len), *at = copy, *word;

	while ((word = strsep(&at, "|")) != NULL)
		offer(t, word, NULL);
	free(copy);
}

/* The words of a usage line that are no options, nor values of such; number
 * "n" of them, or the last one if that repeats. */
static size_t
usage_word(const char *usage, size_t n, const char **found)
{
	bool value = false; /* of the option before */
	size_t len, found_len = 0;

	for (; *usage != '\0'; usage += len) {
		usage += strspn(usage, " \t\n[],;.()");
		len = word_len(usage);
		if (len == 0 || (len == 1 && *usage == '|')) {
			continue;
		} else if (*usage == '-') {
			value = true;
		} else if (value && is_placeholder(usage, len)) {
			value = false;
		} else {
			value = false;
			*found = usage;
			found_len = len;
			if (n-- == 0)
				return len;
		}
	}
	return found_len > 0 && memchr(*found, '=', found_len) != NULL
	    ? found_len
	    : 0;
}

/* --- the line -------------------------------------------------------------
 */

/* How many words of the command stand before the last one; the first of them
 * is "*first". */
static size_t
count_words(const struct typing *t, const char **first)
{
	struct mention m;
	size_t i, n = 0;

	*first = "";
	for (i = 1; i + 1 < t->count; i++) {
		if (t->words[i][0] == '-') {
			if (find_option(t->command, t->words[i], &m) &&
			    m.value[0] != '\0')
				i++;
			continue;
		}
		if (n++ == 0)
			*first = t->words[i];
	}
	return n;
}

static void
offer_words(const struct typing *t)
{
	const char *first, *word = NULL;
	size_t n = count_words(t, &first), len;
	char *copy;

	len = usage_word(t->command->usage, n, &word);
	if (len == 0)
		return;
	if (memchr(word, '=', len) != NULL) {
		offer_arguments(t, first);
	} else if (is_placeholder(word, len)) {
		copy = xstrndup(word, len);
		offer_for(t, copy);
		free(copy);
	} else {
		offer_choice(t, word, len);
	}
}

static int
complete(char **words, size_t count)
{
	struct typing t = { .words = words, .count = count };
	struct mention m;

	t.last = count > 0 ? words[count - 1] : "";
	if (count <= 1) {
		offer_commands(&t);
		return EXIT_OK;
	}
	t.command = command_find(words[0]);
	if (t.command == NULL)
		return EXIT_OK;
	if (count > 2 && words[count - 2][0] == '-' &&
	    find_option(t.command, words[count - 2], &m) && m.value[0] != '\0')
		offer_for(&t, m.value);
	else if (t.last[0] == '-')
		offer_options(&t);
	else
		offer_words(&t);
	return EXIT_OK;
}

/* --- the scripts ----------------------------------------------------------
 */

static const struct shell_script {
	const char *name, *text;
} scripts[] = {
	{ "bash",
	    "# bash completion for remote-sandbox-mcp\n"
	    "_remote_sandbox_mcp()\n"
	    "{\n"
	    "\tlocal line=${COMP_LINE:0:COMP_POINT} words cur\n"
	    "\t# '=' and ':' divide words for bash, but not for the "
	    "program.\n"
	    "\tread -ra words <<<\"$line\"\n"
	    "\t[[ $line == *[[:space:]] ]] && words+=(\"\")\n"
	    "\tcur=${words[${#words[@]} - 1]}\n"
	    "\tlocal IFS=$'\\n'\n"
	    "\tCOMPREPLY=($(\"${COMP_WORDS[0]}\" completion --words -- "
	    "\"${words[@]:1}\" 2>/dev/null | cut -f 1))\n"
	    "\tCOMPREPLY=(\"${COMPREPLY[@]#\"${cur%\"${cur##*[=:]}\"}\"}\")\n"
	    "\t[[ ${COMPREPLY[0]} == *[=:] ]] && compopt -o nospace\n"
	    "\t[[ ${COMPREPLY[0]} ]] || COMPREPLY=()\n"
	    "}\n"
	    "complete -o default -F _remote_sandbox_mcp "
	    "remote-sandbox-mcp\n" },
	{ "zsh",
	    "#compdef remote-sandbox-mcp\n"
	    "_remote_sandbox_mcp()\n"
	    "{\n"
	    "\tlocal line word\n"
	    "\tlocal -a found open shown\n"
	    "\tfor line in \"${(@f)$(\"${(Q)words[1]}\" completion --words "
	    "-- \"${(@Q)words[2,CURRENT]}\" 2>/dev/null)}\"; do\n"
	    "\t\tword=${line%%$'\\t'*}\n"
	    "\t\t[[ -n $word ]] || continue\n"
	    "\t\tif [[ $word == *[=:] ]]; then\n"
	    "\t\t\topen+=(\"$word\")\n"
	    "\t\telse\n"
	    "\t\t\tfound+=(\"$word\")\n"
	    "\t\t\tshown+=(\"${line/$'\\t'/  }\")\n"
	    "\t\tfi\n"
	    "\tdone\n"
	    "\tif (( $#found + $#open == 0 )); then\n"
	    "\t\t_files\n"
	    "\t\treturn\n"
	    "\tfi\n"
	    "\t(( $#open == 0 )) || compadd -S '' -a open\n"
	    "\t(( $#found == 0 )) || compadd -l -d shown -a found\n"
	    "}\n"
	    "if [[ ${funcstack[1]} == _remote[-_]sandbox[-_]mcp ]]; then\n"
	    "\t_remote_sandbox_mcp \"$@\"\n"
	    "else\n"
	    "\tcompdef _remote_sandbox_mcp remote-sandbox-mcp\n"
	    "fi\n" },
	{ "fish",
	    "# fish completion for remote-sandbox-mcp\n"
	    "function __remote_sandbox_mcp\n"
	    "\tset -l words (commandline -opc)\n"
	    "\tset -l current (commandline -ct)\n"
	    "\t$words[1] completion --words -- $words[2..-1] \"$current\" "
	    "2>/dev/null\n"
	    "end\n"
	    "complete -c remote-sandbox-mcp -f -a "
	    "'(__remote_sandbox_mcp)'\n"
	    "complete -c remote-sandbox-mcp -n 'test -z "
	    "\"$(__remote_sandbox_mcp)\"' -F\n" },
	{ 0 },
};

static int
run(int argc, char **argv)
{
	static const struct option options[] = {
		{ "words", no_argument, NULL, 'w' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	const struct shell_script *s;
	bool words = false;
	int o, status = EXIT_USAGE;

	while ((o = command_option(&command_completion, argc, argv, options,
	            &status)) != -1) {
		if (o == COMMAND_DONE)
			return status;
		words = true;
	}
	if (words)
		return complete(argv + optind, (size_t)(argc - optind));
	for (s = scripts; argc - optind == 1 && s->name != NULL; s++) {
		if (strcmp(s->name, argv[optind]) == 0) {
			fputs(s->text, stdout);
			return EXIT_OK;
		}
	}
	return command_usage(&command_completion);
}

const struct command command_completion = {
	.name = "completion",
	.usage = "bash|zsh|fish",
	.summary = "Print a script that completes command lines in a shell",
	.help =
	    "The packages install these. By hand, in the file that the shell "
	    "reads:\n\n"
	    "  bash  source <(remote-sandbox-mcp completion bash)\n"
	    "  zsh   source <(remote-sandbox-mcp completion zsh), behind "
	    "compinit\n"
	    "  fish  remote-sandbox-mcp completion fish | source\n\n"
	    "Commands, options, tools, their arguments, sandboxes and clients "
	    "are\n"
	    "completed.\n",
	.run = run,
};
