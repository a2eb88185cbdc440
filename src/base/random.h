/* Names nobody can guess. */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>

/* Room for "n" random bytes as hexadecimal digits and a NUL. */
#define RANDOM_HEX(n) (2 * (n) + 1)

/* Fill with random bytes from the system; it having none is fatal. */
void random_bytes(void *out, size_t len);
/* "n" random bytes (at most 64) as digits. */
void random_hex(char *out, size_t n);

#endif
