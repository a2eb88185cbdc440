/*
 * Signals as bytes in a pipe, so that they are one more thing to poll.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "cli/command.h"

static int signal_pipe[2] = { -1, -1 };

static void
on_signal(int sig)
{
	int saved = errno;

	(void)sig;
	/* A full pipe already holds the news. */
	(void)!write(signal_pipe[1], "s", 1);
	errno = saved;
}

int
cli_signal_fd(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa, old;
	struct err err;
	size_t i;

	if (fs_pipe(signal_pipe, &err) == -1) {
		log_error("%s", err.msg);
		exit(EXIT_FAILED);
	}
	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = on_signal;
	sa.sa_flags = SA_RESTART;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		/* nohup, or a shell's "&". */
		if (sigaction(signals[i], NULL, &old) == 0 &&
		    old.sa_handler == SIG_IGN)
			continue;
		sigaction(signals[i], &sa, NULL);
	}
	return signal_pipe[0];
}
