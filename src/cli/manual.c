/*
 * remote-sandbox-mcp-tools(7) in mdoc.
 */
#include "cli/manual.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Text that mdoc must take as text: a new line for each sentence, as the
 * language wants it, and nothing at the start of a line that it would read
 * as a command.
 */
static void
text(const char *s)
{
	int column = 0;

	for (; *s != '\0'; s++) {
		if (column == 0 && *s == ' ')
			continue;
		if (column == 0 && (*s == '.' || *s == '\''))
			fputs("\\&", stdout);
		if (*s == '\\')
			fputs("\\e", stdout);
		else
			putchar(*s);
		column++;
		if ((*s == '.' || *s == ';') && s[1] == ' ') {
			putchar('\n');
			column = 0;
		}
	}
	if (column > 0)
		putchar('\n');
}

static void
arg_entry(const struct arg *a)
{
	json_t *dflt = arg_default(a);
	char *value = dflt != NULL ? json_dumps(dflt, JSON_ENCODE_ANY) : NULL;
	char allowed[256];
	const struct arg *f;

	arg_allowed(a, allowed, sizeof(allowed));
	printf(".It Fa %s\n", a->name);
	text(a->help);
	printf("%c",
	    allowed[0] -
	        ('a' <= allowed[0] && allowed[0] <= 'z' ? 'a' - 'A' : 0));
	fputs(allowed + 1, stdout);
	if (a->required)
		fputs("; required", stdout);
	else if (value != NULL)
		printf("; default %s", value);
	puts(".");
	if (a->fields != NULL) {
		puts(".Bl -tag -width Ds -compact");
		for (f = a->fields; f->type != ARG_END; f++)
			arg_entry(f);
		puts(".El");
	}
	free(value);
	json_decref(dflt);
}

static void
out_entries(const struct out *outs)
{
	const struct out *f;

	puts(".Bl -tag -width Ds -compact");
	for (f = outs; f->type != OUT_END; f++) {
		printf(".It Va %s\n", f->name);
		if (f->help != NULL)
			text(f->help);
		if (f->nullable)
			puts("Null if not known.");
		if (!f->always)
			puts("Only when it applies.");
		if (f->fields != NULL)
			out_entries(f->fields);
	}
	puts(".El");
}

static void
tool_section(const struct tool *t)
{
	const struct arg *a;

	printf(".Ss %s\n", t->name);
	text(t->description);
	if (t->flags & TOOL_ADVANCED)
		puts("Listed only with the advanced tools.");
	if (t->flags & TOOL_REMOTE_SSH)
		puts("Of the set remote-ssh, see\n.Xr remote-sandbox-mcp 1 .");
	if (t->args != NULL) {
		puts(".Pp\nArguments:\n.Bl -tag -width Ds");
		for (a = t->args; a->type != ARG_END; a++)
			arg_entry(a);
		puts(".El");
	}
	if (t->outputs != NULL) {
		puts(".Pp\nResult:");
		out_entries(t->outputs);
	} else {
		puts(".Pp\nThe result is text.");
	}
}

void
manual_tools(const struct tool *const *table)
{
	const struct tool *const *t;

	puts(".\\\" Made by \"remote-sandbox-mcp tools --mdoc\".");
	puts(".Dd $Mdocdate$\n.Dt REMOTE-SANDBOX-MCP-TOOLS 7\n.Os");
	puts(".Sh NAME\n.Nm remote-sandbox-mcp-tools");
	puts(".Nd what an agent can ask of remote-sandbox-mcp");
	puts(".Sh DESCRIPTION");
	puts("Each tool takes a JSON object of arguments and gives a JSON "
	     "object back.");
	puts("A null counts as absent.");
	puts("Arguments that are not known are ignored; but if a name is "
	     "hardly different from a known one, the call is refused and "
	     "nothing is done.");
	puts("A failure is an object with an\n.Va error\nthat says what to "
	     "do.");
	for (t = table; *t != NULL; t++)
		tool_section(*t);
	puts(".Sh SEE ALSO\n.Xr remote-sandbox-mcp 1");
}
