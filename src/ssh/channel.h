/*
 * A session on a master with our ends of its three streams.
 */
#ifndef SSH_CHANNEL_H
#define SSH_CHANNEL_H

#include <stdbool.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/mux.h"

struct channel {
	struct mux mux; /* brings the exit message */
	int in;         /* we write; -1: closed.  None of the three blocks. */
	int out, err;   /* we read */
};

/* Run "command" on the far side.  ERR_LIMIT if the master has no room.
 * channel_close() in both cases. */
int channel_open(struct channel *ch, const char *socket, const char *command,
    const struct until *until, struct err *err);
/* The same for a subsystem of the server, as "sftp". */
int channel_open_subsystem(struct channel *ch, const char *socket,
    const char *name, const struct until *until, struct err *err);
/* The same as the first in two steps: the second takes a round trip, in which
 * others can be asked for.  What is written meanwhile is not lost. */
int channel_ask(struct channel *ch, const char *socket, const char *command,
    const struct until *until, struct err *err);
int channel_opened(struct channel *ch, const struct until *until,
    struct err *err);
void channel_close(struct channel *ch);

/* Has the far side come to its end?  What it said last may not be read yet. */
bool channel_over(const struct channel *ch);

/* Close our end of the far side's stdin. */
void channel_close_in(struct channel *ch);

#endif
