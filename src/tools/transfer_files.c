#include "tools/transfer_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/lockfile.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "config/dirs.h"
#include "ssh/clean.h"

#define TAIL_BYTES 262144

char *
transfer_file(const char *name, struct err *err)
{
	char *dir = dirs_state_sub("transfers", err);
	char *path;

	if (dir == NULL)
		return NULL;
	path = path_join(dir, name);
	free(dir);
	return path;
}

char *
transfer_file_of(int64_t id, const char *end, struct err *err)
{
	char name[64];

	snprintf(name, sizeof(name), "transfer-%" PRId64 ".%s", id, end);
	return transfer_file(name, err);
}

char *
transfer_local_path(const char *path)
{
	const char *home = getenv("HOME");
	char *given = path_home(path, home != NULL ? home : "/");
	char *cwd = given[0] != '/' ? getcwd(NULL, 0) : NULL;
	char *whole;

	if (cwd == NULL)
		return given;
	whole = path_join(cwd, given);
	free(cwd);
	free(given);
	return whole;
}

/* A path may hold a newline, and that would look like another line. */
static void
add_line(struct buf *b, const char *name, const char *value)
{
	buf_addf(b, "== %s: ", name);
	for (; *value != '\0'; value++) {
		if ((unsigned char)*value < ' ')
			buf_addc(b, '?');
		else
			buf_addc(b, *value);
	}
	buf_addc(b, '\n');
}

int
transfer_log_open(const struct transfer *t, const char *path, struct err *err)
{
	time_t created = (time_t)t->created_ts;
	char text[32];
	struct buf head;
	struct tm tm;
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

	if (fd == -1)
		return err_sys(err, "cannot make the log %s", path);
	buf_init(&head, 65536);
	snprintf(text, sizeof(text), "%" PRId64, t->id);
	add_line(&head, "transfer task", text);
	gmtime_r(&created, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	add_line(&head, "created_at", text);
	add_line(&head, "sandbox", t->sandbox_name);
	add_line(&head, "local_path", t->local_path);
	add_line(&head, "remote_path", t->remote_path);
	if (fs_write_all(fd, head.data, head.len) == -1) {
		err_sys(err, "cannot write the log %s", path);
		close(fd);
		fd = -1;
	}
	buf_free(&head);
	return fd;
}

/* The end of a file; what the database names as a log may be anything. */
static void
read_end(const char *path, struct buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *at;
	size_t room;
	ssize_t n = 1;
	off_t from;

	if (fd == -1)
		return;
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		close(fd);
		return;
	}
	from = st.st_size > TAIL_BYTES ? st.st_size - TAIL_BYTES : 0;
	while (n > 0 && out->len < TAIL_BYTES) {
		at = buf_space(out, TAIL_BYTES - out->len, &room);
		if (room > TAIL_BYTES - out->len)
			room = TAIL_BYTES - out->len;
		n = pread(fd, at, room, from + (off_t)out->len);
		if (n > 0)
			buf_grew(out, (size_t)n);
	}
	close(fd);
}

/* Where the last "lines" lines of this text begin, or less of them if that is
 * more than "chars" characters. */
static size_t
tail_begin(const char *text, size_t len, int64_t lines, size_t chars)
{
	size_t at = len;

	while (at > 0 && chars > 0) {
		size_t before = at - 1;

		if (text[before] == '\n' && before != len - 1 && --lines == 0)
			break;
		while (
		    before > 0 && ((unsigned char)text[before] & 0xc0) == 0x80)
			before--;
		at = before;
		chars--;
	}
	return at;
}

void
transfer_log_tail(const char *path, int64_t lines, size_t chars,
    struct buf *out)
{
	struct buf raw, text;
	size_t at;

	buf_init(&raw, TAIL_BYTES);
	buf_init(&text, (size_t)3 * TAIL_BYTES);
	if (path[0] != '\0')
		read_end(path, &raw);
	clean_text(&text, raw.data, raw.len);
	at = tail_begin(text.data, text.len, lines, chars);
	buf_add(out, text.data + at, text.len - at);
	buf_free(&raw);
	buf_free(&text);
}

/* A worker of the earlier server: it has no lock, but its command line names
 * the task. */
static bool
seed_worker(const struct transfer *t, struct ident *who)
{
	char id[32];

	if (t->pid <= 0 || t->pid > INT32_MAX || t->worker_start != 0 ||
	    strcmp(t->status, TRANSFER_RUNNING) != 0)
		return false;
	snprintf(id, sizeof(id), "%" PRId64, t->id);
	who->pid = (pid_t)t->pid;
	who->start = ident_start(who->pid);
	return who->start != 0 &&
	    ident_has_args(who->pid, "transfer-worker", "--task-id") &&
	    ident_has_args(who->pid, "--task-id", id) && ident_alive(who);
}

void
transfer_lock_text(const struct ident *who, char *out, size_t size)
{
	snprintf(out, size, "%ld %" PRId64, (long)who->pid, who->start);
}

/* It may be empty yet. */
static void
read_lock_text(char *text, struct ident *who)
{
	char *space = strchr(text, ' ');
	int64_t pid, start;

	if (space == NULL)
		return;
	*space = '\0';
	if (str_to_int(text, 1, INT32_MAX, &pid) == 0 &&
	    str_to_int(space + 1, 1, INT64_MAX, &start) == 0) {
		who->pid = (pid_t)pid;
		who->start = start;
	}
}

bool
transfer_worker(const struct transfer *t, struct ident *who)
{
	char holder[LOCKFILE_TEXT];
	struct err err;
	char *path = transfer_file_of(t->id, "lock", &err);
	bool held = path != NULL && lockfile_held(path, holder);

	free(path);
	memset(who, 0, sizeof(*who));
	if (!held)
		return seed_worker(t, who);
	read_lock_text(holder, who);
	/* A process that was killed may hold it for a last moment. */
	return who->pid == 0 || ident_alive(who);
}
