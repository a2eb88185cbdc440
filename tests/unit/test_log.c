#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/str.h"
#include "base/utf8.h"
#include "test.h"

#define NAME "remote-sandbox-mcp: "

/* stderr led into a pipe; what is logged must fit into it, which one page is
 * sure to do. */
struct capture {
	int real;
	int reader;
};

static void
capture_start(struct capture *c)
{
	struct err err = ERR_INIT;
	int fds[2];

	assert_int_equal(fs_pipe(fds, &err), 0);
	c->real = dup(STDERR_FILENO);
	assert_true(c->real >= 0);
	assert_int_equal(dup2(fds[1], STDERR_FILENO), STDERR_FILENO);
	close(fds[1]);
	c->reader = fds[0];
}

static void
capture_end(struct capture *c, struct buf *out)
{
	size_t room;
	ssize_t n;

	dup2(c->real, STDERR_FILENO);
	close(c->real);
	do {
		char *space = buf_space(out, 4096, &room);

		n = read(c->reader, space, room);
		assert_true(n >= 0);
		buf_grew(out, (size_t)n);
	} while (n > 0);
	close(c->reader);
}

/* One line of each level, as the level lets through. */
static void
check_level(const char *level, const char *want)
{
	struct capture c;
	struct buf out;

	buf_init(&out, 10000);
	capture_start(&c);
	log_init(level);
	log_error("e %d", 1);
	log_warn("w %d", 2);
	log_info("i %d", 3);
	log_debug("d %d", 4);
	capture_end(&c, &out);
	log_init(NULL);
	assert_string_equal(out.data, want);
	buf_free(&out);
}

#define ERROR_LINE NAME "error: e 1\n"
#define WARN_LINE ERROR_LINE NAME "warn: w 2\n"
#define INFO_LINE WARN_LINE NAME "info: i 3\n"
#define DEBUG_LINE INFO_LINE NAME "debug: d 4\n"

static void
shows_what_the_level_asks_for(void **state)
{
	(void)state;
	check_level("error", ERROR_LINE);
	check_level("warn", WARN_LINE);
	check_level("info", INFO_LINE);
	check_level("debug", DEBUG_LINE);
	check_level("DEBUG", DEBUG_LINE);
}

static void
shows_warnings_if_the_word_is_unknown(void **state)
{
	(void)state;
	check_level(NULL, WARN_LINE);
	check_level("", WARN_LINE);
	check_level("loud", WARN_LINE);
	check_level("debugging", WARN_LINE);
}

static void
keeps_a_message_on_one_line(void **state)
{
	struct capture c;
	struct buf out;

	(void)state;
	buf_init(&out, 10000);
	capture_start(&c);
	log_error("%s", "a\nb\r\x1b[31mc\x7f\t\u20ac");
	capture_end(&c, &out);
	assert_string_equal(out.data, NAME "error: a b  [31mc  \u20ac\n");
	buf_free(&out);
}

/* Wherever the cut falls. */
static void
ends_a_long_message_in_dots(void **state)
{
	char text[9000];
	struct capture c;
	struct buf out;
	size_t len;
	int shift;

	(void)state;
	for (len = 0; len + 3 < sizeof(text); len += 3)
		memcpy(text + len, "\u20ac", 3);
	text[len] = '\0';
	for (shift = 0; shift < 3; shift++) {
		buf_init(&out, 20000);
		capture_start(&c);
		log_error("%.*s%s", shift, "xx", text);
		log_error("short");
		capture_end(&c, &out);
		assert_true(utf8_valid(out.data, out.len));
		assert_true(out.len > 2000);
		assert_true(str_ends(out.data, "...\n" NAME "error: short\n"));
		buf_free(&out);
	}
}

static void
leaves_errno_alone(void **state)
{
	struct capture c;
	struct buf out;

	(void)state;
	buf_init(&out, 10000);
	capture_start(&c);
	errno = EDOM;
	log_error("x");
	log_debug("x");
	capture_end(&c, &out);
	assert_int_equal(errno, EDOM);
	buf_free(&out);
}

enum { THREADS = 4, LINES = 20 };

static void *
log_much(void *arg)
{
	int i;

	for (i = 0; i < LINES; i++)
		log_error("from thread %s", (const char *)arg);
	return NULL;
}

static void
never_mixes_lines_of_threads(void **state)
{
	static char names[THREADS][2] = { "0", "1", "2", "3" };
	pthread_t threads[THREADS];
	struct capture c;
	struct buf out;
	const char *line;
	int i, lines = 0;

	(void)state;
	buf_init(&out, 100000);
	capture_start(&c);
	for (i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_create(&threads[i], NULL, log_much,
		                     names[i]),
		    0);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	capture_end(&c, &out);
	for (line = out.data; *line != '\0'; line = strchr(line, '\n') + 1) {
		assert_true(str_starts(line, NAME "error: from thread "));
		lines++;
	}
	assert_int_equal(lines, THREADS * LINES);
	buf_free(&out);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shows_what_the_level_asks_for),
		cmocka_unit_test(shows_warnings_if_the_word_is_unknown),
		cmocka_unit_test(keeps_a_message_on_one_line),
		cmocka_unit_test(ends_a_long_message_in_dots),
		cmocka_unit_test(leaves_errno_alone),
		cmocka_unit_test(never_mixes_lines_of_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
