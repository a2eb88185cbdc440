/*
 * Starting the run that a resume asks for.
 */
#ifndef WATCH_RESUME_H
#define WATCH_RESUME_H

#include "base/until.h"
#include "ssh/link.h"
#include "store/watches.h"
#include "watch/step.h"

/*
 * Start attempt w->resume_pending, which must have been stored before.  Its
 * key is made from the watch and the attempt: whoever repeats it, because it
 * was killed or got no answer, finds the first run.  "o" says what came of it;
 * its error is in "err".
 */
void watch_resume(struct link *link, const struct watch *w,
    struct observation *o, struct err *err, const struct until *until);

#endif
