/*
 * Reading a part of a file: what the command prints in the shells that this
 * machine has, and what is made of it.
 */
#include <inttypes.h>
#include <sys/stat.h>

#include "base/proc.h"
#include "base/utf8.h"
#include "help.h"
#include "ssh/farread.h"

static struct farread got;
static struct err err;

static int
forget(void **state)
{
	(void)state;
	farread_free(&got);
	memset(&got, 0, sizeof(got));
	return 0;
}

static int
take(const char *printed, size_t len, const struct farread_request *req)
{
	struct buf b;
	int rc;

	forget(NULL);
	buf_init(&b, SIZE_MAX);
	buf_add(&b, printed, len);
	rc = farread_take(&b, req, &got, &err);
	buf_free(&b);
	return rc;
}

static struct farread_request
from(enum farread_from how, int64_t start, size_t max)
{
	return (struct farread_request){ .path = "x",
		.from = how,
		.start = start,
		.max_bytes = max };
}

/* A shell, and the argument before "-c" if there is one. */
static const char *const shells[][2] = { { "sh", NULL }, { "bash", NULL },
	{ "busybox", "sh" }, { "mksh", NULL }, { NULL, NULL } };

static bool
has(const char *program)
{
	const char *argv[] = { "sh", "-c", "command -v \"$0\"", program, NULL };
	struct proc_request req = { .argv = argv, .max_output = 1000 };
	struct until until = until_in(20000);
	struct proc_result res;
	struct err why;
	bool there;

	assert_int_equal(proc_run(&req, &res, &until, &why), 0);
	there = res.exit_code == 0;
	proc_result_free(&res);
	return there;
}

/* Run the command for this request in a shell; 0 with "got". */
static int
read_by(const char *const *shell, const struct farread_request *req)
{
	const char *argv[5] = { shell[0] };
	struct proc_request proc = { .argv = argv, .max_output = 1 << 20 };
	struct until until = until_in(20000);
	struct proc_result res;
	struct buf command;
	size_t n = 1;
	int rc;

	buf_init(&command, SIZE_MAX);
	farread_command(&command, req);
	if (shell[1] != NULL)
		argv[n++] = shell[1];
	argv[n++] = "-c";
	argv[n] = command.data;
	assert_int_equal(proc_run(&proc, &res, &until, &err), 0);
	rc = take(res.out.data, res.out.len, req);
	proc_result_free(&res);
	buf_free(&command);
	return rc;
}

static void
write_file(const char *path, const char *bytes, size_t len)
{
	assert_int_equal(fs_replace(path, bytes, len, 0600, &err), 0);
}

static void
is(const char *want, size_t len)
{
	assert_int_equal(got.bytes.len, len);
	assert_memory_equal(got.bytes.data, want, len);
}

/* Many sizes, places and limits, so that all block borders are met. */
static void
every_part_in(const char *const *shell, const char *path, const char *text,
    size_t len)
{
	static const size_t limits[] = { 1, 5, 4095, 4096, 5000, 40000 };
	static const int64_t places[] = { 0, 1, 3, 4, 4095, 4096, 4097, 8192,
		8195, 12000, 100000 };
	size_t i, k;

	for (i = 0; i < sizeof(limits) / sizeof(*limits); i++) {
		for (k = 0; k < sizeof(places) / sizeof(*places); k++) {
			struct farread_request req =
			    from(FARREAD_OFFSET, places[k], limits[i]);
			size_t at = (size_t)places[k], n;

			req.path = path;
			assert_int_equal(read_by(shell, &req), 0);
			n = at < len ? len - at : 0;
			is(text + (n > 0 ? at : 0),
			    n > limits[i] ? limits[i] : n);
			assert_int_equal(got.truncated, n > limits[i]);
			assert_int_equal(got.offset, places[k]);
			assert_int_equal(got.file_size, len);
		}
	}
}

static void
every_shell_gives_every_part(void **state)
{
	char *dir = make_dir(), *path = path_join(dir, "-n 'x'\n");
	char *text = repeated("0123456789abcde\n", 600);
	size_t i;

	(void)state;
	write_file(path, text, strlen(text));
	for (i = 0; shells[i][0] != NULL; i++) {
		if (has(shells[i][0]))
			every_part_in(shells[i], path, text, strlen(text));
	}
	free(text);
	free(path);
	remove_dir(dir);
}

