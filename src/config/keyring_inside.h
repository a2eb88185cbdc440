/* What the keyring's files share: running its program, secrets as digits. */
#ifndef CONFIG_KEYRING_INSIDE_H
#define CONFIG_KEYRING_INSIDE_H

#include <stddef.h>

#include "base/buf.h"
#include "config/keyring.h"

/* Secrets may be any bytes; keyrings want text. */
void keyring_digits(struct buf *out, const struct secret *s);
/* -1 if these are not such digits. */
int keyring_undigits(struct secret *out, const char *digits, size_t len);

/* Run it; -1 unless it ended with status 0.  "out" may be NULL. */
int keyring_run(const char *const *argv, const struct buf *input,
    struct buf *out, const struct until *until, struct err *err);

#endif
