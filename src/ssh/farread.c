/*
 * Reading a part of a file on the far side.
 *
 * Programs that every host has, used in the way in which they are cheap: size
 * from ls, since wc of busybox reads all of the file; dd with whole blocks,
 * since skipping by bytes is not known everywhere; what is too much before and
 * behind is cut off here.  Files of /proc say that they are empty and give
 * short reads, which dd would count as blocks; they are read by head.
 */
#include "ssh/farread.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/quote.h"
#include "base/str.h"
#include "base/utf8.h"
#include "ssh/cut.h"
#include "ssh/exec.h"
#include "ssh/farread_inside.h"

#define BLOCK 4096
#define HEADER_MAX 200

/* Nothing that can be read takes so long, but for what never ends. */
#define READ_MS 20000
/* To find a line, all before it has to be read. */
#define READ_LINES_MS 60000
#define SLOWEST_BYTES_MS 50 /* a link of 50 kB a second */

/* What is at the path, without opening it: that may never return. */
static const char kind_text[] =
    "k=other; if [ -f \"$f\" ]; then k=file; elif [ -d \"$f\" ]; then k=dir; "
    "elif [ -p \"$f\" ]; then k=fifo; elif [ -S \"$f\" ]; then k=socket; "
    "elif [ -c \"$f\" ] || [ -b \"$f\" ]; then k=device; "
    "elif [ ! -e \"$f\" ]; then k=none; fi\n"
    "if [ $k != file ]; then echo \"$k 0 0 0 0\"\n"
    /* Why it is not there is said by the error. */
    "[ $k != none ] || dd if=\"$f\" bs=1 count=0 >/dev/null; exit; fi\n"
    "set -f; set -- `ls -ldnL \"$f\"`; s=$5; "
    "case $s in \"\"|*[!0-9]*) s=0;; esac; z=$s\n";

static const char tail_text[] =
    "[ $s -gt 0 ] || { s=`wc -c <\"$f\"`; s=$((s)); }; o=$((s-w)); "
    "[ $o -gt 0 ] || o=0; w=$((w+b))\n";

/* How many lines end before what is read. */
static const char number_text[] =
    "e=0; x=$((o-o%b)); [ $z != 0 ] || x=$o; "
    "[ $x = 0 ] || { e=`head -c $x \"$f\" | wc -l`; e=$((e)); }\n";

static const char read_text[] =
    "if [ $z = 0 ]; then echo \"file $s $o $o $w $e\"; "
    "if [ $o = 0 ]; then head -c $w \"$f\"; "
    "else head -c $((o+w)) \"$f\" | tail -c +$((o+1)); fi; "
    "elif [ $o -ge $s ]; then echo \"file $s $o $o 1\"; "
    /* An offset beyond the end is fine, a file that cannot be read is not. */
    "dd if=\"$f\" bs=1 count=0 >/dev/null; "
    "else n=$(((o%b+w+b-1)/b)); echo \"file $s $o $((o-o%b)) $((n*b)) $e\"; "
    "dd if=\"$f\" bs=$b skip=$((o/b)) count=$n; fi\n";

/* One character more on either side tells whether the ends are within one. */
void
farread_command(struct buf *out, const struct farread_request *req)
{
	int64_t start = 0;
	size_t want = req->max_bytes + FARREAD_CHAR_MAX;

	if (req->from == FARREAD_OFFSET && req->start >= FARREAD_CHAR_MAX) {
		start = req->start - FARREAD_CHAR_MAX;
		want += FARREAD_CHAR_MAX;
	} else if (req->from == FARREAD_OFFSET) {
		want += (size_t)req->start;
	}
	buf_adds(out, "LC_ALL=C; export LC_ALL; f=");
	quote_path(out, req->path);
	buf_addf(out, "; e=; b=%d; o=%" PRId64 "; w=%zu\n", BLOCK, start, want);
	buf_adds(out, kind_text);
	if (req->from == FARREAD_TAIL)
		buf_adds(out, tail_text);
	if (req->from == FARREAD_TAIL && req->number)
		buf_adds(out, number_text);
	if (req->from == FARREAD_LINE && req->start > 1)
		buf_addf(out,
		    "o=`head -n %" PRId64 " \"$f\" | wc -c`; o=$((o))\n",
		    req->start - 1);
	buf_adds(out, read_text);
}

/* The line before the bytes. */
struct header {
	char kind[16];
	int64_t size, offset, base, expected;
	int64_t before; /* -1: not known */
};

