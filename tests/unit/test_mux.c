#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "help.h"
#include "ssh/mux.h"

#define SOON_MS 100
#define LONG_MS 20000

/* --- the codec ------------------------------------------------------------ */

static void
check_bytes(struct buf *b, const char *want, size_t len)
{
	assert_int_equal(b->len, len);
	assert_memory_equal(b->data, want, len);
	assert_false(b->full);
	buf_free(b);
}

static void
hello_says_version_four(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	mux_put_hello(&b);
	check_bytes(&b, BYTES("\0\0\0\x08\0\0\0\x01\0\0\0\x04"));
}

static void
simple_requests_have_their_type_and_number(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	mux_put_simple(&b, MUX_ALIVE_CHECK, 1);
	check_bytes(&b, BYTES("\0\0\0\x08\x10\0\0\x04\0\0\0\x01"));
	buf_init(&b, 1000);
	mux_put_simple(&b, MUX_TERMINATE, 0x01020304);
	check_bytes(&b, BYTES("\0\0\0\x08\x10\0\0\x05\x01\x02\x03\x04"));
	buf_init(&b, 1000);
	mux_put_simple(&b, MUX_STOP_LISTENING, UINT32_MAX);
	check_bytes(&b, BYTES("\0\0\0\x08\x10\0\0\x09\xff\xff\xff\xff"));
}

static void
a_session_asks_for_nothing_but_its_command(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	mux_put_session(&b, 7, "id -u", false);
	check_bytes(&b,
	    BYTES("\0\0\0\x2d"         /* length of what follows */
	          "\x10\0\0\x02"       /* new session */
	          "\0\0\0\x07"         /* request */
	          "\0\0\0\0"           /* reserved, empty */
	          "\0\0\0\0"           /* no terminal */
	          "\0\0\0\0"           /* no X11 */
	          "\0\0\0\0"           /* no agent */
	          "\0\0\0\0"           /* no subsystem */
	          "\xff\xff\xff\xff"   /* no escape character */
	          "\0\0\0\0"           /* terminal type, empty */
	          "\0\0\0\x05id -u")); /* command; no environment */
	buf_init(&b, 1000);
	mux_put_session(&b, 0, "", false);
	assert_int_equal(b.len, 4 + 40);
	buf_free(&b);
}

static void
or_for_a_subsystem(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	mux_put_session(&b, 7, "sftp", true);
	assert_int_equal(b.len, 4 + 40 + 4);
	assert_memory_equal(b.data + 28, "\0\0\0\x01", 4);
	assert_memory_equal(b.data + 40, "\0\0\0\x04sftp", 8);
	buf_free(&b);
}

static void
messages_are_appended(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 1000);
	mux_put_hello(&b);
	mux_put_simple(&b, MUX_ALIVE_CHECK, 2);
	assert_int_equal(b.len, 24);
	assert_memory_equal(b.data + 12, "\0\0\0\x08\x10\0\0\x04\0\0\0\x02",
	    12);
	buf_free(&b);
}

/* All of the bytes are one message. */
static struct mux_msg
whole(const char *data, size_t len)
{
	struct mux_msg msg;
	char *exact = xmalloc(len); /* a sanitizer sees a read past the end */

	memset(&msg, 0xa5, sizeof(msg));
	memcpy(exact, data, len);
	assert_int_equal(mux_get(exact, len, &msg), len);
	free(exact);
	assert_true(memchr(msg.reason, '\0', sizeof(msg.reason)) != NULL);
	assert_true(utf8_valid(msg.reason, strlen(msg.reason)));
	return msg;
}

