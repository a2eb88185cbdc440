/* Webhooks, with the real curl and a server on the loopback address. */
#include "httpd.h"
#include "watch/hmac.h"
#include "watch/webhook.h"

static struct httpd httpd;
static struct until until;
static struct err err;
static char *top, *body_file;
static const char body[] = "{\n  \"id\": 5\n}";

static int
begin(void **state)
{
	(void)state;
	top = make_dir();
	body_file = path_join(top, "event \"5\".json");
	assert_int_equal(fs_replace(body_file, body, strlen(body), 0600, &err),
	    0);
	until = until_in(60000);
	httpd_start(&httpd, HTTPD_OK);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	httpd_stop(&httpd);
	remove_dir(top);
	free(body_file);
	return 0;
}

static int
send_to(const char *host, const struct allow *allow)
{
	char *url = xasprintf("http://%s:%d/hook?a=b", host, httpd.port);
	struct webhook w = { .url = url,
		.event_id = 5,
		.event_type = "failed",
		.body_file = body_file,
		.body = body,
		.body_len = strlen(body) };
	int rc = webhook_send(&w, allow, &until, &err);

	free(url);
	return rc;
}

static void
an_event_arrives_whole(void **state)
{
	struct allow allow = { .private_webhooks = true };

	(void)state;
	if (send_to("127.0.0.1", &allow) == -1)
		fail_msg("%s", err.msg);
	assert_int_equal(httpd_count(&httpd), 1);
	says(httpd_last(&httpd), "POST /hook?a=b HTTP/1.1\r\n");
	says(httpd_last(&httpd), "\r\nContent-Type: application/json\r\n");
	says(httpd_last(&httpd), "\r\nIdempotency-Key: rsmcp-event-5\r\n");
	says(httpd_last(&httpd), "\r\nX-RSMCP-Event: failed\r\n");
	says_not(httpd_last(&httpd), "Expect:");
	says_not(httpd_last(&httpd), "Signature");
	says(httpd_last(&httpd), "\r\n\r\n{\n  \"id\": 5\n}");
}

static void
a_name_is_resolved_by_us(void **state)
{
	struct allow allow = { .private_webhooks = true };

	(void)state;
	if (send_to("localhost", &allow) == -1)
		fail_msg("%s", err.msg);
	says(httpd_last(&httpd), "\r\nHost: localhost:");
}

static void
private_addresses_have_to_be_allowed(void **state)
{
	struct allow allow = { 0 };

	(void)state;
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "allow_private_webhooks");
	/* By name it may be the network's fault, and is tried again. */
	assert_int_equal(send_to("localhost", &allow), -1);
	assert_int_equal(err.code, ERR_IO);
	allow.private_webhooks = true;
	assert_int_equal(send_to("169.254.169.254", &allow), -1);
	assert_int_equal(err.code, ERR_DENIED);
	assert_int_equal(httpd_count(&httpd), 0);
}

static void
it_is_signed_with_the_secret(void **state)
{
	struct allow allow = { .private_webhooks = true };
	struct allow by_command = { .private_webhooks = true };
	char code[HMAC_HEX_SIZE], *line;

	(void)state;
	secret_set(&allow.webhook_secret, "key", 3);
	assert_int_equal(hmac_sha256(&allow.webhook_secret, body, strlen(body),
	                     code, &until, &err),
	    0);
	line = xasprintf("\r\nX-RSMCP-Signature: sha256=%s\r\n", code);
	assert_int_equal(send_to("127.0.0.1", &allow), 0);
	says(httpd_last(&httpd), line);
	by_command.webhook_secret_command =
	    json_pack("[s,s]", "printf", "key\\nmore\\n");
	assert_int_equal(send_to("127.0.0.1", &by_command), 0);
	says(httpd_last(&httpd), line);
	free(line);
	allow_free(&allow);
	allow_free(&by_command);
}

static void
a_secret_that_cannot_be_had_sends_nothing(void **state)
{
	struct allow allow = { .private_webhooks = true };

	(void)state;
	allow.webhook_secret_command = json_pack("[s]", "false");
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	says(err.msg, "webhook_secret_command");
	assert_int_equal(httpd_count(&httpd), 0);
	allow_free(&allow);
}

