/* Sessions with pipes. */
#include "ssh/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "base/fs.h"

static void
close_fd(int *fd)
{
	if (*fd != -1)
		close(*fd);
	*fd = -1;
}

void
channel_close_in(struct channel *ch)
{
	close_fd(&ch->in);
}

void
channel_close(struct channel *ch)
{
	close_fd(&ch->in);
	close_fd(&ch->out);
	close_fd(&ch->err);
	mux_close(&ch->mux);
}

/* theirs[i] goes to the master. */
static int
make_pipes(struct channel *ch, int theirs[3], struct err *err)
{
	int *ours[3] = { &ch->in, &ch->out, &ch->err };
	int fds[2], i;

	for (i = 0; i < 3; i++) {
		int near_end = i == 0 ? 1 : 0;

		if (fs_pipe(fds, err) == -1)
			return -1;
		*ours[i] = fds[near_end];
		theirs[i] = fds[1 - near_end];
		if (fcntl(*ours[i], F_SETFL, O_NONBLOCK) == -1)
			return err_sys(err, "cannot set up a pipe");
	}
	return 0;
}

static int
ask_session(struct channel *ch, const char *socket, const char *command,
    bool subsystem, const struct until *until, struct err *err)
{
	int theirs[3] = { -1, -1, -1 }, i, rc;

	ch->mux.fd = ch->in = ch->out = ch->err = -1;
	buf_init(&ch->mux.in, 0);
	rc = make_pipes(ch, theirs, err);
	if (rc == 0)
		rc = mux_ask(&ch->mux, socket, command, subsystem, theirs,
		    until, err);
	for (i = 0; i < 3; i++)
		close_fd(&theirs[i]);
	return rc;
}

int
channel_ask(struct channel *ch, const char *socket, const char *command,
    const struct until *until, struct err *err)
{
	return ask_session(ch, socket, command, false, until, err);
}

int
channel_opened(struct channel *ch, const struct until *until, struct err *err)
{
	return mux_opened(&ch->mux, until, err);
}

int
channel_open(struct channel *ch, const char *socket, const char *command,
    const struct until *until, struct err *err)
{
	return channel_ask(ch, socket, command, until, err) == 0
	    ? channel_opened(ch, until, err)
	    : -1;
}

int
channel_open_subsystem(struct channel *ch, const char *socket, const char *name,
    const struct until *until, struct err *err)
{
	return ask_session(ch, socket, name, true, until, err) == 0
	    ? channel_opened(ch, until, err)
	    : -1;
}

bool
channel_over(const struct channel *ch)
{
	struct pollfd p = { .fd = ch->out };

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLHUP | POLLERR)) != 0;
}
