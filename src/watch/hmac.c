/* HMAC-SHA256 around a program that hashes. */
#include "watch/hmac.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/proc.h"

#define BLOCK 64
#define SUM 32
#define PATIENCE_MS 20000

static int
value_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The first word of 64 digits: programs put other things around it. */
static int
parse_sum(const char *text, unsigned char out[SUM])
{
	size_t n, i;

	for (; *text != '\0'; text += n > 0 ? n : 1) {
		n = strspn(text, "0123456789abcdef");
		if (n != (size_t)2 * SUM)
			continue;
		for (i = 0; i < SUM; i++)
			out[i] = (unsigned char)((unsigned)value_of(text[2 * i])
			        << 4 |
			    (unsigned)value_of(text[2 * i + 1]));
		return 0;
	}
	return -1;
}

/* By the first of these programs that is there. */
static int
sum_of(const struct buf *in, unsigned char out[SUM], const struct until *until,
    struct err *err)
{
	static const char *const coreutils[] = { "sha256sum", NULL };
	static const char *const perl[] = { "shasum", "-a", "256", NULL };
	static const char *const openssl[] = { "openssl", "dgst", "-sha256",
		NULL };
	static const char *const *const programs[] = { coreutils, perl, openssl,
		NULL };
	struct proc_request req = { .input = in->data,
		.input_len = in->len,
		.max_output = 1024 };
	struct proc_result res;
	int i, rc = -1;

	for (i = 0; programs[i] != NULL && rc == -1; i++) {
		req.argv = programs[i];
		rc = proc_run(&req, &res, until, err);
		if (rc == -1 && err->code != ERR_NOT_FOUND)
			return -1;
	}
	if (rc == -1)
		return err_set(err, ERR_NOT_FOUND,
		    "signing a webhook needs one of the programs sha256sum, "
		    "shasum and openssl");
	if (res.exit_code != 0 || parse_sum(res.out.data, out) == -1)
		rc = err_set(err, ERR_IO, "%s gave no sum", req.argv[0]);
	proc_result_free(&res);
	return rc;
}

/* The sum of the key, padded and with each byte changed by "pad", and the
 * data behind it. */
static int
padded_sum(const unsigned char key[BLOCK], unsigned char pad, const void *data,
    size_t len, unsigned char out[SUM], const struct until *until,
    struct err *err)
{
	struct buf in;
	size_t room;
	int i, rc;

	buf_init(&in, SIZE_MAX);
	(void)buf_space(&in, BLOCK + len, &room); /* growing leaves copies */
	for (i = 0; i < BLOCK; i++)
		buf_addc(&in, (char)(key[i] ^ pad));
	buf_add(&in, data, len);
	rc = sum_of(&in, out, until, err);
	secret_wipe(in.data, in.cap);
	buf_free(&in);
	return rc;
}

/* A key as long as a block: longer ones are hashed first. */
static int
block_key(const struct secret *key, unsigned char out[BLOCK],
    const struct until *until, struct err *err)
{
	struct buf in;
	size_t room;
	int rc;

	memset(out, 0, BLOCK);
	if (key->len <= BLOCK) {
		memcpy(out, key->data, key->len);
		return 0;
	}
	buf_init(&in, key->len);
	(void)buf_space(&in, key->len, &room);
	buf_add(&in, key->data, key->len);
	rc = sum_of(&in, out, until, err);
	secret_wipe(in.data, in.cap);
	buf_free(&in);
	return rc;
}

int
hmac_sha256(const struct secret *key, const void *data, size_t len,
    char out[HMAC_HEX_SIZE], const struct until *until, struct err *err)
{
	static const char digits[] = "0123456789abcdef";
	struct until soon = until_within(until, PATIENCE_MS);
	unsigned char block[BLOCK], inner[SUM], code[SUM] = { 0 };
	size_t i;
	int rc;

	rc = block_key(key, block, &soon, err);
	if (rc == 0)
		rc = padded_sum(block, 0x36, data, len, inner, &soon, err);
	if (rc == 0)
		rc = padded_sum(block, 0x5c, inner, SUM, code, &soon, err);
	secret_wipe(block, sizeof(block));
	if (rc == -1)
		return err_wrap(err, "cannot sign");
	for (i = 0; i < SUM; i++) {
		out[2 * i] = digits[code[i] >> 4];
		out[2 * i + 1] = digits[code[i] & 15];
	}
	out[(size_t)2 * SUM] = '\0';
	return 0;
}
