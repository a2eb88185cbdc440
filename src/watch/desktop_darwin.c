/* Notifications by osascript. */
#include "watch/desktop.h"

#include <stddef.h>

#include "base/proc.h"

/* The texts are arguments of the script, not part of it.  The first of them
 * begins with no dash, and behind it none is an option. */
int
desktop_notify(const char *subtitle, const char *message,
    const struct until *until, struct err *err)
{
	const char *const argv[] = { "/usr/bin/osascript", "-e", "on run argv",
		"-e",
		"display notification (item 3 of argv) with title "
		"(item 1 of argv) subtitle (item 2 of argv)",
		"-e", "end run", DESKTOP_TITLE, subtitle, message, NULL };
	struct proc_request req = { .argv = argv, .max_output = 4096 };
	struct proc_result res;
	int rc = 0;

	if (proc_run(&req, &res, until, err) == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "osascript could not notify: %.200s",
		    res.err.data);
	proc_result_free(&res);
	return rc;
}
