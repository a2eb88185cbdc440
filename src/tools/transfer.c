/*
 * Starting a worker.
 *
 * The worker is this program again.  It gets the sandbox, with its secrets,
 * over a socket pair that it inherits, and tells over the same whether it
 * could begin.  It forks once more and starts a session, so nobody has to
 * wait for its end and no terminal can reach it.
 */
#include "tools/transfer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/decode.h"
#include "base/mem.h"
#include "base/self.h"
#include "base/str.h"
#include "base/utf8.h"
#include "tools/target_lock.h"
#include "tools/transfer_files.h"

#define START_MS 20000 /* until it has begun, on a busy machine */
#define ANSWER_MAX 2048
#define CHILD_FD 3
#define ABOVE 10 /* descriptors that are no standard ones, nor CHILD_FD */
#define STEP_MS 2

#ifndef POSIX_SPAWN_CLOEXEC_DEFAULT
#define POSIX_SPAWN_CLOEXEC_DEFAULT 0
#endif

extern char **environ;

void
transfer_request(const struct transfer *t, struct sync_request *req,
    json_t **keep)
{
	json_t *options, *excludes;
	struct err err;

	options = decode_json(t->options_json, strlen(t->options_json), &err);
	excludes =
	    decode_json(t->excludes_json, strlen(t->excludes_json), &err);
	memset(req, 0, sizeof(*req));
	req->direction =
	    strcmp(t->direction, TRANSFER_DOWN) == 0 ? SYNC_DOWN : SYNC_UP;
	req->local_path = t->local_path;
	req->remote_path = t->remote_path;
	req->delete_extras = t->delete_extras;
	req->confirm_delete =
	    json_is_true(json_object_get(options, "confirm_delete"));
	req->checksum = json_is_true(json_object_get(options, "checksum"));
	req->dry_run = json_is_true(json_object_get(options, "dry_run"));
	req->use_gitignore =
	    json_is_true(json_object_get(options, "use_gitignore"));
	req->exclude_file = t->exclude_file[0] != '\0' ? t->exclude_file : NULL;
	*keep = json_array();
	if (json_is_array(excludes)) {
		const json_t *item;
		json_t *list = json_array();
		size_t i;

		json_array_foreach (excludes, i, item) {
			if (decode_text(item) != NULL)
				json_array_append_new(list,
				    json_string(decode_text(item)));
		}
		json_array_append_new(*keep, list);
		req->excludes = list;
	}
	json_decref(options);
	json_decref(excludes);
}

static char *
dump(const json_t *v)
{
	char *text = json_dumps(v, 0);

	if (text == NULL)
		out_of_memory();
	return text;
}

static char *
options_text(const struct sync_request *req)
{
	json_t *o = json_object();
	char *text;

	json_object_set_new(o, "confirm_delete",
	    json_boolean(req->confirm_delete));
	json_object_set_new(o, "checksum", json_boolean(req->checksum));
	json_object_set_new(o, "dry_run", json_boolean(req->dry_run));
	json_object_set_new(o, "use_gitignore",
	    json_boolean(req->use_gitignore));
	text = dump(o);
	json_decref(o);
	return text;
}

/* The row for a request.  Local paths are made whole: the worker is in
 * another directory. */
static void
row_from(struct transfer *t, const struct sandbox *sb,
    const struct sync_request *req)
{
	memset(t, 0, sizeof(*t));
	t->direction =
	    xstrdup(req->direction == SYNC_UP ? TRANSFER_UP : TRANSFER_DOWN);
	t->sandbox_name = xstrdup(sb->name);
	t->local_path = transfer_local_path(req->local_path);
	t->remote_path = xstrdup(req->remote_path);
	t->delete_extras = req->delete_extras;
	if (req->excludes != NULL)
		t->excludes_json = dump(req->excludes);
	if (!str_blank(req->exclude_file))
		t->exclude_file = transfer_local_path(req->exclude_file);
	t->options_json = options_text(req);
}

void
transfer_pack_sandbox(struct buf *out, const struct sandbox *sb)
{
	json_t *entry = sandbox_entry(sb);
	char *text = dump(entry);
	size_t room;

	/* All the room at once: growing would leave copies behind. */
	(void)buf_space(out,
	    strlen(text) + sb->password.len + sb->key_passphrase.len + 3,
	    &room);
	buf_add(out, text, strlen(text) + 1);
	buf_add(out, secret_given(&sb->password) ? sb->password.data : "",
	    sb->password.len + 1);
	buf_add(out,
	    secret_given(&sb->key_passphrase) ? sb->key_passphrase.data : "",
	    sb->key_passphrase.len + 1);
	free(text);
	json_decref(entry);
}

/* The next text in there, or NULL. */
static const char *
next_text(const char **at, const char *end)
{
	const char *text = *at;
	const char *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul == NULL)
		return NULL;
	*at = nul + 1;
	return text;
}

