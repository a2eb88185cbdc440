/*
 * The .gitignore file of one directory, with git's meaning.  Pure.
 */
#ifndef SYNC_GITIGNORE_H
#define SYNC_GITIGNORE_H

#include <stdbool.h>
#include <stddef.h>

struct gitignore;

struct gitignore *gitignore_new(void);
void gitignore_free(struct gitignore *g);

/* The lines of a file; they count more than those that are there already.  One
 * of more than 4096 bytes, which no path could be, is left out. */
void gitignore_add(struct gitignore *g, const char *text, size_t len);

enum gitignore_says { GITIGNORE_NOTHING, GITIGNORE_EXCLUDE, GITIGNORE_INCLUDE };

/* What the last pattern that matches says; "path" is relative to the file's
 * directory.  Directories above the path are the caller's business. */
enum gitignore_says gitignore_match(const struct gitignore *g, const char *path,
    bool is_dir);

#endif
