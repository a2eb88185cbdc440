/*
 * remote_file_read: lines of a file on the machine of SSH_HOST, with their
 * numbers.
 */
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "ssh/farread.h"
#include "tools/remote.h"
#include "tools/remote_ssh.h"
#include "tools/tool.h"

#define LINE_MAX_NUMBER ((int64_t)1 << 53)
#define NUMBER_CHARS 7 /* that stand before a line */

struct remote_file_read_args {
	const char *file_path;
	int64_t offset;
	int64_t limit;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct remote_file_read_args, field)

static const struct arg args[] = {
	{ ARG(file_path), .type = ARG_STRING, .required = true,
	    .help = "Absolute path; ~ is the home." },
	{ ARG(offset), .type = ARG_INT, .unsaid = true, .dflt = -1, .min = 0,
	    .max = LINE_MAX_NUMBER,
	    .help = "Line to begin at; the first is 1." },
	{ ARG(limit), .type = ARG_INT, .unsaid = true, .min = 0,
	    .max = LINE_MAX_NUMBER,
	    .help = "How many lines; without offset, the last so many." },
	{ 0 },
};

static struct farread_request
request_of_args(const struct remote_file_read_args *a)
{
	struct farread_request req = {
		.path = a->file_path,
		.max_bytes = remote_answer_chars(false),
		.max_chars = remote_answer_chars(false),
		.from = FARREAD_LINE,
		.start = a->offset > 0 ? a->offset : 1,
		.lines = a->limit,
	};

	if (a->offset < 0 && a->limit > 0) {
		req.from = FARREAD_TAIL;
		req.start = a->limit;
		req.number = true;
	}
	return req;
}

/* The next line from "at" on, without its end; returns what is behind. */
static const char *
line_end(const char *at, const char *end)
{
	const char *nl = memchr(at, '\n', (size_t)(end - at));

	return nl != NULL ? nl + 1 : end;
}

/* With their numbers they may be too many: which are shown, of the first or of
 * the last. */
static void
fit(const char **at, const char **end, int64_t *first, bool last)
{
	size_t max = remote_answer_chars(false), sum = 0;
	const char *line = *at;

	if (!last) {
		for (; line < *end; line = line_end(line, *end)) {
			sum += (size_t)(line_end(line, *end) - line) +
			    NUMBER_CHARS;
			if (sum > max && line > *at) {
				*end = line;
				return;
			}
		}
		return;
	}
	for (; line < *end; line = line_end(line, *end))
		sum += (size_t)(line_end(line, *end) - line) + NUMBER_CHARS;
	while (sum > max && line_end(*at, *end) < *end) {
		line = line_end(*at, *end);
		sum -= (size_t)(line - *at) + NUMBER_CHARS;
		*at = line;
		(*first)++;
	}
}

static void
add_lines(struct buf *text, const struct farread *r, bool last)
{
	const char *at = r->bytes.data, *end = at + r->bytes.len, *next;
	int64_t n = r->start_line;
	bool less;

	fit(&at, &end, &n, last);
	less = r->truncated || at > r->bytes.data ||
	    end < r->bytes.data + r->bytes.len;
	if (less && last)
		buf_addf(text,
		    "[earlier lines do not fit; for them use offset and "
		    "limit]\n");
	for (; at < end; at = next, n++) {
		next = line_end(at, end);
		buf_addf(text, "%6" PRId64 "\t", n);
		buf_add(text, at, (size_t)(next - at));
	}
	if (less && text->len > 0 && text->data[text->len - 1] != '\n')
		buf_adds(text, "\n[the rest of this line does not fit]\n");
	if (less && !last) {
		buf_addf(text,
		    "[there is more; go on with offset %" PRId64 "]\n", n);
	}
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct remote_file_read_args *a = given;
	struct farread_request req = request_of_args(a);
	struct link *link;
	struct farread r;
	struct buf text;

	if (str_blank(a->file_path))
		return err_set(err, ERR_INVALID,
		    "argument 'file_path' must not be empty");
	link = remote_ssh_link(call, err);
	if (link == NULL ||
	    farread_run(link, &req, &r, &call->until, err) == -1)
		return -1;
	buf_init(&text, SIZE_MAX);
	add_lines(&text, &r, req.from == FARREAD_TAIL);
	farread_free(&r);
	*result = remote_ssh_result(&text, link);
	return 0;
}

const struct tool tool_remote_file_read = {
	.name = "remote_file_read",
	.title = "Read a file on the remote host",
	.description =
	    "Read a text file of the remote host, each line with its number. "
	    "limit alone gives the last lines, as of a log; with offset the "
	    "lines from there.",
	.args = args,
	.args_size = sizeof(struct remote_file_read_args),
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.flags = TOOL_TEXT | TOOL_REMOTE_SSH,
	.run = run,
};
