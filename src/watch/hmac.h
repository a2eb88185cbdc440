/*
 * HMAC-SHA256, with the hash by a program of the system.
 *
 * The openssl program takes a key for HMAC on its command line only, where
 * others can read it.  So we put the construction of RFC 2104 around a
 * program that hashes what it gets on stdin; see docs/decisions/009-hmac.md.
 */
#ifndef WATCH_HMAC_H
#define WATCH_HMAC_H

#include <stddef.h>

#include "base/err.h"
#include "base/secret.h"
#include "base/until.h"

#define HMAC_HEX_SIZE 65

/* The code as 64 hexadecimal digits. */
int hmac_sha256(const struct secret *key, const void *data, size_t len,
    char out[HMAC_HEX_SIZE], const struct until *until, struct err *err);

#endif
