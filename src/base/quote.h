/* Words for a shell. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include "base/buf.h"

/*
 * Append "word" so that any POSIX shell reads it as this one word: unchanged
 * if every byte is harmless, else in single quotes.
 */
void quote_sh(struct buf *out, const char *word);

#endif
