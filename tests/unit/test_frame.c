#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/until.h"
#include "mcp/frame.h"
#include "test.h"

#define MIB ((size_t)1024 * 1024)
#define SOON_MS 20000 /* to wait for what will happen */
#define NEVER_MS 50   /* to wait for what must not happen */

/* Lines as one text, each with what it was in front: "L abc\nT \n". */
static void
note(struct buf *seen, enum frame_got got, const char *line, size_t len)
{
	assert_true(got == FRAME_LINE || got == FRAME_TOO_LONG);
	buf_adds(seen, got == FRAME_LINE ? "L " : "T ");
	if (got == FRAME_LINE) {
		assert_null(memchr(line, '\n', len));
		assert_true(len <= FRAME_MAX);
		buf_add(seen, line, len);
	}
	buf_addc(seen, '\n');
}

static void
take_lines(struct frame_in *in, struct buf *seen)
{
	enum frame_got got;
	const char *line;
	size_t len;

	while ((got = frame_in_next(in, &line, &len)) != FRAME_NONE)
		note(seen, got, line, len);
}

static void
take_rest(struct frame_in *in, struct buf *seen)
{
	enum frame_got got;
	const char *line;
	size_t len;

	got = frame_in_rest(in, &line, &len);
	if (got == FRAME_NONE)
		return;
	buf_adds(seen, "rest ");
	note(seen, got, line, len);
	assert_int_equal(frame_in_rest(in, &line, &len), FRAME_NONE);
}

/* A generator of our own, so that every run is the same. */
static size_t
next_random(uint32_t *state, size_t below)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % below;
}

/* What comes out if "data" comes in pieces of 1 to "max" bytes. */
static void
split(const char *data, size_t len, size_t max, uint32_t seed, struct buf *seen)
{
	struct frame_in in;
	size_t n;

	buf_init(seen, SIZE_MAX);
	frame_in_init(&in);
	while (len > 0) {
		n = max == 1 ? 1 : 1 + next_random(&seed, max);
		if (n > len)
			n = len;
		frame_in_add(&in, data, n);
		take_lines(&in, seen);
		data += n;
		len -= n;
	}
	take_rest(&in, seen);
	frame_in_free(&in);
}

static void
splits_into(const char *data, const char *expected)
{
	size_t len = strlen(data), max;
	struct buf seen;

	for (max = 1; max <= len + 1; max++) {
		split(data, len, max, 1, &seen);
		assert_string_equal(seen.data, expected);
		buf_free(&seen);
	}
}

static void
cuts_at_newlines(void **state)
{
	(void)state;
	splits_into("", "");
	splits_into("a\n", "L a\n");
	splits_into("a\nbc\n{}\n", "L a\nL bc\nL {}\n");
}

static void
empty_lines_are_lines(void **state)
{
	(void)state;
	splits_into("\n", "L \n");
	splits_into("\n\na\n\n", "L \nL \nL a\nL \n");
}

static void
a_carriage_return_before_the_newline_goes_too(void **state)
{
	(void)state;
	splits_into("a\r\nb\r\n", "L a\nL b\n");
	splits_into("\r\n", "L \n");
	splits_into("a\rb\n\ra\n", "L a\rb\nL \ra\n");
	splits_into("a\r\r\n", "L a\r\n");
}

static void
what_stands_at_the_end_without_a_newline_is_the_rest(void **state)
{
	(void)state;
	splits_into("a", "rest L a\n");
	splits_into("a\nb", "L a\nrest L b\n");
	splits_into("a\nb\r", "L a\nrest L b\n");
	splits_into("a\n", "L a\n");
}

static void
lines_may_hold_nul_bytes(void **state)
{
	static const char data[] = "a\0b\n\0\n";
	struct buf seen;

	(void)state;
	split(data, sizeof(data) - 1, 1, 1, &seen);
	assert_int_equal(seen.len, 10);
	assert_memory_equal(seen.data, "L a\0b\nL \0\n", 10);
	buf_free(&seen);
}

