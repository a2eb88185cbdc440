/*
 * The protocol of an OpenSSH master's control socket (version 4), as far as
 * it is needed: is it alive, open a session on three descriptors, stop.
 *
 * mux_put_* and mux_get_* are the codec: pure, bytes in and out.  The others
 * talk to a socket, each within an until.
 */
#ifndef SSH_MUX_H
#define SSH_MUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"

enum mux_type {
	MUX_HELLO = 0x00000001,
	MUX_NEW_SESSION = 0x10000002,
	MUX_ALIVE_CHECK = 0x10000004,
	MUX_TERMINATE = 0x10000005,
	MUX_STOP_LISTENING = 0x10000009,
	MUX_OK = 0x80000001,
	MUX_DENIED = 0x80000002,
	MUX_FAILURE = 0x80000003,
	MUX_EXIT = 0x80000004,
	MUX_ALIVE = 0x80000005,
	MUX_SESSION_OPENED = 0x80000006,
	MUX_TTY_ALLOC_FAIL = 0x80000008,
};

/* No message we use is longer; a longer one is not from a master. */
#define MUX_MESSAGE_MAX ((size_t)256 << 10)

/* A message from the master. */
struct mux_msg {
	uint32_t type;
	uint32_t id;      /* of the request it answers, or of the session */
	uint32_t value;   /* hello: version; alive: pid; opened: session;
	                   * exit: status */
	char reason[256]; /* failure and denied: why */
};

/* Append a whole message. */
void mux_put_hello(struct buf *out);
void mux_put_simple(struct buf *out, uint32_t type, uint32_t request);
void mux_put_session(struct buf *out, uint32_t request, const char *command,
    bool subsystem);

/*
 * Take one message from the front of "len" bytes.  Returns how many bytes it
 * had, 0 if it is not whole yet, -1 if this is not the protocol.
 */
ssize_t mux_get(const char *data, size_t len, struct mux_msg *msg);

/* A connection to a master. */
struct mux {
	int fd;        /* -1: none */
	struct buf in; /* received, not taken yet */
};

/*
 * Connect and say hello.  ERR_NOT_FOUND if nobody listens there (no such
 * socket, or a stale one).
 */
int mux_connect(struct mux *m, const char *path, const struct until *until,
    struct err *err);
void mux_close(struct mux *m);

/* The next message; ERR_IO if the master closed the connection. */
int mux_read(struct mux *m, struct mux_msg *msg, const struct until *until,
    struct err *err);

/* Is a master there, and which process is it? */
int mux_alive(const char *path, pid_t *pid, const struct until *until,
    struct err *err);

/* Tell the master to listen no more (its sessions live on), or to end. */
int mux_tell(const char *path, enum mux_type what, const struct until *until,
    struct err *err);

/*
 * Ask for a session that runs "command" (or the server's subsystem of that
 * name) on the three descriptors, which stay the caller's to close; and wait
 * until it is open.  On success the connection stays open: it brings the exit
 * message.  ERR_LIMIT if the server refuses another session on this connection;
 * the master lives on then.
 */
int mux_ask(struct mux *m, const char *path, const char *command,
    bool subsystem, const int fds[3], const struct until *until,
    struct err *err);
int mux_opened(struct mux *m, const struct until *until, struct err *err);

#endif