static void
every_shell_gives_lines(void **state)
{
	char *dir = make_dir(), *path = path_join(dir, "lines");
	struct farread_request req = from(FARREAD_LINE, 300, 1000);
	char *text = repeated("0123456789abcde\n", 600);
	size_t i;

	(void)state;
	req.path = path;
	write_file(path, text, strlen(text));
	for (i = 0; shells[i][0] != NULL; i++) {
		if (!has(shells[i][0]))
			continue;
		req.from = FARREAD_LINE;
		req.start = 300;
		req.lines = 2;
		assert_int_equal(read_by(shells[i], &req), 0);
		is(text, 32);
		assert_int_equal(got.offset, 299 * 16);
		assert_int_equal(got.start_line, 300);
		assert_int_equal(got.line_count, 2);
		assert_int_equal(got.total_lines, -1);
		assert_false(got.truncated);
		req.start = 599;
		req.lines = 9;
		assert_int_equal(read_by(shells[i], &req), 0);
		is(text, 32);
		assert_int_equal(got.total_lines, 600);
		req.start = 601;
		assert_int_equal(read_by(shells[i], &req), 0);
		is("", 0);
		assert_int_equal(got.total_lines, -1);
		req.from = FARREAD_TAIL;
		req.start = 3;
		assert_int_equal(read_by(shells[i], &req), 0);
		is(text, 48);
		assert_int_equal(got.offset, 597 * 16);
		assert_int_equal(got.next_offset, 600 * 16);
		assert_int_equal(got.start_line, -1);
		assert_false(got.truncated);
		req.number = true;
		assert_int_equal(read_by(shells[i], &req), 0);
		is(text, 48);
		assert_int_equal(got.start_line, 598);
		assert_int_equal(got.total_lines, 600);
		req.number = false;
		req.start = 100;
		assert_int_equal(read_by(shells[i], &req), 0);
		is(text, 62 * 16);
		assert_true(got.truncated);
	}
	free(text);
	free(path);
	remove_dir(dir);
}

/* Files that say they are empty and are not. */
static void
every_shell_reads_proc(void **state)
{
	struct farread_request req = from(FARREAD_OFFSET, 0, 1000);
	size_t i;

	(void)state;
	if (access("/proc/self/status", R_OK) != 0)
		skip();
	req.path = "/proc/self/status";
	for (i = 0; shells[i][0] != NULL; i++) {
		if (!has(shells[i][0]))
			continue;
		req.from = FARREAD_OFFSET;
		req.start = 0;
		assert_int_equal(read_by(shells[i], &req), 0);
		assert_memory_equal(got.bytes.data, "Name:\t", 6);
		assert_int_equal(got.truncated, got.bytes.len == 1000);
		req.start = 5;
		assert_int_equal(read_by(shells[i], &req), 0);
		assert_int_equal(got.bytes.data[0], '\t');
		req.from = FARREAD_LINE;
		req.start = 2;
		req.lines = 1;
		assert_int_equal(read_by(shells[i], &req), 0);
		assert_memory_equal(got.bytes.data, "Umask:", 6);
		assert_int_equal(got.line_count, 1);
		req.from = FARREAD_TAIL;
		req.start = 1;
		assert_int_equal(read_by(shells[i], &req), 0);
		assert_int_equal(got.line_count, 1);
		assert_memory_equal(got.bytes.data, "nonvoluntary", 12);
	}
}

