/*
 * Results for people: one "name: value" a line, blocks for longer text.
 *
 * What a host gave -- the text of a file, a name -- may hold sequences that a
 * terminal obeys.  Into a file or a pipe it goes as it is.
 */
#include "cli/show.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "ssh/clean.h"

char *
show_said(FILE *f, const char *text)
{
	struct buf b;

	if (isatty(fileno(f)) != 1)
		return xstrdup(text);
	buf_init(&b, SIZE_MAX);
	clean_text(&b, text, strlen(text));
	return buf_take(&b);
}

static void
print_said(const char *text)
{
	char *said = show_said(stdout, text);

	printf("%s\n", said);
	free(said);
}

void
show_json(int rc, const json_t *result, const struct err *err)
{
	json_t *o = NULL;
	char *text;

	if (rc == -1) {
		o = json_object();
		json_object_set_new(o, "error",
		    utf8_json(err->msg, strlen(err->msg)));
		if (json_is_string(result))
			json_object_set(o, "output",
			    (json_t *)(uintptr_t)result);
		else if (result != NULL)
			json_object_update_missing(o,
			    (json_t *)(uintptr_t)result);
		result = o;
	}
	text = json_dumps(result,
	    JSON_INDENT(2) | JSON_ENCODE_ANY | JSON_SHORT_REALS);
	print_said(text != NULL ? text : "?");
	free(text);
	json_decref(o);
}

static void show_value(const json_t *v, int indent);

static void
spaces(int n)
{
	printf("%*s", n, "");
}

/* Text of several lines stands indented below its name. */
static void
show_lines(const char *s, int indent)
{
	const char *end;

	if (strchr(s, '\n') == NULL) {
		printf(" %s\n", s);
		return;
	}
	putchar('\n');
	while (*s != '\0') {
		end = strchr(s, '\n');
		if (end == NULL)
			end = s + strlen(s);
		spaces(indent + 2);
		printf("%.*s\n", (int)(end - s), s);
		s = *end == '\n' ? end + 1 : end;
	}
}

static void
show_string(const char *s, int indent)
{
	char *said = show_said(stdout, s);

	show_lines(said, indent);
	free(said);
}

static void
show_fields(const json_t *o, int indent)
{
	const char *key;
	char *said;
	json_t *v;

	json_object_foreach ((json_t *)(uintptr_t)o, key, v) {
		said = show_said(stdout, key);
		spaces(indent);
		printf("%s:", said);
		show_value(v, indent);
		free(said);
	}
}

static void
show_list(const json_t *list, int indent)
{
	const json_t *v;
	size_t i;

	json_array_foreach (list, i, v) {
		spaces(indent + 2);
		putchar('-');
		show_value(v, indent + 2);
	}
}

/* What follows "name:"; ends the line. */
static void
show_value(const json_t *v, int indent)
{
	char *text;

	if (json_is_string(v)) {
		show_string(json_string_value(v), indent);
	} else if (json_is_object(v) && json_object_size(v) > 0) {
		putchar('\n');
		show_fields(v, indent + 2);
	} else if (json_is_array(v) && json_array_size(v) > 0) {
		putchar('\n');
		show_list(v, indent);
	} else if (json_is_object(v) || json_is_array(v)) {
		printf(" (none)\n");
	} else {
		text = json_dumps(v, JSON_ENCODE_ANY | JSON_SHORT_REALS);
		printf(" %s\n", text != NULL ? text : "?");
		free(text);
	}
}

void
show_text(int rc, const json_t *result, const struct err *err)
{
	if (rc == -1) {
		fprintf(stderr, "error: %s\n", err->msg);
		if (result == NULL)
			return;
	}
	if (json_is_string(result))
		print_said(json_string_value(result));
	else
		show_fields(result, 0);
}
