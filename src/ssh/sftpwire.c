/* SFTP packets. */
#include "ssh/sftpwire.h"

#include <string.h>

/* Which attributes are there. */
#define HAS_SIZE 0x1u
#define HAS_OWNER 0x2u
#define HAS_MODE 0x4u
#define HAS_TIMES 0x8u
#define HAS_MORE 0x80000000u

static void
encode_u32(char out[4], uint32_t v)
{
	out[0] = (char)(v >> 24);
	out[1] = (char)(v >> 16);
	out[2] = (char)(v >> 8);
	out[3] = (char)v;
}

static uint32_t
decode_u32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
	    (uint32_t)b[2] << 8 | b[3];
}

void
sftp_put_u32(struct buf *out, uint32_t v)
{
	char b[4];

	encode_u32(b, v);
	buf_add(out, b, sizeof(b));
}

void
sftp_put_u64(struct buf *out, uint64_t v)
{
	sftp_put_u32(out, (uint32_t)(v >> 32));
	sftp_put_u32(out, (uint32_t)v);
}

void
sftp_put_bytes(struct buf *out, const void *bytes, size_t len)
{
	sftp_put_u32(out, (uint32_t)len);
	buf_add(out, bytes, len);
}

void
sftp_put_string(struct buf *out, const char *s)
{
	sftp_put_bytes(out, s, strlen(s));
}

void
sftp_put_attrs(struct buf *out, const struct sftp_attrs *a)
{
	sftp_put_u32(out,
	    (a->has_size ? HAS_SIZE : 0) | (a->has_mode ? HAS_MODE : 0) |
	        (a->has_times ? HAS_TIMES : 0));
	if (a->has_size)
		sftp_put_u64(out, a->size);
	if (a->has_mode)
		sftp_put_u32(out, a->mode);
	if (a->has_times) {
		sftp_put_u32(out, a->mtime); /* the atime comes along */
		sftp_put_u32(out, a->mtime);
	}
}

size_t
sftp_packet_begin(struct buf *out, uint8_t type, uint32_t id)
{
	size_t at = out->len;

	sftp_put_u32(out, 0);
	buf_addc(out, (char)type);
	sftp_put_u32(out, id);
	return at;
}

void
sftp_packet_end(struct buf *out, size_t at)
{
	encode_u32(out->data + at, (uint32_t)(out->len - at - 4));
}

ssize_t
sftp_get_packet(const char *data, size_t len, struct sftp_packet *p)
{
	uint32_t n;

	if (len < 4)
		return 0;
	n = decode_u32(data);
	if (n < 5 || n > SFTP_PACKET_MAX)
		return -1;
	if (len - 4 < n)
		return 0;
	memset(p, 0, sizeof(*p));
	p->type = (uint8_t)data[4];
	p->id = decode_u32(data + 5);
	p->body.at = data + 9;
	p->body.left = n - 5;
	return (ssize_t)n + 4;
}

static const char *
take(struct sftp_in *in, size_t len)
{
	const char *at = in->at;

	if (in->left < len) {
		in->bad = true;
		in->left = 0;
		return NULL;
	}
	in->at += len;
	in->left -= len;
	return at;
}

uint32_t
sftp_get_u32(struct sftp_in *in)
{
	const char *at = take(in, 4);

	return at != NULL ? decode_u32(at) : 0;
}

uint64_t
sftp_get_u64(struct sftp_in *in)
{
	uint64_t high = sftp_get_u32(in);

	return high << 32 | sftp_get_u32(in);
}

const char *
sftp_get_bytes(struct sftp_in *in, size_t *len)
{
	uint32_t n = sftp_get_u32(in);
	const char *at = take(in, n);

	*len = at != NULL ? n : 0;
	return at != NULL ? at : "";
}

void
sftp_get_attrs(struct sftp_in *in, struct sftp_attrs *a)
{
	uint32_t flags = sftp_get_u32(in), more;
	size_t len;

	memset(a, 0, sizeof(*a));
	if (flags & HAS_SIZE)
		a->size = sftp_get_u64(in);
	if (flags & HAS_OWNER) {
		sftp_get_u32(in);
		sftp_get_u32(in);
	}
	if (flags & HAS_MODE)
		a->mode = sftp_get_u32(in);
	if (flags & HAS_TIMES) {
		sftp_get_u32(in);
		a->mtime = sftp_get_u32(in);
	}
	more = flags & HAS_MORE ? sftp_get_u32(in) : 0;
	for (; more > 0 && !in->bad; more--) {
		sftp_get_bytes(in, &len);
		sftp_get_bytes(in, &len);
	}
	if (in->bad) {
		memset(a, 0, sizeof(*a));
		return;
	}
	a->has_size = (flags & HAS_SIZE) != 0;
	a->has_mode = (flags & HAS_MODE) != 0;
	a->has_times = (flags & HAS_TIMES) != 0;
}
