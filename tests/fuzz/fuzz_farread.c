/*
 * Whatever a host prints, what is taken from it lies within it, keeps to the
 * limits, and is text if it says so.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "ssh/farread.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
check(const struct farread *r, const struct farread_request *req,
    const struct buf *printed)
{
	size_t n = r->bytes.len;

	must(n <= req->max_bytes || n <= 4);
	must(n == 0 || memmem(printed->data, printed->len, r->bytes.data, n));
	must(r->binary ||
	    (utf8_valid(r->bytes.data, n) &&
	        memchr(r->bytes.data, '\0', n) == NULL));
	must(r->next_offset - r->offset == (int64_t)n);
	must(r->offset >= 0 && r->file_size >= -1);
	must(req->from == FARREAD_OFFSET ? r->line_count == -1
	                                 : r->line_count >= 0);
	must(req->from != FARREAD_LINE || req->lines == 0 ||
	    r->line_count <= req->lines);
	/* Who goes on gets on. */
	must(!r->truncated || req->from == FARREAD_TAIL || n > 0);
}

/* Three bytes choose the request; the rest is what was printed. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct farread_request req = { .path = "x" };
	struct farread r;
	struct buf printed;
	struct err err = ERR_INIT;

	if (size < 3)
		return 0;
	req.from = (enum farread_from)(data[0] % 3);
	req.lines = data[0] / 3 % 5;
	req.max_chars = data[0] / 15;
	req.start = data[1];
	if (req.from != FARREAD_OFFSET && req.start == 0)
		req.start = 1;
	req.max_bytes = 1 + data[2] % 40u;
	buf_init(&printed, SIZE_MAX);
	buf_add(&printed, data + 3, size - 3);
	if (farread_take(&printed, &req, &r, &err) == 0) {
		check(&r, &req, &printed);
		farread_free(&r);
	} else {
		must(err.msg[0] != '\0');
	}
	buf_free(&printed);
	return 0;
}
