/*
 * JSON with comments as text and as what it says, for jsonc.c: where the parts
 * of a text are.
 */
#ifndef CONFIG_JSONCSCAN_H
#define CONFIG_JSONCSCAN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct jsonc_doc {
	struct buf text;
	char *bare;    /* without comments */
	char *plain;   /* without superfluous commas, too */
	json_t *value; /* what it says */
};

/* A member of an object or an item of a list. */
struct jsonc_item {
	size_t start; /* of its name, if it has one */
	size_t value, end;
};

bool jsonc_space(char c);
bool jsonc_blank(const char *t, size_t len);

/* Read a text; "empty" is what stands in one that says nothing.
 * jsonc_doc_free() in every case. */
int jsonc_doc_init(struct jsonc_doc *d, const char *text, size_t len,
    const char *empty, struct err *err);
void jsonc_doc_free(struct jsonc_doc *d);

/* The next item of the container at "open", from "*at" behind its bracket or
 * the item before on; false at its end, where "*at" is its closing bracket. */
bool jsonc_next(const struct jsonc_doc *d, size_t open, size_t *at,
    struct jsonc_item *out);

/* Follow the path from the outermost value, as far as there is one: "found" is
 * the last one, *path what is left of the path. */
int jsonc_follow(const struct jsonc_doc *d, const char *const **path,
    struct jsonc_item *found, struct err *err);

#endif
