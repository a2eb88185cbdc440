/*
 * What a host says about the content of files: sums belong to the file that
 * they name and to no other, and .gitignore files to their directory, in
 * whatever portions they come; and which pieces of a file it has, in a list
 * that is read as a whole.
 *
 * The first byte seeds the sizes of the portions; 0x80 to 0x83 stand for sums.
 * What reads them is compiled into this file.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "sync/farignore.c"
#include "sync/piecelist.h"
#include "sync/sums.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"

static const char *const paths[] = { ".gitignore", "a", "a b", "d",
	"d/.gitignore", "d/\n", "d/\\n", "x" };

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
expand(struct buf *out, const uint8_t *data, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++) {
		if (data[i] >= 0x80 && data[i] <= 0x83)
			buf_addf(out, SUM "%d", data[i] - 0x80);
		else
			buf_add(out, &data[i], 1);
	}
}

static void
make_tree(struct tree *t)
{
	size_t i;

	tree_init(t);
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		tree_add(t, paths[i], NULL)->type =
		    strcmp(paths[i], "d") == 0 ? ENTRY_DIR : ENTRY_FILE;
	tree_sort(t);
}

static size_t
piece(uint32_t *seed, size_t left)
{
	size_t n;

	*seed = *seed * 1664525 + 1013904223;
	n = 1 + (*seed >> 16) % 200;
	return n < left ? n : left;
}

static void
read_sums(const struct buf *said, uint32_t seed, struct tree *t,
    struct buf *known)
{
	struct sync_request req = { .direction = SYNC_UP };
	struct run r = { .req = &req, .local = *t };
	struct sums s = { .r = &r, .room = { SIZE_MAX, SIZE_MAX } };
	size_t at, i, n;

	s.pairs = xcalloc(t->count, sizeof(*s.pairs));
	buf_init(&s.line[HERE], LINE_MAX_BYTES);
	buf_init(&s.line[THERE], LINE_MAX_BYTES);
	for (at = 0; at < said->len; at += n) {
		n = piece(&seed, said->len - at);
		sums_take(&s, THERE, said->data + at, n);
	}
	sums_take(&s, HERE, SUM "1  ./a\n", HEX + 7);
	for (i = 0; i < t->count; i++) {
		const struct entry *e = &t->entries[i];
		const char *hex = s.pairs[i].hex[THERE];

		must(strlen(hex) == 0 || strlen(hex) == HEX);
		must(!sums_same(&s, e, e) || strcmp(hex, SUM "1") == 0);
		must(!sums_same(&s, e, e) || strcmp(e->path, "a") == 0);
		buf_addf(known, "%s %s\n", e->path, hex);
	}
	free(s.pairs);
	buf_free(&s.line[HERE]);
	buf_free(&s.line[THERE]);
}

static void
read_ignores(const struct buf *said, uint32_t seed, const struct tree *given,
    struct buf *known)
{
	struct tree t = *given;
	struct ignores g = { .tree = &t };
	struct until never = until_never();
	struct err err;
	struct entry *all = xcalloc(t.count, sizeof(*all));
	size_t at, i, n;

	memcpy(all, given->entries, t.count * sizeof(*all));
	t.entries = all;
	g.rules = rules_new();
	buf_init(&g.text, IGNORE_MAX);
	for (at = 0; at < said->len; at += n) {
		n = piece(&seed, said->len - at);
		ignore_sink(&g, said->data + at, n);
	}
	must(drop_excluded(&t, &g, &never, &err) == 0);
	must(g.ended || check_ignores(&g, "/", &err) == -1);
	must(t.count <= given->count);
	buf_addf(known, "%d", g.ended);
	for (i = 0; i < t.count; i++)
		buf_addf(known, " %s", t.entries[i].path);
	rules_free(g.rules);
	buf_free(&g.text);
	free(all);
}

static void
read_pieces(const struct buf *said)
{
	int64_t size = 7 * PIECE + PIECE / 2, bytes, sum = 0;
	bool have[8] = { false };
	char *text = xstrdup(said->data);
	size_t i;

	must(piece_count(size) == 8);
	bytes = piecelist_read(text, size, have);
	for (i = 0; i < 8; i++)
		sum += have[i] ? piece_len(size, i) : 0;
	must(bytes == sum);
	free(text);
	text = xstrdup(said->data);
	must(piecelist_read(text, size, have) == 0);
	free(text);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf said, whole, pieces;
	struct tree t;

	if (size < 2)
		return 0;
	buf_init(&said, SIZE_MAX);
	buf_init(&whole, SIZE_MAX);
	buf_init(&pieces, SIZE_MAX);
	expand(&said, data + 1, size - 1);
	make_tree(&t);
	read_sums(&said, data[0], &t, &whole);
	read_ignores(&said, data[0], &t, &whole);
	read_sums(&said, data[0] + 256u, &t, &pieces);
	read_ignores(&said, data[0] + 256u, &t, &pieces);
	must(whole.len == pieces.len);
	must(memcmp(whole.data, pieces.data, whole.len) == 0);
	read_pieces(&said);
	tree_free(&t);
	buf_free(&said);
	buf_free(&whole);
	buf_free(&pieces);
	return 0;
}