static int
read_header(const struct buf *printed, struct header *h, size_t *len)
{
	const char *nl = memchr(printed->data, '\n', printed->len);
	int64_t *numbers[] = { &h->size, &h->offset, &h->base, &h->expected };
	char line[HEADER_MAX], *at, *word;
	size_t i;

	if (nl == NULL || nl - printed->data >= (ptrdiff_t)sizeof(line))
		return -1;
	*len = (size_t)(nl - printed->data) + 1;
	snprintf(line, sizeof(line), "%.*s", (int)*len - 1, printed->data);
	word = strtok_r(line, " ", &at);
	if (word == NULL || strlen(word) >= sizeof(h->kind))
		return -1;
	snprintf(h->kind, sizeof(h->kind), "%s", word);
	for (i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		word = strtok_r(NULL, " ", &at);
		if (word == NULL ||
		    str_to_int(word, 0, INT64_MAX / 2, numbers[i]) == -1)
			return -1;
	}
	word = strtok_r(NULL, " ", &at);
	h->before = h->base == 0 ? 0 : -1;
	if (word != NULL &&
	    str_to_int(word, 0, INT64_MAX / 2, &h->before) == -1)
		return -1;
	return h->base <= h->offset ? 0 : -1;
}

static int
no_file(const char *kind, struct err *err)
{
	if (strcmp(kind, "dir") == 0)
		return err_set(err, ERR_INVALID,
		    "it is a directory; list_remote_files shows what is in it");
	if (strcmp(kind, "none") == 0)
		return err_set(err, ERR_NOT_FOUND, "there is no such file");
	if (strcmp(kind, "fifo") == 0 || strcmp(kind, "socket") == 0 ||
	    strcmp(kind, "device") == 0)
		return err_set(err, ERR_INVALID,
		    "it is a %s, and reading one may take things away or "
		    "never end; use exec_bash with a timeout if you mean to",
		    kind);
	return err_set(err, ERR_INVALID, "it is no regular file");
}

/* Line numbers, where lines were asked for.  "s" begins behind "before" lines,
 * and what is returned "at" bytes further, perhaps within a line. */
static void
number_lines(struct farread *r, const struct farread_request *req,
    const char *s, size_t at, int64_t before, bool to_end)
{
	r->start_line = r->line_count = r->total_lines = -1;
	if (req->from == FARREAD_OFFSET)
		return;
	r->line_count = cut_count(r->bytes.data, r->bytes.len);
	if (req->from == FARREAD_LINE)
		r->start_line = req->start;
	else if (before != -1)
		r->start_line =
		    before + cut_count(s, at) + (at == 0 || s[at - 1] == '\n');
	if (r->start_line != -1 && to_end &&
	    (r->line_count > 0 || r->start_line == 1))
		r->total_lines = r->start_line - 1 + r->line_count;
}

/* Choose from the bytes that came; "at" is where the wanted ones begin. */
static struct cut
choose(const struct farread_request *req, const struct header *h, const char *s,
    size_t len)
{
	struct cut_limit limit = { req->max_bytes, req->max_chars };
	int64_t want = req->from == FARREAD_OFFSET ? req->start : h->offset;
	size_t at = len;

	if (want - h->base < (int64_t)len)
		at = (size_t)(want - h->base);
	switch (req->from) {
	case FARREAD_OFFSET:
		return cut_bytes(s, len, utf8_cut(s, len, at), &limit);
	case FARREAD_LINE:
		return cut_lines(s, len, at, req->lines, &limit);
	case FARREAD_TAIL:
		break;
	}
	return cut_tail(s, len, req->start, h->base == 0, &limit);
}

/* The size, as far as what came tells; ls was before, and does not know that
 * of files that are made while they are read. */
static int64_t
file_size(const struct header *h, int64_t len, bool more)
{
	if (h->size == 0 && (more || (len == 0 && h->base > 0)))
		return -1;
	return more || len == 0 ? h->size : h->base + len;
}

int
farread_take(const struct buf *printed, const struct farread_request *req,
    struct farread *out, struct err *err)
{
	struct header h = { 0 };
	struct farread r = { 0 };
	struct cut c;
	const char *s;
	size_t skip, len;
	bool more;

	if (read_header(printed, &h, &skip) == -1 ||
	    (req->from == FARREAD_OFFSET && h.offset > req->start))
		return err_set(err, ERR_IO,
		    "what the host's shell printed makes no sense");
	if (strcmp(h.kind, "file") != 0)
		return no_file(h.kind, err);
	s = printed->data + skip;
	len = printed->len - skip;

	c = choose(req, &h, s, len);
	/* Does the file go on behind what came? */
	more = (int64_t)len >= h.expected &&
	    (h.size == 0 || h.base + (int64_t)len < h.size);
	buf_init(&r.bytes, SIZE_MAX);
	buf_add(&r.bytes, s + c.at, c.end - c.at);
	r.binary = c.binary;
	/* More was asked for than may be returned, so this is true wherever
	 * the file goes on. */
	r.truncated = c.less;
	r.offset = h.base + (int64_t)c.at;
	r.next_offset = h.base + (int64_t)c.end;
	if (c.at == len && req->from == FARREAD_OFFSET)
		r.offset = r.next_offset = req->start; /* beyond the end */
	r.file_size = file_size(&h, (int64_t)len, more);
	number_lines(&r, req, s, c.at, h.before, c.end == len && !more);
	*out = r;
	return 0;
}

