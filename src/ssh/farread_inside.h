/*
 * What farread.c and sftpread.c share.
 */
#ifndef SSH_FARREAD_INSIDE_H
#define SSH_FARREAD_INSIDE_H

#include "ssh/farread.h"
#include "ssh/sftp.h"

#define FARREAD_CHAR_MAX 4 /* bytes of a character in UTF-8 */

/* For farread_take(): the header, and bytes of the file. */
int sftpread_print(struct sftp *s, const struct farread_request *req,
    const char *workdir, struct buf *out, const struct until *until,
    struct err *err);

#endif
