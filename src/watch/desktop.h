/* A notification on the desktop of this machine; a file per platform. */
#ifndef WATCH_DESKTOP_H
#define WATCH_DESKTOP_H

#include "base/err.h"
#include "base/until.h"

#define DESKTOP_TITLE "Remote Sandbox Watchdog"

/* Plain texts in UTF-8 of one line each; they are shown, never run or read as
 * markup.  ERR_NOT_FOUND if this machine has no program for it, or no desktop
 * session. */
int desktop_notify(const char *subtitle, const char *message,
    const struct until *until, struct err *err);

#endif
