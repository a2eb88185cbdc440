/* SHA-1 (RFC 3174), to tell whether a text changed; not for secrets. */
#ifndef BASE_SHA1_H
#define BASE_SHA1_H

#include <stddef.h>

#define SHA1_HEX 41

/* The digest as hexadecimal digits and a NUL. */
void sha1_hex(char out[SHA1_HEX], const void *data, size_t len);

#endif
