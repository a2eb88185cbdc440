/* Both sides of askpass: who knows the secret and who asks for it. */
#include "ssh/askpass.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "base/until.h"
#include "ssh/clean.h"

#define PROMPT_MAX 4096
#define ASK_MS 5000

struct askpass {
	struct askpass_login login;
	char *path;
	int listener;
	int stop[2]; /* pipe; its write end closed: stop */
	pthread_t thread;
	bool gave_password;
	bool gave_passphrase;
	pthread_mutex_t lock; /* guards: */
	struct askpass_refusal refusal;
};

static bool
same(char *expected, const char *prompt)
{
	bool yes = strcmp(expected, prompt) == 0;

	free(expected);
	return yes;
}

/* "(user@host) Password: ", as keyboard-interactive prompts come since 8.6.
 * What follows the brackets is up to the server; a "one-time password" is
 * not the password. */
static bool
asks_interactively(const struct askpass_login *l, const char *prompt)
{
	char *start = xasprintf("(%s@%s) ", l->user, l->host);
	bool yes = str_starts(prompt, start) &&
	    strncasecmp(prompt + strlen(start), "password", 8) == 0;

	free(start);
	return yes;
}

char
askpass_match(const struct askpass_login *l, const char *prompt)
{
	if (l->key_file != NULL &&
	    same(xasprintf("Enter passphrase for key '%.100s': ",
	             l->key_file), /* ssh cuts it there */
	        prompt))
		return 'k';
	if (same(xasprintf("%s@%s's password: ", l->user, l->host), prompt))
		return 'p';
	return asks_interactively(l, prompt) ? 'p' : 0;
}

/* What was asked in vain, for the error. */
static void
note_refusal(struct askpass *a, const char *prompt, char which, bool given)
{
	struct buf b;

	buf_init(&b, sizeof(a->refusal.prompt) - 1);
	clean_text(&b, prompt, strlen(prompt));
	pthread_mutex_lock(&a->lock);
	memcpy(a->refusal.prompt, b.data, b.len + 1);
	a->refusal.which = which;
	a->refusal.given = given;
	pthread_mutex_unlock(&a->lock);
	buf_free(&b);
}

void
askpass_refused(struct askpass *a, struct askpass_refusal *out)
{
	memset(out, 0, sizeof(*out));
	if (a == NULL)
		return;
	pthread_mutex_lock(&a->lock);
	*out = a->refusal;
	pthread_mutex_unlock(&a->lock);
}

/* The secret that this prompt gets, or NULL. */
static const struct secret *
answer_for(struct askpass *a, const char *prompt)
{
	char which = askpass_match(&a->login, prompt);
	bool *gave = which == 'p' ? &a->gave_password : &a->gave_passphrase;
	const struct secret *s =
	    which == 'p' ? a->login.password : a->login.passphrase;

	if (which != 0 && !*gave && secret_given(s)) {
		*gave = true;
		pthread_mutex_lock(&a->lock);
		a->refusal.gave_passphrase = a->gave_passphrase;
		pthread_mutex_unlock(&a->lock);
		return s;
	}
	note_refusal(a, prompt, which, which != 0 && *gave);
	return NULL;
}

/* Read until the other side has said all it wants. */
static int
read_all(int fd, struct buf *out, const struct until *until)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct err err;
	size_t room;
	char *space;
	ssize_t n;

	for (;;) {
		space = buf_space(out, 512, &room);
		if (room == 0 || until_poll(until, &p, 1, &err) == -1)
			return -1;
		n = read(fd, space, room);
		if (n == 0)
			return 0;
		if (n == -1 && errno != EINTR)
			return -1;
		if (n > 0)
			buf_grew(out, (size_t)n);
	}
}

/* A prompt comes; "+" and the secret go back, or "-": give up. */
static void
serve_one(struct askpass *a, int fd)
{
	struct until until = until_in(ASK_MS);
	const struct secret *s;
	struct buf prompt;

	until.cancel_fd = a->stop[0];
	buf_init(&prompt, PROMPT_MAX);
	if (read_all(fd, &prompt, &until) == 0 &&
	    strlen(prompt.data) == prompt.len) {
		s = answer_for(a, prompt.data);
		fs_write_all(fd, s != NULL ? "+" : "-", 1);
		if (s != NULL)
			fs_write_all(fd, s->data, s->len);
	}
	buf_free(&prompt);
}

