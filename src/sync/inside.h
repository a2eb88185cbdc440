/*
 * A sync under way, as its parts share it.
 */
#ifndef SYNC_INSIDE_H
#define SYNC_INSIDE_H

#include <pthread.h>

#include "sync/farlist.h"
#include "sync/plan.h"
#include "sync/rules.h"
#include "sync/sync.h"
#include "sync/tree.h"

/* Files of this size travel in pieces, on several channels where that helps,
 * and go on where they were after a break. */
#define BIG_FILE ((int64_t)16 << 20)
#define STREAMS_MAX 8

/* After a stream broke: how long the reason may take to come. */
#define LAST_WORDS_MS 5000

#define PART_NAME_MAX 40
#define PART_FILE_LEN 16 /* of it: the file, without its version */

struct left_over {
	char *path;
	int64_t size;
	int64_t mtime; /* seconds, of the far side's clock */
	bool swept;
	struct left_over *next;
};

struct run {
	struct link *link;
	const struct sync_request *req;
	struct sync_report *report;
	const struct until *until;
	struct rules *rules;
	struct tree local, remote;
	struct far_root far; /* its path is the root of the tree there */
	int root_fd;         /* the local root */
	struct plan plan;
	/* A single file: its name where it comes from, and the local directory
	 * that is the root; or NULL. */
	char *source_name, *local_dir;
	/* For a host that allows SFTP alone, while the plan is done; or NULL.
	 */
	struct sftp *sftp;
	/* What interrupted runs left on the far side. */
	struct left_over *left_overs;
	size_t left_over_count;

	void (*progress)(void *data, const struct sync_progress *p);
	void *data;
	int64_t began;
	pthread_mutex_t lock; /* guards "now" and the report's problems */
	struct sync_progress now;
};

/* Tell how far it is: a phase and a path (or NULL), and how much was done
 * since the last time. */
void run_tell(struct run *r, const char *phase, const char *path, int64_t files,
    int64_t bytes);
/* Note a problem with one entry; "data" is the run. */
void run_problem(void *data, const char *path, const char *why);

/* Check the request; look at both ends, so that the trees and the far root are
 * known. */
int aim_check(struct run *r, struct err *err);
int aim_up(struct run *r, struct err *err);
int aim_down(struct run *r, struct err *err);

/* May the plan be done? */
int guard_delete(struct run *r, struct err *err);
int guard_space(struct run *r, struct err *err);

/* Put the plan into the report, as what would be done. */
void report_plan(struct run *r);

/* Do the plan. */
int upload(struct run *r, struct err *err);
int download(struct run *r, struct err *err);

/* The same by SFTP; r->sftp is open. */
int sftp_upload(struct run *r, struct err *err);
/* All files of the plan that are not big. */
int sftp_bring_small(struct run *r, struct err *err);
/* A range of an open far file into a local one.  ERR_INVALID: it is not there
 * any more. */
int sftp_fetch_range(struct run *r, const struct entry *e,
    const struct buf *handle, int fd, int64_t at, int64_t len, struct err *err);

/* For plan_options: compares the bytes; "data" is the run. */
bool sftp_same(void *data, const struct entry *from, const struct entry *to);

/* The name of the part of a big file: any change makes another one. */
void part_name(char out[PART_NAME_MAX], const struct entry *e);

/* One big file, in pieces.  The upload leaves it on the far side as "part",
 * the download puts it in its place.  1: this file cannot be had (a problem
 * was noted); 2: the host cannot take pieces. */
int pieces_up(struct run *r, const struct entry *e, char part[PART_NAME_MAX],
    struct err *err);
int pieces_down(struct run *r, const struct entry *e, struct err *err);

#endif
