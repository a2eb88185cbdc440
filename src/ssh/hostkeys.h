/*
 * Host keys in known_hosts files: which are new, what their fingerprints are.
 */
#ifndef SSH_HOSTKEYS_H
#define SSH_HOSTKEYS_H

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"

/* The content of a known_hosts file; empty if there is none. */
void hostkeys_read(const char *path, struct buf *out);

/* Append the lines of "after" about this host (NULL: any) that are not in
 * "before": other logins write to the same file.  Pure. */
void hostkeys_new(struct buf *out, const char *before, const char *after,
    const char *host);

/*
 * Append "[host]:port ED25519 SHA256:..." for each line, with ", " between;
 * a name that is hashed shows as "name".
 */
void hostkeys_describe(struct buf *out, const char *lines, const char *name,
    const struct until *until);

/* Append the fingerprint of line "number" (from 1) of a file, if it has one. */
void hostkeys_fingerprint(struct buf *out, const char *path, long number,
    const struct until *until);

/* Append the fingerprint of the first key that the file marks as revoked for
 * this host. */
void hostkeys_revoked(struct buf *out, const char *path, const char *host,
    const struct until *until);

#endif
