/*
 * What runs on the far side: the texts that our shells are made of.
 *
 * A channel is opened with the same short command everywhere, which any login
 * shell understands; everything else is sent on its stdin.  docs/far-side.md
 * tells how the parts play together.
 */
#ifndef SSH_SCRIPT_H
#define SSH_SCRIPT_H

#include "base/buf.h"

/* The command of every channel: read one line and do what it says. */
extern const char script_boot[];

/*
 * The line for a channel that runs commands.  It answers with "TOKEN tier
 * reaper clean machine children" and then takes "NONCE MARK again" lines.
 */
void script_shell(struct buf *out, const char *token, const char *mark);

/* What the far side says to tell machines apart: one word, cut off there. */
#define MACHINE_MAX 120

/* The header of a command has this many bytes, for bash; elsewhere it is a
 * line. */
#define SCRIPT_HEADER 64

/* Text that ends processes, and text that names what it left; script.c tells
 * what variables they go by. */
extern const char script_kill[];
extern const char script_left[];

/* The line for the lease of a link: ends single commands when told, and all
 * when we are gone for "silence_s" seconds. */
void script_lease(struct buf *out, const char *token, const char *link_id,
    int silence_s);

#endif
