/*
 * Whatever comes on a control socket, messages are taken from it one by one,
 * whole ones only, with a reason that is text; and what we send can be read.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ssh/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static uint32_t
u32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
	    (uint32_t)b[2] << 8 | b[3];
}

static void
check_msg(const struct mux_msg *msg, const char *data, size_t len)
{
	must(len >= 8 && len <= MUX_MESSAGE_MAX + 4);
	must(u32(data) == len - 4);
	must(msg->type == u32(data + 4));
	must(memchr(msg->reason, '\0', sizeof(msg->reason)) != NULL);
	must(utf8_valid(msg->reason, strlen(msg->reason)));
	if (msg->type == MUX_HELLO)
		must(msg->value == (len >= 12 ? u32(data + 8) : 0));
	else
		must(msg->id == (len >= 12 ? u32(data + 8) : 0));
	if (msg->type == MUX_EXIT || msg->type == MUX_ALIVE ||
	    msg->type == MUX_SESSION_OPENED)
		must(msg->value == (len >= 16 ? u32(data + 12) : 0));
	if (msg->type != MUX_FAILURE && msg->type != MUX_DENIED)
		must(msg->reason[0] == '\0');
}

/* A message cut short is no message yet, or never one. */
static void
check_shorter(const char *data, size_t len)
{
	struct mux_msg msg;
	size_t n = len < 64 ? len : 64;

	while (n-- > 0)
		must(mux_get(data, n, &msg) == 0);
}

static void
check_ours(const char *text)
{
	struct mux_msg msg;
	struct buf b;

	buf_init(&b, SIZE_MAX);
	mux_put_session(&b, 7, text, false);
	must(mux_get(b.data, b.len, &msg) == (ssize_t)b.len);
	must(msg.type == MUX_NEW_SESSION && msg.id == 7);
	must(u32(b.data + 40) == strlen(text));
	must(b.len == 44 + strlen(text));
	must(memcmp(b.data + 44, text, strlen(text)) == 0);
	buf_free(&b);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *s = (const char *)data;
	struct mux_msg msg;
	struct buf text;
	ssize_t n;

	buf_init(&text, SIZE_MAX);
	buf_add(&text, data, size);
	check_ours(text.data);
	buf_free(&text);

	while (size > 0) {
		n = mux_get(s, size, &msg);
		must(n >= -1 && n <= (ssize_t)size);
		if (n <= 0)
			break;
		check_msg(&msg, s, (size_t)n);
		check_shorter(s, (size_t)n);
		s += n;
		size -= (size_t)n;
	}
	return 0;
}
