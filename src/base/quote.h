/* Words for a shell. */
#ifndef BASE_QUOTE_H
#define BASE_QUOTE_H

#include "base/buf.h"

/*
 * Append "word" so that any POSIX shell reads it as this one word: unchanged
 * if every byte is harmless, else in single quotes.
 */
void quote_sh(struct buf *out, const char *word);

/*
 * The same for a path on the machine of that shell: "~" and "~/x" become what
 * is below its $HOME ("~user" is a name like any other), and a relative one
 * begins with "./", so that no program takes it for an option.
 */
void quote_path(struct buf *out, const char *path);

#endif
