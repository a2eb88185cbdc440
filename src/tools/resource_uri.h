/*
 * Names of what can be read as a resource:
 *
 *   sandbox://NAME/jobs            all jobs of a sandbox
 *   sandbox://NAME/jobs/JOB        one of them
 *   sandbox://NAME/jobs/JOB/log    the end of its log
 *   sandbox://NAME/transfers/ID    a background sync
 *
 * Bytes other than letters, digits and "-._~" are written as %XX.
 */
#ifndef TOOLS_RESOURCE_URI_H
#define TOOLS_RESOURCE_URI_H

#include <stdint.h>

#include "base/err.h"

#define RESOURCE_URI_MAX 2048

enum resource_kind {
	RESOURCE_JOBS,
	RESOURCE_JOB,
	RESOURCE_LOG,
	RESOURCE_TRANSFER,
};

struct resource_uri {
	enum resource_kind kind;
	char *sandbox;
	char *job;  /* of RESOURCE_JOB and RESOURCE_LOG, else NULL */
	int64_t id; /* of RESOURCE_TRANSFER */
};

/* ERR_NOT_FOUND if it names nothing of the kind.  resource_uri_free() it in
 * every case. */
int resource_uri_parse(const char *uri, struct resource_uri *u,
    struct err *err);
void resource_uri_free(struct resource_uri *u);

/* The way back; the caller frees it. */
char *resource_uri_text(const struct resource_uri *u);

#endif
