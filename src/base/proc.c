/*
 * That a program ended is told by a descriptor where the system has such a
 * thing, and else learned by asking, after each round of poll(), which takes
 * SLICE_MAX ms at most.  Its pipes cannot tell, because a child it left behind
 * may hold them open, and SIGCHLD belongs to the whole process.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/ident.h"
#include "base/mem.h"
#include "base/proc.h"

#define CHUNK 16384
#define SLICE_MAX 50

/* On macOS children inherit only what they are given.  Elsewhere close-on-exec
 * is set from birth and does the same. */
#ifndef POSIX_SPAWN_CLOEXEC_DEFAULT
#define POSIX_SPAWN_CLOEXEC_DEFAULT 0
#endif

extern char **environ;

/* Also the numbers of the descriptors in the program. */
enum { IN, OUT, ERR, STREAMS };

struct run {
	pid_t pid;
	int end_fd;          /* can be read when it has ended; -1: ask */
	int status;          /* as waitpid() gave it */
	int ours[STREAMS];   /* our ends of its pipes; -1: closed */
	int theirs[STREAMS]; /* its ends, open until it is started */
	const char *input;   /* what it has not yet been given */
	size_t input_len;
	struct proc_result res;
};

static void
close_one(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

static void
close_all(int fds[STREAMS])
{
	int i;

	for (i = 0; i < STREAMS; i++)
		close_one(&fds[i]);
}

static int
open_pipe(struct run *run, int which, struct err *err)
{
	int their_end = which == IN ? 0 : 1;
	int fds[2];

	if (fs_pipe(fds, err) == -1)
		return -1;
	run->theirs[which] = fds[their_end];
	run->ours[which] = fds[1 - their_end];
	if (fcntl(run->ours[which], F_SETFL, O_NONBLOCK) == -1)
		return err_sys(err, "cannot set up a pipe");
	return 0;
}

static int
open_pipes(struct run *run, struct err *err)
{
	if (run->input_len > 0 && open_pipe(run, IN, err) == -1)
		return -1;
	if (open_pipe(run, OUT, err) == -1)
		return -1;
	return open_pipe(run, ERR, err);
}

/* A group of its own, and none of the signal settings that we have made. */
static void
set_attributes(posix_spawnattr_t *attr, bool session)
{
	short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
	    POSIX_SPAWN_CLOEXEC_DEFAULT;
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	sigdelset(&all, SIGKILL);
	sigdelset(&all, SIGSTOP);
	if (posix_spawnattr_init(attr) != 0)
		out_of_memory();
	flags |= session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP;
	posix_spawnattr_setpgroup(attr, 0);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setflags(attr, flags);
}

/* Pipes are above 2, as fs_std_fds() saw to it that 0 to 2 are open. */
static void
set_files(posix_spawn_file_actions_t *files, const int theirs[STREAMS])
{
	int failed = posix_spawn_file_actions_init(files);

	if (theirs[IN] == -1)
		failed |= posix_spawn_file_actions_addopen(files, IN,
		    "/dev/null", O_RDONLY, 0);
	else
		failed |=
		    posix_spawn_file_actions_adddup2(files, theirs[IN], IN);
	failed |= posix_spawn_file_actions_adddup2(files, theirs[OUT], OUT);
	failed |= posix_spawn_file_actions_adddup2(files, theirs[ERR], ERR);
	if (failed)
		out_of_memory();
}

static int
start(struct run *run, const struct proc_request *req, struct err *err)
{
	char *const *argv = (char *const *)req->argv;
	char *const *env = req->env ? (char *const *)req->env : environ;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;

	if (open_pipes(run, err) == -1)
		return err_wrap(err, "cannot start %s", argv[0]);
	set_attributes(&attr, req->session);
	set_files(&files, run->theirs);
	errno = posix_spawnp(&run->pid, argv[0], &files, &attr, argv, env);
	if (errno != 0) {
		run->pid = -1;
		err_sys(err, "cannot start %s", argv[0]);
	} else {
		run->end_fd = ident_end_fd(run->pid);
	}
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	close_all(run->theirs);
	return run->pid == -1 ? -1 : 0;
}

/* write() to a pipe that may have no reader, without the signal for that: it
 * is kept from this thread and, if it came, taken away again. */
static ssize_t
write_quietly(int fd, const void *data, size_t len)
{
	sigset_t sigpipe, before, pending;
	bool was_pending;
	ssize_t n;
	int saved, taken;

	sigemptyset(&sigpipe);
	sigaddset(&sigpipe, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
	sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE);
	n = write(fd, data, len);
	saved = errno;
	sigpending(&pending);
	if (!was_pending && sigismember(&pending, SIGPIPE))
		sigwait(&sigpipe, &taken);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	errno = saved;
	return n;
}

static bool
try_again(void)
{
	return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

/* A program need not read all of its input: failing to write it is no error. */
static void
give_input(struct run *run)
{
	ssize_t n = write_quietly(run->ours[IN], run->input, run->input_len);

	if (n > 0) {
		run->input += n;
		run->input_len -= (size_t)n;
	}
	if (run->input_len == 0 || (n == -1 && !try_again()))
		close_one(&run->ours[IN]);
}

/* Returns how much there was, at most "max". */
static size_t
take_output(int *fd, struct buf *out, size_t max)
{
	char chunk[CHUNK];
	ssize_t n = read(*fd, chunk, max < CHUNK ? max : CHUNK);

	if (n > 0) {
		buf_add(out, chunk, (size_t)n);
		return (size_t)n;
	}
	if (n == 0 || !try_again())
		close_one(fd);
	return 0;
}

/* Take what is in the pipe, but not what a child left behind adds to it
 * meanwhile, or this might never end. */
static void
take_rest(int *fd, struct buf *out)
{
	int left = 0;
	size_t n;

	if (*fd == -1 || ioctl(*fd, FIONREAD, &left) == -1)
		return;
	for (; left > 0; left -= (int)n) {
		n = take_output(fd, out, (size_t)left);
		if (n == 0)
			return;
	}
}

/*
 * Wait until a pipe is ready, for "slice" ms at most, and serve it.  Returns 1
 * if one was, 0 if none, -1 if the until ended.
 */
static int
serve(struct run *run, int slice, const struct until *until, struct err *err)
{
	struct until soon = until_within(until, slice);
	struct pollfd fds[STREAMS + 1] = {
		{ .fd = run->ours[IN], .events = POLLOUT },
		{ .fd = run->ours[OUT], .events = POLLIN },
		{ .fd = run->ours[ERR], .events = POLLIN },
		{ .fd = run->end_fd, .events = POLLIN },
	};
	struct err why;

	if (until_poll(&soon, fds, STREAMS + 1, &why) == -1) {
		if (why.code == ERR_TIMEOUT)
			return until_check(until, err);
		*err = why;
		return -1;
	}
	if (fds[IN].revents != 0)
		give_input(run);
	if (fds[OUT].revents != 0)
		take_output(&run->ours[OUT], &run->res.out, CHUNK);
	if (fds[ERR].revents != 0)
		take_output(&run->ours[ERR], &run->res.err, CHUNK);
	return 1;
}

static void
kill_group(struct run *run, struct err *err)
{
	if (kill(-run->pid, SIGKILL) == -1 && errno == EPERM) {
		/* It became another user: waiting might never end. */
		err_wrap(err, "cannot kill it");
		return;
	}
	while (waitpid(run->pid, &run->status, 0) == -1 && errno == EINTR)
		;
}

static void
take_all_rest(struct run *run)
{
	take_rest(&run->ours[OUT], &run->res.out);
	take_rest(&run->ours[ERR], &run->res.err);
}

/* Serve the program until it ends; if the until does before, kill it. */
static int
attend(struct run *run, const struct until *until, struct err *err)
{
	int slice = 1;
	pid_t ended;

	while ((ended = waitpid(run->pid, &run->status, WNOHANG)) == 0) {
		int served = serve(run, slice, until, err);

		if (served == -1) {
			kill_group(run, err);
			take_all_rest(run);
			return -1;
		}
		/* Short after it said something or closed its output: it may
		 * be about to end. */
		slice = served ? 1 : slice * 2;
		if (slice > SLICE_MAX)
			slice = SLICE_MAX;
	}
	if (ended == -1)
		return err_sys(err, "cannot learn how it ended");
	take_all_rest(run);
	return 0;
}

static int
run_it(struct run *run, const struct proc_request *req,
    const struct until *until, struct err *err)
{
	if (until_check(until, err) == -1)
		return err_wrap(err, "cannot start %s", req->argv[0]);
	if (start(run, req, err) == -1)
		return -1;
	if (attend(run, until, err) == -1)
		return err_wrap(err, "running %s", req->argv[0]);
	return 0;
}

int
proc_run(const struct proc_request *req, struct proc_result *res,
    const struct until *until, struct err *err)
{
	struct run run = {
		.ours = { -1, -1, -1 },
		.theirs = { -1, -1, -1 },
		.end_fd = -1,
		.input = req->input,
		.input_len = req->input != NULL ? req->input_len : 0,
	};
	int ret;

	assert(req->argv[0] != NULL);
	buf_init(&run.res.out, req->max_output);
	buf_init(&run.res.err, req->max_output);
	ret = run_it(&run, req, until, err);
	close_all(run.theirs);
	close_all(run.ours);
	close_one(&run.end_fd);
	if (ret == -1) {
		if (req->partial)
			*res = run.res;
		else
			proc_result_free(&run.res);
		return -1;
	}
	if (WIFEXITED(run.status)) {
		run.res.exit_code = WEXITSTATUS(run.status);
	} else {
		run.res.exit_code = -1;
		run.res.signal = WTERMSIG(run.status);
	}
	*res = run.res;
	return 0;
}

void
proc_result_free(struct proc_result *res)
{
	if (res == NULL)
		return;
	buf_free(&res->out);
	buf_free(&res->err);
}
