/*
 * A session of SFTP whose other end is the test.
 *
 * What makes sessions is compiled into this file: it knows nothing else of a
 * host than three descriptors.
 */
#ifndef UNIT_SFTPHOST_H
#define UNIT_SFTPHOST_H

#include "ssh/sftp.c"

#include <fcntl.h>
#include <sys/socket.h>

#include "help.h"

struct sftphost {
	struct sftp *s;
	int fd; /* the host's */
};

static inline void
sftphost_init(struct sftphost *h)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(fcntl(fds[0], F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
	h->fd = fds[1];
	h->s = xcalloc(1, sizeof(*h->s));
	h->s->ch.in = h->s->ch.out = fds[0];
	h->s->ch.err = -1;
	buf_init(&h->s->in, SFTP_PACKET_MAX + READ_SIZE);
	buf_init(&h->s->out, SIZE_MAX);
}

static inline void
sftphost_free(struct sftphost *h)
{
	sftp_break(h->s);
	close(h->s->ch.in);
	close(h->fd);
	buf_free(&h->s->in);
	buf_free(&h->s->out);
	free(h->s->waits);
	free(h->s);
}

/* The host answers the request with this id by a status. */
static inline void
sftphost_says(struct sftphost *h, uint32_t id, uint32_t code)
{
	struct buf b;
	size_t at;

	buf_init(&b, SIZE_MAX);
	at = sftp_packet_begin(&b, SFTP_STATUS, id);
	sftp_put_u32(&b, code);
	sftp_put_string(&b, "");
	sftp_put_string(&b, "");
	sftp_packet_end(&b, at);
	assert_int_equal(write(h->fd, b.data, b.len), b.len);
	buf_free(&b);
}

/* How many requests of a type came there. */
static inline size_t
sftphost_got(struct sftphost *h, enum sftp_type type)
{
	struct sftp_packet p;
	struct buf b;
	size_t n = 0, at = 0, room;
	ssize_t got;

	buf_init(&b, SIZE_MAX);
	do {
		char *space = buf_space(&b, READ_SIZE, &room);

		got = read(h->fd, space, room);
		buf_grew(&b, got > 0 ? (size_t)got : 0);
	} while (got > 0);
	while ((got = sftp_get_packet(b.data + at, b.len - at, &p)) > 0) {
		at += (size_t)got;
		n += p.type == type;
	}
	buf_free(&b);
	return n;
}

#endif
