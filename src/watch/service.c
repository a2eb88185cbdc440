/* The watchdog as a service: what is the same for all kinds. */
#include "watch/service.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/ident.h"
#include "base/lockfile.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/self.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/dirs.h"
#include "store/db.h"
#include "store/meta.h"
#include "store/watches.h"
#include "watch/daemon.h"
#include "watch/service_inside.h"

#define WORK_MS 60000 /* for all that one of these does */
#define WAKE_MS 8000  /* a daemon that was asleep beats by then */
#define UP_MS 15000   /* one that was started does */
#define TERM_MS 6000  /* one that was told to end has */
#define STEP_MS 50
#define LOG_MAX (5 << 20)
#define TEXT_MAX 65536

#define USUAL_PATH \
	"/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"

/* --- Decisions ------------------------------------------------------------ */

enum service_need
service_decide(const struct service_seen *seen)
{
	if (!seen->held)
		return SERVICE_START;
	if (!seen->fresh || seen->program_gone || seen->order < 0)
		return SERVICE_RESTART;
	return SERVICE_GOOD;
}

int
service_order(const char *a, const char *b)
{
	while (*a != '\0' || *b != '\0') {
		size_t na = strcspn(a, "."), nb = strcspn(b, ".");
		char *x = xstrndup(a, na), *y = xstrndup(b, nb);
		int64_t i = 0, k = 0;

		if (str_to_int(x, 0, INT32_MAX, &i) == -1)
			i = 0;
		if (str_to_int(y, 0, INT32_MAX, &k) == -1)
			k = 0;
		free(x);
		free(y);
		if (i != k)
			return i < k ? -1 : 1;
		a += na + (a[na] == '.');
		b += nb + (b[nb] == '.');
	}
	return 0;
}

bool
service_fresh(int64_t ts, int64_t now)
{
	return ts > 0 && now - ts <= META_STALE_S && ts - now <= META_STALE_S;
}

/* --- The spec ------------------------------------------------------------- */

static bool
is_below_home(const char *state_dir, const char *home, const char *name)
{
	char *path = path_join(home, name);
	char *real = realpath(path, NULL);
	bool yes = real != NULL && strcmp(state_dir, real) == 0;

	free(real);
	free(path);
	return yes;
}

/* Where the state is if nobody says otherwise? */
static bool
is_usual(const char *state_dir, const char *home)
{
	return is_below_home(state_dir, home,
	           ".local/state/remote-sandbox-mcp") ||
	    is_below_home(state_dir, home,
	        "Library/Application Support/remote-sandbox-mcp");
}

static void
make_suffix(struct service_spec *s)
{
	const unsigned char *c = (const unsigned char *)s->state_dir;
	uint32_t h = 2166136261u;

	if (is_usual(s->state_dir, s->home))
		return;
	for (; *c != '\0'; c++)
		h = (h ^ *c) * 16777619u;
	snprintf(s->suffix, sizeof(s->suffix), "-%07x", h & 0xfffffff);
}

/* A definition is lines of text, and read as UTF-8. */
static int
check_text(const char *what, const char *s, struct err *err)
{
	if (utf8_valid(s, strlen(s)) && strpbrk(s, "\r\n") == NULL)
		return 0;
	return err_set(err, ERR_INVALID,
	    "the watchdog cannot be a service, because %s holds characters "
	    "that no definition of a service can",
	    what);
}

int
service_spec_make(struct service_spec *s, struct err *err)
{
	const char *home = getenv("HOME"), *path = getenv("PATH");
	char *state;

	memset(s, 0, sizeof(*s));
	state = dirs_state(err);
	if (state == NULL)
		return -1;
	/* Wherever it will be started from. */
	s->state_dir = realpath(state, NULL);
	free(state);
	s->program = self_path();
	if (s->state_dir == NULL || s->program == NULL)
		return err_sys(err, "cannot find our own program or state");
	s->home = xstrdup(home != NULL ? home : "/");
	s->path = xstrdup(str_blank(path) ? USUAL_PATH : path);
	s->config_path = path_join(s->state_dir, "config.json");
	s->db_path = path_join(s->state_dir, DB_FILE);
	s->out_log = path_join(s->state_dir, "watchdog.stdout.log");
	s->err_log = path_join(s->state_dir, "watchdog.stderr.log");
	s->uid = (long)geteuid();
	make_suffix(s);
	if (check_text("the state directory", s->state_dir, err) == -1 ||
	    check_text("the path of our program", s->program, err) == -1 ||
	    check_text("PATH", s->path, err) == -1)
		return -1;
	return 0;
}

void
service_spec_free(struct service_spec *s)
{
	free(s->program);
	free(s->home);
	free(s->state_dir);
	free(s->config_path);
	free(s->db_path);
	free(s->out_log);
	free(s->err_log);
	free(s->path);
	memset(s, 0, sizeof(*s));
}

int
service_run(const char *const *argv, struct buf *out, const struct until *until,
    struct err *err)
{
	struct proc_request req = { .argv = argv, .max_output = TEXT_MAX };
	struct proc_result res;
	struct env env;
	int rc;

	env_init(&env);
	env_session(&env);
	req.env = (const char *const *)env.list;
	rc = proc_run(&req, &res, until, err);
	env_free(&env);
	if (rc == -1)
		return -1;
	if (res.exit_code != 0)
		rc = err_set(err, ERR_IO, "%s %s ended with status %d: %.300s",
		    argv[0], argv[1], res.exit_code, res.err.data);
	else if (out != NULL)
		buf_add(out, res.out.data, res.out.len);
	proc_result_free(&res);
	return rc;
}

