/*
 * Text for the client is UTF-8; bytes from elsewhere may be anything.
 */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Well-formed UTF-8: no overlong forms, no surrogates, at most U+10FFFF. */
bool utf8_valid(const char *s, size_t len);

/*
 * Append "s" to "out" as valid UTF-8.  Each maximal subpart of an ill-formed
 * sequence becomes one U+FFFD, as the Unicode standard recommends (3.9, table
 * 3-8) and browsers do; a NUL becomes U+FFFD too.  At the limit of "out" only
 * whole characters are added, and nothing at all to one that is full already.
 */
void utf8_fix(struct buf *out, const char *s, size_t len);

/* The largest n <= max (and <= len) at which cutting "s" splits no character;
 * bytes that are part of none may be cut anywhere. */
size_t utf8_cut(const char *s, size_t len, size_t max);

/* A JSON string of these bytes, made valid as by utf8_fix().  Never NULL. */
json_t *utf8_json(const char *s, size_t len);

#endif
