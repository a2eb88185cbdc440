/* Speaking with an OpenSSH master. */
#include "ssh/mux.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/utf8.h"

#define MUX_VERSION 4

static void
put_u32(struct buf *out, uint32_t v)
{
	unsigned char b[4] = { (unsigned char)(v >> 24),
		(unsigned char)(v >> 16), (unsigned char)(v >> 8),
		(unsigned char)v };

	buf_add(out, b, sizeof(b));
}

static void
put_string(struct buf *out, const char *s)
{
	put_u32(out, (uint32_t)strlen(s));
	buf_adds(out, s);
}

static uint32_t
get_u32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 |
	    (uint32_t)b[2] << 8 | b[3];
}

void
mux_put_hello(struct buf *out)
{
	put_u32(out, 8);
	put_u32(out, MUX_HELLO);
	put_u32(out, MUX_VERSION);
}

void
mux_put_simple(struct buf *out, uint32_t type, uint32_t request)
{
	put_u32(out, 8);
	put_u32(out, type);
	put_u32(out, request);
}

void
mux_put_session(struct buf *out, uint32_t request, const char *command,
    bool subsystem)
{
	struct buf body;

	buf_init(&body, MUX_MESSAGE_MAX);
	put_u32(&body, MUX_NEW_SESSION);
	put_u32(&body, request);
	put_string(&body, ""); /* reserved */
	put_u32(&body, 0);     /* no terminal, X11, agent */
	put_u32(&body, 0);
	put_u32(&body, 0);
	put_u32(&body, subsystem);
	put_u32(&body, UINT32_MAX); /* no escape character */
	put_string(&body, "");      /* terminal type */
	put_string(&body, command);
	put_u32(out, (uint32_t)body.len);
	buf_add(out, body.data, body.len);
	buf_free(&body);
}

/* The reason behind the id of a failure, made printable. */
static void
get_reason(const char *p, size_t len, struct mux_msg *msg)
{
	struct buf text;
	uint32_t n;

	if (len < 4)
		return;
	n = get_u32(p);
	if (n > len - 4)
		n = (uint32_t)(len - 4);
	buf_init(&text, sizeof(msg->reason) - 4);
	utf8_fix(&text, p + 4, n);
	snprintf(msg->reason, sizeof(msg->reason), "%s", text.data);
	buf_free(&text);
}

ssize_t
mux_get(const char *data, size_t len, struct mux_msg *msg)
{
	const char *body = data + 8;
	size_t body_len;
	uint32_t n;

	if (len < 4)
		return 0;
	n = get_u32(data);
	if (n < 4 || n > MUX_MESSAGE_MAX)
		return -1;
	if (len - 4 < n)
		return 0;
	memset(msg, 0, sizeof(*msg));
	msg->type = get_u32(data + 4);
	body_len = n - 4;
	if (body_len < 4)
		return (ssize_t)n + 4;
	if (msg->type == MUX_HELLO) {
		msg->value = get_u32(body); /* extensions may follow */
		return (ssize_t)n + 4;
	}
	msg->id = get_u32(body);
	if (msg->type == MUX_FAILURE || msg->type == MUX_DENIED)
		get_reason(body + 4, body_len - 4, msg);
	else if (body_len >= 8)
		msg->value = get_u32(body + 4);
	return (ssize_t)n + 4;
}

void
mux_close(struct mux *m)
{
	if (m->fd != -1)
		close(m->fd);
	m->fd = -1;
	buf_free(&m->in);
}

int
mux_read(struct mux *m, struct mux_msg *msg, const struct until *until,
    struct err *err)
{
	struct pollfd p = { .fd = m->fd, .events = POLLIN };
	ssize_t n, used;
	size_t room;
	char *space;

	for (;;) {
		used = mux_get(m->in.data, m->in.len, msg);
		if (used > 0) {
			buf_drop(&m->in, (size_t)used);
			return 0;
		}
		space = buf_space(&m->in, 4096, &room);
		if (used == -1 || room == 0)
			return err_set(err, ERR_IO,
			    "what listens on the control socket is no "
			    "OpenSSH master");
		if (until_poll(until, &p, 1, err) == -1)
			return -1;
		n = read(m->fd, space, room);
		if (n == 0)
			return err_set(err, ERR_IO,
			    "the OpenSSH master closed the connection");
		if (n == -1 && errno != EINTR && errno != EAGAIN)
			return err_sys(err, "cannot read the control socket");
		if (n > 0)
			buf_grew(&m->in, (size_t)n);
	}
}

/* The master reads at once, so a write that does not go is a fault. */
static int
send_all(struct mux *m, const struct buf *out, const struct until *until,
    struct err *err)
{
	struct pollfd p = { .fd = m->fd, .events = POLLOUT };
	size_t sent = 0;
	ssize_t n;

