/*
 * A password or passphrase.  Lives in one place, is wiped when let go, never
 * travels in a message, a log line or an argument list.
 */
#ifndef BASE_SECRET_H
#define BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

struct secret {
	char *data; /* NUL-terminated, or NULL: none */
	size_t len;
};

/* Keep a copy of "len" bytes; what was kept before is wiped. */
void secret_set(struct secret *s, const char *data, size_t len);
/* Wipe and let go.  Also for a zeroed struct, and twice. */
void secret_free(struct secret *s);
bool secret_given(const struct secret *s);
/* Same content?  Takes equally long wherever they differ. */
bool secret_equal(const struct secret *a, const struct secret *b);
/* Overwrite memory in a way the compiler keeps. */
void secret_wipe(void *data, size_t len);

#endif
