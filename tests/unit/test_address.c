#include <arpa/inet.h>

#include "help.h"
#include "watch/address.h"

static struct err err;

static void
parses(const char *url, bool https, const char *host, int port,
    const char *path)
{
	struct webhook_url u;

	if (webhook_url_parse(url, &u, &err) == -1)
		fail_msg("%s: %s", url, err.msg);
	assert_int_equal(u.https, https);
	assert_string_equal(u.host, host);
	assert_int_equal(u.port, port);
	assert_string_equal(u.path, path);
	webhook_url_free(&u);
}

static void
urls_are_taken_apart(void **state)
{
	(void)state;
	parses("https://example.com", true, "example.com", 443, "/");
	parses("HTTP://Example.com:8080/a/b?c=d%20e#frag", false, "Example.com",
	    8080, "/a/b?c=d%20e");
	parses("http://h?x=y", false, "h", 80, "/?x=y");
	parses("http://127.0.0.1:1/", false, "127.0.0.1", 1, "/");
	parses("https://[2001:db8::1]:65535/x", true, "2001:db8::1", 65535,
	    "/x");
	parses("https://a.b-c_d.example/@x", true, "a.b-c_d.example", 443,
	    "/@x");
}

static void
what_programs_may_read_differently_is_refused(void **state)
{
	static const char *const urls[] = { "", "example.com", "ftp://x/",
		"file:///etc/passwd", "gopher://x/", "javascript:1", "https:/x",
		"https:///x", "http://", "http://:80/", "http://user@host/",
		"http://user:pw@host/", "http://good.example@169.254.169.254/",
		"http://169.254.169.254\\@good.example/", "http://a b/",
		"http://x/\n", "http://x/\r\nHeader: y", "http://x/\x01",
		"http://x/\xc3\xa4", "http://x\x7f/", "http://x:0/",
		"http://x:65536/", "http://x:/", "http://x:8a/",
		"http://x: 80/", "http://x:+80/", "http://127.1/",
		"http://2130706433/", "http://0x7f000001/",
		"http://0x7f.0.0.1/", "http://0177.0.0.1/",
		"http://127.0.0.01/", "http://1.2.3.4.5/", "http://256.1.1.1/",
		"http://a.1/", "http://a..b/", "http://.a/", "http://-a/",
		"http://[::1/", "http://[::1]x/", "http://[::1%25eth0]/",
		"http://[127.0.0.1]/", "http://::1/", "http://[]/",
		"http://x/{a,b}", "http://x/\"", "http://%31/", NULL };
	char *much = repeated("a", 3000), *url = xasprintf("http://x/%s", much);
	struct webhook_url u;
	int i;

	(void)state;
	for (i = 0; urls[i] != NULL; i++) {
		if (webhook_url_parse(urls[i], &u, &err) == 0)
			fail_msg("took %s", urls[i]);
		assert_int_equal(err.code, ERR_INVALID);
		says(err.msg, "webhook_url");
		webhook_url_free(&u);
	}
	assert_int_equal(webhook_url_parse(url, &u, &err), -1);
	webhook_url_free(&u);
	free(url);
	free(much);
}

static enum address_kind
kind_of(const char *text)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *four = (void *)&ss;
	struct sockaddr_in6 *six = (void *)&ss;

	if (inet_pton(AF_INET, text, &four->sin_addr) == 1)
		ss.ss_family = AF_INET;
	else if (inet_pton(AF_INET6, text, &six->sin6_addr) == 1)
		ss.ss_family = AF_INET6;
	else
		fail_msg("%s is no address", text);
	return address_judge((void *)&ss);
}

static void
all_are(enum address_kind kind, const char *const *list)
{
	for (; *list != NULL; list++) {
		if (kind_of(*list) != kind)
			fail_msg("%s is of kind %d", *list, kind_of(*list));
	}
}

static void
addresses_are_judged(void **state)
{
	static const char *const never[] = { "169.254.169.254", "169.254.0.1",
		"0.0.0.0", "0.1.2.3", "224.0.0.1", "255.255.255.255",
		"240.0.0.1", "100.100.100.200", "168.63.129.16", "192.0.0.192",
		"::", "fe80::1", "febf::1", "ff02::1", "fd00:ec2::254",
		"::ffff:169.254.169.254", "::169.254.169.254",
		"64:ff9b::169.254.169.254", "2002:a9fe:a9fe::1",
		"::ffff:0.0.0.0", NULL };
	static const char *const private[] = { "127.0.0.1", "127.255.255.255",
		"10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"100.64.0.1", "198.18.0.1", "::1", "fc00::1", "fd12::1",
		"fec0::1", "::ffff:127.0.0.1", "64:ff9b::10.0.0.1",
		"2002:7f00:1::", NULL };
	static const char *const public[] = { "1.1.1.1", "8.8.8.8",
		"172.32.0.1", "172.15.255.255", "169.253.255.255",
		"169.255.0.1", "100.128.0.1", "192.167.255.255", "11.0.0.1",
		"126.255.255.255", "128.0.0.1", "223.255.255.255",
		"2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8",
		"2002:808:808::", NULL };

	(void)state;
	all_are(ADDRESS_NEVER, never);
	all_are(ADDRESS_PRIVATE, private);
	all_are(ADDRESS_PUBLIC, public);
}

static void
names_are_resolved_and_checked(void **state)
{
	struct until until = until_in(60000), past = until_in(-1);
	struct addresses a;

	(void)state;
	if (address_resolve("localhost", &a, &until, &err) == -1)
		fail_msg("%s", err.msg);
	assert_true(a.count > 0);
	assert_int_equal(address_check(&a, "localhost", false, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "allow_private_webhooks");
	assert_int_equal(address_check(&a, "localhost", true, &err), 0);
	assert_int_equal(address_resolve("localhost", &a, &past, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_int_equal(address_resolve("nowhere.invalid", &a, &until, &err),
	    -1);
	says(err.msg, "nowhere.invalid");
}

static void
one_bad_address_among_good_ones_is_enough(void **state)
{
	struct addresses a = { .count = 2 };
	struct sockaddr_in *one = (void *)&a.list[0];
	struct sockaddr_in6 *two = (void *)&a.list[1];
	struct webhook_url u = { .host = (char *)(uintptr_t) "h", .port = 81 };
	struct buf b;

	(void)state;
	one->sin_family = AF_INET;
	inet_pton(AF_INET, "8.8.8.8", &one->sin_addr);
	two->sin6_family = AF_INET6;
	inet_pton(AF_INET6, "fe80::1", &two->sin6_addr);
	assert_int_equal(address_check(&a, "h", true, &err), -1);
	says(err.msg, "[fe80::1]");
	says(err.msg, "never");
	buf_init(&b, 1000);
	address_pin(&b, &u, &a);
	assert_string_equal(b.data, "h:81:8.8.8.8,[fe80::1]");
	buf_free(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(urls_are_taken_apart),
		cmocka_unit_test(what_programs_may_read_differently_is_refused),
		cmocka_unit_test(addresses_are_judged),
		cmocka_unit_test(names_are_resolved_and_checked),
		cmocka_unit_test(one_bad_address_among_good_ones_is_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
