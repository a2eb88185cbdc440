/*
 * The SFTP protocol, version 3, as bytes: what every server speaks.  Pure.
 *
 * A packet is a length, a type, an id and a body of numbers (big-endian) and
 * strings (a length and bytes).  Nothing that comes is trusted: reading past
 * the end gives zeros and sets "bad".
 */
#ifndef SSH_SFTPWIRE_H
#define SSH_SFTPWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

enum sftp_type {
	SFTP_INIT = 1,
	SFTP_VERSION = 2,
	SFTP_OPEN = 3,
	SFTP_CLOSE = 4,
	SFTP_READ = 5,
	SFTP_WRITE = 6,
	SFTP_LSTAT = 7,
	SFTP_FSTAT = 8,
	SFTP_SETSTAT = 9,
	SFTP_FSETSTAT = 10,
	SFTP_OPENDIR = 11,
	SFTP_READDIR = 12,
	SFTP_REMOVE = 13,
	SFTP_MKDIR = 14,
	SFTP_RMDIR = 15,
	SFTP_REALPATH = 16,
	SFTP_STAT = 17,
	SFTP_RENAME = 18,
	SFTP_READLINK = 19,
	SFTP_SYMLINK = 20,
	SFTP_STATUS = 101,
	SFTP_HANDLE = 102,
	SFTP_DATA = 103,
	SFTP_NAME = 104,
	SFTP_ATTRS = 105,
	SFTP_EXTENDED = 200,
	SFTP_EXTENDED_REPLY = 201,
};

/* Codes of a status. */
enum sftp_code {
	SFTP_OK = 0,
	SFTP_EOF = 1,
	SFTP_NO_SUCH_FILE = 2,
	SFTP_PERMISSION_DENIED = 3,
	SFTP_FAILURE = 4,
	SFTP_BAD_MESSAGE = 5,
	SFTP_CONNECTION_LOST = 7, /* never sent: we make it up */
	SFTP_UNSUPPORTED = 8,
	SFTP_FILE_EXISTS =
	    11, /* of a later version; some say it all the same */
};

/* How a file is opened. */
#define SFTP_FOR_READ 0x01u
#define SFTP_FOR_WRITE 0x02u
#define SFTP_CREAT 0x08u
#define SFTP_TRUNC 0x10u
#define SFTP_EXCL 0x20u

/* No server sends more in one packet. */
#define SFTP_PACKET_MAX ((size_t)256 << 10)
#define SFTP_HANDLE_MAX 256 /* bytes, says the protocol */

/* What is known of a file; times are whole seconds, without a sign. */
struct sftp_attrs {
	bool has_size, has_mode, has_times;
	uint64_t size;
	uint32_t mode; /* with the type, as stat(2) has it */
	uint32_t mtime;
};

/* What is still to be read of a body. */
struct sftp_in {
	const char *at;
	size_t left;
	bool bad; /* there was less than asked for */
};

struct sftp_packet {
	uint8_t type;
	uint32_t id; /* of a VERSION: the version */
	struct sftp_in body;
};

void sftp_put_u32(struct buf *out, uint32_t v);
void sftp_put_u64(struct buf *out, uint64_t v);
void sftp_put_bytes(struct buf *out, const void *bytes, size_t len);
void sftp_put_string(struct buf *out, const char *s);
/* Those that are set. */
void sftp_put_attrs(struct buf *out, const struct sftp_attrs *a);

/* A packet whose length is filled in at its end; "at" is what begin gave. */
size_t sftp_packet_begin(struct buf *out, uint8_t type, uint32_t id);
void sftp_packet_end(struct buf *out, size_t at);

/*
 * Take one packet from the front of "len" bytes; its body points into them.
 * Returns how many bytes it had, 0 if it is not whole yet, -1 if this is not
 * the protocol.
 */
ssize_t sftp_get_packet(const char *data, size_t len, struct sftp_packet *p);

uint32_t sftp_get_u32(struct sftp_in *in);
uint64_t sftp_get_u64(struct sftp_in *in);
/* A string; it points into the packet and is not ended by a NUL. */
const char *sftp_get_bytes(struct sftp_in *in, size_t *len);
void sftp_get_attrs(struct sftp_in *in, struct sftp_attrs *a);

#endif
