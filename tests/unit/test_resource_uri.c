#include "help.h"
#include "tools/resource_uri.h"

static struct err err;

/* "job" may be NULL, "id" 0; the text is the same again unless "other" says
 * how it is written. */
static void
means(const char *uri, enum resource_kind kind, const char *sandbox,
    const char *job, int64_t id, const char *other)
{
	struct resource_uri u;
	char *text;

	if (resource_uri_parse(uri, &u, &err) == -1)
		fail_msg("%s: %s", uri, err.msg);
	assert_int_equal(u.kind, kind);
	assert_string_equal(u.sandbox, sandbox);
	if (job != NULL)
		assert_string_equal(u.job, job);
	else
		assert_null(u.job);
	assert_int_equal(u.id, id);
	text = resource_uri_text(&u);
	assert_string_equal(text, other != NULL ? other : uri);
	free(text);
	resource_uri_free(&u);
}

static void
is_none(const char *uri)
{
	struct resource_uri u;

	err.code = ERR_NONE;
	if (resource_uri_parse(uri, &u, &err) == 0)
		fail_msg("%s was taken", uri);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	says(err.msg, "no resource has this URI");
	resource_uri_free(&u);
}

static void
they_are_taken_apart_and_put_together(void **state)
{
	(void)state;
	means("sandbox://gpu1/jobs", RESOURCE_JOBS, "gpu1", NULL, 0, NULL);
	means("sandbox://a.b-c_d~e/jobs/train-1", RESOURCE_JOB, "a.b-c_d~e",
	    "train-1", 0, NULL);
	means("sandbox://gpu1/jobs/log/log", RESOURCE_LOG, "gpu1", "log", 0,
	    NULL);
	means("sandbox://gpu1/transfers/9223372036854775807", RESOURCE_TRANSFER,
	    "gpu1", NULL, INT64_MAX, NULL);
}

static void
any_name_can_be_written(void **state)
{
	(void)state;
	means("sandbox://my%20box%2F%C3%A9%25/jobs", RESOURCE_JOBS,
	    "my box/\xc3\xa9%", NULL, 0, NULL);
	means("sandbox://h:22/jobs", RESOURCE_JOBS, "h:22", NULL, 0,
	    "sandbox://h%3A22/jobs");
	means("sandbox://\xc3\xa9/jobs", RESOURCE_JOBS, "\xc3\xa9", NULL, 0,
	    "sandbox://%C3%A9/jobs");
	means("sandbox://%67pu/jobs", RESOURCE_JOBS, "gpu", NULL, 0,
	    "sandbox://gpu/jobs");
}

static void
all_else_names_nothing(void **state)
{
	static const char *const wrong[] = { "", "sandbox:", "sandbox://",
		"sandbox://a", "sandbox://a/", "sandbox:///jobs",
		"Sandbox://a/jobs", "http://a/jobs", "sandbox://a/jobs/",
		"sandbox://a//jobs", "sandbox://a/jobs/b/log/",
		"sandbox://a/jobs/b/lag", "sandbox://a/jobs/b/log/c",
		"sandbox://a/transfers", "sandbox://a/transfers/",
		"sandbox://a/transfers/0", "sandbox://a/transfers/-1",
		"sandbox://a/transfers/%201", "sandbox://a/transfers/1/x",
		"sandbox://a/transfers/9223372036854775808",
		"sandbox://a/jobs?x=1", "sandbox://a/jobs#x",
		"sandbox://a b/jobs", "sandbox://a%/jobs", "sandbox://a%2/jobs",
		"sandbox://a%2g/jobs", "sandbox://a%00/jobs",
		"sandbox://a%ff/jobs", "sandbox://\xff/jobs" };
	char *name = repeated("a", RESOURCE_URI_MAX);
	char *big = xasprintf("sandbox://%s/jobs", name);
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		is_none(wrong[i]);
	is_none(big);
	free(name);
	free(big);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(they_are_taken_apart_and_put_together),
		cmocka_unit_test(any_name_can_be_written),
		cmocka_unit_test(all_else_names_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
