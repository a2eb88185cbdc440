/*
 * A pre-started shell: a channel on a master where a remote shell already
 * waits for a command, so that running one costs a single write.
 */
#ifndef SSH_SHELL_H
#define SSH_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/capture.h"
#include "ssh/channel.h"
#include "ssh/script.h"

#define MARK_MAX 48

enum shell_tier {
	SHELL_UNKNOWN,
	SHELL_BASH,  /* one after the other, all of it verified */
	SHELL_PLAIN, /* one command, POSIX shell text, run by bash */
	SHELL_SH,    /* the same, run by sh: there is no bash */
};

/* What one stream said before the command began. */
struct shell_stream {
	struct buf seen; /* not used yet */
	bool ready;      /* the command shell's line came */
};

struct shell {
	struct channel ch;
	struct shell_stream out, err;
	enum shell_tier tier;
	bool subreaper; /* orphans come back to the waiter */
	bool clean;     /* a new bash there is as bash comes */
	bool loops;     /* it can run another command after this one */
	char token[NONCE_LEN + 1];
	char nonce[NONCE_LEN + 1];
	char mark[MARK_MAX];
	long waiter, pid; /* process ids there */
	int64_t ahead;    /* its clock less ours, in ms; too small if the ready
	                   * line was read late, never too large */
	int64_t opened;   /* our clock */
	char machine[MACHINE_MAX];
	int master;          /* on which of the link's masters */
	unsigned generation; /* of the link */
	struct shell *next;
};

/*
 * Open a channel and start the first command shell with this mark; does not
 * wait for it.  ERR_LIMIT if the master has no room.
 */
struct shell *shell_open(const char *socket, const char *mark,
    const struct until *until, struct err *err);
void shell_free(struct shell *s);

/* Wait until it is ready for a command.  ERR_IO: it will not be. */
int shell_ready(struct shell *s, const struct until *until, struct err *err);

enum shell_use {
	SHELL_ANY,    /* whatever a caller wants to run */
	SHELL_TAME,   /* known to be tame (ssh/tame.h): a text of our own */
	SHELL_STREAM, /* what is written behind it is its stdin; of one line */
};

/*
 * The bytes that make it run "command" in "cwd" (or NULL), unless they arrive
 * after "not_after", in seconds of the far side's clock.
 */
void shell_command(const struct shell *s, struct buf *out, int64_t not_after,
    const char *cwd, const char *command, enum shell_use use);

/* The line that prepares the next command: a new nonce, and this mark. */
void shell_prepare(struct shell *s, struct buf *out, const char *mark);

/* Read a ready line.  Pure; for tests: 0, 1 if not there yet, -1 if bad. */
int shell_parse_ready(struct buf *seen, const char *mark, long *pid,
    long *waiter, int64_t *time);

#endif
