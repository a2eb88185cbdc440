/* Streams of squeeze, read by the gzips that are in use. */
#include <stdio.h>

#include "base/buf.h"
#include "base/proc.h"
#include "base/random.h"
#include "sync/squeeze.h"
#include "test.h"

#define LARGEST ((size_t)16 << 20)

static struct buf in, out;
static struct err err;

static int
begin(void **state)
{
	(void)state;
	buf_init(&in, LARGEST);
	buf_init(&out, LARGEST);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	buf_free(&in);
	buf_free(&out);
	return 0;
}

static int
keep(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	(void)why;
	assert_true(len > 0);
	buf_add(&out, bytes, len);
	return 0;
}

static void
add_noise(size_t len)
{
	char bytes[250];
	size_t n;

	for (; len > 0; len -= n) {
		n = len < sizeof(bytes) ? len : sizeof(bytes);
		random_bytes(bytes, n);
		buf_add(&in, bytes, n);
	}
}

/* In pieces of that many bytes. */
static void
squeeze(size_t piece)
{
	struct squeeze *s = squeeze_new(keep, NULL);
	size_t at, n;

	for (at = 0; at < in.len; at += n) {
		n = in.len - at < piece ? in.len - at : piece;
		assert_int_equal(squeeze_write(s, in.data + at, n, &err), 0);
	}
	assert_int_equal(squeeze_end(s, &err), 0);
	squeeze_free(s);
}

/* "applet" for busybox, or NULL. */
static void
comes_back(const char *program, const char *applet)
{
	const char *argv[] = { program, applet != NULL ? applet : "-dc",
		applet != NULL ? "-dc" : NULL, NULL };
	struct proc_request req = {
		.argv = argv,
		.input = out.data,
		.input_len = out.len,
		.max_output = LARGEST,
	};
	struct until until = until_in(60000);
	struct proc_result res;

	if (proc_run(&req, &res, &until, &err) == -1) {
		assert_int_equal(err.code, ERR_NOT_FOUND);
		skip();
	}
	assert_string_equal(res.err.data, "");
	assert_int_equal(res.exit_code, 0);
	assert_int_equal(res.out.len, in.len);
	assert_memory_equal(res.out.data, in.data, in.len);
	proc_result_free(&res);
}

static void
nothing_comes_back(void **state)
{
	(void)state;
	squeeze(1);
	assert_true(out.len > 0);
	comes_back("gzip", NULL);
}

static void
noise_and_text_come_back(void **state)
{
	int i;

	(void)state;
	add_noise(300000);
	for (i = 0; i < 30000; i++)
		buf_addf(&in, "line %d of a text\n", i);
	add_noise(1);
	squeeze(262144);
	comes_back("gzip", NULL);
}

static void
small_pieces_come_back(void **state)
{
	(void)state;
	add_noise(70000);
	squeeze(7);
	comes_back("gzip", NULL);
}

static void
busybox_reads_it(void **state)
{
	(void)state;
	add_noise(200000);
	squeeze(65536);
	comes_back("busybox", "gzip");
}

static void
headers_almost_vanish(void **state)
{
	int i;

	(void)state;
	for (i = 0; i < 1000; i++) {
		char block[512] = { 0 };

		snprintf(block, sizeof(block), "d/dir/file%d", i);
		buf_add(&in, block, sizeof(block));
	}
	squeeze(262144);
	assert_true(out.len < in.len / 20);
	comes_back("gzip", NULL);
}

static int
no_more(void *data, const void *bytes, size_t len, struct err *why)
{
	(void)data;
	(void)bytes;
	(void)len;
	return err_set(why, ERR_IO, "the link is gone");
}

static void
a_stream_that_breaks_is_over(void **state)
{
	struct squeeze *s = squeeze_new(no_more, NULL);

	(void)state;
	add_noise(200000);
	assert_int_equal(squeeze_write(s, in.data, in.len, &err), -1);
	assert_string_equal(err.msg, "the link is gone");
	squeeze_free(s);

	/* The last bytes may be those that it does not take. */
	s = squeeze_new(no_more, NULL);
	assert_int_equal(squeeze_write(s, "x", 1, &err), 0);
	err.msg[0] = '\0';
	assert_int_equal(squeeze_end(s, &err), -1);
	assert_string_equal(err.msg, "the link is gone");
	squeeze_free(s);
	squeeze_free(NULL);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		TEST(nothing_comes_back),
		TEST(noise_and_text_come_back),
		TEST(small_pieces_come_back),
		TEST(busybox_reads_it),
		TEST(headers_almost_vanish),
		TEST(a_stream_that_breaks_is_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
