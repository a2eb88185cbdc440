/*
 * Whatever comes from an SFTP server, packets are taken whole and one by one;
 * what is read from them lies within them; what we send can be read again.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ssh/sftpwire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check_inside(const struct sftp_packet *p, const char *at, size_t len)
{
	must(len == 0 ||
	    (at >= p->body.at && at + len <= p->body.at + p->body.left));
}

/* As a list of names, whatever it is. */
static void
read_names(const struct sftp_packet *p)
{
	struct sftp_in in = p->body;
	uint32_t count = sftp_get_u32(&in), i;

	for (i = 0; i < count && !in.bad; i++) {
		struct sftp_attrs a;
		size_t len;
		const char *s = sftp_get_bytes(&in, &len);

		check_inside(p, s, len);
		s = sftp_get_bytes(&in, &len);
		check_inside(p, s, len);
		sftp_get_attrs(&in, &a);
		if (in.bad)
			must(!a.has_size && !a.has_mode && !a.has_times);
	}
	must(in.left <= p->body.left);
}

/* As a status, a handle and content. */
static void
read_others(const struct sftp_packet *p)
{
	struct sftp_in in = p->body;
	const char *s;
	size_t len;

	s = sftp_get_bytes(&in, &len);
	check_inside(p, s, len);
	in = p->body;
	sftp_get_u32(&in);
	s = sftp_get_bytes(&in, &len);
	check_inside(p, s, len);
	in = p->body;
	while (!in.bad)
		sftp_get_u64(&in);
	must(in.left == 0);
}

static void
check_ours(const uint8_t *data, size_t size)
{
	struct sftp_attrs a = { .has_size = true,
		.has_mode = true,
		.has_times = true,
		.size = size,
		.mode = 0644,
		.mtime = (uint32_t)size };
	struct sftp_attrs b;
	struct sftp_packet p;
	struct buf out;
	const char *s;
	size_t len, at;

	buf_init(&out, SIZE_MAX);
	at = sftp_packet_begin(&out, SFTP_WRITE, 3);
	sftp_put_bytes(&out, data, size);
	sftp_put_attrs(&out, &a);
	sftp_packet_end(&out, at);
	if (size < SFTP_PACKET_MAX - 100) {
		must(
		    sftp_get_packet(out.data, out.len, &p) == (ssize_t)out.len);
		must(p.type == SFTP_WRITE && p.id == 3);
		s = sftp_get_bytes(&p.body, &len);
		must(len == size && (size == 0 || memcmp(s, data, size) == 0));
		sftp_get_attrs(&p.body, &b);
		must(!p.body.bad && p.body.left == 0);
		must(
		    a.size == b.size && a.mode == b.mode && a.mtime == b.mtime);
	}
	buf_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	struct sftp_packet p;
	ssize_t n;

	check_ours(data, size);
	while (size > 0) {
		n = sftp_get_packet(s, size, &p);
		must(n >= -1 && n <= (ssize_t)size);
		if (n <= 0)
			break;
		must(n >= 9 && p.body.at + p.body.left == s + n);
		read_names(&p);
		read_others(&p);
		s += n;
		size -= (size_t)n;
	}
	return 0;
}
