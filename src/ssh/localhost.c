/*
 * The private sshd.
 *
 * It runs below a small shell (local.sh) that waits for the end of its stdin, a
 * pipe from us: however we end, the shell notices and ends the sshd, and what
 * was left running there, as background jobs are: their records go as well.
 */
#include "ssh/localhost.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/self.h"
#include "ssh/localhost_inside.h"

#define KEYGEN_MS 10000
#define STEP_MS 20

struct localhost {
	char *dir;
	int port;
	pid_t pid;
	int lifeline; /* our end of the shell's stdin */
	json_t *entry;
};

char *
localhost_key(const char *dir)
{
	return xasprintf("%s/user_key", dir);
}

static const char *
sshd_program(void)
{
	static const char *const places[] = { "/usr/sbin/sshd",
		"/usr/local/sbin/sshd", "/opt/homebrew/sbin/sshd",
		"/usr/bin/sshd", NULL };
	size_t i;

	for (i = 0; places[i] != NULL; i++) {
		if (access(places[i], X_OK) == 0)
			return places[i];
	}
	return NULL;
}

static int
make_key(const char *path, const struct until *until, struct err *err)
{
	const char *const argv[] = { "ssh-keygen", "-q", "-t", "ed25519", "-N",
		"", "-C", "remote-sandbox-mcp", "-f", path, NULL };
	struct proc_request req = { .argv = argv, .max_output = 4096 };
	struct until soon = until_within(until, KEYGEN_MS);
	struct proc_result res;
	int rc = 0;

	if (proc_run(&req, &res, &soon, err) == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "ssh-keygen failed: %.200s",
		    res.err.data);
	proc_result_free(&res);
	return rc;
}

/* A port that is free now. */
static int
free_port(struct err *err)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	int port = -1;

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd != -1 && bind(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
	    getsockname(fd, (struct sockaddr *)&sa, &len) == 0)
		port = ntohs(sa.sin_port);
	else
		err_sys(err, "cannot find a free port");
	if (fd != -1)
		close(fd);
	return port;
}

static int
write_config(struct localhost *l, struct err *err)
{
	char *path = xasprintf("%s/sshd_config", l->dir);
	struct buf b;
	int rc;

	buf_init(&b, 4096);
	buf_addf(&b,
	    "ListenAddress 127.0.0.1:%d\nHostKey %s/host_key\n"
	    "AuthorizedKeysFile %s/user_key.pub\nPidFile none\n"
	    "UsePAM no\nStrictModes no\nPasswordAuthentication no\n"
	    "KbdInteractiveAuthentication no\nPermitRootLogin yes\n"
	    "PrintMotd no\nSubsystem sftp internal-sftp\n"
	    /* A home of its own: the user's rc files stay out of it.  And a
	     * tmux of its own, which ends with it: the user's does not. */
	    "SetEnv HOME=%s TMUX_TMPDIR=%s\n",
	    l->port, l->dir, l->dir, l->dir, l->dir);
	rc = fs_replace(path, b.data, b.len, 0600, err);
	buf_free(&b);
	free(path);
	return rc;
}

/* Descriptors of the shell. */
enum { CHILD_IN, CHILD_OUT };

/* In the child: the shell, in a session of its own, as some clients end the
 * server with its whole group. */
static void
become_shell(int in, const char *const *argv)
{
	int out = open("/dev/null", O_WRONLY);

	if (setsid() == -1 || dup2(in, CHILD_IN) == -1 ||
	    dup2(out, CHILD_OUT) == -1)
		_exit(127);
	self_adopt();
	execvp(argv[0], (char *const *)(uintptr_t)argv);
	_exit(127);
}

static int
spawn_sshd(struct localhost *l, const char *sshd, const char *program,
    struct err *err)
{
	const char *argv[] = { "sh", "-c", localhost_text_local, sshd, l->dir,
		program != NULL ? program : "", NULL };
	int fds[2], rc = 0;

	if (fs_pipe(fds, err) == -1)
		return -1;
	l->pid = fork();
	if (l->pid == 0)
		become_shell(fds[0], argv);
	if (l->pid == -1) {
		rc = err_sys(err, "cannot start a shell");
		close(fds[1]);
	} else {
		l->lifeline = fds[1];
	}
	close(fds[0]);
	return rc;
}

static bool
answers(int port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool yes;

	sa.sin_port = htons((uint16_t)port);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	yes = fd != -1 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0;
	if (fd != -1)
		close(fd);
	return yes;
}

