/*
 * The watchdog as a service: installing, starting and removing it, and what is
 * told of it; the same for all kinds.
 */
#include "watch/service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/lockfile.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/dirs.h"
#include "store/watches.h"
#include "watch/daemon.h"
#include "watch/service_inside.h"

#define WORK_MS 60000 /* for all that one of these does */
#define LOG_MAX (5 << 20)
#define TEXT_MAX 65536

static const struct service_kind *
kind_named(const char *name)
{
	static const struct service_kind *const all[] = { &service_systemd,
		&service_launchd, &service_detached };
	size_t i;

	for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (name != NULL && strcmp(all[i]->name, name) == 0)
			return all[i];
	}
	return NULL;
}

/* NULL and ERR_DENIED if the user wants none. */
static const struct service_kind *
pick(const struct until *until, struct err *err)
{
	const char *wanted = getenv(SERVICE_ENV);
	const struct service_kind *kind;
	size_t i;

	if (str_blank(wanted)) {
		for (i = 0; !service_kinds[i]->usable(until); i++)
			;
		return service_kinds[i];
	}
	kind = kind_named(wanted);
	if (kind == NULL)
		err_set(err, ERR_DENIED,
		    "no watchdog is started, because " SERVICE_ENV
		    " is '%.40s'; "
		    "it may be systemd, launchd or detached",
		    wanted);
	return kind;
}

/* A log that became long is kept once and begun anew. */
static void
turn_log(const char *path)
{
	struct stat st;
	char *old;

	if (path == NULL || stat(path, &st) == -1 || st.st_size < LOG_MAX)
		return;
	old = xasprintf("%s.1", path);
	(void)rename(path, old);
	free(old);
}

/* Made by us, lest the service manager makes it for all to read. */
static void
make_log(const char *path)
{
	int fd;

	if (path == NULL)
		return;
	turn_log(path);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1)
		return; /* whoever writes there will say so */
	(void)fchmod(fd, 0600);
	close(fd);
}

static int
write_definition(const struct service_kind *kind, const struct service_spec *s,
    struct err *err)
{
	char *path = kind->file(s), *dir;
	struct buf text;
	int rc;

	if (path == NULL)
		return 0;
	dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
	buf_init(&text, TEXT_MAX);
	kind->text(s, &text);
	rc = fs_mkdirs(dir, 0755, err);
	if (rc == 0)
		rc = fs_replace(path, text.data, text.len, 0644, err);
	buf_free(&text);
	free(dir);
	free(path);
	return rc;
}

static int
install(const struct service_kind *kind, const struct service_spec *s, bool now,
    const struct until *until, struct err *err)
{
	make_log(s->out_log);
	make_log(s->err_log);
	if (write_definition(kind, s, err) == -1)
		return -1;
	if (now && service_end_holder(s, until, err) == -1)
		return -1;
	return kind->start(s, now, until, err);
}

static void
set_text(json_t *o, const char *name, char *text)
{
	if (text != NULL)
		json_object_set_new(o, name, utf8_json(text, strlen(text)));
	else
		json_object_set_new(o, name, json_null());
	free(text);
}

/* Only one at a time, or two servers would end each other's daemon. */
static int
take_turn(const struct service_spec *s, char **path, const struct until *until,
    struct err *err)
{
	char text[LOCKFILE_TEXT], holder[LOCKFILE_TEXT];

	*path = path_join(s->state_dir, "watchdog-service.lock");
	snprintf(text, sizeof(text), "%ld", (long)getpid());
	return lockfile_take(*path, text, holder, until, err);
}

/* The best kind that works. */
static int
start_some(const struct service_kind *kind, const struct service_spec *s,
    json_t *o, const struct until *until, struct err *err)
{
	int rc = install(kind, s, true, until, err);

	if (rc == -1 && kind != &service_detached && err->code == ERR_IO) {
		json_object_set_new(o, "warning",
		    json_sprintf("it could not be started by %s, and runs as a "
		                 "process of its own now: %s",
		        kind->name, err->msg));
		kind = &service_detached;
		rc = install(kind, s, true, until, err);
	}
	json_object_set_new(o, "kind", json_string(kind->name));
	if (rc == 0)
		kind->status(s, o, until); /* its hint */
	return rc;
}

