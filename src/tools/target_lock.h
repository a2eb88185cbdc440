/*
 * One sync at a time for one target: the remote path of a sandbox, or a local
 * path.
 */
#ifndef TOOLS_TARGET_LOCK_H
#define TOOLS_TARGET_LOCK_H

#include "base/err.h"
#include "base/until.h"
#include "config/sandbox.h"
#include "sync/sync.h"

struct target_lock {
	char *path;
	int fd;
};

/*
 * Take the target of this request; ERR_DENIED says who has it.  "who" is what
 * others are told: "transfer task 7".  It is given back at the end of the
 * process at the latest.
 */
int target_take(struct target_lock *lock, const struct sandbox *sb,
    const struct sync_request *req, const char *who, const struct until *until,
    struct err *err);
void target_give(struct target_lock *lock);

/* Fails as target_take() would, and takes nothing. */
int target_check(const struct sandbox *sb, const struct sync_request *req,
    struct err *err);

#endif
