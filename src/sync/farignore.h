/*
 * The .gitignore files of the far side, once its tree is listed.
 */
#ifndef SYNC_FARIGNORE_H
#define SYNC_FARIGNORE_H

#include "sync/farlist.h"

/* Add those of the tree to the rules (one round trip if there are any), and
 * drop from it what they exclude. */
int farignore_run(struct link *link, const struct far_root *root,
    struct rules *rules, struct tree *t, const struct until *until,
    struct err *err);

#endif
