/* Tables for a terminal: columns as wide as they need be, the last one cut to
 * what is left. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>

#define TABLE_COLUMNS 8

struct table {
	size_t columns;
	char *(*rows)[TABLE_COLUMNS];
	size_t count;
};

/* Add a row of t->columns texts, which may be any bytes; each becomes a line
 * without control characters. */
void table_add(struct table *t, const char *const *cells);
void table_print(const struct table *t);
void table_free(struct table *t);

/* Print text of a remote machine: its lines, without terminal tricks. */
void table_print_text(const char *text);

/* How long ago, or in how long, in a word or two: "5 min". */
void table_span(char out[32], long long seconds);

#endif