static void
every_reply_is_read(void **state)
{
	struct mux_msg m;

	(void)state;
	m = whole(BYTES("\0\0\0\x08\0\0\0\x01\0\0\0\x04"));
	assert_int_equal(m.type, MUX_HELLO);
	assert_int_equal(m.value, 4);
	assert_string_equal(m.reason, "");

	m = whole(BYTES("\0\0\0\x0c\x80\0\0\x05\0\0\0\x02\0\x01\xe2\x40"));
	assert_int_equal(m.type, MUX_ALIVE);
	assert_int_equal(m.id, 2);
	assert_int_equal(m.value, 123456);

	m = whole(BYTES("\0\0\0\x0c\x80\0\0\x06\0\0\0\x03\0\0\0\x09"));
	assert_int_equal(m.type, MUX_SESSION_OPENED);
	assert_int_equal(m.id, 3);
	assert_int_equal(m.value, 9);

	m = whole(BYTES("\0\0\0\x0c\x80\0\0\x04\0\0\0\x09\0\0\0\xff"));
	assert_int_equal(m.type, MUX_EXIT);
	assert_int_equal(m.id, 9);
	assert_int_equal(m.value, 255);

	m = whole(BYTES("\0\0\0\x08\x80\0\0\x01\0\0\0\x05"));
	assert_int_equal(m.type, MUX_OK);
	assert_int_equal(m.id, 5);

	m = whole(BYTES("\0\0\0\x08\x80\0\0\x08\0\0\0\x05"));
	assert_int_equal(m.type, MUX_TTY_ALLOC_FAIL);

	m = whole(BYTES("\0\0\0\x28\x80\0\0\x03\0\0\0\x06\0\0\0\x1c"
	                "Session open refused by peer"));
	assert_int_equal(m.type, MUX_FAILURE);
	assert_int_equal(m.id, 6);
	assert_string_equal(m.reason, "Session open refused by peer");

	m = whole(BYTES("\0\0\0\x0f\x80\0\0\x02\0\0\0\x06\0\0\0\x03no\n"));
	assert_int_equal(m.type, MUX_DENIED);
	says(m.reason, "no");
}

static void
a_hello_may_bring_extensions(void **state)
{
	struct mux_msg m;

	(void)state;
	m = whole(BYTES("\0\0\0\x10\0\0\0\x01\0\0\0\x04\0\0\0\0\0\0\0\0"));
	assert_int_equal(m.type, MUX_HELLO);
	assert_int_equal(m.value, 4);
	m = whole(BYTES("\0\0\0\x15\0\0\0\x01\0\0\0\x04"
	                "\0\0\0\x04info\0\0\0\x01"
	                "0"));
	assert_int_equal(m.value, 4);
}

static void
a_message_that_is_not_whole_is_waited_for(void **state)
{
	static const char msg[] = "\0\0\0\x0c\x80\0\0\x05\0\0\0\x02\0\0\0\x07";
	struct mux_msg m;
	size_t len;

	(void)state;
	for (len = 0; len < 16; len++) {
		char *exact = xmalloc(len + 1);

		memcpy(exact, msg, len);
		assert_int_equal(mux_get(exact, len, &m), 0);
		free(exact);
	}
	assert_int_equal(mux_get(msg, 16, &m), 16);
	/* The largest there may be. */
	assert_int_equal(mux_get("\0\x04\0\0", 4, &m), 0);
}

static void
only_the_first_message_is_taken(void **state)
{
	struct mux_msg m;

	(void)state;
	assert_int_equal(mux_get("\0\0\0\x08\0\0\0\x01\0\0\0\x04\0\0", 14, &m),
	    12);
	assert_int_equal(m.value, 4);
	assert_int_equal(mux_get("\0\0\0\x08\x80\0\0\x01\0\0\0\x05"
	                         "\0\0\0\x08\x80\0\0\x01\0\0\0\x06",
	                     24, &m),
	    12);
	assert_int_equal(m.id, 5);
}

static void
what_cannot_be_a_message_is_refused_at_once(void **state)
{
	struct mux_msg m;

	(void)state;
	/* A type is the least there is. */
	assert_int_equal(mux_get("\0\0\0\0", 4, &m), -1);
	assert_int_equal(mux_get("\0\0\0\x03\0\0\0", 7, &m), -1);
	assert_int_equal(mux_get("\0\x04\0\x01", 4, &m), -1);
	assert_int_equal(mux_get("\xff\xff\xff\xff", 4, &m), -1);
	assert_int_equal(mux_get("\x7f\xff\xff\xff....", 8, &m), -1);
	assert_int_equal(mux_get("SSH-2.0-x\r\n", 11, &m), -1);
	assert_int_equal(mux_get("HTTP/1.1 400", 12, &m), -1);
}

static void
short_bodies_read_as_zeros(void **state)
{
	struct mux_msg m;

	(void)state;
	m = whole(BYTES("\0\0\0\x04\0\0\0\x01"));
	assert_int_equal(m.type, MUX_HELLO);
	assert_int_equal(m.value, 0);
	m = whole(BYTES("\0\0\0\x04\x80\0\0\x05"));
	assert_int_equal(m.type, MUX_ALIVE);
	assert_int_equal(m.id, 0);
	m = whole(BYTES("\0\0\0\x06\x80\0\0\x05\x01\x02"));
	assert_int_equal(m.id, 0);
	m = whole(BYTES("\0\0\0\x0b\x80\0\0\x04\0\0\0\x01\xff\xff\xff"));
	assert_int_equal(m.id, 1);
	assert_int_equal(m.value, 0);
	m = whole(BYTES("\0\0\0\x04\x80\0\0\x03"));
	assert_string_equal(m.reason, "");
	m = whole(BYTES("\0\0\0\x0b\x80\0\0\x03\0\0\0\x01\0\0\0"));
	assert_string_equal(m.reason, "");
}