static void
no_proxy_and_no_file_of_curl_counts(void **state)
{
	static const char file[] = "proxy = \"http://127.0.0.1:1\"\n"
	                           "request = \"DELETE\"\n";
	struct allow allow = { .private_webhooks = true };
	char *rc = path_join(top, ".curlrc");

	(void)state;
	assert_int_equal(fs_replace(rc, file, strlen(file), 0600, &err), 0);
	setenv("CURL_HOME", top, 1);
	setenv("http_proxy", "http://127.0.0.1:1", 1);
	setenv("ALL_PROXY", "http://127.0.0.1:1", 1);
	if (send_to("127.0.0.1", &allow) == -1)
		fail_msg("%s", err.msg);
	says(httpd_last(&httpd), "POST /hook?a=b HTTP/1.1\r\n");
	assert_int_equal(httpd_count(&httpd), 1);
	unsetenv("ALL_PROXY");
	unsetenv("http_proxy");
	unsetenv("CURL_HOME");
	free(rc);
}

static void
no_redirect_is_followed(void **state)
{
	struct allow allow = { .private_webhooks = true };
	char *reply =
	    xasprintf("HTTP/1.1 302 Found\r\nLocation: "
	              "http://127.0.0.1:%d/other\r\n"
	              "Content-Length: 0\r\nConnection: close\r\n\r\n",
	        httpd.port);

	(void)state;
	httpd_reply(&httpd, reply);
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	says(err.msg, "redirect");
	assert_int_equal(httpd_count(&httpd), 1);
	httpd_reply(&httpd, HTTPD_OK);
	free(reply);
}

static void
refusals_say_what_was_answered(void **state)
{
	struct allow allow = { .private_webhooks = true };

	(void)state;
	httpd_reply(&httpd, "HTTP/1.1 503 No\r\nConnection: close\r\n\r\nbusy");
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	assert_int_equal(err.code, ERR_IO);
	says(err.msg, "503");
	httpd_reply(&httpd, "HTTP/1.1 410 Gone\r\nConnection: close\r\n\r\n");
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	assert_int_equal(err.code, ERR_DENIED);
	httpd_reply(&httpd, "what?\r\n");
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	assert_int_equal(err.code, ERR_IO);
	says(err.msg, "curl could not");
}

static void
who_never_answers_is_left_in_time(void **state)
{
	struct allow allow = { .private_webhooks = true };
	int64_t begun = clock_ms();

	(void)state;
	httpd_reply(&httpd, NULL);
	until = until_in(1000);
	assert_int_equal(send_to("127.0.0.1", &allow), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(clock_ms() - begun < 20000);
	httpd_reply(&httpd, HTTPD_OK);
}

static void
tools_refuse_what_can_never_work(void **state)
{
	struct allow allow = { 0 };

	(void)state;
	assert_int_equal(webhook_check("https://example.com/x", &allow, &err),
	    0);
	assert_int_equal(webhook_check("ftp://example.com/x", &allow, &err),
	    -1);
	assert_int_equal(webhook_check("http://127.0.0.1/x", &allow, &err), -1);
	assert_int_equal(webhook_check("http://[::1]/x", &allow, &err), -1);
	assert_int_equal(webhook_check("http://[fe80::1]/x", &allow, &err), -1);
	allow.private_webhooks = true;
	assert_int_equal(webhook_check("http://[::1]/x", &allow, &err), 0);
	assert_int_equal(webhook_check("http://[fe80::1]/x", &allow, &err), -1);
}

#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(an_event_arrives_whole),
		T(a_name_is_resolved_by_us),
		T(private_addresses_have_to_be_allowed),
		T(it_is_signed_with_the_secret),
		T(a_secret_that_cannot_be_had_sends_nothing),
		T(no_proxy_and_no_file_of_curl_counts),
		T(no_redirect_is_followed),
		T(refusals_say_what_was_answered),
		T(who_never_answers_is_left_in_time),
		T(tools_refuse_what_can_never_work),
	};

	/* curl and its loopback server need no configuration of the user. */
	setenv("HOME", "/nowhere", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
