/*
 * Logins that failed are not tried again at once, by none of our processes:
 * servers lock out whole networks for that.
 */
#ifndef SSH_BACKOFF_H
#define SSH_BACKOFF_H

#include <stdint.h>

#include "base/err.h"
#include "config/sandbox.h"

/*
 * The file that remembers failures of this entry.  It is another one as soon
 * as the entry logs in by other means, or its key file is another: what was
 * corrected is tried at once.  But nothing is kept of a password or passphrase,
 * so another one has to wait.  Masters are shared by more than that, see
 * sshconf_name().  Caller frees.
 */
char *backoff_path(const struct sandbox *sb, const char *runtime_dir);

/* The file "path" remembers a failure.  With the login lock held. */

/* 0 if it is time to try; else -1 and the remembered error. */
int backoff_check(const char *path, struct err *err);
void backoff_note(const char *path, const struct err *err);
void backoff_clear(const char *path);

/* An error that is remembered becomes the failure that it tells of, for who
 * writes it down: when there will be another try is of no use there. */
void backoff_cause(struct err *err);

/* How long to wait after another failure, if it was "last" before.  Pure. */
int64_t backoff_next(int64_t last_ms, enum err_code code);

#endif