/* Some thousand lines of all kinds, with what they should become. */
static void
make_lines(struct buf *data, struct buf *expected)
{
	uint32_t seed = 42;
	int i;

	buf_init(data, SIZE_MAX);
	buf_init(expected, SIZE_MAX);
	for (i = 0; i < 1000; i++) {
		size_t n = next_random(&seed, 4) == 0 ? next_random(&seed, 5000)
		                                      : next_random(&seed, 60);

		buf_adds(expected, "L ");
		while (n-- > 0) {
			char c = (char)(' ' + next_random(&seed, 90));

			buf_addc(data, c);
			buf_addc(expected, c);
		}
		buf_adds(data, next_random(&seed, 2) == 0 ? "\n" : "\r\n");
		buf_addc(expected, '\n');
	}
}

static void
pieces_of_any_size_give_the_same_lines(void **state)
{
	static const size_t sizes[] = { 1, 2, 3, 7, 100, 4096, 65536, 5 * MIB };
	struct buf data, expected, seen;
	size_t i;

	(void)state;
	make_lines(&data, &expected);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		split(data.data, data.len, sizes[i], (uint32_t)i, &seen);
		assert_int_equal(seen.len, expected.len);
		assert_memory_equal(seen.data, expected.data, seen.len);
		buf_free(&seen);
	}
	buf_free(&data);
	buf_free(&expected);
}

/* "n" bytes of a line, then "after"; the caller frees it. */
static char *
long_line(size_t n, const char *after, size_t *len)
{
	char *data = xmalloc(n + strlen(after) + 1);

	memset(data, 'x', n);
	memcpy(data + n, after, strlen(after) + 1);
	*len = n + strlen(after);
	return data;
}

static const size_t long_pieces[] = { 999, 65536, FRAME_MAX };

static void
a_line_of_full_length_is_taken(void **state)
{
	struct buf seen;
	char *data;
	size_t len, i;

	(void)state;
	data = long_line(FRAME_MAX, "\ngood\n", &len);
	for (i = 0; i < sizeof(long_pieces) / sizeof(long_pieces[0]); i++) {
		split(data, len, long_pieces[i], 1, &seen);
		assert_int_equal(seen.len, strlen("L \nL good\n") + FRAME_MAX);
		assert_string_equal(seen.data + 2 + FRAME_MAX, "\nL good\n");
		buf_free(&seen);
	}
	free(data);
}

static void
a_line_that_is_too_long_is_told_once_and_skipped(void **state)
{
	static const size_t lengths[] = { FRAME_MAX + 1, FRAME_MAX + 70000,
		2 * FRAME_MAX + 5 };
	struct buf seen;
	char *data;
	size_t len, i, j;

	(void)state;
	for (j = 0; j < sizeof(lengths) / sizeof(lengths[0]); j++) {
		data = long_line(lengths[j], "\ngood\nrest", &len);
		for (i = 1; i < sizeof(long_pieces) / sizeof(long_pieces[0]);
		     i++) {
			split(data, len, long_pieces[i], 1, &seen);
			assert_string_equal(seen.data,
			    "T \nL good\nrest L rest\n");
			buf_free(&seen);
		}
		free(data);
	}
}

static void
the_rest_of_a_line_that_was_too_long_is_nothing(void **state)
{
	struct buf seen;
	char *data;
	size_t len;

	(void)state;
	data = long_line(FRAME_MAX + 10, "", &len);
	split(data, len, 65536, 1, &seen);
	assert_string_equal(seen.data, "T \n");
	buf_free(&seen);
	split(data, FRAME_MAX + 1, 65536, 1, &seen);
	assert_null(strchr(seen.data, 'L'));
	buf_free(&seen);
	free(data);
}

static void
memory_is_bounded_while_skipping(void **state)
{
	struct frame_in in;
	const char *line;
	char *chunk;
	size_t len;
	int i, told = 0;

	(void)state;
	chunk = long_line(MIB, "", &len);
	frame_in_init(&in);
	for (i = 0; i < 100; i++) {
		frame_in_add(&in, chunk, len);
		if (frame_in_next(&in, &line, &len) == FRAME_TOO_LONG)
			told++;
		assert_int_equal(frame_in_next(&in, &line, &len), FRAME_NONE);
		assert_true(in.data.cap <= 2 * FRAME_MAX + 2);
		len = MIB;
	}
	assert_int_equal(told, 1);
	frame_in_add(&in, "\nok\n", 4);
	assert_true(in.data.cap <= 2 * MIB);
	assert_int_equal(frame_in_next(&in, &line, &len), FRAME_LINE);
	assert_int_equal(len, 2);
	frame_in_free(&in);
	free(chunk);
}

