/* Running commands. */
#include "ssh/exec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define READ_SIZE ((size_t)64 << 10)
#define PROGRESS_MS 500

/* How long a command may be on its way.  Less than what it takes to notice
 * that a link is frozen: once we have said that it is lost, it must not run. */
#define TRAVEL_MS 10000
#define SLOWEST_BYTES_MS 20 /* a link of 20 kB a second */

/* A reply comes within two seconds after deadline and grace: this long to know
 * that all is gone and to get the last output, which may take so much of it.  A
 * host that answers, and is so busy that it takes longer, gets more time. */
#define END_MS 1900
#define DRAIN_MS 1000
#define BUSY_MS 8000

/* A command under way. */
struct run {
	const struct exec_request *req;
	struct exec_result *res;
	struct link *link;
	struct shell *shell;
	char mark[MARK_MAX]; /* of this command; the shell's is the next */
	long waiter, pid;
	struct buf input; /* what still has to be written */
	size_t sent;
	struct capture out, err;
	bool out_open, err_open;
	bool not_sent; /* not a byte of it left us */
	bool kids;     /* the waiter has children left and takes no more */
	bool stopping; /* it was told to end */
	int64_t began;
	int64_t heard; /* of stdout, the last time */
	int64_t told;  /* progress */
};

void
exec_result_free(struct exec_result *res)
{
	buf_free(&res->out);
	buf_free(&res->err);
	buf_free(&res->survivors);
	free(res->out_file);
	free(res->err_file);
	memset(res, 0, sizeof(*res));
}

/* The latest second of the far side's clock at which it may begin.  That
 * clock was told in whole seconds, hence two more. */
static int64_t
not_after(const struct run *r, size_t len)
{
	int64_t travel = TRAVEL_MS + (int64_t)len / SLOWEST_BYTES_MS;

	if (travel > r->req->timeout_ms)
		travel = r->req->timeout_ms;
	return (link_far_clock(r->link) + travel) / 1000 + 2;
}

/* The command, and in the same write what prepares the next one. */
static void
make_input(struct run *r)
{
	struct shell *s = r->shell;
	char mark[MARK_MAX];

	buf_init(&r->input, SIZE_MAX);
	shell_command(s, &r->input, not_after(r, strlen(r->req->command)),
	    r->req->cwd, r->req->command,
	    r->req->tame ? SHELL_TAME : SHELL_ANY);
	if (s->loops) {
		link_mark(r->link, mark);
		shell_prepare(s, &r->input, mark);
	}
}

/* Write what fits.  If the channel is gone, its end will show. */
static void
write_some(struct run *r)
{
	struct shell *s = r->shell;
	ssize_t n;

	n = write(s->ch.in, r->input.data + r->sent, r->input.len - r->sent);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n == -1) {
		r->not_sent = r->sent == 0;
		r->sent = r->input.len;
		return;
	}
	r->sent += (size_t)n;
	/* A plain shell's command ends where its stdin does. */
	if (r->sent == r->input.len && !s->loops)
		channel_close_in(&s->ch);
}

/* What came before the end of the last command belongs to this one. */
static void
read_stream(struct capture *c, struct shell_stream *st, int fd, bool *open)
{
	char chunk[READ_SIZE];
	ssize_t n = read(fd, chunk, sizeof(chunk));
	size_t used;

	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EINTR))
		*open = false;
	if (n <= 0)
		return;
	used = capture_add(c, chunk, (size_t)n);
	buf_add(&st->seen, chunk + used, (size_t)n - used);
}

static bool
both_ended(const struct run *r)
{
	return r->out.ended && r->err.ended;
}

static bool
over(const struct run *r)
{
	return (r->out.ended || !r->out_open) && (r->err.ended || !r->err_open);
}

static void
tell_progress(struct run *r)
{
	int64_t now = clock_ms();
	struct buf line;

	if (r->req->progress == NULL || now < r->told + PROGRESS_MS)
		return;
	r->told = now;
	buf_init(&line, 2048);
	capture_last_line(&r->out, &line);
	if (line.len == 0)
		capture_last_line(&r->err, &line);
	r->req->progress(r->req->data, now - r->began, line.data);
	buf_free(&line);
}

/* Why it is not waited for any longer, though the until has not ended:
 * ERR_LIMIT is that its output is refused. */
static int
check_patience(struct run *r, struct err *err)
{
	int64_t ms = r->req->silence_ms;

	if (r->stopping)
		return 0;
	if (r->out.refused)
		return err_set(err, ERR_LIMIT, "its output is refused");
	if (ms == 0 || r->out.ended || clock_ms() < r->heard + ms)
		return 0;
	r->res->silent = true;
	return err_set(err, ERR_TIMEOUT, "it says nothing");
}

/*
 * Write, read, until both streams have their trailer or are gone.  -1 if the
 * until ended first, or the patience.
 */
