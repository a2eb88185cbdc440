/* Bytes as text that any client can carry. */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include <stddef.h>

#include "base/buf.h"

/* Append the bytes in base64 (RFC 4648, with padding, without line ends). */
void base64_add(struct buf *out, const void *bytes, size_t len);

#endif