	while (sent < out->len) {
		if (until_poll(until, &p, 1, err) == -1)
			return -1;
		n = send(m->fd, out->data + sent, out->len - sent,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n == -1 && errno != EINTR && errno != EAGAIN)
			return err_sys(err, "cannot write the control socket");
		if (n > 0)
			sent += (size_t)n;
	}
	return 0;
}

static int
open_socket(const char *path, struct err *err)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(sa.sun_path))
		return err_set(err, ERR_LIMIT,
		    "control socket path is too long: %s", path);
	memcpy(sa.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return err_sys(err, "cannot make a socket");
	/* A master that is stopped and has many waiting would block us. */
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0)
		return fd;
	if (errno == ENOENT || errno == ECONNREFUSED)
		err_set(err, ERR_NOT_FOUND, "no OpenSSH master on %s", path);
	else
		err_sys(err, "cannot connect to %s", path);
	close(fd);
	return -1;
}

int
mux_connect(struct mux *m, const char *path, const struct until *until,
    struct err *err)
{
	struct mux_msg msg = { 0 };
	struct buf out;
	int rc;

	buf_init(&m->in, MUX_MESSAGE_MAX + 8);
	m->fd = open_socket(path, err);
	if (m->fd == -1)
		return -1;
	buf_init(&out, 64);
	mux_put_hello(&out);
	rc = send_all(m, &out, until, err);
	buf_free(&out);
	if (rc == 0)
		rc = mux_read(m, &msg, until, err);
	if (rc == 0 && (msg.type != MUX_HELLO || msg.value != MUX_VERSION))
		rc = err_set(err, ERR_IO,
		    "the OpenSSH master speaks another protocol version");
	if (rc == -1)
		mux_close(m);
	return rc;
}

/* One simple request and its reply, on a connection of its own. */
static int
ask(const char *path, uint32_t type, struct mux_msg *msg,
    const struct until *until, struct err *err)
{
	struct mux m;
	struct buf out;
	int rc;

	if (mux_connect(&m, path, until, err) == -1)
		return -1;
	buf_init(&out, 64);
	mux_put_simple(&out, type, 1);
	rc = send_all(&m, &out, until, err);
	buf_free(&out);
	if (rc == 0)
		rc = mux_read(&m, msg, until, err);
	mux_close(&m);
	if (rc == 0 && (msg->type == MUX_FAILURE || msg->type == MUX_DENIED))
		rc = err_set(err, ERR_DENIED, "the OpenSSH master refused: %s",
		    msg->reason);
	return rc;
}

int
mux_alive(const char *path, pid_t *pid, const struct until *until,
    struct err *err)
{
	struct mux_msg msg = { 0 };

	if (ask(path, MUX_ALIVE_CHECK, &msg, until, err) == -1)
		return -1;
	if (msg.type != MUX_ALIVE)
		return err_set(err, ERR_IO,
		    "the OpenSSH master gave no sign of life");
	*pid = (pid_t)msg.value;
	return 0;
}

int
mux_tell(const char *path, enum mux_type what, const struct until *until,
    struct err *err)
{
	struct mux_msg msg = { 0 };

	return ask(path, what, &msg, until, err);
}

static int
send_fd(int sock, int fd, struct err *err)
{
	char byte = 0;
	struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;
	ssize_t n;

	memset(&control, 0, sizeof(control));
	mh.msg_control = control.space;
	mh.msg_controllen = sizeof(control.space);
	c = CMSG_FIRSTHDR(&mh);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(int));
	do {
		n = sendmsg(sock, &mh, MSG_NOSIGNAL);
	} while (n == -1 && errno == EINTR);
	if (n != 1)
		return err_sys(err, "cannot hand a descriptor to the master");
	return 0;
}

static int
refused(const struct mux_msg *msg, struct err *err)
{
	if (strstr(msg->reason, "refused by peer") != NULL)
		return err_set(err, ERR_LIMIT,
		    "the server allows no further session on this "
		    "connection");
	return err_set(err, ERR_IO, "the OpenSSH master opened no session: %s",
	    msg->reason[0] != '\0' ? msg->reason : "no reason given");
}

int
mux_ask(struct mux *m, const char *path, const char *command, bool subsystem,
    const int fds[3], const struct until *until, struct err *err)
{
	struct buf out;
	int i, rc;

	if (mux_connect(m, path, until, err) == -1)
		return -1;
	buf_init(&out, MUX_MESSAGE_MAX + 8);
	mux_put_session(&out, 1, command, subsystem);
	rc = send_all(m, &out, until, err);
	buf_free(&out);
	for (i = 0; rc == 0 && i < 3; i++)
		rc = send_fd(m->fd, fds[i], err);
	if (rc == -1)
		mux_close(m);
	return rc;
}

int
mux_opened(struct mux *m, const struct until *until, struct err *err)
{
	struct mux_msg msg = { 0 };
	int rc = mux_read(m, &msg, until, err);

	if (rc == 0 && msg.type != MUX_SESSION_OPENED)
		rc = refused(&msg, err);
	if (rc == -1)
		mux_close(m);
	return rc;
}
