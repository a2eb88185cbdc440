/*
 * A host key that is pinned by its fingerprint: ssh asks us, by its
 * KnownHostsCommand, whether the key that a server shows is the one.
 */
#ifndef SSH_KNOWNHOST_H
#define SSH_KNOWNHOST_H

/* The word by which our program knows that it is asked; hidden from people. */
#define KNOWNHOST_COMMAND "known-host"

/*
 * Print a known_hosts line to "out" if the key has the fingerprint.  The exit
 * status is always 0: a key that does not fit is simply not known.
 */
int knownhost_helper(const char *fingerprint, const char *type, const char *key,
    int out);

#endif