static int
attend(struct run *r, const struct until *until, struct err *err)
{
	enum { IN, OUT, ERR, COUNT };
	struct shell *s = r->shell;
	struct pollfd p[COUNT];

	while (!over(r)) {
		struct until slice = until_within(until, PROGRESS_MS);
		bool writing = r->sent < r->input.len && s->ch.in != -1;

		p[IN] = (struct pollfd){ writing ? s->ch.in : -1, POLLOUT, 0 };
		p[OUT] = (struct pollfd){
			r->out_open && !r->out.ended ? s->ch.out : -1, POLLIN, 0
		};
		p[ERR] = (struct pollfd){
			r->err_open && !r->err.ended ? s->ch.err : -1, POLLIN, 0
		};
		if (until_poll(&slice, p, COUNT, err) == -1) {
			if (err->code != ERR_TIMEOUT ||
			    until_check(until, err) == -1 ||
			    check_patience(r, err) == -1)
				return -1;
			tell_progress(r);
			continue;
		}
		if (p[IN].revents != 0)
			write_some(r);
		if (p[OUT].revents != 0) {
			read_stream(&r->out, &s->out, s->ch.out, &r->out_open);
			r->heard = clock_ms();
		}
		if (p[ERR].revents != 0)
			read_stream(&r->err, &s->err, s->ch.err, &r->err_open);
		tell_progress(r);
		if (!over(r) && check_patience(r, err) == -1)
			return -1;
	}
	return 0;
}

/* End all processes of the command, by way of the link's lease. */
static void
kill_command(struct run *r, const struct until *until)
{
	struct lease_kill kill = {
		.mark = r->mark,
		.waiter = r->waiter,
		.shell = r->pid,
		.grace_ms = r->req->grace_ms,
		.busy_ms = BUSY_MS,
	};
	struct err err;

	r->res->verified = VERIFIED_NO;
	if (link_end(r->link, r->shell, &kill, &r->res->survivors, until,
	        &err) == -1 ||
	    r->res->survivors.len > 0)
		return;
	r->res->verified =
	    r->shell->subreaper ? VERIFIED_YES : VERIFIED_BY_MARKER;
}

/* It is to go on no longer: make an end of the command, keep what it printed.
 */
static void
stop_command(struct run *r, enum err_code why)
{
	struct until end = until_in(r->req->grace_ms + (int64_t)END_MS);
	struct until drain;
	struct err err;
	int ms;

	r->stopping = true;
	r->res->timed_out = why == ERR_TIMEOUT;
	r->res->cancelled = why == ERR_CANCELLED;
	r->res->refused = why == ERR_LIMIT;
	kill_command(r, &end);
	ms = r->res->verified == VERIFIED_NO ? 0 : DRAIN_MS;
	drain =
	    clock_ms() < end.deadline ? until_within(&end, ms) : until_in(ms);
	attend(r, &drain, &err);
	r->res->state =
	    r->res->verified == VERIFIED_NO ? EXEC_MAY_BE_RUNNING : EXEC_KILLED;
}

/* A plain shell says on its stdout, with the mark, why it did not begin. */
static void
plain_flag(const struct run *r, struct trailer *t)
{
	const char *text = r->out.head.data;
	size_t n = strlen(r->mark);

	if (strncmp(text, r->mark, n) != 0)
		return;
	if (strcmp(text + n, " cwd\n") == 0)
		snprintf(t->flag, sizeof(t->flag), "cwd");
	else if (strcmp(text + n, " stale\n") == 0)
		snprintf(t->flag, sizeof(t->flag), "stale");
}

/* It is over, or it is not: this host is not to be believed. */
static void
read_nonsense(struct run *r)
{
	struct exec_result *res = r->res;

	if (r->stopping)
		return;
	res->state = EXEC_MAY_BE_RUNNING;
	res->connection_error = true;
	r->kids = true; /* the shell is not used again */
	snprintf(res->problem, sizeof(res->problem),
	    "what %s reports of the end of the command makes no sense; it may "
	    "still be running",
	    link_sandbox(r->link)->name);
}

static int
no_directory(const struct run *r, struct err *err)
{
	const struct sandbox *sb = link_sandbox(r->link);
	bool usual =
	    sb->workdir != NULL && strcmp(r->req->cwd, sb->workdir) == 0;

	return err_set(err, ERR_NOT_FOUND,
	    "the directory '%.300s' (%s) does not exist on %s, or may not be "
	    "entered; the command was not run. Make it there (mkdir -p, "
	    "in exec_bash with cwd '~'), or %s",
	    r->req->cwd, usual ? "workdir" : "cwd", sb->name,
	    usual ? "correct \"workdir\" of its entry" : "give another cwd");
}

