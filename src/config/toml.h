/*
 * Changes to TOML files that belong to others: a table is put in or taken out
 * of the text, and every other byte stays, comments and order included.
 *
 * Only as much of TOML is understood as that takes: where statements, keys and
 * values begin and end.  Nothing here touches the disk.  Each result has been
 * read again and compared with the text before; what cannot be understood is
 * refused with ERR_INVALID.
 */
#ifndef CONFIG_TOML_H
#define CONFIG_TOML_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/*
 * "table" is a list of names, with NULL at its end.  The whole new text is
 * appended to "out".
 */

/* Give the table these keys, whose values are strings and lists of them; it is
 * made at the end of the text if need be.  Its other keys stay. */
int toml_set(struct buf *out, const char *text, size_t len,
    const char *const *table, const json_t *values, struct err *err);

/* Remove the table and those below it; it not being there is no failure. */
int toml_remove(struct buf *out, const char *text, size_t len,
    const char *const *table, struct err *err);

/* Is anything of the table there? */
int toml_has(const char *text, size_t len, const char *const *table, bool *has,
    struct err *err);

#endif
