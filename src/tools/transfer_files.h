/*
 * The files of transfers, in the directory "transfers" of the state
 * directory: a log each, and locks while they run.
 */
#ifndef TOOLS_TRANSFER_FILES_H
#define TOOLS_TRANSFER_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/ident.h"
#include "store/transfers.h"

/* The path of a file there; the directory is made if need be.  Caller
 * frees. */
char *transfer_file(const char *name, struct err *err);

/* "transfer-ID.end".  Caller frees. */
char *transfer_file_of(int64_t id, const char *end, struct err *err);

/* A local path as the caller meant it: "~" and the current directory are
 * filled in, a slash at the end stays.  Caller frees. */
char *transfer_local_path(const char *path);

/* Make the log with its head; a descriptor to append to. */
int transfer_log_open(const struct transfer *t, const char *path,
    struct err *err);

/* The last lines of a log, as text; "" if there is none. */
void transfer_log_tail(const char *path, int64_t lines, size_t chars,
    struct buf *out);

/*
 * The worker of a transfer, if there is one alive.  who->pid is 0 while it
 * begins and has not said who it is.
 */
bool transfer_worker(const struct transfer *t, struct ident *who);

/* What a worker writes into its lock, for the function above. */
void transfer_lock_text(const struct ident *who, char *out, size_t size);

#endif