/* The length of a line is that without its end, wherever the pieces end. */
static void
a_carriage_return_does_not_count(void **state)
{
	struct frame_in in;
	const char *line;
	char *data;
	size_t len, got_len;

	(void)state;
	data = long_line(FRAME_MAX, "\r\n", &len);

	frame_in_init(&in);
	frame_in_add(&in, data, FRAME_MAX);
	assert_int_equal(frame_in_next(&in, &line, &got_len), FRAME_NONE);
	frame_in_add(&in, "\r\n", 2);
	assert_int_equal(frame_in_next(&in, &line, &got_len), FRAME_LINE);
	assert_int_equal(got_len, FRAME_MAX);
	frame_in_free(&in);

	frame_in_init(&in);
	frame_in_add(&in, data, FRAME_MAX);
	assert_int_equal(frame_in_next(&in, &line, &got_len), FRAME_NONE);
	frame_in_add(&in, "\r", 1);
	assert_int_equal(frame_in_next(&in, &line, &got_len), FRAME_NONE);
	frame_in_add(&in, "\n", 1);
	assert_int_equal(frame_in_next(&in, &line, &got_len), FRAME_LINE);
	assert_int_equal(got_len, FRAME_MAX);
	frame_in_free(&in);
	free(data);
}

/* Pieces may be as long as a frame, whatever stands there already. */
static void
a_full_piece_fits_behind_a_full_line(void **state)
{
	struct frame_in in;
	struct buf seen;
	char *line, *piece;
	size_t len;

	(void)state;
	buf_init(&seen, SIZE_MAX);
	line = long_line(FRAME_MAX, "\r", &len);
	piece = long_line(FRAME_MAX - 1, "\n", &len);
	piece[0] = '\n';
	frame_in_init(&in);
	frame_in_add(&in, line, FRAME_MAX);
	take_lines(&in, &seen);
	frame_in_add(&in, "\r", 1);
	take_lines(&in, &seen);
	frame_in_add(&in, piece, len);
	take_lines(&in, &seen);
	take_rest(&in, &seen);
	assert_int_equal(seen.len, 2 * FRAME_MAX + 4);
	assert_null(strstr(seen.data, "rest"));
	frame_in_free(&in);
	buf_free(&seen);
	free(line);
	free(piece);
}

static void
a_reader_is_freed_at_any_time(void **state)
{
	struct frame_in in;

	(void)state;
	frame_in_init(&in);
	frame_in_free(&in);
	frame_in_init(&in);
	frame_in_add(&in, "half a li", 9);
	frame_in_free(&in);
}

/* The writer: a pipe to the client, a pipe for its news. */
struct line {
	int client[2];
	int wake[2];
	struct frame_out *out;
};

static void
line_open(struct line *l)
{
	struct err err;

	assert_int_equal(fs_pipe(l->client, &err), 0);
	assert_int_equal(fs_pipe(l->wake, &err), 0);
	l->out = frame_out_new(l->client[1], l->wake[1], &err);
	assert_non_null(l->out);
}

/* After frame_out_close(). */
static void
line_close(struct line *l)
{
	if (l->client[0] != -1)
		close(l->client[0]);
	close(l->client[1]);
	close(l->wake[0]);
	close(l->wake[1]);
}

static bool
readable(int fd, int ms)
{
	struct until until = until_in(ms);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct err err;

	return until_poll(&until, &p, 1, &err) == 1;
}

static int
send_text(struct line *l, size_t len, bool wait)
{
	char *text = xmalloc(len + 1);
	json_t *message = json_object();
	int rc;

	memset(text, 'm', len);
	json_object_set_new(message, "t", json_stringn(text, len));
	rc = frame_out_send(l->out, message, wait);
	json_decref(message);
	free(text);
	return rc;
}

/* Reads all that comes until the writer is closed. */
struct drain {
	pthread_t thread;
	int fd;
	struct buf data;
};

