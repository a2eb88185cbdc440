/* A small HTTP server on the loopback address, in a thread. */
#ifndef UNIT_HTTPD_H
#define UNIT_HTTPD_H

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>

#include "help.h"

struct httpd {
	int listener, port;
	pthread_t thread;
	pthread_mutex_t lock;
	const char *reply; /* whole, with its head; NULL: never answer */
	char *last;        /* the last request, whole */
	char *shown;       /* what httpd_last() gave */
	int count;         /* of requests */
};

/* Has it all that its head announces? */
static inline bool
httpd_whole(const struct buf *b)
{
	const char *end = strstr(b->data, "\r\n\r\n");
	const char *length = strcasestr(b->data, "\r\nContent-Length:");

	if (end == NULL)
		return false;
	return length == NULL ||
	    b->len >=
	    (size_t)(end + 4 - b->data) + strtoul(length + 17, NULL, 10);
}

static inline void
httpd_serve(struct httpd *h, int fd)
{
	struct buf b;
	char chunk[4096];
	char *reply;
	ssize_t n;

	buf_init(&b, 1 << 22);
	while (!httpd_whole(&b) && (n = read(fd, chunk, sizeof(chunk))) > 0)
		buf_add(&b, chunk, (size_t)n);
	pthread_mutex_lock(&h->lock);
	free(h->last);
	h->last = buf_take(&b);
	h->count++;
	reply = h->reply != NULL ? xstrdup(h->reply) : NULL;
	pthread_mutex_unlock(&h->lock);
	if (reply != NULL)
		(void)fs_write_all(fd, reply, strlen(reply));
	else
		while (read(fd, chunk, sizeof(chunk)) > 0)
			;
	free(reply);
	close(fd);
}

static inline void *
httpd_run(void *arg)
{
	struct httpd *h = arg;
	int fd;

	while ((fd = accept(h->listener, NULL, NULL)) != -1) {
		httpd_serve(h, fd);
	}
	return NULL;
}

static inline void
httpd_start(struct httpd *h, const char *reply)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);

	memset(h, 0, sizeof(*h));
	h->reply = reply;
	pthread_mutex_init(&h->lock, NULL);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	h->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(h->listener, (struct sockaddr *)&sa, sizeof(sa)),
	    0);
	assert_int_equal(listen(h->listener, 64), 0);
	assert_int_equal(getsockname(h->listener, (struct sockaddr *)&sa, &len),
	    0);
	h->port = ntohs(sa.sin_port);
	assert_int_equal(pthread_create(&h->thread, NULL, httpd_run, h), 0);
}

static inline void
httpd_stop(struct httpd *h)
{
	shutdown(h->listener, SHUT_RDWR);
	pthread_join(h->thread, NULL);
	close(h->listener);
	pthread_mutex_destroy(&h->lock);
	free(h->last);
	free(h->shown);
}

static inline int
httpd_count(struct httpd *h)
{
	int n;

	pthread_mutex_lock(&h->lock);
	n = h->count;
	pthread_mutex_unlock(&h->lock);
	return n;
}

/* The last request; good until this is asked again. */
static inline const char *
httpd_last(struct httpd *h)
{
	free(h->shown);
	pthread_mutex_lock(&h->lock);
	h->shown = xstrdup(h->last != NULL ? h->last : "");
	pthread_mutex_unlock(&h->lock);
	return h->shown;
}

static inline void
httpd_reply(struct httpd *h, const char *reply)
{
	pthread_mutex_lock(&h->lock);
	h->reply = reply;
	pthread_mutex_unlock(&h->lock);
}

#define HTTPD_OK \
	"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

#endif