/* --- What runs ------------------------------------------------------------ */

/* The field of the heartbeat's value; JSON null for none. */
static json_t *
heartbeat(const struct until *until)
{
	struct err err;
	json_t *beat = meta_get("heartbeat", until, &err);

	return beat != NULL ? beat : json_null();
}

static void
see_beat(struct service_seen *seen, const json_t *beat)
{
	const json_t *value = json_object_get(beat, "value");
	const char *version =
	    json_string_value(json_object_get(value, "version"));
	const char *program =
	    json_string_value(json_object_get(value, "program"));
	json_int_t ts = json_integer_value(json_object_get(value, "ts"));

	seen->fresh = service_fresh(ts, (int64_t)time(NULL));
	/* The earlier server's daemon writes no version: it is older. */
	seen->order =
	    version != NULL ? service_order(version, RSMCP_VERSION) : -1;
	seen->program_gone = program != NULL && access(program, X_OK) == -1;
}

static bool
is_beat_of(const json_t *beat, const char *holder)
{
	const json_t *pid =
	    json_object_get(json_object_get(beat, "value"), "pid");
	int64_t n;

	return str_to_int(holder, 1, INT32_MAX, &n) == 0 &&
	    json_integer_value(pid) == n;
}

static void
see(struct service_seen *seen, const struct service_spec *s,
    const struct until *until)
{
	char *lock = path_join(s->state_dir, DAEMON_LOCK);
	char holder[LOCKFILE_TEXT];
	json_t *beat = heartbeat(until);

	memset(seen, 0, sizeof(*seen));
	seen->held = lockfile_held(lock, holder);
	see_beat(seen, beat);
	/* It may be of the one before. */
	if (seen->held && !is_beat_of(beat, holder))
		seen->fresh = false;
	json_decref(beat);
	free(lock);
}

static void
pause_a_step(const struct until *until)
{
	struct until step = until_within(until, STEP_MS);
	struct err ignored;

	until_poll(&step, NULL, 0, &ignored);
}

/* A laptop that slept wakes up with an old heartbeat, and a daemon that is
 * about to write a new one. */
static void
see_awake(struct service_seen *seen, const struct service_spec *s,
    const struct until *until)
{
	struct until soon = until_within(until, WAKE_MS);
	struct err ignored;

	see(seen, s, until);
	while (
	    seen->held && !seen->fresh && until_check(&soon, &ignored) == 0) {
		pause_a_step(&soon);
		see(seen, s, until);
	}
}

/* The process that holds the lock; pid 0 if there is none that we know for
 * sure.  One in another container has a number that means nothing here. */
static struct ident
holder_of(const char *lock)
{
	struct ident who = { 0 };
	char text[LOCKFILE_TEXT], name[64];
	int64_t pid = 0;

	if (!lockfile_held(lock, text) ||
	    str_to_int(text, 2, INT32_MAX, &pid) == -1 ||
	    ident_holder(lock, name, sizeof(name)) != (pid_t)pid)
		return who;
	who.pid = (pid_t)pid;
	who.start = ident_start(who.pid);
	return who;
}

/* End the daemon that has the lock, however it was started. */
static int
end_holder(const struct service_spec *s, const struct until *until,
    struct err *err)
{
	struct until soon = until_within(until, TERM_MS);
	char *lock = path_join(s->state_dir, DAEMON_LOCK);
	struct ident who = holder_of(lock);
	struct err ignored;
	char text[LOCKFILE_TEXT];
	bool gone;

	if (who.pid != 0) {
		(void)ident_signal(&who, SIGTERM);
		(void)ident_signal(&who, SIGCONT);
		while (ident_alive(&who) && until_check(&soon, &ignored) == 0)
			pause_a_step(&soon);
		if (ident_alive(&who))
			(void)ident_signal(&who, SIGKILL);
		while (ident_alive(&who) && until_check(until, &ignored) == 0)
			pause_a_step(until);
	}
	gone = !lockfile_held(lock, text);
	free(lock);
	if (gone)
		return 0;
	return err_set(err, ERR_DENIED,
	    "a watchdog (process %.20s) does not end, or runs where it cannot "
	    "be seen from here",
	    text);
}

/* Wait until one runs and has said so. */
static bool
is_up(const struct service_spec *s, const struct until *until)
{
	struct until soon = until_within(until, UP_MS);
	struct service_seen seen;
	struct err ignored;

	for (;;) {
		see(&seen, s, until);
		if (seen.held && seen.fresh)
			return true;
		if (until_check(&soon, &ignored) == -1)
			return false;
		pause_a_step(&soon);
	}
}

/* --- Doing ---------------------------------------------------------------- */

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
	if (now && end_holder(s, until, err) == -1)
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

	see_awake(&seen, s, until);
	need = service_decide(&seen);
	json_object_set_new(o, "action", json_string(actions[need]));
	json_object_set_new(o, "kind", json_string(kind->name));
	json_object_set_new(o, "running", json_true());
	if (need == SERVICE_GOOD)
		return 0;
	if (start_some(kind, s, o, until, err) == -1)
		return -1;
	if (!is_up(s, until)) {
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
		see(&seen, &s, &all);
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
		    json_boolean(start && is_up(&s, &all)));
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
		rc = end_holder(s, until, err);
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

/* --- Telling -------------------------------------------------------------- */

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
	beat = heartbeat(until);
	see_beat(&seen, beat);
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