static void
what_is_no_file_is_not_opened(void **state)
{
	char *dir = make_dir(), *fifo = path_join(dir, "fifo");
	struct farread_request req = from(FARREAD_OFFSET, 0, 10);

	(void)state;
	assert_int_equal(mkfifo(fifo, 0600), 0);
	req.path = fifo;
	assert_int_equal(read_by(shells[0], &req), -1);
	says(err.msg, "fifo");
	req.path = dir;
	assert_int_equal(read_by(shells[0], &req), -1);
	says(err.msg, "list_remote_files");
	req.path = "/dev/zero";
	assert_int_equal(read_by(shells[0], &req), -1);
	says(err.msg, "device");
	unlink(fifo);
	req.path = fifo;
	assert_int_equal(read_by(shells[0], &req), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	free(fifo);
	remove_dir(dir);
}

#define TAKE(text, ...) \
	take(BYTES(text), &(struct farread_request){ .path = "x", __VA_ARGS__ })

static void
begins_with_the_character_that_the_offset_is_in(void **state)
{
	(void)state;
	assert_int_equal(TAKE("file 6 0 0 4096\na☃bc", .start = 2,
	                     .max_bytes = 9),
	    0);
	is("☃bc", 5);
	assert_int_equal(got.offset, 1);
	assert_int_equal(got.next_offset, 6);
	assert_false(got.binary);
}

static void
a_file_that_grew_is_larger_than_it_was(void **state)
{
	(void)state;
	assert_int_equal(TAKE("file 2 0 0 4096\nabcd", .max_bytes = 9), 0);
	assert_int_equal(got.file_size, 4);
	assert_false(got.truncated);
	/* And one that shrank (or of /sys) smaller. */
	assert_int_equal(TAKE("file 4096 0 0 4096\nabcd", .max_bytes = 9), 0);
	assert_int_equal(got.file_size, 4);
	assert_false(got.truncated);
}

static void
a_size_that_is_not_known_is_not_made_up(void **state)
{
	(void)state;
	assert_int_equal(TAKE("file 0 0 0 6\nabcdef", .max_bytes = 2), 0);
	is("ab", 2);
	assert_int_equal(got.file_size, -1);
	assert_true(got.truncated);
	assert_int_equal(TAKE("file 0 96 96 6\n", .start = 100, .max_bytes = 2),
	    0);
	assert_int_equal(got.file_size, -1);
	assert_int_equal(TAKE("file 0 0 0 6\n", .max_bytes = 2), 0);
	assert_int_equal(got.file_size, 0);
}

static void
knows_all_lines_of_a_file_that_it_saw_whole(void **state)
{
	(void)state;
	assert_int_equal(TAKE("file 6 0 0 4096\na\nb\nc\n",
	                     .from = FARREAD_TAIL, .start = 2, .max_bytes = 9),
	    0);
	is("b\nc\n", 4);
	assert_int_equal(got.start_line, 2);
	assert_int_equal(got.total_lines, 3);
	/* The last line does not fit; it keeps its number. */
	assert_int_equal(TAKE("file 6 0 0 4096\na\nbcde", .from = FARREAD_TAIL,
	                     .start = 2, .max_bytes = 2),
	    0);
	is("de", 2);
	assert_int_equal(got.start_line, 2);
	assert_int_equal(TAKE("file 4104 4096 4096 4096 7\na\nb\nc\nd\n",
	                     .from = FARREAD_TAIL, .start = 1, .max_bytes = 9),
	    0);
	assert_int_equal(got.start_line, 11);
	assert_int_equal(got.total_lines, 11);
	assert_int_equal(TAKE("file 0 0 0 9\n", .from = FARREAD_LINE,
	                     .start = 1, .max_bytes = 9),
	    0);
	assert_int_equal(got.line_count, 0);
	assert_int_equal(got.total_lines, 0);
}

static void
refuses_what_makes_no_sense(void **state)
{
	static const char *const bad[] = { "", "\n", "file\n", "file 1 2 3\n",
		"file 1 0 0 0", "file 1 0 0 0 x\n", "file x 0 0 0\n",
		"file -1 0 0 0\n", "file 9 5 6 9\nabc", "file 9 5 5 9\nabc",
		"file 99999999999999999999 0 0 0\n",
		"averyveryverylongkind 0 0 0 0\n", NULL };
	struct farread_request req = from(FARREAD_OFFSET, 0, 10);
	size_t i;

	(void)state;
	for (i = 0; bad[i] != NULL; i++) {
		assert_int_equal(take(bad[i], strlen(bad[i]), &req), -1);
		assert_int_equal(err.code, ERR_IO);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_shell_gives_every_part),
		cmocka_unit_test(every_shell_gives_lines),
		cmocka_unit_test(every_shell_reads_proc),
		cmocka_unit_test(what_is_no_file_is_not_opened),
		cmocka_unit_test(
		    begins_with_the_character_that_the_offset_is_in),
		cmocka_unit_test(a_file_that_grew_is_larger_than_it_was),
		cmocka_unit_test(a_size_that_is_not_known_is_not_made_up),
		cmocka_unit_test(knows_all_lines_of_a_file_that_it_saw_whole),
		cmocka_unit_test(refuses_what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, forget);
}