static void *
drain_run(void *arg)
{
	struct drain *d = arg;
	size_t room;
	char *space;
	ssize_t n;

	for (;;) {
		space = buf_space(&d->data, 65536, &room);
		n = read(d->fd, space, room);
		if (n <= 0)
			return NULL;
		buf_grew(&d->data, (size_t)n);
	}
}

static void
drain_start(struct drain *d, int fd)
{
	d->fd = fd;
	buf_init(&d->data, SIZE_MAX);
	assert_int_equal(pthread_create(&d->thread, NULL, drain_run, d), 0);
}

/* Close the writer and its descriptor, so that the drain sees an end. */
static void
drain_end(struct drain *d, struct line *l)
{
	assert_int_equal(frame_out_close(l->out, SOON_MS), 0);
	close(l->client[1]);
	pthread_join(d->thread, NULL);
	close(l->client[0]);
	close(l->wake[0]);
	close(l->wake[1]);
}

static void
a_message_is_one_line(void **state)
{
	json_t *message = json_loads("{\"a\": [1, \"b\\nc\\u2028\"]}", 0, NULL);
	struct drain d;
	struct line l;

	(void)state;
	line_open(&l);
	drain_start(&d, l.client[0]);
	assert_int_equal(frame_out_send(l.out, message, false), 0);
	assert_int_equal(frame_out_send(l.out, message, true), 0);
	drain_end(&d, &l);
	assert_string_equal(d.data.data,
	    "{\"a\":[1,\"b\\nc\xe2\x80\xa8\"]}\n"
	    "{\"a\":[1,\"b\\nc\xe2\x80\xa8\"]}\n");
	buf_free(&d.data);
	json_decref(message);
}

#define SENDERS 8
#define EACH 500

struct sender {
	pthread_t thread;
	struct frame_out *out;
	int number;
};

static void *
sender_run(void *arg)
{
	struct sender *s = arg;
	int i;

	for (i = 0; i < EACH; i++) {
		json_t *m = json_object();

		json_object_set_new(m, "from", json_integer(s->number));
		json_object_set_new(m, "n", json_integer(i));
		/* Now and then one that no pipe takes at once. */
		if (i % 100 == 7)
			json_object_set_new(m, "pad",
			    json_sprintf("%100000d", i));
		frame_out_send(s->out, m, i % 2 == 0);
		json_decref(m);
	}
	return NULL;
}

static void
lines_of_many_threads_stay_whole_and_in_order(void **state)
{
	struct sender senders[SENDERS];
	json_int_t next[SENDERS] = { 0 };
	struct frame_in in;
	struct drain d;
	struct line l;
	const char *line;
	size_t len;
	int i, lines = 0;

	(void)state;
	line_open(&l);
	drain_start(&d, l.client[0]);
	for (i = 0; i < SENDERS; i++) {
		senders[i].out = l.out;
		senders[i].number = i;
		assert_int_equal(pthread_create(&senders[i].thread, NULL,
		                     sender_run, &senders[i]),
		    0);
	}
	for (i = 0; i < SENDERS; i++)
		pthread_join(senders[i].thread, NULL);
	drain_end(&d, &l);

	frame_in_init(&in);
	assert_true(d.data.len < FRAME_MAX);
	frame_in_add(&in, d.data.data, d.data.len);
	while (frame_in_next(&in, &line, &len) == FRAME_LINE) {
		json_t *m = json_loadb(line, len, 0, NULL);
		json_int_t from, n;

		assert_non_null(m);
		from = json_integer_value(json_object_get(m, "from"));
		n = json_integer_value(json_object_get(m, "n"));
		assert_true(from >= 0 && from < SENDERS);
		assert_int_equal(n, next[from]);
		next[from]++;
		json_decref(m);
		lines++;
	}
	assert_int_equal(frame_in_rest(&in, &line, &len), FRAME_NONE);
	assert_int_equal(lines, SENDERS * EACH);
	frame_in_free(&in);
	buf_free(&d.data);
}

/* With a client that does not read: the thread is stuck in a write, and the
 * queue is full. */
static void
fill(struct line *l)
{
	int i;

	assert_int_equal(send_text(l, MIB, false), 0);
	assert_true(readable(l->client[0], SOON_MS));
	for (i = 0; i < 9; i++)
		assert_int_equal(send_text(l, MIB, false), 0);
	assert_true(frame_out_full(l->out));
}

