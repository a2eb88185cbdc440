/*
 * Output of a remote program as text for a reader: valid UTF-8 without
 * terminal control sequences.  Pure.
 */
#ifndef SSH_CLEAN_H
#define SSH_CLEAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/*
 * Append "data" to "out": escape sequences (CSI, OSC and the other strings)
 * and control characters vanish, a line's end of CR LF is LF, a CR alone
 * starts a new line, bytes that are not UTF-8 become U+FFFD.  What is cut off
 * in the middle of a sequence vanishes too.  Is all there, but for colours and
 * the like?
 */
bool clean_text(struct buf *out, const char *data, size_t len);

#endif