static int
ensure(const struct service_kind *kind, const struct service_spec *s, json_t *o,
    const struct until *until, struct err *err)
{
	static const char *const actions[] = { "none", "started", "restarted" };
	enum service_need need;
	struct service_seen seen;

	service_see_awake(&seen, s, until);
	need = service_decide(&seen);
	json_object_set_new(o, "action", json_string(actions[need]));
	json_object_set_new(o, "kind", json_string(kind->name));
	json_object_set_new(o, "running", json_true());
	if (need == SERVICE_GOOD)
		return 0;
	if (start_some(kind, s, o, until, err) == -1)
		return -1;
	if (!service_is_up(s, until)) {
		json_object_set_new(o, "running", json_false());
		json_object_set_new(o, "warning",
		    json_sprintf("the watchdog was started and does not "
		                 "answer; see %s",
		        s->err_log));
	}
	return 0;
}

/* With our turn taken. */
static int
ensure_in_turn(const struct service_spec *s, json_t *o,
    const struct until *until, struct err *err)
{
	const struct service_kind *kind = pick(until, err);
	char *turn;
	int fd, rc = -1;

	if (kind == NULL)
		return -1;
	fd = take_turn(s, &turn, until, err);
	if (fd != -1) {
		rc = ensure(kind, s, o, until, err);
		lockfile_give(turn, fd);
	}
	free(turn);
	return rc;
}

int
service_ensure(json_t **result, const struct until *until, struct err *err)
{
	struct until all = until_within(until, WORK_MS);
	struct service_spec s;
	struct service_seen seen;
	json_t *o = json_object();
	int rc = service_spec_make(&s, err);

	if (rc == 0) {
		/* Nearly always it is well, and this is all it costs. */
		service_see(&seen, &s, &all);
		if (service_decide(&seen) == SERVICE_GOOD)
			json_object_set_new(o, "action", json_string("none"));
		else
			rc = ensure_in_turn(&s, o, &all, err);
	}
	service_spec_free(&s);
	if (rc == -1) {
		json_decref(o);
		return err_wrap(err, "cannot start the watchdog");
	}
	*result = o;
	return 0;
}

int
service_install(bool start, json_t **result, const struct until *until,
    struct err *err)
{
	struct until all = until_within(until, WORK_MS);
	const struct service_kind *kind = pick(&all, err);
	struct service_spec s = { 0 };
	char *turn = NULL;
	json_t *o;
	int fd = -1, rc = -1;

	if (kind != NULL && service_spec_make(&s, err) == 0 &&
	    (fd = take_turn(&s, &turn, &all, err)) != -1)
		rc = install(kind, &s, start, &all, err);
	if (rc == 0) {
		o = json_object();
		set_text(o, "kind", xstrdup(kind->name));
		set_text(o, "label", kind->label(&s));
		set_text(o, "plist_path", kind->file(&s));
		set_text(o, "stdout_path", xstrdup(s.out_log));
		set_text(o, "stderr_path", xstrdup(s.err_log));
		set_text(o, "config_path", xstrdup(s.config_path));
		set_text(o, "db_path", xstrdup(s.db_path));
		json_object_set_new(o, "started",
		    json_boolean(start && service_is_up(&s, &all)));
		*result = o;
	}
	if (fd != -1)
		lockfile_give(turn, fd);
	free(turn);
	service_spec_free(&s);
	return rc == 0 ? 0 : err_wrap(err, "cannot install the watchdog");
}

/* Every kind that is there: which one was used is long forgotten. */
static int
remove_all(const struct service_spec *s, json_t *o, const struct until *until,
    struct err *err)
{
	size_t i;
	int rc = 0;

	for (i = 0; service_kinds[i] != NULL && rc == 0; i++) {
		const struct service_kind *kind = service_kinds[i];
		char *path = kind->file(s);

		if (path != NULL && access(path, F_OK) == 0) {
			rc =
			    kind->usable(until) ? kind->stop(s, until, err) : 0;
			if (rc == 0 && unlink(path) == -1 && errno != ENOENT)
				rc = err_sys(err, "cannot remove %s", path);
		}
		free(path);
	}
	if (rc == 0)
		rc = service_end_holder(s, until, err);
	json_object_set_new(o, "removed", json_boolean(rc == 0));
	return rc;
}

/* The kind that was asked for may be none of this platform. */
static int
remove_forced(const struct service_kind *kind, const struct service_spec *s,
    const struct until *until, struct err *err)
{
	char *path = kind->file(s);
	int rc = 0;

	if (path != NULL && access(path, F_OK) == 0) {
		rc = kind->stop(s, until, err);
		if (rc == 0)
			unlink(path);
	}
	free(path);
	return rc;
}

