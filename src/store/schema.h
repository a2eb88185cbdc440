/* The tables, and how they came to be what they are. */
#ifndef STORE_SCHEMA_H
#define STORE_SCHEMA_H

#include "base/err.h"
#include "store/db.h"

/*
 * Bring the database to the form of this version.  One that was made by the
 * earlier Python server has no number and goes on with all its rows.
 */
int schema_migrate(struct db *db, struct err *err);

#endif
