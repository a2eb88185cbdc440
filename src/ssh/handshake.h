/*
 * How a server introduces itself, as "ssh -v" tells it.  Pure: the text comes
 * from ssh, and through it from the server.
 */
#ifndef SSH_HANDSHAKE_H
#define SSH_HANDSHAKE_H

#include "base/buf.h"

/* What is not known is "". */
struct handshake {
	char software[128]; /* "OpenSSH_9.2p1 Debian-2" */
	char kex[96];       /* the algorithm both have agreed upon */
	char host_key[160]; /* "ssh-ed25519 SHA256:..." */
	char methods[160];  /* "publickey,password" */
};

/* With a jump host there is one of each for every server; the last counts. */
void handshake_parse(struct handshake *h, const char *text);

/* The same text without what "-v" added: ssh's own words about a failure. */
void handshake_words(struct buf *out, const char *text);

#endif