static void *
serve(void *arg)
{
	struct askpass *a = arg;
	struct pollfd p[2] = {
		{ .fd = a->listener, .events = POLLIN },
		{ .fd = a->stop[0], .events = POLLIN },
	};
	int fd;

	for (;;) {
		if (poll(p, 2, -1) == -1 && errno != EINTR)
			break;
		if (p[1].revents != 0)
			break;
		if (p[0].revents == 0)
			continue;
		fd = fs_accept(a->listener);
		if (fd == -1)
			continue;
		serve_one(a, fd);
		close(fd);
	}
	return NULL;
}

static int
address(const char *path, struct sockaddr_un *sa, struct err *err)
{
	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(sa->sun_path))
		return err_set(err, ERR_LIMIT, "path is too long: %s", path);
	memcpy(sa->sun_path, path, strlen(path) + 1);
	return 0;
}

static int
listen_on(struct askpass *a, struct err *err)
{
	struct sockaddr_un sa;

	if (address(a->path, &sa, err) == -1)
		return -1;
	a->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->listener == -1)
		return err_sys(err, "cannot make a socket");
	/* Its directory is private as well. */
	if (bind(a->listener, (struct sockaddr *)&sa, sizeof(sa)) == -1 ||
	    chmod(a->path, 0600) == -1 || listen(a->listener, 4) == -1)
		return err_sys(err, "cannot listen on %s", a->path);
	return 0;
}

static void
askpass_free(struct askpass *a)
{
	if (a->listener != -1) {
		close(a->listener);
		unlink(a->path);
	}
	if (a->stop[0] != -1)
		close(a->stop[0]);
	if (a->stop[1] != -1)
		close(a->stop[1]);
	pthread_mutex_destroy(&a->lock);
	free(a->path);
	free(a);
}

struct askpass *
askpass_start(const char *runtime_dir, const struct askpass_login *login,
    struct err *err)
{
	struct askpass *a = xcalloc(1, sizeof(*a));
	char token[RANDOM_HEX(8)];
	int rc;

	random_hex(token, 8);
	a->login = *login;
	pthread_mutex_init(&a->lock, NULL);
	a->listener = a->stop[0] = a->stop[1] = -1;
	a->path = xasprintf("%s/ask-%s", runtime_dir, token);
	if (listen_on(a, err) == -1 || fs_pipe(a->stop, err) == -1) {
		askpass_free(a);
		return NULL;
	}
	rc = pthread_create(&a->thread, NULL, serve, a);
	if (rc != 0) {
		errno = rc;
		err_sys(err, "cannot start a thread");
		askpass_free(a);
		return NULL;
	}
	return a;
}

const char *
askpass_socket(const struct askpass *a)
{
	return a->path;
}

void
askpass_stop(struct askpass *a)
{
	if (a == NULL)
		return;
	close(a->stop[1]);
	a->stop[1] = -1;
	pthread_join(a->thread, NULL);
	askpass_free(a);
}

/* Send the prompt, read the answer. */
static int
ask(const char *path, const char *prompt, struct buf *answer)
{
	struct until until = until_in(ASK_MS);
	struct sockaddr_un sa;
	struct err err;
	int fd, rc = -1;

	if (address(path, &sa, &err) == -1)
		return -1;
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1)
		return -1;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	    fs_write_all(fd, prompt, strlen(prompt)) == 0 &&
	    shutdown(fd, SHUT_WR) == 0)
		rc = read_all(fd, answer, &until);
	close(fd);
	return rc;
}

int
askpass_helper(const char *path, const char *prompt, int out)
{
	const char *kind = getenv("SSH_ASKPASS_PROMPT");
	pid_t asker = getppid();
	struct buf answer;
	int status = 1;

	/* Only told, not asked: touch your security key. */
	if (kind != NULL && strcmp(kind, "none") == 0)
		return 0;
	buf_init(&answer, PROMPT_MAX);
	if (ask(path, prompt, &answer) == 0 && answer.data[0] == '+') {
		fs_write_all(out, answer.data + 1, answer.len - 1);
		fs_write_all(out, "\n", 1);
		status = 0;
	} else if (asker > 1 && getppid() == asker) {
		/* The ssh that asks, or it would try with nothing. */
		kill(asker, SIGTERM);
	}
	secret_wipe(answer.data, answer.cap);
	buf_free(&answer);
	return status;
}
