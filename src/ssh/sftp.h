/*
 * A session of SFTP on a master: for hosts that allow nothing else.
 *
 * Requests are sent without waiting; the reply to each goes to a function of
 * the caller's, from within sftp_turn().  So a thousand small files need not
 * take a thousand round trips.  One thread per session.
 */
#ifndef SSH_SFTP_H
#define SSH_SFTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/until.h"
#include "ssh/sftpwire.h"

struct sftp;

/* What a server can do beyond the protocol. */
enum sftp_extra {
	SFTP_POSIX_RENAME = 1, /* over what is there */
	SFTP_STATVFS = 2,
	SFTP_LSETSTAT = 4, /* of a link itself */
};

/* Bytes of content in one request: every server takes so many. */
#define SFTP_CHUNK ((size_t)32 << 10)

/* Open a session; it has answered when this returns.  ERR_LIMIT if the master
 * has no room. */
struct sftp *sftp_open(const char *socket, const struct until *until,
    struct err *err);
/* Give it up (ERR_TIMEOUT) when it neither takes requests nor answers them for
 * so long; 0, as it is at first: never. */
void sftp_patience(struct sftp *s, int64_t ms);
/* Replies that are still to come are handed out as failures first. */
void sftp_free(struct sftp *s);
bool sftp_can(const struct sftp *s, enum sftp_extra what);

/* Takes a reply, which lives until it returns.  Every request gets one: when
 * the session breaks, a failure (SFTP_CONNECTION_LOST), before the sftp_turn()
 * that found out returns.  May ask for more, but not wait. */
typedef void sftp_done(void *data, const struct sftp_packet *reply);

/* A request: fill in its body between these two. */
struct buf *sftp_begin(struct sftp *s, enum sftp_type type);
void sftp_end(struct sftp *s, sftp_done *done, void *data);

/* The usual ones.  Those of sftp_path() have a path and nothing else, those of
 * sftp_handle() a handle. */
void sftp_path(struct sftp *s, enum sftp_type type, const char *path,
    sftp_done *done, void *data);
void sftp_handle(struct sftp *s, enum sftp_type type, const struct buf *handle,
    sftp_done *done, void *data);
void sftp_open_file(struct sftp *s, const char *path, uint32_t flags,
    sftp_done *done, void *data);
/* Over whatever is there but a directory, as far as the server can. */
void sftp_rename(struct sftp *s, const char *from, const char *to,
    sftp_done *done, void *data);

/* May more be sent before some of it has left and been answered? */
bool sftp_room(const struct sftp *s);
/* Replies that are to come. */
size_t sftp_pending(const struct sftp *s);

/* Send and receive what can be; waits until there is something.  -1: the
 * connection was lost, or the until ended; the session is broken then. */
int sftp_turn(struct sftp *s, const struct until *until, struct err *err);
/* Give up: all who wait get their failure now. */
void sftp_break(struct sftp *s);
bool sftp_broken(const struct sftp *s);
/* The same, and wait until the server is at its end as well: until then it goes
 * on with what it has been asked. */
void sftp_finish(struct sftp *s, const struct until *until);
/* Until all replies came. */
int sftp_drain(struct sftp *s, const struct until *until, struct err *err);

/* The code of a status; SFTP_FAILURE if it is none. */
uint32_t sftp_code_of(const struct sftp_packet *reply);
/* What a reply that is no success means: ERR_NOT_FOUND, ERR_DENIED or ERR_IO,
 * and the reason alone as text. */
int sftp_why(const struct sftp_packet *reply, struct err *err);
/* Says that what came is not the protocol. */
int sftp_no_sense(struct err *err);
/* The handle of a reply to OPEN or OPENDIR; -1 if it is none. */
int sftp_take_handle(const struct sftp_packet *reply, struct buf *out,
    struct err *err);

/*
 * The rest waits (sftpone.c): one request, or a few, and their replies.
 */
int sftp_stat(struct sftp *s, enum sftp_type type, const char *path,
    struct sftp_attrs *a, const struct until *until, struct err *err);
/* One that has only success as its reply. */
int sftp_do(struct sftp *s, enum sftp_type type, const char *path,
    const struct until *until, struct err *err);
/* Open a file; the handle is the caller's to free. */
int sftp_open_wait(struct sftp *s, const char *path, uint32_t flags,
    struct buf *handle, const struct until *until, struct err *err);
/* Frees the handle, too; does not wait. */
void sftp_close(struct sftp *s, struct buf *handle);
/* The first "max" bytes of a file. */
int sftp_get(struct sftp *s, const char *path, size_t max, struct buf *out,
    const struct until *until, struct err *err);
/* The absolute path; the caller frees it. */
char *sftp_realpath(struct sftp *s, const char *path, const struct until *until,
    struct err *err);
/* Free bytes for us where the path is; -1 if nobody knows. */
int64_t sftp_free_bytes(struct sftp *s, const char *path,
    const struct until *until);

/*
 * Some of a file that is open: up to "len" bytes from "at" on, fewer only at
 * its end.  Returns how many were added to "out", or -1.
 */
int64_t sftp_read(struct sftp *s, const struct buf *handle, int64_t at,
    size_t len, struct buf *out, const struct until *until, struct err *err);

/*
 * The path as the server needs it: "~" is the login directory, and what is
 * relative is so to "workdir" (or NULL).  The caller frees it.
 */
char *sftp_absolute(struct sftp *s, const char *path, const char *workdir,
    const struct until *until, struct err *err);

#endif
