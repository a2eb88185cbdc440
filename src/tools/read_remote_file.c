/*
 * read_remote_file: a file of a sandbox, or a part of it, into the answer.
 */
#include "base/base64.h"
#include "base/utf8.h"
#include "ssh/farread.h"
#include "tools/remote.h"
#include "tools/tool.h"

#define PLACE_MAX ((int64_t)1 << 53) /* what JSON numbers hold everywhere */

struct read_remote_file_args {
	const char *remote_path;
	int64_t max_bytes;
	int64_t offset;
	int64_t tail_lines;
	int64_t start_line;
	int64_t line_count;
	const char *sandbox_name;
};

#define ARG(field) \
	.name = #field, .offset = offsetof(struct read_remote_file_args, field)

static const struct arg args[] = {
	{ ARG(remote_path), .type = ARG_STRING, .required = true,
	    .help = "File; ~ is the home, else relative to the workdir or the "
	            "login directory." },
	{ ARG(max_bytes), .type = ARG_INT, .min = 1, .max = REMOTE_ANSWER_MOST,
	    .dflt = REMOTE_ANSWER_CHARS,
	    .help = "Bytes to return at most; up to the default the whole "
	            "answer keeps to 40000 characters." },
	{ ARG(offset), .type = ARG_INT, .min = 0, .max = PLACE_MAX,
	    .help = "Byte to begin at." },
	{ ARG(tail_lines), .type = ARG_INT, .min = 0, .max = PLACE_MAX,
	    .help = "The last so many lines instead." },
	{ ARG(start_line), .type = ARG_INT, .min = 0, .max = PLACE_MAX,
	    .help = "Line to begin at instead; the first is 1." },
	{ ARG(line_count), .type = ARG_INT, .min = 0, .max = PLACE_MAX,
	    .help = "Lines from start_line (or the first) on." },
	{ ARG(sandbox_name), REMOTE_ARG_SANDBOX },
	{ 0 },
};

static const struct out outputs[] = {
	{ "size", OUT_INT, "Bytes returned.", .always = true },
	{ "file_size", OUT_INT, NULL, .always = true, .nullable = true },
	{ "truncated", OUT_BOOL, "There is more of what was asked for.",
	    .always = true },
	{ "encoding", OUT_STRING,
	    "utf-8; base64 for bytes that are no text (NUL, not UTF-8).",
	    .always = true },
	{ "content", OUT_STRING, NULL, .always = true },
	{ "offset", OUT_INT, "Where content begins, if not as asked." },
	{ "next_offset", OUT_INT,
	    "Offset to go on at; of tail_lines to follow the file." },
	{ "start_line", OUT_INT, "Number of the first line." },
	{ "line_count", OUT_INT, "Lines returned." },
	{ "total_lines", OUT_INT, "Lines of the file, if seen to its end." },
	{ REMOTE_OUT_SANDBOX },
	{ REMOTE_OUT_NEWS },
	{ 0 },
};

/* 0 is "not given" for all of them: clients like to send every argument. */
static int
choose_part(const struct read_remote_file_args *a, struct farread_request *req,
    struct err *err)
{
	bool lines = a->start_line > 0 || a->line_count > 0;

	if ((a->offset > 0) + (a->tail_lines > 0) + lines > 1)
		return err_set(err, ERR_INVALID,
		    "give only one of 'offset', 'tail_lines' and "
		    "'start_line' with 'line_count'");
	req->from = FARREAD_OFFSET;
	req->start = a->offset;
	if (a->tail_lines > 0) {
		req->from = FARREAD_TAIL;
		req->start = a->tail_lines;
	} else if (lines) {
		req->from = FARREAD_LINE;
		req->start = a->start_line > 0 ? a->start_line : 1;
		req->lines = a->line_count;
	}
	return 0;
}

static void
set_known(json_t *o, const char *field, int64_t value)
{
	if (value != -1)
		json_object_set_new(o, field, json_integer(value));
}

static json_t *
content_json(const struct farread *r)
{
	struct buf text;
	json_t *s;

	if (!r->binary)
		return utf8_json(r->bytes.data, r->bytes.len);
	buf_init(&text, SIZE_MAX);
	base64_add(&text, r->bytes.data, r->bytes.len);
	s = utf8_json(text.data, text.len);
	buf_free(&text);
	return s;
}

static json_t *
result_json(const struct farread *r, const struct farread_request *req)
{
	json_t *o = json_object();
	bool tail = req->from == FARREAD_TAIL;

	json_object_set_new(o, "size", json_integer((json_int_t)r->bytes.len));
	json_object_set_new(o, "file_size",
	    r->file_size == -1 ? json_null() : json_integer(r->file_size));
	json_object_set_new(o, "truncated", json_boolean(r->truncated));
	json_object_set_new(o, "encoding",
	    json_string(r->binary ? "base64" : "utf-8"));
	json_object_set_new(o, "content", content_json(r));
	if (req->from != FARREAD_OFFSET || r->offset != req->start)
		set_known(o, "offset", r->offset);
	if (r->truncated || tail)
		set_known(o, "next_offset", r->next_offset);
	set_known(o, "start_line", r->start_line);
	set_known(o, "line_count", r->line_count);
	set_known(o, "total_lines", r->total_lines);
	return o;
}

static int
run(struct call *call, const void *given, json_t **result, struct err *err)
{
	const struct read_remote_file_args *a = given;
	struct farread_request req = {
		.path = a->remote_path,
		.max_bytes = (size_t)a->max_bytes,
		.max_chars =
		    remote_answer_chars(a->max_bytes > REMOTE_ANSWER_CHARS),
	};
	struct farread r;
	struct link *link;

	if (remote_path_check(a->remote_path, err) == -1 ||
	    choose_part(a, &req, err) == -1)
		return -1;
	link = remote_link(call, a->sandbox_name, err);
	if (link == NULL ||
	    farread_run(link, &req, &r, &call->until, err) == -1)
		return -1;
	*result = result_json(&r, &req);
	remote_set_sandbox(*result, link, a->sandbox_name);
	farread_free(&r);
	return 0;
}

const struct tool tool_read_remote_file = {
	.name = "read_remote_file",
	.title = "Read a remote file",
	.description =
	    "Read a text or binary file of a sandbox, whole or in part: from "
	    "an offset, the last lines (logs), or a range of lines. Costs what "
	    "is returned, however large the file; for whole large files use "
	    "sync_remote_to_local.",
	.args = args,
	.args_size = sizeof(struct read_remote_file_args),
	.outputs = outputs,
	.hints = { .read_only = true, .idempotent = true, .open_world = true },
	.run = run,
};
