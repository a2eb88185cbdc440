/* The reader: bytes to lines. */
#include <string.h>

#include "mcp/frame.h"

void
frame_in_init(struct frame_in *in)
{
	memset(in, 0, sizeof(*in));
	/* An unfinished line of full length, and what a read adds to it. */
	buf_init(&in->data, 2 * FRAME_MAX + 1);
}

void
frame_in_free(struct frame_in *in)
{
	buf_free(&in->data);
}

void
frame_in_add(struct frame_in *in, const char *data, size_t len)
{
	buf_drop(&in->data, in->start);
	in->scanned -= in->start;
	in->start = 0;
	if (in->data.len == 0)
		buf_trim(&in->data);
	buf_add(&in->data, data, len);
}

/* Forget the unfinished line; its rest will be skipped as it comes. */
static void
skip_rest(struct frame_in *in)
{
	in->skipping = true;
	in->start = in->scanned = in->data.len;
}

static void
hand_out(struct frame_in *in, size_t end, const char **line, size_t *len)
{
	*line = in->data.data + in->start;
	*len = end - in->start;
	if (*len > 0 && (*line)[*len - 1] == '\r')
		(*len)--;
}

enum frame_got
frame_in_next(struct frame_in *in, const char **line, size_t *len)
{
	const char *base = in->data.data;
	const char *nl;
	size_t end;

	for (;;) {
		nl = memchr(base + in->scanned, '\n',
		    in->data.len - in->scanned);
		if (nl == NULL) {
			in->scanned = in->data.len;
			if (in->skipping)
				in->start = in->data.len;
			/* One more, in case it is the CR before the LF. */
			if (in->data.len - in->start <= FRAME_MAX + 1)
				return FRAME_NONE;
			skip_rest(in);
			return FRAME_TOO_LONG;
		}
		end = (size_t)(nl - base);
		hand_out(in, end, line, len);
		in->start = in->scanned = end + 1;
		if (in->skipping) {
			in->skipping = false;
			continue;
		}
		return *len > FRAME_MAX ? FRAME_TOO_LONG : FRAME_LINE;
	}
}

enum frame_got
frame_in_rest(struct frame_in *in, const char **line, size_t *len)
{
	if (in->skipping || in->start == in->data.len)
		return FRAME_NONE;
	hand_out(in, in->data.len, line, len);
	in->start = in->scanned = in->data.len;
	return *len > FRAME_MAX ? FRAME_TOO_LONG : FRAME_LINE;
}