static void
a_reason_that_lies_about_its_length_stays_inside(void **state)
{
	struct mux_msg m;

	(void)state;
	m = whole(BYTES("\0\0\0\x0e\x80\0\0\x03\0\0\0\x01\xff\xff\xff\xff"
	                "no"));
	assert_string_equal(m.reason, "no");
	m = whole(BYTES("\0\0\0\x0e\x80\0\0\x03\0\0\0\x01\0\0\0\x01"
	                "no"));
	assert_string_equal(m.reason, "n");
	m = whole(BYTES("\0\0\0\x0c\x80\0\0\x03\0\0\0\x01\0\0\0\x05"));
	assert_string_equal(m.reason, "");
}

static void
a_reason_is_text_of_a_bounded_length(void **state)
{
	struct buf b;
	struct mux_msg m;
	int i;

	(void)state;
	m = whole(BYTES("\0\0\0\x10\x80\0\0\x03\0\0\0\x01\0\0\0\x04"
	                "a\xff\0b"));
	assert_string_equal(m.reason,
	    "a\xef\xbf\xbd\xef\xbf\xbd"
	    "b");
	buf_init(&b, 10000);
	buf_add(&b, "\0\0\x0b\xc4\x80\0\0\x03\0\0\0\x01\0\0\x0b\xb8", 16);
	for (i = 0; i < 1000; i++)
		buf_adds(&b, "\xe2\x82\xac");
	m = whole(b.data, b.len);
	assert_true(strlen(m.reason) > 200);
	buf_free(&b);
}

static void
unknown_types_are_taken_as_they_are(void **state)
{
	struct mux_msg m;

	(void)state;
	m = whole(BYTES("\0\0\0\x0c\x12\x34\x56\x78\0\0\0\x01\0\0\0\x02"));
	assert_int_equal(m.type, 0x12345678);
	assert_int_equal(m.id, 1);
	assert_int_equal(m.value, 2);
}

/* --- with a master of ours ------------------------------------------------ */

/* What a pretended master does with its one client. */
struct pretender {
	int listener;
	const char *greeting; /* sent at once */
	size_t greeting_len;
	const char *reply; /* sent when a request has come */
	size_t reply_len;
	int fds;    /* descriptors that come with it */
	bool stays; /* open until the client goes */
	pthread_t thread;
	struct buf got;
};

static char *dir, *path;
static struct pretender p;

#define HELLO "\0\0\0\x08\0\0\0\x01\0\0\0\x04"
#define REPLY(literal) .reply = (literal), .reply_len = sizeof(literal) - 1

/* Read this many bytes and no more, as descriptors may come behind them. */
static void
read_some(int fd, size_t enough)
{
	char chunk[64];
	ssize_t n;

	while (p.got.len < enough) {
		n = read(fd, chunk, enough - p.got.len);
		if (n <= 0)
			return;
		buf_add(&p.got, chunk, (size_t)n);
	}
}

/* Take one descriptor, write its number to it, close it. */
static void
take_fd(int sock, int number)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	char byte, text = (char)('0' + number);
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr mh = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space) };
	struct cmsghdr *cm;
	int fd;

	if (recvmsg(sock, &mh, 0) != 1)
		return;
	cm = CMSG_FIRSTHDR(&mh);
	if (cm == NULL || cm->cmsg_type != SCM_RIGHTS)
		return;
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	(void)!write(fd, &text, 1);
	close(fd);
}

static void *
pretend(void *arg)
{
	int fd = accept(p.listener, NULL, NULL);
	char last;
	size_t enough = 24;
	int i;

	(void)arg;
	if (fd == -1)
		return NULL;
	(void)!write(fd, p.greeting, p.greeting_len);
	if (p.fds > 0)
		enough = 12 + 4 + 40 + strlen("id");
	if (p.reply != NULL)
		read_some(fd, enough);
	for (i = 0; i < p.fds; i++)
		take_fd(fd, i);
	(void)!write(fd, p.reply, p.reply_len);
	while (p.stays && read(fd, &last, 1) > 0)
		;
	close(fd);
	return NULL;
}