int
transfer_unpack_sandbox(struct sandbox *sb, const char *data, size_t len,
    struct err *err)
{
	const char *at = data, *end = data + len;
	const char *entry_text = next_text(&at, end);
	const char *password = entry_text != NULL ? next_text(&at, end) : NULL;
	const char *phrase = password != NULL ? next_text(&at, end) : NULL;
	json_t *entry, *unknown;
	int rc;

	memset(sb, 0, sizeof(*sb));
	if (phrase == NULL || at != end)
		return err_set(err, ERR_INVALID,
		    "the sandbox did not arrive whole; start the sync again");
	entry = decode_json(entry_text, strlen(entry_text), err);
	if (entry == NULL)
		return -1;
	unknown = json_array();
	rc = sandbox_parse(sb, entry, NULL, unknown, err);
	if (rc == 0) {
		if (password[0] != '\0')
			secret_set(&sb->password, password, strlen(password));
		if (phrase[0] != '\0')
			secret_set(&sb->key_passphrase, phrase, strlen(phrase));
		sb->source = xstrdup("transfer");
	}
	json_decref(unknown);
	json_decref(entry);
	return rc;
}

/* Our environment without what may hold a secret.  The strings are ours. */
static char **
clean_environment(void)
{
	static const char *const secrets[] = { "REMOTE_SANDBOX_LIST=",
		"REMOTE_PASSWORD=", "REMOTE_KEY_PASSPHRASE=", NULL };
	size_t n = 0, kept = 0, i, k;
	char **env;

	while (environ[n] != NULL)
		n++;
	env = xcalloc(n + 1, sizeof(*env));
	for (i = 0; i < n; i++) {
		for (k = 0; secrets[k] != NULL; k++) {
			if (str_starts(environ[i], secrets[k]))
				break;
		}
		if (secrets[k] == NULL)
			env[kept++] = environ[i];
	}
	return env;
}

static int
spawn_files(posix_spawn_file_actions_t *files, int log_fd, int sock)
{
	int failed = posix_spawn_file_actions_init(files);

	failed |= posix_spawn_file_actions_addopen(files, 0, "/dev/null",
	    O_RDONLY, 0);
	failed |= posix_spawn_file_actions_adddup2(files, log_fd, 1);
	failed |= posix_spawn_file_actions_adddup2(files, log_fd, 2);
	failed |= posix_spawn_file_actions_adddup2(files, sock, CHILD_FD);
	return failed;
}

static void
spawn_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	if (posix_spawnattr_init(attr) != 0)
		out_of_memory();
	posix_spawnattr_setpgroup(attr, 0);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr,
	    POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
	        POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_CLOEXEC_DEFAULT);
}

/* Start the program; both descriptors are above CHILD_FD. */
static pid_t
spawn(int64_t id, int log_fd, int sock, struct err *err)
{
	char *program = self_path();
	char number[32];
	const char *argv[] = { "remote-sandbox-mcp", "transfer-worker",
		"--task-id", number, "--fd", "3", NULL };
	char **env = clean_environment();
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	pid_t pid = -1;

	snprintf(number, sizeof(number), "%" PRId64, id);
	if (spawn_files(&files, log_fd, sock) != 0)
		out_of_memory();
	spawn_attributes(&attr);
	if (program == NULL)
		err_set(err, ERR_NOT_FOUND,
		    "cannot find our own program to start a worker");
	else {
		errno = posix_spawn(&pid, program, &files, &attr,
		    (char *const *)argv, env);
		if (errno != 0) {
			pid = -1;
			err_sys(err, "cannot start a worker");
		}
	}
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	free(env);
	free(program);
	return pid;
}

/* It forks at once and ends: this is only the first half of it. */
static void
reap(pid_t pid, const struct until *until)
{
	struct until step;
	struct err err;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (until_check(until, &err) == -1) {
			kill(pid, SIGKILL);
			(void)waitpid(pid, &status, 0);
			return;
		}
		step = until_within(until, STEP_MS);
		until_poll(&step, NULL, 0, &err);
	}
}

/* Read until the other end closes, or a newline. */
static int
read_answer(int fd, struct buf *out, const struct until *until, struct err *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char chunk[512];
	ssize_t n;

	while (strchr(out->data, '\n') == NULL && !out->full) {
		if (until_poll(until, &p, 1, err) == -1)
			return -1;
		n = read(fd, chunk, sizeof(chunk));
		if (n == 0 || (n == -1 && errno != EINTR && errno != EAGAIN))
			break;
		if (n > 0)
			buf_add(out, chunk, (size_t)n);
	}
	return 0;
}

