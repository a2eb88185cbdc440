/* Sums of files. */
#include "sync/sums.h"
#include "sync/silence.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/proc.h"
#include "base/quote.h"
#include "base/str.h"
#include "ssh/stream.h"

#define HEX 64
#define LINE_MAX_BYTES 16384 /* a path of 4096 bytes, escaped */
#define LINE_SPARE 128       /* of a line, beside the name */
#define OUTPUT_MAX ((size_t)256 << 20)

/* A host sums up so many bytes in a millisecond at least, and says nothing
 * until a file is done. */
#define SLOWEST_BYTES_MS 4000

/* Takes names on stdin, each with a NUL behind it.  Files that cannot be read
 * have no line, and count as different. */
static const char script[] =
    "if command -v sha256sum >/dev/null 2>&1; then xargs -0 sha256sum; "
    "elif command -v shasum >/dev/null 2>&1; then xargs -0 shasum -a 256; "
    "elif command -v sha256 >/dev/null 2>&1; then xargs -0 sha256 -r; "
    "else exit 9; fi 2>/dev/null; [ $? != 9 ] || exit 9; exit 0";

#define HERE SUMS_HERE
#define THERE SUMS_THERE

struct pair {
	char hex[2][HEX + 1];
	bool odd; /* it has two sums: some program does not escape names */
};

struct sums {
	struct run *r;
	struct pair *pairs;       /* by place in the local tree */
	struct buf names, single; /* the latter: what it is called elsewhere */
	struct buf line[2];       /* not whole yet */
	size_t room[2];           /* bytes that may come yet */
	int64_t largest;          /* file that is summed up */
};

/* A single file may have two names: that of the source, and that in the
 * trees. */
static const struct buf *
names_on(const struct sums *s, int side)
{
	int source = s->r->req->direction == SYNC_UP ? HERE : THERE;

	return s->r->source_name != NULL && side == source ? &s->single
	                                                   : &s->names;
}

/* In place; -1 if that is no name as sha256sum writes it. */
static int
unescape(char *name)
{
	char *in, *out = name;

	for (in = name; *in != '\0'; in++) {
		if (*in != '\\') {
			*out++ = *in;
			continue;
		}
		in++;
		if (*in == '\\')
			*out++ = '\\';
		else if (*in == 'n')
			*out++ = '\n';
		else if (*in == 'r')
			*out++ = '\r';
		else
			return -1;
	}
	*out = '\0';
	return 0;
}

/* One line of sha256sum: the sum and the name.  0, or -1 if it is none. */
static int
read_line(struct buf *text, const char **hex, char **name)
{
	char *line = text->data;
	bool escaped = line[0] == '\\';

	/* A name that was cut off may be another one. */
	if (text->full || memchr(line, '\0', text->len) != NULL)
		return -1;
	line += escaped;
	if (strspn(line, "0123456789abcdef") != HEX || line[HEX] != ' ')
		return -1;
	*hex = line;
	line += HEX;
	*line++ = '\0';
	/* "hash  name", "hash *name", BSD: "hash name" */
	if (*line == ' ' || *line == '*')
		line++;
	if (strncmp(line, "./", 2) != 0)
		return -1;
	*name = line + 2;
	return escaped ? unescape(*name) : 0;
}

/* The entry that is called so on that side, or NULL. */
static const struct entry *
find(const struct sums *s, int side, const char *name)
{
	const struct buf *single = names_on(s, side);

	if (single != &s->single)
		return tree_find(&s->r->local, name);
	return strcmp(single->data + strlen("./"), name) == 0
	    ? s->r->local.entries
	    : NULL;
}

static void
take_line(struct sums *s, int side)
{
	const struct entry *e = NULL;
	struct pair *p;
	const char *hex;
	char *name;

	if (read_line(&s->line[side], &hex, &name) == 0)
		e = find(s, side, name);
	if (e != NULL) {
		p = &s->pairs[e - s->r->local.entries];
		if (p->hex[side][0] != '\0' && strcmp(p->hex[side], hex) != 0)
			p->odd = true;
		memcpy(p->hex[side], hex, HEX);
	}
	buf_reset(&s->line[side]);
}

bool
sums_take(struct sums *s, enum sums_side side, const char *bytes, size_t len)
{
	if (len > s->room[side])
		return false;
	s->room[side] -= len;
	while (len > 0) {
		const char *nl = memchr(bytes, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - bytes) : len;

		buf_add(&s->line[side], bytes, n);
		if (nl == NULL)
			break;
		take_line(s, side);
		bytes += n + 1;
		len -= n + 1;
	}
	return true;
}

/* A line with a name of this length may come, with everything escaped. */
static void
expect(struct sums *s, size_t len)
{
	s->room[HERE] += 2 * len + LINE_SPARE;
	s->room[THERE] += 2 * len + LINE_SPARE;
}

