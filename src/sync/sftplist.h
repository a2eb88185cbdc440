/*
 * The far side's tree by SFTP, for hosts that allow nothing else.
 *
 * What comes out are the texts that the command of farlist.c would have
 * printed, so that one reader takes both, with the same suspicion.
 */
#ifndef SYNC_SFTPLIST_H
#define SYNC_SFTPLIST_H

#include "sync/farlist.h"

typedef bool sftplist_take(void *data, const char *bytes, size_t len);

/* If "take" returns false it ends early, which is no failure. */
int sftplist_run(struct link *link, const char *path,
    const struct farlist_options *o, sftplist_take *take, void *data,
    const struct until *until, struct err *err);

/* "root" and "path", joined; the caller frees it. */
char *sftplist_join(const char *root, const char *path);

#endif
