#include "watch/step.h"

#include <assert.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decode.h"
#include "base/mem.h"
#include "base/sha1.h"
#include "base/str.h"
#include "base/utf8.h"
#include "watch/event.h"

#define SUMMARY_MAX 600
#define GONE_S 86400 /* what did not come back for so long never will */

static const char no_checkpoint[] = "[checkpoint file not found]";

void
step_free(struct step *s)
{
	size_t i;

	watch_free(&s->watch);
	for (i = 0; i < s->count; i++)
		event_free(&s->events[i]);
	s->count = 0;
}

/* An event of the record as it is now, so set its state before. */
static void __attribute__((format(printf, 5, 6))) tell(struct step *s,
    const char *type, json_t *extras, int64_t now, const char *fmt, ...)
{
	char summary[SUMMARY_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(summary, sizeof(summary), fmt, ap);
	va_end(ap);
	assert(s->count < STEP_EVENTS);
	watch_set(&s->watch.last_summary, summary);
	event_make(&s->events[s->count++], &s->watch, type, summary, extras,
	    now);
}

static void
set_state(struct step *s, const char *state, const char *summary)
{
	watch_set(&s->watch.last_state, state);
	watch_set(&s->watch.last_summary, summary);
}

static int64_t
larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/*
 * Many watches that began at the same time must not be looked at at the same
 * time for ever: each has moments of its own, an interval apart, spread by its
 * number.  Until it has found them the pause is shorter, half of it at least.
 */
static int64_t
next_look(const struct watch *w, int64_t now)
{
	uint32_t spread = (uint32_t)w->id * 2654435769u; /* 2^32 / 1.618... */
	int64_t interval = w->interval_s;
	int64_t moment = (int64_t)spread * interval >> 32;
	int64_t pause = interval - (now - moment) % interval;

	if (pause > interval)
		pause -= interval; /* the clock is before 1970 */
	if (pause < interval / 2)
		pause += interval / 2;
	return now + pause;
}

/* --- ends -----------------------------------------------------------------
 */

static void
end(struct step *s, const char *status, const char *state)
{
	struct watch *w = &s->watch;

	watch_set(&w->status, status);
	watch_set(&w->last_state, state);
	w->next_check_ts = 0;
	w->resume_pending = 0;
	w->interrupted_ts = w->resume_due_ts = 0;
}

static json_t *
attempt_json(const struct watch *w)
{
	return json_pack("{s:I}", "resume_attempt",
	    (json_int_t)w->resume_attempts);
}

static void
end_exhausted(struct step *s, int64_t now)
{
	const struct watch *w = &s->watch;

	end(s, WATCH_FAILED, STATE_EXHAUSTED);
	tell(s, EVENT_RESUME_EXHAUSTED, attempt_json(w), now,
	    "The job '%.100s' on %.100s is down and was resumed %" PRId64
	    " %s, as often as allowed; nothing more is done.",
	    w->tmux_session, w->sandbox_name, w->resume_attempts,
	    str_plural(w->resume_attempts, "time", "times"));
}

static void
resume_started(struct step *s, int64_t now)
{
	struct watch *w = &s->watch;

	w->resume_pending = 0;
	w->interrupted_ts = w->resume_due_ts = 0;
	set_state(s, STATE_RUNNING, "");
	tell(s, EVENT_RESUME_STARTED, attempt_json(w), now,
	    "The job '%.100s' on %.100s was resumed (attempt %" PRId64
	    " of %" PRId64 ").",
	    w->tmux_session, w->sandbox_name, w->resume_attempts,
	    w->max_resume_attempts);
}

/* Is the run that was seen the one of an attempt whose outcome was not known?
 * Records of before runs were known may hold such a one. */
static bool
is_resumed(const struct watch *old, const struct observation *o)
{
	return old->resume_pending != 0 &&
	    (old->job_run[0] == '\0' || strcmp(old->job_run, o->job_run) != 0);
}

static void
ended(struct step *s, const struct watch *old, const struct observation *o,
    int64_t now)
{
	struct watch *w = &s->watch;
	bool good = o->state == JOB_EXITED && o->exit_code == 0;
	json_t *extras = json_object();
	char how[128], left[64] = "";

	if (is_resumed(old, o))
		resume_started(s, now);
	w->last_exit_code = o->exit_code == -1 ? WATCH_NO_CODE : o->exit_code;
	json_object_set_new(extras, "exit_code",
	    o->exit_code == -1 ? json_null() : json_integer(o->exit_code));
	if (o->orphans > 0) {
		json_object_set_new(extras, "orphans",
		    json_integer(o->orphans));
		snprintf(left, sizeof(left), " It left %" PRId64 " %s running.",
		    o->orphans, str_plural(o->orphans, "process", "processes"));
	}
	if (good) {
		end(s, WATCH_COMPLETED, STATE_COMPLETED);
		tell(s, EVENT_COMPLETED, extras, now,
		    "The job '%.100s' on %.100s has completed.%s",
		    w->tmux_session, w->sandbox_name, left);
		return;
	}
	if (o->exit_code == -1)
		snprintf(how, sizeof(how), "it left no status");
	else
		snprintf(how, sizeof(how), "exit code %d", o->exit_code);
	if (o->state == JOB_KILLED && o->signal != 0) {
		json_object_set_new(extras, "signal", json_integer(o->signal));
		snprintf(how, sizeof(how), "killed by signal %d", o->signal);
	}
	if (o->slurm_state[0] != '\0') {
		size_t n = strlen(how);

		snprintf(how + n, sizeof(how) - n, ", %.24s in Slurm's words",
		    o->slurm_state);
		json_object_set_new(extras, "slurm_state",
		    json_string(o->slurm_state));
	}
	if (o->stopped)
		json_object_set_new(extras, "stopped", json_true());
	end(s, WATCH_FAILED, STATE_FAILED);
	tell(s, EVENT_FAILED, extras, now,
	    "The job '%.100s' on %.100s has failed: %s%s.%s", w->tmux_session,
	    w->sandbox_name, how, o->stopped ? ", stopped on request" : "",
	    left);
}

/* Lost, but no reason to bring it back: "words" say why, "mark" is set in the
 * event. */
static void
end_down(struct step *s, const char *mark, const char *words, int64_t now)
{
	const struct watch *w = &s->watch;

	end(s, WATCH_FAILED, STATE_FAILED);
	tell(s, EVENT_FAILED, json_pack("{s:n, s:b}", "exit_code", mark, 1),
	    now, "The job '%.100s' on %.100s %s.", w->tmux_session,
	    w->sandbox_name, words);
}

static void
stopped(struct step *s, int64_t now)
{
	end_down(s, "stopped", "was stopped on request", now);
}

/* Brought back by somebody else, whose business it is now. */
static void
taken_over(struct step *s, int64_t now)
{
	end_down(s, "superseded",
	    "ended without a status, and somebody started another run of it "
	    "since; this watch is not for that one",
	    now);
}

/* --- interruptions --------------------------------------------------------
 */

static const char *
lost_words(const struct observation *o)
{
	if (o->state == JOB_NONE)
		return "the host does not know it";
	if (o->orphans > 0)
		return "its runner was killed, but processes of it still run";
	return job_lost_words(o->state == JOB_KILLED ? "reboot" : o->reason);
}

char *
watch_resume_command(const struct watch *w)
{
	struct err err;
	json_t *plan =
	    decode_json(w->resume_plan_json, strlen(w->resume_plan_json), &err);
	const char *text = decode_text(json_object_get(plan, "resume_command"));
	char *command;

	command = xstrdup(str_blank(text) ? w->resume_command : text);
	json_decref(plan);
	if (str_blank(command))
		command[0] = '\0';
	return command;
}

static bool
resumable(const struct watch *w)
{
	char *command = watch_resume_command(w);
	bool has = command[0] != '\0';

	free(command);
	return has && w->auto_resume && w->max_resume_attempts > 0;
}

/* Why it is down, as a word in an event. */
static json_t *
down_json(const struct observation *o)
{
	const char *why = o->reason;

	if (o->state != JOB_LOST)
		why = o->state == JOB_NONE ? "none" : "reboot";
	return json_pack("{s:o}", "reason", utf8_json(why, strlen(why)));
}

static void
first_interruption(struct step *s, const struct observation *o, int64_t now)
{
	struct watch *w = &s->watch;

	w->interrupted_ts = now;
	w->last_exit_code =
	    o->state == JOB_KILLED ? o->exit_code : WATCH_NO_CODE;
	tell(s, EVENT_INTERRUPTED, down_json(o), now, "%s", w->last_summary);
}

/* It is down, as this look saw it: the sentence of an earlier one may be about
 * something else. */
static void
set_down(struct step *s, const struct observation *o)
{
	const struct watch *w = &s->watch;
	char *summary =
	    xasprintf("The job '%.100s' on %.100s ended without a status: %s.",
	        w->tmux_session, w->sandbox_name, lost_words(o));

	set_state(s, STATE_INTERRUPTED, summary);
	free(summary);
}

/* Slurm may run it again, if it was told so. */
static bool
may_be_requeued(const struct observation *o)
{
	return o->state == JOB_LOST &&
	    (strcmp(o->reason, "PREEMPTED") == 0 ||
	        strcmp(o->reason, "NODE_FAIL") == 0 ||
	        strcmp(o->reason, "BOOT_FAIL") == 0);
}

/*
 * Nothing can come of it any more.  One that is dead for sure is over unless it
 * is to be resumed.  A host that does not know a job may have lost its disk for
 * the moment; if it never knew it, or not for long, there is none.
 */
static bool
is_over(const struct watch *w, const struct watch *old,
    const struct observation *o, int64_t now)
{
	bool long_ago = now - w->interrupted_ts >= GONE_S;

	if (o->state == JOB_NONE)
		return old->last_state[0] == '\0' || long_ago;
	if (o->orphans > 0 || resumable(w))
		return false;
	return !may_be_requeued(o) || long_ago;
}

static void
end_lost(struct step *s, const struct observation *o, int64_t now)
{
	const struct watch *w = &s->watch;
	json_t *extras = down_json(o);

	json_object_set_new(extras, "exit_code", json_null());
	json_object_set_new(extras, "lost", json_true());
	end(s, WATCH_FAILED, STATE_FAILED);
	tell(s, EVENT_FAILED, extras, now,
	    "The job '%.100s' on %.100s is lost: %s. Nothing is resumed, and "
	    "nobody looks after it any more.",
	    w->tmux_session, w->sandbox_name, lost_words(o));
}

static void
ask_resume(struct step *s, int64_t now)
{
	struct watch *w = &s->watch;

	if (w->resume_pending == 0)
		w->resume_pending = ++w->resume_attempts;
	set_state(s, STATE_RESUMING, w->last_summary);
	w->next_check_ts = next_look(w, now);
	s->resume = true;
}

/* The job is not running and has no status.  Only one that is dead for sure
 * may be resumed: a host that does not know it may have lost its disk for the
 * moment, and orphans may still write to its files. */
static void
interrupted(struct step *s, const struct watch *old,
    const struct observation *o, int64_t now)
{
	struct watch *w = &s->watch;
	bool dead = o->state != JOB_NONE && o->orphans == 0;
	int64_t latest = now + larger(w->interval_s, w->resume_delay_s);

	set_down(s, o);
	w->next_check_ts = next_look(w, now);
	if (w->interrupted_ts == 0)
		first_interruption(s, o, now);
	if (is_over(w, old, o, now)) {
		end_lost(s, o, now);
		return;
	}
	if (!resumable(w))
		w->resume_due_ts = 0; /* of an earlier version */
	if (!resumable(w) || !dead)
		return;
	if (w->resume_due_ts == 0)
		w->resume_due_ts = w->interrupted_ts + w->resume_delay_s;
	if (w->resume_due_ts > latest)
		w->resume_due_ts = latest; /* the clock was set back */
	if (w->resume_pending != 0) {
		ask_resume(s, now);
		return;
	}
	if (w->resume_attempts >= w->max_resume_attempts) {
		end_exhausted(s, now);
		return;
	}
	if (now >= w->resume_due_ts)
		ask_resume(s, now);
	else if (w->resume_due_ts < w->next_check_ts)
		w->next_check_ts = w->resume_due_ts;
}

/* --- what was seen --------------------------------------------------------
 */

static void
no_config(struct step *s, int64_t now)
{
	struct watch *w = &s->watch;
	bool known = strcmp(w->last_state, STATE_CONFIG_MISSING) == 0;

	w->next_check_ts = next_look(w, now);
	if (known)
		return;
	set_state(s, STATE_CONFIG_MISSING, "");
	tell(s, EVENT_CONFIG_MISSING, NULL, now,
	    "The sandbox %.100s of the job '%.100s' is not configured any "
	    "more, so nobody can look at it.",
	    w->sandbox_name, w->tmux_session);
}

static void
unreachable(struct step *s, const struct observation *o, int64_t now)
{
	struct watch *w = &s->watch;
	char *summary = xasprintf("%.100s was not reached: %.400s",
	    w->sandbox_name, o->error);
	/* What an attempt began may run. */
	bool down = w->interrupted_ts != 0 && w->resume_pending == 0;
	char times[48] = "";

	w->consecutive_ssh_failures++;
	w->next_check_ts = next_look(w, now);
	watch_set(&w->last_error, o->error);
	set_state(s, STATE_UNREACHABLE, summary);
	free(summary);
	if (w->ssh_alert_sent ||
	    w->consecutive_ssh_failures < w->alert_after_failures)
		return;
	w->ssh_alert_sent = true;
	if (w->consecutive_ssh_failures > 1)
		snprintf(times, sizeof(times), " %" PRId64 " times in a row",
		    w->consecutive_ssh_failures);
	tell(s, EVENT_SSH_UNREACHABLE,
	    json_pack("{s:I}", "consecutive_ssh_failures",
	        (json_int_t)w->consecutive_ssh_failures),
	    now, "%.100s was not reached%s; the job '%.100s' %s. %.300s",
	    w->sandbox_name, times, w->tmux_session,
	    down ? "was down before" : "may be running", o->error);
}

/* Was there news of trouble that is over now? */
static bool
was_in_trouble(const struct watch *old)
{
	if (old->interrupted_ts != 0)
		return true;
	if (strcmp(old->last_state, STATE_UNREACHABLE) == 0)
		return old->ssh_alert_sent;
	return old->last_state[0] != '\0' &&
	    strcmp(old->last_state, STATE_RUNNING) != 0;
}

static void
running(struct step *s, const struct watch *old, const struct observation *o,
    int64_t now)
{
	struct watch *w = &s->watch;
	char waits[128];

	w->next_check_ts = next_look(w, now);
	if (is_resumed(old, o)) {
		resume_started(s, now);
		return;
	}
	w->resume_pending = 0;
	w->interrupted_ts = w->resume_due_ts = 0;
	snprintf(waits, sizeof(waits), "The job waits in Slurm's queue%s%.64s.",
	    o->reason[0] != '\0' ? ": " : "", o->reason);
	set_state(s, STATE_RUNNING,
	    o->state == JOB_PENDING ? waits : "The job is running.");
	if (was_in_trouble(old))
		tell(s, EVENT_RUNNING_RESTORED, NULL, now,
		    "The job '%.100s' on %.100s is running (again).",
		    w->tmux_session, w->sandbox_name);
}

/*
 * A host that goes down in good order ends its processes by a signal first.
 * That is no end of the job's own.  The next look sees the same, so the exit
 * code remembers it.
 */
static bool
killed_by_reboot(const struct watch *old, const struct observation *o,
    bool rebooted)
{
	bool by_system =
	    o->signal == SIGTERM || o->signal == SIGKILL || o->signal == SIGHUP;

	if (o->state != JOB_KILLED || o->stopped || !by_system)
		return false;
	return rebooted ||
	    (old->interrupted_ts != 0 && old->last_exit_code == o->exit_code);
}

static void
keep_checkpoint(struct watch *w, const struct observation *o, int64_t now)
{
	char digest[SHA1_HEX];

	watch_set(&w->checkpoint_error, o->checkpoint_error);
	if (o->checkpoint == NULL) {
		/* What was read before is better than nothing. */
		if (o->checkpoint_error[0] != '\0' &&
		    w->last_checkpoint_digest[0] == '\0')
			watch_set(&w->last_checkpoint_text, no_checkpoint);
		return;
	}
	sha1_hex(digest, o->checkpoint, strlen(o->checkpoint));
	if (strcmp(digest, w->last_checkpoint_digest) == 0)
		return;
	watch_set(&w->last_checkpoint_digest, digest);
	watch_set(&w->last_checkpoint_text, o->checkpoint);
	w->checkpoint_updated_ts = now;
}

static void
keep_log(struct watch *w, const struct observation *o)
{
	char digest[SHA1_HEX];

	if (o->log_tail == NULL)
		return;
	sha1_hex(digest, o->log_tail, strlen(o->log_tail));
	watch_set(&w->last_log_tail, o->log_tail);
	watch_set(&w->last_log_digest, digest);
}

/* The first look, at a job that is not there: the clock may have been set
 * forward while it is started.  The next look tells. */
static void
not_yet(struct step *s, int64_t now)
{
	set_state(s, "", "The host does not know the job yet.");
	s->watch.next_check_ts = now + WATCH_START_S;
}

/* Another boot of the same host: behind one name there may be several, each
 * with its own. */
static bool
other_boot(const char *old, const char *new)
{
	const char *was = strchr(old, ' '), *is = strchr(new, ' ');

	if (old[0] == '\0' || new[0] == '\0' || strcmp(old, new) == 0)
		return false;
	if (was == NULL || is == NULL) /* of an earlier version */
		return strncmp(old, new, strcspn(old, " ")) != 0;
	return strcmp(was, is) == 0;
}

static void
job_seen(struct step *s, const struct watch *old, const struct observation *o,
    int64_t now)
{
	struct watch *w = &s->watch;
	bool rebooted = other_boot(old->boot_id, o->boot_id);

	if (o->state == JOB_LOST && strcmp(o->reason, "reboot") == 0 &&
	    old->interrupted_ts == 0)
		rebooted = true;
	/* A resume of which nobody knows whether it began is no success, though
	 * the host answers. */
	if (w->resume_pending == 0) {
		w->consecutive_ssh_failures = 0;
		w->ssh_alert_sent = false;
		watch_set(&w->last_error, "");
	}
	keep_log(w, o);
	keep_checkpoint(w, o, now);
	if (o->boot_id[0] != '\0')
		watch_set(&w->boot_id, o->boot_id);
	if (o->state != JOB_NONE)
		watch_set(&w->job_run, o->job_run);
	if (rebooted)
		tell(s, EVENT_HOST_REBOOTED, NULL, now,
		    "%.100s was started again since the last look at the job "
		    "'%.100s'.",
		    w->sandbox_name, w->tmux_session);
	if (job_state_live(o->state))
		running(s, old, o, now);
	else if ((o->state == JOB_EXITED || o->state == JOB_KILLED) &&
	    !killed_by_reboot(old, o, rebooted))
		ended(s, old, o, now);
	else if (o->stopped && o->orphans == 0 &&
	    !killed_by_reboot(old, o, rebooted))
		stopped(s, now);
	else if (o->superseded && w->resume_pending == 0 && o->orphans == 0 &&
	    o->state != JOB_NONE)
		taken_over(s, now);
	else if (o->state == JOB_NONE && old->last_checked_ts == 0)
		not_yet(s, now);
	else
		interrupted(s, old, o, now);
}

static void
resume_refused(struct step *s, const struct observation *o, int64_t now)
{
	struct watch *w = &s->watch;
	json_t *extras = attempt_json(w);

	w->resume_pending = 0;
	w->resume_due_ts = now + larger(w->interval_s, w->resume_delay_s);
	w->next_check_ts = next_look(w, now);
	watch_set(&w->last_error, o->error);
	set_state(s, STATE_INTERRUPTED, "");
	json_object_set_new(extras, "stderr",
	    utf8_json(o->error, strlen(o->error)));
	json_object_set_new(extras, "stdout", json_string(""));
	tell(s, EVENT_RESUME_FAILED, extras, now,
	    "The job '%.100s' could not be resumed (attempt %" PRId64
	    " of %" PRId64 "): %.300s",
	    w->tmux_session, w->resume_attempts, w->max_resume_attempts,
	    o->error);
	if (w->resume_attempts >= w->max_resume_attempts)
		end_exhausted(s, now);
}

static void
resume_seen(struct step *s, const struct watch *old,
    const struct observation *o, int64_t now)
{
	struct watch *w = &s->watch;

	if (w->resume_pending == 0)
		return; /* nobody asked for it */
	w->next_check_ts = next_look(w, now);
	switch (o->seen) {
	case SEEN_RESUMED:
		watch_set(&w->job_run, o->job_run);
		resume_started(s, now);
		break;
	case SEEN_RESUME_REFUSED:
		resume_refused(s, o, now);
		break;
	case SEEN_RESUME_TAKEN:
		if (strcmp(old->job_run, o->job_run) == 0)
			running(s, old, o, now);
		else
			taken_over(s, now);
		break;
	default:
		unreachable(s, o, now);
	}
}

void
watch_step(const struct watch *w, const struct observation *o, int64_t now,
    struct step *out)
{
	memset(out, 0, sizeof(*out));
	watch_copy(&out->watch, w);
	if (strcmp(w->status, WATCH_ACTIVE) != 0)
		return;
	out->watch.last_checked_ts = out->watch.updated_ts = now;
	switch (o->seen) {
	case SEEN_NO_CONFIG:
		no_config(out, now);
		break;
	case SEEN_UNREACHABLE:
		unreachable(out, o, now);
		break;
	case SEEN_JOB:
		job_seen(out, w, o, now);
		break;
	default:
		resume_seen(out, w, o, now);
	}
}
