/*
 * Which paths are left alone: patterns from the defaults, from a file, from
 * the caller, and from .gitignore files.  Pure but for rules_add_file().
 *
 * What is excluded is never sent, fetched or deleted, and neither is anything
 * below it.  Paths are relative to the root.
 *
 * Patterns are those of Python's fnmatch ("*" crosses slashes).  A name is
 * tried on every name of the path, and with a slash behind it on those of
 * directories; one in front ("/name", "./name") means the first name alone.
 * Others are tried on the whole path.  The last that matches counts.  Only if
 * none does, .gitignore files are asked.  Our own staging places (".rsmcp-*")
 * are excluded always.
 */
#ifndef SYNC_RULES_H
#define SYNC_RULES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

struct rules;

/* The built-in defaults are in it: .git, .idea, .vscode, __pycache__,
 * node_modules and *.pyc at any depth. */
struct rules *rules_new(void);
void rules_free(struct rules *r);

/* A pattern as users write it; "!" in front includes again; the last that
 * matches counts.  An empty one is ignored. */
void rules_add(struct rules *r, const char *pattern);

/* One pattern a line; blank lines and "#" are skipped. */
int rules_add_file(struct rules *r, const char *path, struct err *err);

/* The text of the .gitignore in directory "dir" (relative to the root, "" is
 * the root), with git's own meaning; inner files count more than outer ones. */
void rules_add_gitignore(struct rules *r, const char *dir, const char *text,
    size_t len);

/* Is the path itself excluded?  For a walk that does not enter directories
 * for which this is true; else ask rules_cover(). */
bool rules_match(const struct rules *r, const char *path, bool is_dir);

/* Is it, or a directory above it? */
bool rules_cover(const struct rules *r, const char *path, bool is_dir);

/* Is it one of our own staging places, or below one? */
bool rules_staging(const char *path);

/*
 * For a walk elsewhere: patterns of names (literal but for "*") that are
 * excluded wherever they are, whatever other rules say.  None as soon as a "!"
 * might include something again.
 */
void rules_each_name(const struct rules *r,
    void (*each)(void *data, const char *pattern), void *data);

#endif