void
farread_free(struct farread *r)
{
	buf_free(&r->bytes);
}

static bool
keep(void *data, const char *bytes, size_t len)
{
	struct buf *printed = data;

	buf_add(printed, bytes, len);
	return !printed->full;
}

/* The reason at the end of what a program said: "dd: can't open 'x': Why". */
static const char *
reason(struct buf *said)
{
	char *at = said->data, *last = NULL;

	while ((at = strstr(at, ": ")) != NULL)
		last = at += 2;
	if (last != NULL)
		last[strcspn(last, "\r\n")] = '\0';
	return last;
}

static int
refused(const char *why, struct err *err)
{
	enum err_code code = ERR_IO;

	if (strcmp(why, "Permission denied") == 0 ||
	    strcmp(why, "Operation not permitted") == 0)
		code = ERR_DENIED;
	else if (str_starts(why, "No such file"))
		code = ERR_NOT_FOUND;
	return err_set(err, code, "%s", why);
}

static int
no_end(int64_t ms, struct err *err)
{
	return err_set(err, ERR_TIMEOUT,
	    "the host gave no end of it in %" PRId64 " s, as with files that "
	    "wait for news; use exec_bash with a timeout, or ask for less",
	    ms / 1000);
}

/* What came of the command. */
static int
conclude(struct exec_result *res, const struct buf *printed,
    const struct farread_request *req, struct farread *out, struct err *err)
{
	const char *why = reason(&res->err);

	if (res->cancelled)
		return err_set(err, ERR_CANCELLED, "it was cancelled");
	if (res->timed_out)
		return no_end(res->duration_ms, err);
	if (res->refused)
		return err_set(err, ERR_IO,
		    "the host prints more than it was asked for");
	if (res->state != EXEC_FINISHED)
		return err_set(err, ERR_IO, "%s; call again", res->problem);
	if (res->exit_code != 0)
		return refused(why != NULL ? why : "it could not be read", err);
	if (farread_take(printed, req, out, err) == -1)
		return -1;
	if (out->file_size == 0 || out->bytes.len > 0 || why == NULL)
		return 0;
	farread_free(out);
	return refused(why, err);
}

static int64_t
patience_ms(const struct farread_request *req)
{
	return (req->from == FARREAD_LINE || req->number ? READ_LINES_MS
	                                                 : READ_MS) +
	    (int64_t)req->max_bytes / SLOWEST_BYTES_MS;
}

static int
run_command(struct link *link, const struct farread_request *req, bool relative,
    struct farread *out, const struct until *until, struct err *err)
{
	const struct sandbox *sb = link_sandbox(link);
	struct buf command, printed;
	struct exec_request exec = {
		.cwd = relative ? sb->workdir : NULL,
		.timeout_ms = patience_ms(req),
		.max_chars = 4000,
		.sink = keep,
		.sink_data = &printed,
	};
	struct exec_result res;
	int rc;

	buf_init(&command, SIZE_MAX);
	farread_command(&command, req);
	exec.command = command.data;
	buf_init(&printed, HEADER_MAX + req->max_bytes + 4 * (size_t)BLOCK);
	rc = exec_run(link, &exec, &res, until, err);
	if (rc == 0) {
		rc = conclude(&res, &printed, req, out, err);
		exec_result_free(&res);
	}
	buf_free(&command);
	buf_free(&printed);
	return rc;
}

static int
run_sftp(struct link *link, const struct farread_request *req,
    struct farread *out, const struct until *until, struct err *err)
{
	struct sftp *s = link_sftp(link, until, err);
	struct until limit = until_within(until, patience_ms(req));
	struct buf printed;
	int rc;

	if (s == NULL)
		return -1;
	buf_init(&printed, SIZE_MAX);
	rc = sftpread_print(s, req, link_sandbox(link)->workdir, &printed,
	    &limit, err);
	if (rc == -1 && err->code == ERR_TIMEOUT &&
	    until_check(until, err) == 0)
		no_end(patience_ms(req), err);
	if (rc == 0)
		rc = farread_take(&printed, req, out, err);
	sftp_free(s);
	buf_free(&printed);
	return rc;
}

int
farread_run(struct link *link, const struct farread_request *req,
    struct farread *out, const struct until *until, struct err *err)
{
	const struct sandbox *sb = link_sandbox(link);
	bool relative = req->path[0] != '/' && !path_is_home(req->path);
	int rc = link_ways(link, until, err);

	if (rc == 0)
		rc = run_command(link, req, relative, out, until, err);
	else if (rc == 1)
		rc = run_sftp(link, req, out, until, err);
	if (rc == -1)
		err_wrap(err, "cannot read '%.300s'%s on %s", req->path,
		    relative && sb->workdir != NULL ? " in the workdir" : "",
		    sb->name);
	return rc;
}
