/*
 * An upload by SFTP under way, as sftpup.c (files and links) and sftpdo.c (all
 * else, in the right order) share it.
 */
#ifndef SYNC_SFTPUP_H
#define SYNC_SFTPUP_H

#include "base/random.h"
#include "sync/inside.h"

#define SFTPUP_JOBS 32

struct up;

enum step {
	JOB_FREE,
	JOB_OPENING,
	JOB_WRITING,
	JOB_CLOSING, /* all was sent */
	JOB_PLACING,
};

/* A file or a link on its way. */
struct job {
	struct up *u;
	enum step step;
	const struct entry *e;
	int fd;
	struct entry now; /* what it was when it was opened */
	char *temp, *path;
	struct buf handle;
	int64_t at;
	unsigned waiting; /* for so many replies */
	bool broken;      /* must not get its name */
	bool keep;        /* the part is worth keeping */
	bool retried;
	char why[256];
};

struct up {
	struct run *r;
	struct sftp *s;
	char id[RANDOM_HEX(4)];
	unsigned count;
	struct job jobs[SFTPUP_JOBS];
	bool write_failed;         /* the disk may be full */
	struct left_over *orphans; /* of a session that broke: whole paths */
	char *chunk;
};

/* The path on the far side; the caller frees it. */
char *sftpup_path(const struct up *u, const char *path);

/* Start with one; waits while there are too many. */
int sftpup_file(struct up *u, const struct entry *e, struct err *err);
int sftpup_link(struct up *u, const struct entry *e, struct err *err);

/* Send and receive; -1 also if the far disk is full. */
int sftpup_turn(struct up *u, struct err *err);
/* Until nothing is under way. */
int sftpup_drain(struct up *u, struct err *err);
/* Forget what is; for the end. */
void sftpup_drop(struct up *u);

/* Mode and mtime as SFTP has them. */
void sftpup_attrs(const struct entry *e, struct sftp_attrs *a);
/* Only of a link, where the server can. */
void sftpup_date_link(struct up *u, const struct entry *e, const char *path);
void sftpup_ignore(void *data, const struct sftp_packet *reply);

#endif
