/*
 * The local side of a tree: who is there.
 */
#ifndef SYNC_SCAN_H
#define SYNC_SCAN_H

#include "base/err.h"
#include "base/until.h"
#include "sync/rules.h"
#include "sync/tree.h"

struct scan_options {
	struct rules *rules; /* NULL: none, and no defaults either */
	bool gitignore;      /* add the .gitignore files found to the rules */
	/* For what cannot be read; the scan goes on. */
	void (*problem)(void *data, const char *path, const char *why);
	void *problem_data;
};

/*
 * Everything below the directory "root_fd" that is not excluded, sorted.
 * Never follows a link.  What is excluded is not entered.  Fails only if the
 * root cannot be read, there is far too much, or the until ends; *out is empty
 * then.
 */
int scan_local(int root_fd, const struct scan_options *o, struct tree *out,
    const struct until *until, struct err *err);

#endif
