/* Which daemon runs, whether it will do, and its end. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/ident.h"
#include "base/lockfile.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "store/meta.h"
#include "watch/daemon.h"
#include "watch/service.h"
#include "watch/service_inside.h"

#define WAKE_MS 8000 /* a daemon that was asleep beats by then */
#define UP_MS 15000  /* one that was started does */
#define TERM_MS 6000 /* one that was told to end has */
#define STEP_MS 50

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

/* The field of the heartbeat's value; JSON null for none. */
json_t *
service_heartbeat(const struct until *until)
{
	struct err err;
	json_t *beat = meta_get("heartbeat", until, &err);

	return beat != NULL ? beat : json_null();
}

void
service_see_beat(struct service_seen *seen, const json_t *beat)
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

void
service_see(struct service_seen *seen, const struct service_spec *s,
    const struct until *until)
{
	char *lock = path_join(s->state_dir, DAEMON_LOCK);
	char holder[LOCKFILE_TEXT];
	json_t *beat = service_heartbeat(until);

	memset(seen, 0, sizeof(*seen));
	seen->held = lockfile_held(lock, holder);
	service_see_beat(seen, beat);
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
void
service_see_awake(struct service_seen *seen, const struct service_spec *s,
    const struct until *until)
{
	struct until soon = until_within(until, WAKE_MS);
	struct err ignored;

	service_see(seen, s, until);
	while (
	    seen->held && !seen->fresh && until_check(&soon, &ignored) == 0) {
		pause_a_step(&soon);
		service_see(seen, s, until);
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
int
service_end_holder(const struct service_spec *s, const struct until *until,
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
bool
service_is_up(const struct service_spec *s, const struct until *until)
{
	struct until soon = until_within(until, UP_MS);
	struct service_seen seen;
	struct err ignored;

	for (;;) {
		service_see(&seen, s, until);
		if (seen.held && seen.fresh)
			return true;
		if (until_check(&soon, &ignored) == -1)
			return false;
		pause_a_step(&soon);
	}
}