struct waiter {
	pthread_t thread;
	struct line *line;
	int done[2];
	int rc;
};

static void *
waiter_run(void *arg)
{
	struct waiter *w = arg;

	w->rc = send_text(w->line, 10, true);
	(void)!write(w->done[1], "d", 1);
	return NULL;
}

static void
waiter_start(struct waiter *w, struct line *l)
{
	struct err err;

	w->line = l;
	assert_int_equal(fs_pipe(w->done, &err), 0);
	assert_int_equal(pthread_create(&w->thread, NULL, waiter_run, w), 0);
}

static void
waiter_end(struct waiter *w)
{
	assert_true(readable(w->done[0], SOON_MS));
	pthread_join(w->thread, NULL);
	close(w->done[0]);
	close(w->done[1]);
}

static void
a_full_queue_holds_back_those_who_wait(void **state)
{
	struct waiter w;
	struct drain d;
	struct line l;
	char byte;

	(void)state;
	line_open(&l);
	assert_false(frame_out_full(l.out));
	fill(&l);
	/* Who does not wait is not held back. */
	assert_int_equal(send_text(&l, 10, false), 0);
	waiter_start(&w, &l);
	assert_false(readable(w.done[0], NEVER_MS));
	assert_false(readable(l.wake[0], 1));

	drain_start(&d, l.client[0]);
	waiter_end(&w);
	assert_int_equal(w.rc, 0);
	/* Somebody asked and was told "full", so there is news. */
	assert_true(readable(l.wake[0], SOON_MS));
	assert_int_equal(read(l.wake[0], &byte, 1), 1);
	drain_end(&d, &l);
	assert_int_equal(d.data.len, 10 * (MIB + 9) + 2 * (10 + 9));
	buf_free(&d.data);
}

static void
room_again_is_no_news_to_who_did_not_ask(void **state)
{
	char bytes[10];
	struct drain d;
	struct line l;
	int i;

	(void)state;
	line_open(&l);
	for (i = 0; i < 20; i++)
		assert_int_equal(send_text(&l, MIB, false), 0);
	drain_start(&d, l.client[0]);
	assert_int_equal(frame_out_close(l.out, SOON_MS), 0);
	/* The end of the thread is the only news. */
	assert_int_equal(read(l.wake[0], bytes, sizeof(bytes)), 1);
	close(l.client[1]);
	pthread_join(d.thread, NULL);
	assert_int_equal(d.data.len, 20 * (MIB + 9));
	buf_free(&d.data);
	close(l.client[0]);
	close(l.wake[0]);
	close(l.wake[1]);
}

static void
a_client_that_goes_away_breaks_the_writer(void **state)
{
	struct line l;

	(void)state;
	line_open(&l);
	assert_false(frame_out_broken(l.out));
	close(l.client[0]);
	l.client[0] = -1;
	assert_int_equal(send_text(&l, 10, false), 0);
	assert_true(readable(l.wake[0], SOON_MS));
	assert_true(frame_out_broken(l.out));
	/* Nobody reads it, but nothing is wrong with the message. */
	assert_int_equal(send_text(&l, 10, true), 0);
	assert_false(frame_out_full(l.out));
	assert_int_equal(frame_out_close(l.out, SOON_MS), 0);
	line_close(&l);
}

static void
those_who_wait_go_on_when_the_client_goes_away(void **state)
{
	struct waiter w;
	struct line l;

	(void)state;
	line_open(&l);
	fill(&l);
	waiter_start(&w, &l);
	assert_false(readable(w.done[0], NEVER_MS));
	close(l.client[0]);
	l.client[0] = -1;
	waiter_end(&w);
	assert_true(readable(l.wake[0], SOON_MS));
	assert_true(frame_out_broken(l.out));
	assert_false(frame_out_full(l.out));
	assert_int_equal(frame_out_close(l.out, SOON_MS), 0);
	line_close(&l);
}

