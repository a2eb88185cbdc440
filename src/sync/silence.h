/*
 * How long a host may say nothing during a sync before it is given up.
 *
 * A link that is dead is noticed sooner, by itself; this is for a host whose
 * programs hang, or pretend to work.
 */
#ifndef SYNC_SILENCE_H
#define SYNC_SILENCE_H

#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"
#include "ssh/stream.h"

/* REMOTE_SANDBOX_SYNC_SILENCE_S, or the default. */
int64_t silence_ms(void);

/* stream_open() and link_sftp(), with that much patience. */
struct stream *silence_stream(struct link *link, const char *script,
    const struct until *until, struct err *err);
struct sftp *silence_sftp(struct link *link, const struct until *until,
    struct err *err);

#endif
