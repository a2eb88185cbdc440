/*
 * JSON from outside, within limits.
 *
 * Ten megabytes of "[]," would cost hundreds of megabytes as values, and
 * deep nesting costs stack; so values and depth are counted before anything
 * is built.
 */
#ifndef BASE_DECODE_H
#define BASE_DECODE_H

#include <jansson.h>
#include <stddef.h>

#include "base/err.h"

/* For every dump: 0.1 is to be read as 0.1, not as 0.10000000000000001. */
#define JSON_SHORT_REALS JSON_REAL_PRECISION(15)

#define DECODE_DEPTH_MAX 100
#define DECODE_VALUES_MAX 100000

/*
 * The JSON value that these bytes are.  Any value may stand at the top, no
 * key may stand twice, and strings may hold NUL: who uses one checks its
 * length (decode_text).  NULL with ERR_INVALID or ERR_LIMIT; the error tells
 * the place but repeats nothing of the text, which may hold a secret.
 */
json_t *decode_json(const char *text, size_t len, struct err *err);

/* The string that "v" is, or NULL if it is none or has a NUL inside. */
const char *decode_text(const json_t *v);

#endif