/* Both trailers are there: how did it end? */
static int
read_end(struct run *r, struct err *err)
{
	struct exec_result *res = r->res;
	struct trailer t;

	if (r->out.bad || trailer_parse(r->out.trailer.data, &t) == -1) {
		read_nonsense(r);
		return 0;
	}
	if (r->shell->tier != SHELL_BASH && t.status == 1)
		plain_flag(r, &t);
	if (strcmp(t.flag, "cwd") == 0)
		return no_directory(r, err);
	if (strcmp(t.flag, "stale") == 0)
		return err_set(err, ERR_TIMEOUT,
		    "the command reached %s too late and was not run",
		    link_sandbox(r->link)->name);
	res->exit_code = t.status;
	r->kids = t.count > 0;
	if (strcmp(t.flag, "sig") == 0 && t.status > 128)
		res->signal = t.status - 128;
	if (r->stopping)
		return 0; /* what it left was ended */
	memcpy(res->background, t.pids, sizeof(t.pids));
	res->background_count = t.count;
	/* Without a subreaper they may be there and not be seen. */
	if (t.count > 0 || !r->shell->subreaper)
		link_release(r->link, r->shell, r->mark, r->waiter);
	return 0;
}

/* No trailer: the link broke, or somebody killed the far side's waiter. */
static void
read_loss(struct run *r)
{
	r->res->state = EXEC_MAY_BE_RUNNING;
	r->res->connection_error = true;
	r->res->exit_code = -1;
	link_lost(r->link, r->shell);
	snprintf(r->res->problem, sizeof(r->res->problem),
	    "the connection to %s was lost while the command ran; it may "
	    "still be running",
	    link_sandbox(r->link)->name);
}

static char *
file_of(const struct capture *c)
{
	return c->file_fd != -1 ? xstrdup(c->file) : NULL;
}

static void
collect(struct run *r)
{
	struct exec_result *res = r->res;
	size_t max = r->req->max_chars;

	res->duration_ms = clock_ms() - r->began;
	res->out_total = r->out.total;
	res->err_total = r->err.total;
	buf_init(&res->out, SIZE_MAX);
	buf_init(&res->err, SIZE_MAX);
	res->out_left = capture_text(&r->out, &res->out, max);
	res->err_left = capture_text(&r->err, &res->err, max);
	res->out_file = file_of(&r->out);
	res->err_file = file_of(&r->err);
	res->out_missing = capture_missing(&r->out);
	res->err_missing = capture_missing(&r->err);
	res->no_bash = r->shell->tier == SHELL_SH;
}

/* Output is kept in bytes; a character has up to four, colours add more. */
static void
init_captures(struct run *r)
{
	size_t keep = r->req->max_chars * 4 + 4096;

	capture_init(&r->out, r->shell->nonce, keep, NULL, EXEC_FILE_MAX);
	capture_init(&r->err, r->shell->nonce, keep, NULL, EXEC_FILE_MAX);
	if (r->req->keep_file) {
		r->out.stream = "stdout";
		r->err.stream = "stderr";
	}
	r->out.sink = r->req->sink;
	r->out.sink_data = r->req->sink_data;
	r->out_open = r->err_open = true;
}

/* Run on r->shell, which is given back. */
static int
run_on(struct run *r, const struct until *until, struct err *err)
{
	struct until limit = until_within(until, r->req->timeout_ms);
	struct shell *s = r->shell;
	int rc = 0;

	if (s->tier != SHELL_BASH && r->req->cwd != NULL &&
	    strchr(r->req->cwd, '\n') != NULL) {
		link_give(r->link, s, true);
		return err_set(err, ERR_INVALID,
		    "a directory (cwd) with a newline in its name needs bash "
		    "on the host");
	}
	memset(r->res, 0, sizeof(*r->res));
	buf_init(&r->res->survivors, 4096);
	r->res->exit_code = -1;
	snprintf(r->mark, sizeof(r->mark), "%s", s->mark);
	r->waiter = s->waiter;
	r->pid = s->pid;
	init_captures(r);
	s->out.ready = s->err.ready = false;
	make_input(r);
	r->began = r->told = r->heard = clock_ms();
	write_some(r);
	if (attend(r, &limit, err) == -1)
		stop_command(r, err->code);
	if (both_ended(r))
		rc = read_end(r, err);
	else if (!r->stopping)
		read_loss(r);
	if (rc == 0)
		collect(r);
	else
		buf_free(&r->res->survivors);
	if (both_ended(r))
		link_proven(r->link);
	link_give(r->link, s,
	    both_ended(r) && s->loops && !r->kids && !r->stopping &&
	        r->sent == r->input.len);
	capture_free(&r->out);
	capture_free(&r->err);
	buf_free(&r->input);
	return rc;
}

int
exec_run(struct link *link, const struct exec_request *req,
    struct exec_result *res, const struct until *until, struct err *err)
{
	struct run r;
	int tries, rc = -1;

	/* What never left may be sent once more; nothing else ever is. */
	for (tries = 0; tries < 2; tries++) {
		r = (struct run){ .req = req, .res = res, .link = link };
		r.shell = link_take(link, tries > 0, until, err);
		if (r.shell == NULL)
			return -1;
		rc = run_on(&r, until, err);
		if (!r.not_sent)
			return rc;
		exec_result_free(res);
	}
	return err_set(err, ERR_IO,
	    "the connection to %s broke before the command could be sent; it "
	    "was not run",
	    link_sandbox(link)->name);
}
