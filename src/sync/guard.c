/*
 * What keeps a plan from being done: much would be deleted, or there is no
 * room for it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/path.h"
#include "sync/beneath.h"
#include "sync/inside.h"

/* More deletion than a slip of the pen should cause. */
int
guard_delete(struct run *r, struct err *err)
{
	const struct plan *p = &r->plan;

	if (r->req->dry_run || r->req->confirm_delete || !plan_deletes_much(p))
		return 0;
	return err_set(err, ERR_INVALID,
	    "delete_extras would delete %zu files and %zu directories, of %zu "
	    "entries in the target; nothing was done. Look at it with dry_run: "
	    "true, and pass confirm_delete: true if it is meant",
	    p->deleted_files, p->deleted_dirs, p->target_count);
}

/* Of a big file, what an interrupted run brought to the far side. */
static int64_t
part_there(const struct run *r, const struct entry *e)
{
	const struct left_over *l;
	char part[PART_NAME_MAX];
	int64_t size = 0;

	part_name(part, e);
	for (l = r->left_overs; l != NULL; l = l->next) {
		const char *name = path_base(l->path);

		/* By SFTP it has another letter. */
		if (strncmp(name, part, strlen(BENEATH_PREFIX)) == 0 &&
		    strcmp(name + strlen(BENEATH_PREFIX) + 1,
		        part + strlen(BENEATH_PREFIX) + 1) == 0)
			size = l->size;
	}
	return size;
}

/* The same here. */
static int64_t
part_here(const struct run *r, const struct entry *e)
{
	char part[PART_NAME_MAX];
	const char *name;
	struct stat st;
	struct err err;
	int64_t size = 0;
	int fd = beneath_parent(r->root_fd, e->path, false, &name, &err);

	part_name(part, e);
	if (fd == -1)
		return 0;
	if (fstatat(fd, part, &st, AT_SYMLINK_NOFOLLOW) == 0)
		size = (int64_t)st.st_blocks * 512;
	close(fd);
	return size;
}

/* What has to find room: not what is in its part already. */
static int64_t
bytes_needed(const struct run *r, bool up)
{
	int64_t bytes = r->plan.bytes, part;
	size_t i;

	for (i = 0; i < r->plan.count; i++) {
		const struct entry *e = r->plan.actions[i].entry;

		if (r->plan.actions[i].kind != ACTION_FILE ||
		    e->size < BIG_FILE)
			continue;
		part = up ? part_there(r, e) : part_here(r, e);
		bytes -= part < e->size ? part : e->size;
	}
	return bytes;
}

int
guard_space(struct run *r, struct err *err)
{
	int64_t room = r->far.free_bytes, bytes;
	bool up = r->req->direction == SYNC_UP;
	struct statvfs vfs;

	if (!up && r->root_fd != -1 && fstatvfs(r->root_fd, &vfs) == 0)
		room = (int64_t)(vfs.f_bavail * vfs.f_frsize);
	if (room < 0 || r->plan.bytes <= room || r->req->dry_run)
		return 0;
	bytes = bytes_needed(r, up);
	if (bytes <= room)
		return 0;
	return err_set(err, ERR_IO,
	    "%s has %lld MB free, and this needs %lld MB; nothing was done",
	    up ? link_sandbox(r->link)->name : "the local disk",
	    (long long)(room >> 20), (long long)(bytes >> 20));
}