/* "ok PID" or "no SENTENCE". */
static int
take_answer(int fd, const char *log_file, int64_t *pid,
    const struct until *until, struct err *err)
{
	struct buf b;
	int rc = -1;

	buf_init(&b, ANSWER_MAX);
	if (read_answer(fd, &b, until, err) == -1) {
		err_wrap(err, "waiting for the worker");
	} else {
		b.data[strcspn(b.data, "\n")] = '\0';
		if (str_starts(b.data, "ok ") &&
		    str_to_int(b.data + 3, 1, INT32_MAX, pid) == 0)
			rc = 0;
		else if (str_starts(b.data, "no "))
			err_set(err, ERR_IO, "%s", b.data + 3);
		else
			err_set(err, ERR_IO,
			    "the worker ended before it began; see %s",
			    log_file);
	}
	buf_free(&b);
	return rc;
}

static int
send_sandbox(int fd, const struct sandbox *sb, struct err *err)
{
	struct timeval patience = { .tv_sec = START_MS / 1000 };
	struct buf b;
	int rc;

	/* It takes it at once, or something is very wrong. */
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	buf_init(&b, SIZE_MAX);
	transfer_pack_sandbox(&b, sb);
	rc = send(fd, b.data, b.len, MSG_NOSIGNAL) == (ssize_t)b.len ? 0 : -1;
	secret_wipe(b.data, b.cap);
	buf_free(&b);
	if (rc == -1)
		return err_sys(err, "cannot talk to the worker");
	shutdown(fd, SHUT_WR);
	return 0;
}

/* Both ends above the numbers that the child has plans for. */
static int
make_pair(int pair[2], struct err *err)
{
	int low[2], i;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, low) == -1)
		return err_sys(err, "cannot make a pair of sockets");
	for (i = 0; i < 2; i++) {
		pair[i] = fcntl(low[i], F_DUPFD_CLOEXEC, ABOVE);
		close(low[i]);
	}
	if (pair[0] != -1 && pair[1] != -1)
		return 0;
	err_sys(err, "cannot make a pair of sockets");
	for (i = 0; i < 2; i++) {
		if (pair[i] != -1)
			close(pair[i]);
	}
	return -1;
}

/* With the row and the log in place. */
static int
launch(const struct transfer *t, const struct sandbox *sb, int log_fd,
    int64_t *pid, const struct until *until, struct err *err)
{
	int pair[2] = { -1, -1 }, rc = -1;
	pid_t first;

	if (make_pair(pair, err) == -1)
		return -1;
	first = spawn(t->id, log_fd, pair[1], err);
	close(pair[1]);
	if (first != -1) {
		reap(first, until);
		/* A worker that cannot begin says why, and may not listen. */
		rc = send_sandbox(pair[0], sb, err);
		if (rc == 0 || errno == EPIPE)
			rc = take_answer(pair[0], t->log_file, pid, until, err);
	}
	close(pair[0]);
	return rc;
}

static int
prepare_log(struct transfer *t, const struct until *until, struct err *err)
{
	int low, fd;

	t->log_file = transfer_file_of(t->id, "log", err);
	if (t->log_file == NULL)
		return -1;
	low = transfer_log_open(t, t->log_file, err);
	if (low == -1)
		return -1;
	fd = fcntl(low, F_DUPFD_CLOEXEC, ABOVE);
	close(low);
	if (fd == -1)
		return err_sys(err, "cannot open the log %s", t->log_file);
	if (transfers_set_log(t->id, t->log_file, "{\"phase\": \"queued\"}",
	        until, err) == -1) {
		close(fd);
		return -1;
	}
	return fd;
}

static int
begin(struct transfer *t, const struct sandbox *sb, int64_t *pid,
    const struct until *until, struct err *err)
{
	struct transfer_end end = { .status = TRANSFER_FAILED,
		.progress_json = "{\"phase\": \"failed\"}" };
	struct err ignored;
	int fd = prepare_log(t, until, err);
	int rc = -1;

	if (fd != -1) {
		rc = launch(t, sb, fd, pid, until, err);
		close(fd);
	}
	if (rc == -1) {
		end.last_error = err->msg;
		(void)transfers_end(t->id, &end, until, &ignored);
	}
	return rc;
}

int
transfer_start(struct app *app, const struct sandbox *sb,
    const struct sync_request *req, json_t **result, struct err *err)
{
	struct until until = until_in(START_MS);
	struct transfer t;
	int64_t pid = 0;
	int rc;

	(void)app;
	if (target_check(sb, req, err) == -1)
		return -1;
	row_from(&t, sb, req);
	rc = transfers_create(&t, &until, err);
	if (rc == 0)
		rc = begin(&t, sb, &pid, &until, err);
	if (rc == 0) {
		*result = json_object();
		json_object_set_new(*result, "mode", json_string("background"));
		json_object_set_new(*result, "task_id", json_integer(t.id));
		json_object_set_new(*result, "status",
		    json_string(TRANSFER_RUNNING));
		json_object_set_new(*result, "pid", json_integer(pid));
		json_object_set_new(*result, "log_file",
		    utf8_json(t.log_file, strlen(t.log_file)));
	}
	transfer_free(&t);
	return rc;
}
