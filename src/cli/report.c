#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "cli/table.h"
#include "ssh/clean.h"

#define FOUND_MAX 2000

static const char *const words[] = { "ok", "warning", "failed" };

const char *
report_word(enum report_state state)
{
	return words[state];
}

/* One line of clean text. */
static json_t *
line_of(const char *text)
{
	struct buf b;
	json_t *s;
	size_t i;

	buf_init(&b, FOUND_MAX);
	clean_text(&b, text, strlen(text));
	while (b.len > 0 && b.data[b.len - 1] == '\n')
		b.data[--b.len] = '\0';
	for (i = 0; i < b.len; i++) {
		if (b.data[i] == '\n' || b.data[i] == '\t')
			b.data[i] = ' ';
	}
	s = utf8_json(b.data, b.len);
	buf_free(&b);
	return s;
}

void
report_add(json_t *list, const char *check, enum report_state state,
    const char *todo, const char *fmt, ...)
{
	json_t *o = json_object();
	char found[FOUND_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(found, sizeof(found), fmt, ap);
	va_end(ap);
	json_object_set_new(o, "check", json_string(check));
	json_object_set_new(o, "state", json_string(words[state]));
	json_object_set_new(o, "found", line_of(found));
	if (todo != NULL)
		json_object_set_new(o, "todo", line_of(todo));
	json_array_append_new(list, o);
}

static enum report_state
state_of(const json_t *line)
{
	const char *word = json_string_value(json_object_get(line, "state"));
	enum report_state s = REPORT_OK;

	while (s < REPORT_FAILED && strcmp(word, words[s]) != 0)
		s++;
	return s;
}

enum report_state
report_worst(const json_t *list)
{
	enum report_state worst = REPORT_OK, s;
	const json_t *line;
	size_t i;

	json_array_foreach (list, i, line) {
		s = state_of(line);
		worst = s > worst ? s : worst;
	}
	return worst;
}

static const char *
text(const json_t *line, const char *name)
{
	const char *s = json_string_value(json_object_get(line, name));

	return s != NULL ? s : "";
}

void
report_print(const char *title, const json_t *list, bool brief)
{
	const json_t *line;
	size_t i;

	if (brief && report_worst(list) == REPORT_OK)
		return;
	printf("%s\n", title);
	json_array_foreach (list, i, line) {
		if (brief && state_of(line) == REPORT_OK)
			continue;
		printf("  %-8s %-12s %s\n", text(line, "state"),
		    text(line, "check"), text(line, "found"));
		if (json_object_get(line, "todo") != NULL)
			printf("  %-8s %-12s -> %s\n", "", "",
			    text(line, "todo"));
	}
}

/* The state of this check in a list, or "-". */
static const char *
state_word(const json_t *checks, const char *name)
{
	const json_t *line;
	size_t i;

	json_array_foreach (checks, i, line) {
		if (strcmp(text(line, "check"), name) == 0)
			return text(line, "state");
	}
	return "-";
}

/* The names of all checks, in the order of who has the most. */
static const json_t *
longest(const json_t *sandboxes)
{
	const json_t *sb, *checks, *most = NULL;
	size_t i;

	json_array_foreach (sandboxes, i, sb) {
		checks = json_object_get(sb, "checks");
		if (most == NULL ||
		    json_array_size(checks) > json_array_size(most))
			most = checks;
	}
	return most;
}

/* As many as a table has room for, from "first" on. */
static void
print_some(const json_t *sandboxes, size_t first)
{
	size_t count = json_array_size(sandboxes) - first, i, k;
	const json_t *names = longest(sandboxes), *line;
	const char *cells[TABLE_COLUMNS];
	struct table t = { 0 };

	if (count > TABLE_COLUMNS - 1)
		count = TABLE_COLUMNS - 1;
	t.columns = count + 1;
	cells[0] = "";
	for (k = 0; k < count; k++)
		cells[k + 1] =
		    text(json_array_get(sandboxes, first + k), "name");
	table_add(&t, cells);
	json_array_foreach (names, i, line) {
		cells[0] = text(line, "check");
		for (k = 0; k < count; k++)
			cells[k + 1] =
			    state_word(json_object_get(json_array_get(sandboxes,
			                                   first + k),
			                   "checks"),
			        cells[0]);
		table_add(&t, cells);
	}
	table_print(&t);
	table_free(&t);
}

void
report_print_table(const json_t *sandboxes)
{
	size_t i;

	for (i = 0; i < json_array_size(sandboxes); i += TABLE_COLUMNS - 1)
		print_some(sandboxes, i);
}
