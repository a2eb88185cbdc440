#include "cli/table.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "ssh/clean.h"

#define GAP 2

static size_t
width(void)
{
	struct winsize size;

	if (isatty(STDOUT_FILENO) &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return SIZE_MAX;
}

/* Characters, as far as a terminal gives each one place. */
static size_t
chars(const char *s)
{
	size_t n = 0;

	for (; *s != '\0'; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

/* Bytes of the first "max" characters. */
static int
cut(const char *s, size_t max)
{
	size_t i;

	for (i = 0; s[i] != '\0'; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80 && max-- == 0)
			break;
	}
	return (int)i;
}

static char *
line(const char *text)
{
	struct buf b;
	size_t i;

	buf_init(&b, SIZE_MAX);
	clean_text(&b, text, strlen(text));
	for (i = 0; i < b.len; i++) {
		if (b.data[i] == '\n' || b.data[i] == '\t')
			b.data[i] = ' ';
	}
	return buf_take(&b);
}

void
table_add(struct table *t, const char *const *cells)
{
	size_t i;

	t->rows = xreallocarray(t->rows, t->count + 1, sizeof(*t->rows));
	for (i = 0; i < t->columns; i++)
		t->rows[t->count][i] = line(cells[i]);
	t->count++;
}

static size_t
widest(const struct table *t, size_t column)
{
	size_t i, n, most = 0;

	for (i = 0; i < t->count; i++) {
		n = chars(t->rows[i][column]);
		most = n > most ? n : most;
	}
	return most;
}

static void
print_row(char *const *row, const size_t *widths, size_t columns, size_t room)
{
	size_t i;

	for (i = 0; i + 1 < columns; i++)
		printf("%s%*s", row[i], (int)(widths[i] - chars(row[i]) + GAP),
		    "");
	printf("%.*s\n", cut(row[i], room), row[i]);
}

void
table_print(const struct table *t)
{
	size_t widths[TABLE_COLUMNS], i, all = width(), used = 0;

	for (i = 0; i < t->columns; i++)
		widths[i] = widest(t, i);
	for (i = 0; i + 1 < t->columns; i++)
		used += widths[i] + GAP;
	for (i = 0; i < t->count; i++)
		print_row(t->rows[i], widths, t->columns,
		    all > used + 10 ? all - used : 10);
}

void
table_free(struct table *t)
{
	size_t i, j;

	for (i = 0; i < t->count; i++) {
		for (j = 0; j < t->columns; j++)
			free(t->rows[i][j]);
	}
	free(t->rows);
	memset(t, 0, sizeof(*t));
}

void
table_print_text(const char *text)
{
	struct buf b;

	buf_init(&b, SIZE_MAX);
	clean_text(&b, text, strlen(text));
	fwrite(b.data, 1, b.len, stdout);
	if (b.len > 0 && b.data[b.len - 1] != '\n')
		putchar('\n');
	buf_free(&b);
}

void
table_span(char out[32], long long seconds)
{
	if (seconds < 0)
		seconds = 0;
	if (seconds < 120)
		snprintf(out, 32, "%lld s", seconds);
	else if (seconds < 7200)
		snprintf(out, 32, "%lld min", seconds / 60);
	else if (seconds < 172800)
		snprintf(out, 32, "%lld h", seconds / 3600);
	else
		snprintf(out, 32, "%lld days", seconds / 86400);
}
