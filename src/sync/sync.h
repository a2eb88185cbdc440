/*
 * Making a tree or a file on one side like the one on the other.
 */
#ifndef SYNC_SYNC_H
#define SYNC_SYNC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/until.h"
#include "ssh/link.h"

enum sync_direction { SYNC_UP, SYNC_DOWN };

struct sync_request {
	enum sync_direction direction;
	const char *local_path;
	const char *remote_path;
	bool delete_extras;
	bool confirm_delete;
	bool checksum;
	bool dry_run;
	bool use_gitignore;
	const json_t *excludes; /* array of strings, or NULL */
	const char *exclude_file;
	/* More than this is not done but reported as "too_large"; 0: any. */
	int64_t max_files, max_bytes;
};

/* How far it is; all counters of this run. */
struct sync_progress {
	const char *phase; /* connecting, scanning, uploading, downloading,
	                    * committing, deleting, complete */
	const char *path;  /* or "" */
	int64_t files_done, files_total;
	int64_t bytes_done, bytes_total;
	int64_t problems;
	int64_t elapsed_ms;
};

struct sync_report {
	bool is_file; /* a single file was synced */
	bool too_large;
	int64_t dirs;    /* made (or to be made) */
	int64_t files;   /* brought */
	int64_t links;   /* of these files, symbolic links */
	int64_t skipped; /* as they should be already */
	int64_t deleted_files, deleted_dirs;
	int64_t bytes;
	int64_t duration_ms;
	char *local_path, *remote_path; /* absolute */
	json_t *problems;               /* array of {path, problem}, capped */
	int64_t problem_count;
	int64_t specials; /* of these, devices, sockets and FIFOs */
	json_t *outside;  /* links that lead out of the tree: their paths */
	json_t *plan;     /* dry_run: first entries */
};

/*
 * Do it.  -1 if it could not be done as a whole; *report is filled as far as
 * it got in both cases.  sync_report_free() it always.
 */
int sync_run(struct link *link, const struct sync_request *req,
    void (*progress)(void *data, const struct sync_progress *p), void *data,
    struct sync_report *report, const struct until *until, struct err *err);
void sync_report_free(struct sync_report *r);

/* The report as the fields of a result. */
json_t *sync_report_json(const struct sync_report *r,
    const struct sync_request *req);

#endif