static int
listen_at(const char *where, int backlog)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_not_equal(fd, -1);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", where);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, backlog), 0);
	return fd;
}

static void
start(struct pretender what)
{
	p = what;
	buf_init(&p.got, 1 << 20);
	if (p.greeting == NULL) {
		p.greeting = HELLO;
		p.greeting_len = sizeof(HELLO) - 1;
	}
	p.listener = listen_at(path, 4);
	assert_int_equal(pthread_create(&p.thread, NULL, pretend, NULL), 0);
}

/* It is over; what it got is still there. */
static void
joined(void)
{
	assert_int_equal(pthread_join(p.thread, NULL), 0);
	close(p.listener);
	unlink(path);
}

static void
finish(void)
{
	joined();
	buf_free(&p.got);
}

static int
begin(void **state)
{
	(void)state;
	signal(SIGPIPE, SIG_IGN);
	dir = make_dir();
	path = path_join(dir, "s");
	return 0;
}

static int
end(void **state)
{
	(void)state;
	remove_dir(dir);
	free(path);
	return 0;
}

static int
alive(pid_t *pid, int64_t ms, struct err *err)
{
	struct until until = until_in(ms);

	return mux_alive(path, pid, &until, err);
}

static void
nobody_there_is_not_found(void **state)
{
	struct err err = ERR_INIT;
	char *large = repeated("x", 200);
	struct until until = until_in(LONG_MS);
	struct mux m;
	pid_t pid;
	int fd;

	(void)state;
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	/* A socket that somebody left behind. */
	fd = listen_at(path, 1);
	close(fd);
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
	/* Not a socket at all. */
	unlink(path);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	close(fd);
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(mux_connect(&m, large, &until, &err), -1);
	assert_int_equal(err.code, ERR_LIMIT);
	assert_int_equal(m.fd, -1);
	free(large);
}

static void
a_living_master_tells_its_process(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid = 0;

	(void)state;
	start((struct pretender){
	    REPLY("\0\0\0\x0c\x80\0\0\x05\0\0\0\x01\0\0\x04\xd2") });
	assert_int_equal(alive(&pid, LONG_MS, &err), 0);
	assert_int_equal(pid, 1234);
	joined();
	assert_int_equal(p.got.len, 24);
	assert_memory_equal(p.got.data, HELLO, 12);
	assert_memory_equal(p.got.data + 12, "\0\0\0\x08\x10\0\0\x04", 8);
	buf_free(&p.got);
}

