/*
 * TOML as a list of statements: what toml.c needs to know of a text.
 */
#ifndef CONFIG_TOMLSCAN_H
#define CONFIG_TOMLSCAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum toml_kind {
	TOML_TABLE, /* [a.b] */
	TOML_LIST,  /* [[a.b]] */
	TOML_PAIR,  /* a.b = 1 */
	TOML_INNER, /* the same inside the braces of a pair before it */
};

struct toml_part {
	enum toml_kind kind;
	json_t *path;            /* names from the outermost table on */
	size_t start, end;       /* its lines; an inner one's own text */
	size_t value, value_end; /* of pairs */
};

struct toml_scan {
	struct toml_part *parts;
	size_t count;
};

/* ERR_INVALID with the line that cannot be understood.  toml_scan_free() in
 * every case.  Pure. */
int toml_scan(struct toml_scan *s, const char *text, size_t len,
    struct err *err);
void toml_scan_free(struct toml_scan *s);

#endif