static void
closing_does_not_wait_for_ever(void **state)
{
	struct drain d;
	struct line l;
	int64_t began;

	(void)state;
	line_open(&l);
	fill(&l);
	began = clock_ms();
	assert_int_equal(frame_out_close(l.out, 100), -1);
	assert_true(clock_ms() - began >= 99);
	assert_true(clock_ms() - began < SOON_MS);
	/* And may be tried again. */
	assert_int_equal(frame_out_close(l.out, 0), -1);
	drain_start(&d, l.client[0]);
	drain_end(&d, &l);
	assert_int_equal(d.data.len, 10 * (MIB + 9));
	buf_free(&d.data);
}

static void
closing_writes_what_is_queued(void **state)
{
	struct drain d;
	struct line l;
	int i;

	(void)state;
	line_open(&l);
	for (i = 0; i < 1000; i++)
		assert_int_equal(send_text(&l, 1000, false), 0);
	drain_start(&d, l.client[0]);
	drain_end(&d, &l);
	assert_int_equal(d.data.len, 1000 * (1000 + 9));
	buf_free(&d.data);
}

static void
closing_without_a_message_is_quick(void **state)
{
	struct line l;

	(void)state;
	line_open(&l);
	assert_int_equal(frame_out_close(l.out, SOON_MS), 0);
	line_close(&l);
}

/* {"t":"..."} is eight bytes more than its text, and then the newline. */
static void
a_message_too_large_is_refused(void **state)
{
	struct drain d;
	struct line l;

	(void)state;
	line_open(&l);
	drain_start(&d, l.client[0]);
	assert_int_equal(send_text(&l, FRAME_MAX, true), -1);
	assert_int_equal(send_text(&l, FRAME_MAX - 8, true), -1);
	assert_int_equal(send_text(&l, FRAME_MAX - 9, true), 0);
	assert_int_equal(send_text(&l, 2 * FRAME_MAX, false), -1);
	drain_end(&d, &l);
	assert_int_equal(d.data.len, FRAME_MAX);
	assert_int_equal(d.data.data[FRAME_MAX - 1], '\n');
	assert_int_equal(strcspn(d.data.data, "\n"), FRAME_MAX - 1);
	buf_free(&d.data);
}

static void
a_message_that_is_no_json_is_refused(void **state)
{
	json_t *message = json_object();
	struct line l;

	(void)state;
	line_open(&l);
	json_object_set_new(message, "t", json_string_nocheck("\xff"));
	assert_int_equal(frame_out_send(l.out, message, true), -1);
	assert_int_equal(frame_out_close(l.out, SOON_MS), 0);
	assert_false(readable(l.client[0], 1));
	line_close(&l);
	json_decref(message);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cuts_at_newlines),
		cmocka_unit_test(empty_lines_are_lines),
		cmocka_unit_test(a_carriage_return_before_the_newline_goes_too),
		cmocka_unit_test(
		    what_stands_at_the_end_without_a_newline_is_the_rest),
		cmocka_unit_test(lines_may_hold_nul_bytes),
		cmocka_unit_test(pieces_of_any_size_give_the_same_lines),
		cmocka_unit_test(a_line_of_full_length_is_taken),
		cmocka_unit_test(
		    a_line_that_is_too_long_is_told_once_and_skipped),
		cmocka_unit_test(
		    the_rest_of_a_line_that_was_too_long_is_nothing),
		cmocka_unit_test(memory_is_bounded_while_skipping),
		cmocka_unit_test(a_carriage_return_does_not_count),
		cmocka_unit_test(a_full_piece_fits_behind_a_full_line),
		cmocka_unit_test(a_reader_is_freed_at_any_time),
		cmocka_unit_test(a_message_is_one_line),
		cmocka_unit_test(lines_of_many_threads_stay_whole_and_in_order),
		cmocka_unit_test(a_full_queue_holds_back_those_who_wait),
		cmocka_unit_test(room_again_is_no_news_to_who_did_not_ask),
		cmocka_unit_test(a_client_that_goes_away_breaks_the_writer),
		cmocka_unit_test(
		    those_who_wait_go_on_when_the_client_goes_away),
		cmocka_unit_test(closing_does_not_wait_for_ever),
		cmocka_unit_test(closing_writes_what_is_queued),
		cmocka_unit_test(closing_without_a_message_is_quick),
		cmocka_unit_test(a_message_too_large_is_refused),
		cmocka_unit_test(a_message_that_is_no_json_is_refused),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