static void
one_byte_at_a_time_is_fine(void **state)
{
	struct until until = until_in(LONG_MS);
	struct mux m = { .fd = -1 };
	struct mux_msg msg;
	struct err err;
	int pair[2];
	size_t i;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	m.fd = pair[0];
	buf_init(&m.in, MUX_MESSAGE_MAX + 8);
	for (i = 0; i < 11; i++) {
		struct until soon = until_in(0);

		assert_int_equal(write(pair[1], &(HELLO)[i], 1), 1);
		assert_int_equal(mux_read(&m, &msg, &soon, &err), -1);
		assert_int_equal(err.code, ERR_TIMEOUT);
	}
	/* The last byte, and a second message in the same piece. */
	assert_int_equal(write(pair[1], "\x04" HELLO, 13), 13);
	assert_int_equal(mux_read(&m, &msg, &until, &err), 0);
	assert_int_equal(msg.value, 4);
	assert_int_equal(mux_read(&m, &msg, &until, &err), 0);
	assert_int_equal(msg.value, 4);
	close(pair[1]);
	assert_int_equal(mux_read(&m, &msg, &until, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	mux_close(&m);
	mux_close(&m);
}

static void
an_extended_hello_is_welcome(void **state)
{
	static const char hello[] = "\0\0\0\x10\0\0\0\x01\0\0\0\x04"
	                            "\0\0\0\x04info";
	struct err err = ERR_INIT;
	pid_t pid = 0;

	(void)state;
	start((struct pretender){ .greeting = hello,
	    .greeting_len = sizeof(hello) - 1,
	    REPLY("\0\0\0\x0c\x80\0\0\x05\0\0\0\x01\0\0\0\x09") });
	if (alive(&pid, LONG_MS, &err) == -1)
		fail_msg("%s", err.msg);
	assert_int_equal(pid, 9);
	finish();
}

static void
another_version_is_refused(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid;

	(void)state;
	start((struct pretender){ .greeting = "\0\0\0\x08\0\0\0\x01\0\0\0\x05",
	    .greeting_len = 12,
	    .stays = true });
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	says(err.msg, "version");
	finish();
}

static void
one_who_speaks_otherwise_is_found_out(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid;

	(void)state;
	start((struct pretender){ .greeting = "HTTP/1.1 400 Bad Request\r\n",
	    .greeting_len = 26,
	    .stays = true });
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	says(err.msg, "no OpenSSH master");
	finish();
}

static void
a_silent_one_costs_no_more_than_the_until(void **state)
{
	struct err err = ERR_INIT;
	int64_t began = clock_ms();
	pid_t pid;

	(void)state;
	start((struct pretender){ .greeting = "", .stays = true });
	assert_int_equal(alive(&pid, SOON_MS, &err), -1);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_true(clock_ms() - began < LONG_MS / 2);
	finish();
}

static void
give_up(int number)
{
	static const char text[] = "it waits for ever\n";

	(void)number;
	(void)!write(2, text, sizeof(text) - 1);
	_exit(1);
}

/* As a master that was stopped, after many have tried. */
static void
a_full_queue_costs_no_more_than_the_until(void **state)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int listener = listen_at(path, 0);
	struct err err = ERR_INIT;
	int fds[8], i;
	pid_t pid;

	(void)state;
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	for (i = 0; i < 8; i++) {
		fds[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		(void)!connect(fds[i], (struct sockaddr *)&sa, sizeof(sa));
	}
	signal(SIGALRM, give_up);
	alarm(20);
	assert_int_equal(alive(&pid, SOON_MS, &err), -1);
	alarm(0);
	assert_int_not_equal(err.code, ERR_NOT_FOUND);
	for (i = 0; i < 8; i++)
		close(fds[i]);
	close(listener);
}

static void
a_master_that_hangs_up_is_an_error(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid;

	(void)state;
	start((struct pretender){ .greeting = "" });
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	finish();
	start((struct pretender){ REPLY("\0\0\0") });
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	finish();
}

static void
cancelling_ends_the_wait(void **state)
{
	struct until until = until_in(LONG_MS);
	struct err err = ERR_INIT;
	int cancel[2];
	pid_t pid;

	(void)state;
	assert_int_equal(fs_pipe(cancel, &err), 0);
	assert_int_equal(write(cancel[1], "c", 1), 1);
	until.cancel_fd = cancel[0];
	start((struct pretender){ .greeting = "", .stays = true });
	assert_int_equal(mux_alive(path, &pid, &until, &err), -1);
	assert_int_equal(err.code, ERR_CANCELLED);
	finish();
	close(cancel[0]);
	close(cancel[1]);
}

static void
telling_brings_an_answer_or_a_refusal(void **state)
{
	struct until until = until_in(LONG_MS);
	struct err err = ERR_INIT;

	(void)state;
	start((struct pretender){ REPLY("\0\0\0\x08\x80\0\0\x01\0\0\0\x01") });
	assert_int_equal(mux_tell(path, MUX_STOP_LISTENING, &until, &err), 0);
	joined();
	assert_memory_equal(p.got.data + 16, "\x10\0\0\x09", 4);
	buf_free(&p.got);

	start((struct pretender){
	    REPLY("\0\0\0\x12\x80\0\0\x02\0\0\0\x01\0\0\0\x06"
	          "denied") });
	assert_int_equal(mux_tell(path, MUX_TERMINATE, &until, &err), -1);
	assert_int_equal(err.code, ERR_DENIED);
	says(err.msg, "denied");
	finish();
}

static void
no_sign_of_life_is_none(void **state)
{
	struct err err = ERR_INIT;
	pid_t pid;

	(void)state;
	start((struct pretender){ REPLY("\0\0\0\x08\x80\0\0\x01\0\0\0\x01") });
	assert_int_equal(alive(&pid, LONG_MS, &err), -1);
	assert_int_equal(err.code, ERR_IO);
	finish();
}

static void
a_session_gets_the_three_descriptors_in_order(void **state)
{
	struct until until = until_in(LONG_MS);
	struct err err = ERR_INIT;
	int pipes[3][2], fds[3], i;
	struct mux_msg msg;
	struct mux m;
	char c;

	(void)state;
	for (i = 0; i < 3; i++) {
		assert_int_equal(fs_pipe(pipes[i], &err), 0);
		fds[i] = pipes[i][1];
	}
	start((struct pretender){ .fds = 3,
	    REPLY("\0\0\0\x0c\x80\0\0\x06\0\0\0\x01\0\0\0\x02"
	          "\0\0\0\x0c\x80\0\0\x04\0\0\0\x02\0\0\0\x05") });
	assert_int_equal(mux_ask(&m, path, "id", false, fds, &until, &err), 0);
	assert_int_equal(mux_opened(&m, &until, &err), 0);
	assert_int_not_equal(m.fd, -1);
	for (i = 0; i < 3; i++) {
		close(fds[i]); /* they stayed ours */
		assert_int_equal(read(pipes[i][0], &c, 1), 1);
		assert_int_equal(c, '0' + i);
		assert_int_equal(read(pipes[i][0], &c, 1), 0);
		close(pipes[i][0]);
	}
	assert_int_equal(mux_read(&m, &msg, &until, &err), 0);
	assert_int_equal(msg.type, MUX_EXIT);
	assert_int_equal(msg.value, 5);
	assert_int_equal(mux_read(&m, &msg, &until, &err), -1);
	mux_close(&m);
	finish();
}

static void
open_refused(const char *reply, size_t len, enum err_code code)
{
	struct until until = until_in(LONG_MS);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int fds[3] = { null, null, null };
	struct err err = ERR_INIT;
	struct mux m;

	start((struct pretender){ .fds = 3, .reply = reply, .reply_len = len });
	assert_int_equal(mux_ask(&m, path, "id", false, fds, &until, &err), 0);
	assert_int_equal(mux_opened(&m, &until, &err), -1);
	assert_int_equal(err.code, code);
	assert_int_equal(m.fd, -1);
	mux_close(&m);
	finish();
	close(null);
}

static void
a_refused_session_is_told_apart_from_a_broken_one(void **state)
{
	(void)state;
	open_refused(BYTES("\0\0\0\x28\x80\0\0\x03\0\0\0\x01\0\0\0\x1c"
	                   "Session open refused by peer"),
	    ERR_LIMIT);
	open_refused(BYTES("\0\0\0\x12\x80\0\0\x03\0\0\0\x01\0\0\0\x06"
	                   "broken"),
	    ERR_IO);
	open_refused(BYTES("\0\0\0\x08\x80\0\0\x03\0\0\0\x01"), ERR_IO);
	open_refused(BYTES("\0\0\0\x08\x80\0\0\x01\0\0\0\x01"), ERR_IO);
	open_refused(BYTES(""), ERR_IO);
	open_refused(BYTES("garbage!"), ERR_IO);
}

int
main(void)
{
#define LIVE(name) cmocka_unit_test_setup_teardown(name, begin, end)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hello_says_version_four),
		cmocka_unit_test(simple_requests_have_their_type_and_number),
		cmocka_unit_test(a_session_asks_for_nothing_but_its_command),
		cmocka_unit_test(or_for_a_subsystem),
		cmocka_unit_test(messages_are_appended),
		cmocka_unit_test(every_reply_is_read),
		cmocka_unit_test(a_hello_may_bring_extensions),
		cmocka_unit_test(a_message_that_is_not_whole_is_waited_for),
		cmocka_unit_test(only_the_first_message_is_taken),
		cmocka_unit_test(what_cannot_be_a_message_is_refused_at_once),
		cmocka_unit_test(short_bodies_read_as_zeros),
		cmocka_unit_test(
		    a_reason_that_lies_about_its_length_stays_inside),
		cmocka_unit_test(a_reason_is_text_of_a_bounded_length),
		cmocka_unit_test(unknown_types_are_taken_as_they_are),
		LIVE(nobody_there_is_not_found),
		LIVE(a_living_master_tells_its_process),
		LIVE(one_byte_at_a_time_is_fine),
		LIVE(an_extended_hello_is_welcome),
		LIVE(another_version_is_refused),
		LIVE(one_who_speaks_otherwise_is_found_out),
		LIVE(a_silent_one_costs_no_more_than_the_until),
		LIVE(a_full_queue_costs_no_more_than_the_until),
		LIVE(a_master_that_hangs_up_is_an_error),
		LIVE(cancelling_ends_the_wait),
		LIVE(telling_brings_an_answer_or_a_refusal),
		LIVE(no_sign_of_life_is_none),
		LIVE(a_session_gets_the_three_descriptors_in_order),
		LIVE(a_refused_session_is_told_apart_from_a_broken_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
