/*
 * Changes to JSON files that belong to others: a value is put in or taken out
 * of the text, and every other byte stays, comments and order included.
 *
 * Comments and commas before a closing bracket are understood, as editors
 * write them.  Nothing here touches the disk.  Each result has been read again
 * and compared with what the change was to bring about; what cannot be
 * understood is refused with ERR_INVALID.
 */
#ifndef CONFIG_JSONC_H
#define CONFIG_JSONC_H

#include <jansson.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* The value that the text is; blank text is an empty object. */
json_t *jsonc_decode(const char *text, size_t len, struct err *err);

/*
 * "path" is a list of names, with NULL at its end, from the outermost object
 * inwards.  The whole new text is appended to "out".
 */

/* Give the member this value; objects on the way are made if need be. */
int jsonc_set(struct buf *out, const char *text, size_t len,
    const char *const *path, const json_t *value, struct err *err);

/* Remove the member; it not being there is no failure. */
int jsonc_remove(struct buf *out, const char *text, size_t len,
    const char *const *path, struct err *err);

/* The same two for a list: append to it, remove its item number "index". */
int jsonc_append(struct buf *out, const char *text, size_t len,
    const char *const *path, const json_t *value, struct err *err);
int jsonc_remove_item(struct buf *out, const char *text, size_t len,
    const char *const *path, size_t index, struct err *err);

#endif