int
service_uninstall(json_t **result, const struct until *until, struct err *err)
{
	struct until all = until_within(until, WORK_MS);
	const struct service_kind *kind = pick(&all, err);
	struct service_spec s = { 0 };
	json_t *o = json_object();
	char *turn = NULL;
	int fd = -1, rc = -1;

	if (kind == NULL)
		kind = &service_detached; /* what is there is to go */
	if (service_spec_make(&s, err) == 0 &&
	    (fd = take_turn(&s, &turn, &all, err)) != -1 &&
	    remove_forced(kind, &s, &all, err) == 0)
		rc = remove_all(&s, o, &all, err);
	if (rc == 0) {
		set_text(o, "label", kind->label(&s));
		set_text(o, "plist_path", kind->file(&s));
	}
	if (fd != -1)
		lockfile_give(turn, fd);
	free(turn);
	service_spec_free(&s);
	if (rc == -1) {
		json_decref(o);
		return err_wrap(err, "cannot uninstall the watchdog");
	}
	*result = o;
	return 0;
}

static json_t *
launchd_block(const struct service_kind *kind, const struct service_spec *s,
    const struct until *until)
{
	json_t *o = json_object();

	json_object_set_new(o, "platform", json_string(service_platform));
	set_text(o, "label", service_launchd.label(s));
	if (kind == &service_launchd) {
		service_launchd.status(s, o, until);
		set_text(o, "plist_path", service_launchd.file(s));
	} else {
		json_object_set_new(o, "loaded", json_false());
		json_object_set_new(o, "detail",
		    json_string("launchd is of macOS; see \"service\""));
	}
	return o;
}

static json_t *
service_block(const struct service_kind *kind, const struct service_spec *s,
    const struct until *until)
{
	char *lock = path_join(s->state_dir, DAEMON_LOCK);
	char *path = kind != NULL ? kind->file(s) : NULL;
	char text[LOCKFILE_TEXT];
	json_t *o = json_object();
	int64_t pid;

	json_object_set_new(o, "platform", json_string(service_platform));
	json_object_set_new(o, "kind",
	    json_string(kind != NULL ? kind->name : "none"));
	json_object_set_new(o, "running",
	    json_boolean(lockfile_held(lock, text)));
	if (str_to_int(text, 1, INT32_MAX, &pid) == 0)
		json_object_set_new(o, "pid", json_integer(pid));
	json_object_set_new(o, "installed",
	    json_boolean(path != NULL && access(path, F_OK) == 0));
	if (kind != NULL)
		set_text(o, "name", kind->label(s));
	if (path != NULL)
		set_text(o, "definition", xstrdup(path));
	set_text(o, "log_file", xstrdup(s->err_log));
	if (kind != NULL && kind != &service_launchd)
		kind->status(s, o, until);
	free(path);
	free(lock);
	return o;
}

json_t *
service_status(const struct until *until, struct err *err)
{
	const struct service_kind *kind;
	struct service_spec s = { 0 };
	json_t *o, *paths, *beat, *counts;
	struct service_seen seen = { 0 };
	struct err ignored;

	if (service_spec_make(&s, err) == -1) {
		service_spec_free(&s);
		return NULL;
	}
	counts = watches_counts(until, err);
	if (counts == NULL) {
		service_spec_free(&s);
		return NULL;
	}
	kind = pick(until, &ignored);
	o = json_object();
	paths = json_object();
	set_text(paths, "config_path", xstrdup(s.config_path));
	set_text(paths, "db_path", xstrdup(s.db_path));
	json_object_set_new(o, "paths", paths);
	json_object_set_new(o, "launchd", launchd_block(kind, &s, until));
	json_object_set_new(o, "service", service_block(kind, &s, until));
	beat = service_heartbeat(until);
	service_see_beat(&seen, beat);
	json_object_set_new(o, "heartbeat", beat);
	json_object_set_new(o, "heartbeat_stale", json_boolean(!seen.fresh));
	json_object_set_new(o, "watch_counts", counts);
	service_spec_free(&s);
	return o;
}

char *
service_log(struct err *err)
{
	char *state = dirs_state(err), *path = NULL;

	if (state != NULL)
		path = path_join(state, "watchdog.stderr.log");
	free(state);
	return path;
}