/* What has to be summed up: files of one size. */
static void
gather(struct sums *s)
{
	const struct tree *t = &s->r->local;
	size_t i;

	for (i = 0; i < t->count; i++) {
		const struct entry *a = &t->entries[i], *b;

		if (a->type != ENTRY_FILE)
			continue;
		b = tree_find(&s->r->remote, a->path);
		if (b == NULL || b->type != ENTRY_FILE || b->size != a->size)
			continue;
		buf_addf(&s->names, "./%s", a->path);
		buf_addc(&s->names, '\0');
		expect(s, strlen(a->path));
		if (a->size > s->largest)
			s->largest = a->size;
	}
}

static int
sum_here(struct sums *s, struct err *err)
{
	const struct run *r = s->r;
	struct buf text;
	const char *argv[] = { "sh", "-c", NULL, NULL };
	struct proc_request req = {
		.argv = argv,
		.input = names_on(s, HERE)->data,
		.input_len = names_on(s, HERE)->len,
		.max_output = OUTPUT_MAX,
	};
	struct proc_result res;
	int rc;

	buf_init(&text, SIZE_MAX);
	buf_adds(&text, "cd -- ");
	quote_sh(&text,
	    r->local_dir != NULL ? r->local_dir : r->report->local_path);
	buf_addf(&text, " && { %s; }", script);
	argv[2] = text.data;
	rc = proc_run(&req, &res, s->r->until, err);
	buf_free(&text);
	if (rc == -1)
		return -1;
	if (res.exit_code == 9)
		rc = err_set(err, ERR_NOT_FOUND,
		    "this machine has none of sha256sum, shasum and sha256, "
		    "which checksum needs");
	else
		sums_take(s, HERE, res.out.data, res.out.len);
	proc_result_free(&res);
	return rc;
}

static int
sum_there(struct sums *s, struct stream *st, struct err *err)
{
	char chunk[16384];
	ssize_t n;
	int status;

	while (
	    (n = stream_read(st, chunk, sizeof(chunk), s->r->until, err)) > 0) {
		if (!sums_take(s, THERE, chunk, (size_t)n))
			return err_set(err, ERR_IO,
			    "%s prints more than sums of files",
			    link_sandbox(s->r->link)->name);
	}
	status = n == -1 ? -1 : stream_end(st, s->r->until, err);
	if (status == 9)
		return err_set(err, ERR_NOT_FOUND,
		    "%s has none of sha256sum, shasum and sha256, which "
		    "checksum needs",
		    link_sandbox(s->r->link)->name);
	return status == -1 ? -1 : 0;
}

static int
sum_up(struct sums *s, struct err *err)
{
	struct stream *st;
	struct buf text;
	int rc;

	buf_init(&text, SIZE_MAX);
	buf_adds(&text, "cd -- ");
	quote_sh(&text, s->r->far.path);
	buf_addf(&text, " || exit 3; %s", script);
	st = silence_stream(s->r->link, text.data, s->r->until, err);
	buf_free(&text);
	if (st == NULL)
		return -1;
	stream_patience(st, silence_ms() + s->largest / SLOWEST_BYTES_MS);
	/* The far side starts with what fits into its pipes, and goes on when
	 * we read. */
	stream_feed(st, names_on(s, THERE)->data, names_on(s, THERE)->len);
	rc = sum_here(s, err);
	if (rc == 0)
		rc = sum_there(s, st, err);
	stream_free(st);
	return rc;
}

struct sums *
sums_begin(struct run *r)
{
	struct sums *s = xcalloc(1, sizeof(*s));

	s->r = r;
	s->pairs = xcalloc(r->local.count + 1, sizeof(*s->pairs));
	buf_init(&s->names, SIZE_MAX);
	buf_init(&s->single, SIZE_MAX);
	buf_init(&s->line[HERE], LINE_MAX_BYTES);
	buf_init(&s->line[THERE], LINE_MAX_BYTES);
	if (r->source_name != NULL) {
		buf_addf(&s->single, "./%s", r->source_name);
		buf_addc(&s->single, '\0');
		expect(s, strlen(r->source_name));
	}
	gather(s);
	return s;
}

struct sums *
sums_new(struct run *r, struct err *err)
{
	struct sums *s = sums_begin(r);

	run_tell(r, "comparing", NULL, 0, 0);
	if (s->names.len == 0 || sum_up(s, err) == 0)
		return s;
	sums_free(s);
	return NULL;
}

void
sums_free(struct sums *s)
{
	if (s == NULL)
		return;
	free(s->pairs);
	buf_free(&s->names);
	buf_free(&s->single);
	buf_free(&s->line[HERE]);
	buf_free(&s->line[THERE]);
	free(s);
}

bool
sums_same(void *data, const struct entry *from, const struct entry *to)
{
	struct sums *s = data;
	const struct entry *e = s->r->req->direction == SYNC_UP ? from : to;
	const struct pair *p = &s->pairs[e - s->r->local.entries];

	return p->hex[HERE][0] != '\0' && !p->odd &&
	    strcmp(p->hex[HERE], p->hex[THERE]) == 0;
}