/* The last thing sshd wrote to its log, if it does not come up. */
static int
not_up(struct localhost *l, struct err *err)
{
	char *path = xasprintf("%s/log", l->dir);
	struct buf log;
	struct err ignored;

	buf_init(&log, 65536);
	fs_read(path, &log, &ignored);
	free(path);
	err_set(err, ERR_IO, "the private sshd does not come up: %.300s",
	    log.len > 0 ? log.data : "it said nothing");
	buf_free(&log);
	return -1;
}

static int
wait_up(struct localhost *l, const struct until *until, struct err *err)
{
	struct until limit = until_within(until, KEYGEN_MS);

	while (!answers(l->port)) {
		struct until step = until_within(&limit, STEP_MS);
		struct err why;

		until_poll(&step, NULL, 0, &why);
		if (until_check(&limit, &why) == -1)
			return not_up(l, err);
	}
	return 0;
}

static json_t *
make_entry(const struct localhost *l)
{
	const struct passwd *pw = getpwuid(geteuid());
	json_t *o = json_object();
	char *key_file;

	json_object_set_new(o, "name", json_string("local"));
	json_object_set_new(o, "host", json_string("127.0.0.1"));
	json_object_set_new(o, "port", json_integer(l->port));
	if (pw != NULL)
		json_object_set_new(o, "user", json_string(pw->pw_name));
	key_file = localhost_key(l->dir);
	json_object_set_new(o, "key_file", json_string(key_file));
	free(key_file);
	json_object_set_new(o, "workdir", json_string(l->dir));
	json_object_set_new(o, "control_persist_s", json_integer(1));
	return o;
}

/* The host key is ours, so it can be pinned. */
static int
pin_host_key(struct localhost *l, struct err *err)
{
	char *path = xasprintf("%s/host_key.pub", l->dir);
	struct buf key;
	int rc;

	buf_init(&key, 4096);
	rc = fs_read(path, &key, err);
	free(path);
	if (rc == 0)
		json_object_set_new(l->entry, "host_key",
		    json_stringn(key.data, strcspn(key.data, "\r\n")));
	buf_free(&key);
	return rc;
}

static int
set_up(struct localhost *l, const char *program, const struct until *until,
    struct err *err)
{
	const char *sshd = sshd_program();
	char *host_key = xasprintf("%s/host_key", l->dir);
	char *user_key = localhost_key(l->dir);
	int rc = -1;

	if (sshd == NULL)
		err_set(err, ERR_NOT_FOUND,
		    "there is no sshd program; install the OpenSSH server");
	else if (make_key(host_key, until, err) == 0 &&
	    make_key(user_key, until, err) == 0)
		rc = 0;
	free(host_key);
	free(user_key);
	if (rc == -1)
		return -1;
	/* Where sshd separates privileges; only root can and needs to. */
	if (geteuid() == 0)
		mkdir("/run/sshd", 0755);
	l->port = free_port(err);
	if (l->port == -1 || write_config(l, err) == -1 ||
	    spawn_sshd(l, sshd, program, err) == -1 ||
	    wait_up(l, until, err) == -1)
		return -1;
	l->entry = make_entry(l);
	return pin_host_key(l, err);
}

struct localhost *
localhost_start(const char *program, const struct until *until, struct err *err)
{
	struct localhost *l = xcalloc(1, sizeof(*l));

	l->lifeline = -1;
	l->pid = -1;
	l->dir = xstrdup("/tmp/rsmcp-local-XXXXXX");
	if (mkdtemp(l->dir) == NULL) {
		err_sys(err, "cannot make a directory in /tmp");
		free(l->dir);
		free(l);
		return NULL;
	}
	if (set_up(l, program, until, err) == 0)
		return l;
	localhost_stop(l);
	return NULL;
}

static void
remove_dir(const char *dir)
{
	static const char *const names[] = { "host_key", "host_key.pub",
		"user_key", "user_key.pub", "sshd_config", "log", NULL };
	char *path;
	size_t i;

	for (i = 0; names[i] != NULL; i++) {
		path = xasprintf("%s/%s", dir, names[i]);
		unlink(path);
		free(path);
	}
	rmdir(dir);
}

void
localhost_stop(struct localhost *l)
{
	if (l == NULL)
		return;
	if (l->lifeline != -1)
		close(l->lifeline);
	while (l->pid != -1 && waitpid(l->pid, NULL, 0) == -1 && errno == EINTR)
		;
	remove_dir(l->dir);
	json_decref(l->entry);
	free(l->dir);
	free(l);
}

const json_t *
localhost_entry(const struct localhost *l)
{
	return l->entry;
}
