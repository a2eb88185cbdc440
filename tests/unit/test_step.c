#include "watch/step.h"

#include "base/str.h"
#include "help.h"

static struct step out;

static struct watch
new_watch(void)
{
	struct watch w;

	watch_init(&w);
	w.id = 5;
	watch_set(&w.sandbox_name, "box");
	watch_set(&w.tmux_session, "train");
	watch_set(&w.log_file, "/l");
	w.interval_s = 100;
	w.resume_delay_s = 30;
	return w;
}

static struct watch
resumable_watch(int64_t max)
{
	struct watch w = new_watch();

	w.auto_resume = true;
	w.max_resume_attempts = max;
	watch_set(&w.resume_command, "./go --resume");
	return w;
}

static struct observation
seen(enum seen what)
{
	return (struct observation){ .seen = what,
		.error = what == SEEN_JOB ? "" : "no route",
		.exit_code = -1,
		.reason = "",
		.slurm_state = "",
		.boot_id = "b1",
		.log_tail = "tail\n",
		.checkpoint_error = "" };
}

static struct observation
job(enum job_state state, int code)
{
	struct observation o = seen(SEEN_JOB);

	o.state = state;
	o.exit_code = code;
	if (state == JOB_KILLED)
		o.signal = code - 128;
	if (state == JOB_LOST)
		o.reason = "runner";
	return o;
}

static struct observation
of_run(struct observation o, const char *run)
{
	snprintf(o.job_run, sizeof(o.job_run), "%s", run);
	return o;
}

/* The record becomes that of the step. */
static void
step(struct watch *w, struct observation o, int64_t now)
{
	step_free(&out);
	watch_step(w, &o, now, &out);
	watch_free(w);
	watch_copy(w, &out.watch);
}

/* The next look is an interval ahead, or a little less. */
static void
soon(const struct watch *w, int64_t now)
{
	assert_true(w->next_check_ts >= now + w->interval_s / 2);
	assert_true(w->next_check_ts <= now + w->interval_s);
}

static void
is(const struct watch *w, const char *status, const char *state)
{
	assert_string_equal(w->status, status);
	assert_string_equal(w->last_state, state);
}

/* The types of the last step's events, with commas. */
static void
told(const char *types)
{
	struct buf all;
	size_t i;

	buf_init(&all, SIZE_MAX);
	for (i = 0; i < out.count; i++)
		buf_addf(&all, "%s%s", i > 0 ? "," : "",
		    out.events[i].event_type);
	assert_string_equal(all.data, types);
	buf_free(&all);
}

static json_t *
last_payload(void)
{
	json_t *e = event_json(&out.events[out.count - 1]);
	json_t *p = json_deep_copy(json_object_get(e, "payload"));

	json_decref(e);
	return p;
}

static int
clean(void **state)
{
	(void)state;
	step_free(&out);
	return 0;
}

static void
a_job_that_runs_and_completes(void **state)
{
	struct watch w = new_watch();
	json_t *p;

	(void)state;
	step(&w, job(JOB_RUNNING, -1), 1000);
	is(&w, "active", "running");
	told("");
	soon(&w, 1000);
	assert_int_equal(w.last_checked_ts, 1000);
	assert_string_equal(w.last_log_tail, "tail\n");
	assert_string_equal(w.last_log_digest,
	    "622469897a6304a6a1160e2ee0c8bdbe700ab49c");
	step(&w, job(JOB_EXITED, 0), 1100);
	is(&w, "completed", "completed");
	told("completed");
	assert_int_equal(w.last_exit_code, 0);
	assert_int_equal(w.next_check_ts, 0);
	p = last_payload();
	assert_int_equal(json_integer_value(json_object_get(p, "exit_code")),
	    0);
	assert_string_equal(json_string_value(json_object_get(p, "log_tail")),
	    "tail\n");
	json_decref(p);
	watch_free(&w);
}

static void
looks_are_spread_and_an_interval_apart(void **state)
{
	int64_t now, id, looks[300] = { 0 };
	struct watch w = new_watch();
	int i;

	(void)state;
	w.interval_s = 300;
	for (id = 1; id <= 200; id++) {
		w.id = id;
		now = 1000000;
		for (i = 0; i < 4; i++) {
			step(&w, job(JOB_RUNNING, -1), now);
			soon(&w, now);
			if (i == 3)
				assert_in_range(w.next_check_ts - now, 298,
				    300);
			now = w.next_check_ts + i % 3; /* a little late */
		}
		looks[now % 300]++;
	}
	for (i = 0; i < 300; i++)
		assert_true(looks[i] <= 2);
	for (i = 1; i <= 3; i++) {
		w.interval_s = i;
		step(&w, job(JOB_RUNNING, -1), 7);
		assert_in_range(w.next_check_ts, 8, 7 + i);
	}
	watch_free(&w);
}

static void
a_status_other_than_0_is_a_failure(void **state)
{
	struct watch w = resumable_watch(3);
	json_t *p;

	(void)state;
	step(&w, job(JOB_EXITED, 3), 1000);
	is(&w, "failed", "failed");
	told("failed");
	assert_false(out.resume);
	assert_int_equal(w.last_exit_code, 3);
	watch_free(&w);
	w = resumable_watch(3);
	step(&w, job(JOB_KILLED, 137), 1000);
	told("failed");
	p = last_payload();
	assert_int_equal(json_integer_value(json_object_get(p, "signal")), 9);
	json_decref(p);
	watch_free(&w);
}

static void
what_an_ended_job_left_running_is_told(void **state)
{
	struct watch w = new_watch();
	struct observation o = job(JOB_EXITED, 0);
	json_t *p;

	(void)state;
	o.orphans = 1;
	step(&w, o, 1000);
	is(&w, "completed", "completed");
	assert_non_null(strstr(w.last_summary,
	    "has completed. It left 1 process running."));
	p = last_payload();
	assert_int_equal(json_integer_value(json_object_get(p, "orphans")), 1);
	json_decref(p);
	watch_free(&w);
	w = new_watch();
	o = job(JOB_KILLED, 137);
	o.orphans = 2;
	step(&w, o, 1000);
	is(&w, "failed", "failed");
	assert_non_null(strstr(w.last_summary,
	    "killed by signal 9. It left 2 processes running."));
	watch_free(&w);
}

static void
what_slurm_says_is_told(void **state)
{
	struct watch w = resumable_watch(3);
	struct observation o = job(JOB_KILLED, 128);
	json_t *p;

	(void)state;
	step(&w, job(JOB_PENDING, -1), 900);
	is(&w, "active", "running");
	o.exit_code = -1; /* it never ran */
	o.stopped = true;
	o.slurm_state = "CANCELLED";
	step(&w, o, 1000);
	is(&w, "failed", "failed");
	assert_int_equal(w.last_exit_code, WATCH_NO_CODE);
	assert_non_null(strstr(w.last_summary, "CANCELLED in Slurm's words"));
	p = last_payload();
	assert_true(json_is_null(json_object_get(p, "exit_code")));
	assert_string_equal(json_string_value(
	                        json_object_get(p, "slurm_state")),
	    "CANCELLED");
	json_decref(p);
	watch_free(&w);
	w = resumable_watch(3);
	o = job(JOB_LOST, -1);
	o.reason = "TIMEOUT";
	step(&w, o, 1000);
	is(&w, "active", "interrupted");
	assert_non_null(strstr(w.last_summary, "its time limit was reached"));
	watch_free(&w);
}

static void
an_end_is_the_end(void **state)
{
	struct watch w = new_watch();
	int i;

	(void)state;
	step(&w, job(JOB_EXITED, 0), 1000);
	for (i = 0; i < SEENS; i++) {
		step(&w, seen((enum seen)i), 2000);
		told("");
		assert_false(out.resume);
		is(&w, "completed", "completed");
	}
	watch_free(&w);
}

static void
an_outage_is_told_once_and_its_end_too(void **state)
{
	struct watch w = new_watch();

	(void)state;
	step(&w, job(JOB_RUNNING, -1), 1000);
	step(&w, seen(SEEN_UNREACHABLE), 1100);
	told("");
	is(&w, "active", "ssh_unreachable");
	assert_string_equal(w.last_error, "no route");
	step(&w, seen(SEEN_UNREACHABLE), 1200);
	told("ssh_unreachable");
	step(&w, seen(SEEN_UNREACHABLE), 1300);
	told("");
	assert_int_equal(w.consecutive_ssh_failures, 3);
	step(&w, job(JOB_RUNNING, -1), 1400);
	told("running_restored");
	assert_int_equal(w.consecutive_ssh_failures, 0);
	assert_string_equal(w.last_error, "");
	/* One of which nobody heard needs no end. */
	step(&w, seen(SEEN_UNREACHABLE), 1500);
	step(&w, job(JOB_RUNNING, -1), 1600);
	told("");
	watch_free(&w);
}

static void
an_outage_loses_no_interruption(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	w.resume_delay_s = 1000;
	w.alert_after_failures = 1;
	step(&w, job(JOB_LOST, -1), 1000);
	told("interrupted");
	step(&w, seen(SEEN_UNREACHABLE), 1100);
	told("ssh_unreachable");
	says(w.last_summary, "was not reached; the job 'train' was down");
	step(&w, job(JOB_LOST, -1), 1200);
	told("");
	is(&w, "active", "interrupted");
	says(w.last_summary, "ended without a status: its runner was killed");
	step(&w, seen(SEEN_UNREACHABLE), 1300);
	step(&w, job(JOB_RUNNING, -1), 1400);
	told("running_restored");
	watch_free(&w);
}

static void
a_missing_configuration_is_told_once(void **state)
{
	struct watch w = new_watch();

	(void)state;
	step(&w, seen(SEEN_NO_CONFIG), 1000);
	told("config_missing");
	step(&w, seen(SEEN_NO_CONFIG), 1100);
	told("");
	soon(&w, 1100);
	step(&w, job(JOB_RUNNING, -1), 1200);
	told("running_restored");
	watch_free(&w);
}

static void
a_lost_job_is_resumed_after_its_delay(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	step(&w, job(JOB_LOST, -1), 1000);
	told("interrupted");
	assert_false(out.resume);
	assert_int_equal(w.resume_due_ts, 1030);
	assert_int_equal(w.next_check_ts, 1030); /* not only at the interval */
	step(&w, job(JOB_LOST, -1), 1029);
	assert_false(out.resume);
	step(&w, job(JOB_LOST, -1), 1030);
	assert_true(out.resume);
	told("");
	is(&w, "active", "resuming");
	assert_int_equal(w.resume_attempts, 1); /* counted before the start */
	assert_int_equal(w.resume_pending, 1);
	step(&w, seen(SEEN_RESUMED), 1031);
	told("resume_started");
	is(&w, "active", "running");
	assert_int_equal(w.resume_pending, 0);
	step(&w, job(JOB_RUNNING, -1), 1100);
	told("");
	step(&w, job(JOB_EXITED, 0), 1200);
	told("completed");
	watch_free(&w);
}

static void
no_delay_resumes_at_once(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	told("interrupted");
	assert_true(out.resume);
	watch_free(&w);
}

static void
resumes_end_when_they_are_used_up(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	step(&w, seen(SEEN_RESUMED), 1001);
	step(&w, job(JOB_LOST, -1), 1100);
	told("interrupted,resume_exhausted");
	says(w.last_summary, "was resumed 1 time, as often");
	assert_false(out.resume);
	is(&w, "failed", "resume_exhausted");
	assert_int_equal(w.next_check_ts, 0);
	watch_free(&w);
}

static void
a_resume_that_is_refused_counts(void **state)
{
	struct watch w = resumable_watch(2);
	json_t *p;

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	step(&w, seen(SEEN_RESUME_REFUSED), 1001);
	told("resume_failed");
	p = last_payload();
	assert_string_equal(json_string_value(json_object_get(p, "stderr")),
	    "no route");
	json_decref(p);
	is(&w, "active", "interrupted");
	assert_int_equal(w.resume_due_ts, 1101);
	step(&w, job(JOB_LOST, -1), 1100);
	assert_false(out.resume);
	step(&w, job(JOB_LOST, -1), 1101);
	assert_true(out.resume);
	step(&w, seen(SEEN_RESUME_REFUSED), 1102);
	told("resume_failed,resume_exhausted");
	is(&w, "failed", "resume_exhausted");
	watch_free(&w);
}

/* Killed between the start and the record, or the answer was lost. */
static void
an_attempt_of_unknown_outcome_is_repeated_not_counted(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	step(&w, seen(SEEN_RESUME_UNKNOWN), 1030);
	told("");
	assert_int_equal(w.resume_pending, 1);
	step(&w, seen(SEEN_UNREACHABLE), 1130);
	told("ssh_unreachable");
	step(&w, job(JOB_LOST, -1), 1200);
	assert_true(out.resume);
	told("");
	assert_int_equal(w.resume_attempts, 1);
	assert_int_equal(w.resume_pending, 1);
	/* It had been started after all. */
	step(&w, job(JOB_RUNNING, -1), 1300);
	told("resume_started");
	assert_int_equal(w.resume_pending, 0);
	watch_free(&w);
}

static void
a_resumed_run_that_ended_unseen_is_told_whole(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	step(&w, job(JOB_EXITED, 0), 1100);
	told("resume_started,completed");
	watch_free(&w);
}

static void
a_run_by_hand_is_no_resume(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_LOST, -1);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, job(JOB_LOST, -1), 1000);
	step(&w, of_run(seen(SEEN_RESUME_TAKEN), "train/2"), 1001);
	told("failed");
	is(&w, "failed", "failed");
	says(out.events[0].summary, "another run");
	watch_free(&w);
	/* One that came and went before anybody looked. */
	w = resumable_watch(1);
	step(&w, of_run(job(JOB_RUNNING, -1), "train/1"), 1000);
	o.superseded = true;
	step(&w, of_run(o, "train/1"), 1100);
	told("failed");
	assert_false(out.resume);
	watch_free(&w);
}

static void
a_watch_follows_its_own_runs(void **state)
{
	struct watch w = resumable_watch(2);

	(void)state;
	w.resume_delay_s = 0;
	step(&w, of_run(job(JOB_NONE, -1), "train/-"), 900);
	assert_string_equal(w.job_run, "");
	step(&w, of_run(job(JOB_RUNNING, -1), "train/1"), 1000);
	assert_string_equal(w.job_run, "train/1");
	step(&w, of_run(job(JOB_LOST, -1), "train/1"), 1100);
	assert_true(out.resume);
	step(&w, of_run(seen(SEEN_RESUMED), "other/7"), 1101);
	told("resume_started");
	assert_string_equal(w.job_run, "other/7");
	/* The outcome of the second is not known at first. */
	step(&w, of_run(job(JOB_LOST, -1), "other/7"), 1200);
	step(&w, seen(SEEN_RESUME_UNKNOWN), 1201);
	assert_string_equal(w.job_run, "other/7");
	/* What was lost got a status: that is no resume. */
	step(&w, of_run(job(JOB_KILLED, 137), "other/7"), 1300);
	told("failed");
	watch_free(&w);
}

static void
nothing_is_resumed_that_may_still_run(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_LOST, -1);

	(void)state;
	w.resume_delay_s = 0;
	o.orphans = 2;
	step(&w, o, 1000);
	told("interrupted");
	assert_false(out.resume);
	step(&w, job(JOB_NONE, -1), 1100);
	assert_false(out.resume);
	step(&w, seen(SEEN_UNREACHABLE), 1200);
	assert_false(out.resume);
	step(&w, job(JOB_LOST, -1), 1300);
	assert_true(out.resume);
	watch_free(&w);
}

static void
what_was_stopped_is_not_brought_back(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_KILLED, 143);

	(void)state;
	w.resume_delay_s = 0;
	o.stopped = true;
	step(&w, o, 1000);
	told("failed");
	says(out.events[0].summary, "on request");
	watch_free(&w);
	w = resumable_watch(1);
	o = job(JOB_LOST, -1);
	o.stopped = true;
	step(&w, o, 1000);
	told("failed");
	assert_false(out.resume);
	watch_free(&w);
}

static void
without_leave_or_command_nothing_is_resumed(void **state)
{
	struct watch w = resumable_watch(1);
	int i;

	(void)state;
	for (i = 0; i < 3; i++) {
		w.auto_resume = i != 0;
		w.max_resume_attempts = i != 1;
		watch_set(&w.resume_command, i == 2 ? " " : "x");
		watch_set(&w.status, "active");
		w.resume_delay_s = 0;
		step(&w, job(JOB_LOST, -1), 1000);
		told("interrupted,failed");
		assert_false(out.resume);
		is(&w, "failed", "failed");
		assert_int_equal(w.next_check_ts, 0);
		assert_int_equal(w.resume_due_ts, 0);
		says(w.last_summary, "is lost: its runner was killed. Nothing");
	}
	watch_free(&w);
}

static void
a_loss_that_nobody_resumes_ends_the_watch(void **state)
{
	struct watch w = new_watch();
	struct observation o = job(JOB_LOST, -1);
	json_t *p;

	(void)state;
	o.orphans = 2;
	step(&w, o, 1000);
	told("interrupted");
	is(&w, "active", "interrupted");
	says(w.last_summary, "processes of it still run");
	assert_int_equal(w.resume_due_ts, 0);
	soon(&w, 1000);
	step(&w, seen(SEEN_UNREACHABLE), 1100);
	is(&w, "active", "ssh_unreachable");
	step(&w, o, 1200);
	told("");
	o.orphans = 0;
	step(&w, o, 1300);
	told("failed");
	is(&w, "failed", "failed");
	p = last_payload();
	assert_true(json_is_true(json_object_get(p, "lost")));
	assert_true(json_is_null(json_object_get(p, "exit_code")));
	assert_string_equal(json_string_value(json_object_get(p, "reason")),
	    "runner");
	json_decref(p);
	watch_free(&w);
}

static void
what_slurm_may_run_again_is_waited_for(void **state)
{
	struct watch w = new_watch();
	struct observation o = job(JOB_LOST, -1);

	(void)state;
	o.reason = "NODE_FAIL";
	step(&w, o, 1000);
	told("interrupted");
	step(&w, job(JOB_PENDING, -1), 1100);
	told("running_restored");
	step(&w, o, 2000);
	step(&w, o, 2000 + 86400);
	told("failed");
	says(w.last_summary, "is lost: its node failed.");
	watch_free(&w);
}

static void
a_job_that_is_not_known_any_more_is_waited_for(void **state)
{
	struct watch w = resumable_watch(1);
	int64_t now;

	(void)state;
	step(&w, job(JOB_RUNNING, -1), 1000);
	step(&w, job(JOB_NONE, -1), 1100);
	told("interrupted");
	for (now = 1200; now < 1100 + 86400; now += 900) {
		step(&w, job(JOB_NONE, -1), now);
		told("");
		assert_int_equal(w.resume_due_ts, 0);
		is(&w, "active", "interrupted");
	}
	step(&w, job(JOB_NONE, -1), 1100 + 86400);
	told("failed");
	says(w.last_summary, "is lost: the host does not know it.");
	watch_free(&w);
}

static void
a_plan_may_hold_the_command(void **state)
{
	struct watch w = resumable_watch(1);
	char *command;

	(void)state;
	watch_set(&w.resume_plan_json, "{\"resume_command\": \"other\"}");
	command = watch_resume_command(&w);
	assert_string_equal(command, "other");
	free(command);
	watch_set(&w.resume_plan_json, "{\"resume_command\": 5}");
	command = watch_resume_command(&w);
	assert_string_equal(command, "./go --resume");
	free(command);
	watch_free(&w);
}

static void
a_host_that_was_rebooted_is_told(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_LOST, -1);

	(void)state;
	step(&w, job(JOB_RUNNING, -1), 1000);
	o.boot_id = "b2";
	o.reason = "reboot";
	step(&w, o, 1100);
	told("host_rebooted,interrupted");
	step(&w, o, 1120);
	told("");
	watch_free(&w);
}

/* It ends its processes in good order, so the job has a status. */
static void
a_shutdown_is_no_failure_of_the_job(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_KILLED, 143);

	(void)state;
	step(&w, job(JOB_RUNNING, -1), 1000);
	o.boot_id = "b2";
	step(&w, o, 1100);
	told("host_rebooted,interrupted");
	step(&w, seen(SEEN_UNREACHABLE), 1110);
	step(&w, o, 1130);
	told("");
	assert_true(out.resume);
	step(&w, seen(SEEN_RESUMED), 1131);
	/* The next death is its own. */
	step(&w, o, 1200);
	told("failed");
	watch_free(&w);
}

/* A login that leads to another node of a cluster. */
static void
another_host_is_no_reboot(void **state)
{
	struct watch w = resumable_watch(1);
	struct observation o = job(JOB_RUNNING, -1);

	(void)state;
	o.boot_id = "b1 one";
	step(&w, o, 1000);
	o = job(JOB_KILLED, 137);
	o.boot_id = "b2 two";
	step(&w, o, 1100);
	told("failed");
	watch_free(&w);
}

/* The host answers all the while, and nobody would hear of it. */
static void
a_resume_that_is_never_answered_is_told(void **state)
{
	struct watch w = resumable_watch(3);
	int64_t now = 1000;
	int i, alerts = 0;

	(void)state;
	step(&w, job(JOB_LOST, -1), now);
	for (i = 0; i < 20; i++) {
		now += 1000;
		step(&w, job(JOB_LOST, -1), now);
		if (!out.resume)
			continue;
		step(&w, seen(SEEN_RESUME_UNKNOWN), now + 1);
		alerts += out.count > 0;
	}
	assert_int_equal(alerts, 1);
	assert_int_equal(w.resume_attempts, 1);
	watch_free(&w);
}

static void
a_clock_that_is_set_back_delays_little(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	step(&w, job(JOB_LOST, -1), 1000000);
	step(&w, job(JOB_LOST, -1), 5000);
	assert_false(out.resume);
	assert_true(w.resume_due_ts <= 5100);
	assert_true(w.next_check_ts <= 5100);
	step(&w, job(JOB_LOST, -1), 5100);
	assert_true(out.resume);
	watch_free(&w);
}

/* It was set forward while the job is started. */
static void
a_job_that_is_not_there_yet_is_no_lost_one(void **state)
{
	struct watch w = resumable_watch(1);

	(void)state;
	step(&w, job(JOB_NONE, -1), 1000);
	told("");
	assert_int_equal(w.next_check_ts, 1000 + WATCH_START_S);
	step(&w, job(JOB_RUNNING, -1), 1060);
	told("");
	watch_free(&w);
	w = resumable_watch(1);
	step(&w, job(JOB_NONE, -1), 1000);
	step(&w, job(JOB_NONE, -1), 1060);
	told("interrupted,failed");
	assert_false(out.resume);
	is(&w, "failed", "failed");
	watch_free(&w);
}

static void
a_checkpoint_that_cannot_be_read_does_not_replace_one_that_could(void **state)
{
	struct watch w = new_watch();
	struct observation o = job(JOB_RUNNING, -1);
	json_t *p;

	(void)state;
	o.checkpoint_error = "there is no file";
	step(&w, o, 900);
	assert_string_equal(w.last_checkpoint_text,
	    "[checkpoint file not found]");
	o.checkpoint_error = "";
	o.checkpoint = "{\"epoch\": 3}";
	step(&w, o, 1000);
	assert_int_equal(w.checkpoint_updated_ts, 1000);
	step(&w, o, 1100);
	assert_int_equal(w.checkpoint_updated_ts, 1000);
	o = job(JOB_LOST, -1);
	o.checkpoint_error = "there is no file";
	step(&w, o, 1200);
	assert_string_equal(w.last_checkpoint_text, "{\"epoch\": 3}");
	p = last_payload();
	assert_string_equal(json_string_value(
	                        json_object_get(p, "checkpoint_error")),
	    "there is no file");
	says(json_string_value(json_object_get(p, "suggested_codex_prompt")),
	    "not instructions");
	json_decref(p);
	watch_free(&w);
}

static void
channels_follow_the_settings(void **state)
{
	struct watch w = new_watch();

	(void)state;
	watch_set(&w.webhook_url, "https://h/");
	watch_set(&w.event_command, "true");
	step(&w, job(JOB_EXITED, 1), 1000);
	assert_int_equal(out.events[0].channels,
	    1u << CHANNEL_FILE | 1u << CHANNEL_DESKTOP | 1u << CHANNEL_WEBHOOK |
	        1u << CHANNEL_COMMAND);
	watch_free(&w);
	w = new_watch();
	step(&w, job(JOB_EXITED, 0), 1000);
	assert_int_equal(out.events[0].channels, 1u << CHANNEL_FILE);
	watch_free(&w);
}

/* --- every state with every observation ----------------------------------- */

static int64_t
larger_of(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static bool
is_end(const char *type)
{
	return strcmp(type, EVENT_COMPLETED) == 0 ||
	    strcmp(type, EVENT_FAILED) == 0 ||
	    strcmp(type, EVENT_RESUME_EXHAUSTED) == 0;
}

/* What must hold after any step. */
static void
holds(const struct watch *old, const struct observation *o, int64_t now)
{
	const struct watch *w = &out.watch;
	bool active = strcmp(w->status, WATCH_ACTIVE) == 0;
	size_t i, ends = 0;

	for (i = 0; i < out.count; i++)
		ends += is_end(out.events[i].event_type);
	assert_int_equal(ends,
	    strcmp(old->status, WATCH_ACTIVE) == 0 && !active);
	assert_true(w->resume_attempts <=
	    larger_of(w->max_resume_attempts, old->resume_attempts));
	if (active && strcmp(old->status, WATCH_ACTIVE) == 0 &&
	    (o->seen <= SEEN_JOB || old->resume_pending != 0))
		assert_true(
		    w->next_check_ts > now && w->next_check_ts <= now + 86400);
	if (!out.resume)
		return;
	assert_int_equal(o->seen, SEEN_JOB);
	assert_true(o->state == JOB_LOST || o->state == JOB_KILLED);
	assert_int_equal(o->orphans, 0);
	assert_false(o->stopped);
	assert_true(w->auto_resume);
	assert_true(w->resume_pending == w->resume_attempts);
}

/* A record and a look made from bits. */
static void
one_of_all(const char *last_state, const char *status, struct observation o,
    unsigned bits)
{
	struct watch w = resumable_watch((bits & 1) ? 2 : 1);

	watch_set(&w.last_state, last_state);
	watch_set(&w.status, status);
	w.resume_attempts = (bits >> 1) & 1;
	w.resume_pending = (bits & 4) != 0 ? w.resume_attempts : 0;
	w.interrupted_ts = (bits & 8) != 0 ? 900 : 0;
	w.resume_due_ts = (bits & 8) != 0 ? 950 : 0;
	w.ssh_alert_sent = (bits & 16) != 0;
	watch_set(&w.boot_id, (bits & 32) != 0 ? "b0" : "b1");
	o.stopped = (bits & 64) != 0;
	o.orphans = (bits & 128) != 0;
	o.superseded = (bits & 16) != 0;
	watch_set(&w.job_run, (bits & 16) != 0 ? "train/1" : "");
	snprintf(o.job_run, sizeof(o.job_run), "train/1");
	step_free(&out);
	watch_step(&w, &o, 1000, &out);
	holds(&w, &o, 1000);
	watch_free(&w);
}

static void
all_bits(struct observation o)
{
	static const char *const states[][2] = { { "", WATCH_ACTIVE },
		{ STATE_RUNNING, WATCH_ACTIVE },
		{ STATE_UNREACHABLE, WATCH_ACTIVE },
		{ STATE_CONFIG_MISSING, WATCH_ACTIVE },
		{ STATE_INTERRUPTED, WATCH_ACTIVE },
		{ STATE_RESUMING, WATCH_ACTIVE }, { "odd", WATCH_ACTIVE },
		{ STATE_COMPLETED, WATCH_COMPLETED },
		{ STATE_FAILED, WATCH_FAILED },
		{ STATE_EXHAUSTED, WATCH_FAILED },
		{ STATE_RUNNING, WATCH_CANCELLED } };
	unsigned bits;
	size_t i;

	for (i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		for (bits = 0; bits < 256; bits++)
			one_of_all(states[i][0], states[i][1], o, bits);
	}
}

static void
every_state_takes_every_observation(void **state)
{
	int what;

	(void)state;
	for (what = 0; what < SEENS; what++) {
		if (what != SEEN_JOB)
			all_bits(seen((enum seen)what));
	}
	all_bits(job(JOB_NONE, -1));
	all_bits(job(JOB_STARTING, -1));
	all_bits(job(JOB_RUNNING, -1));
	all_bits(job(JOB_EXITED, 0));
	all_bits(job(JOB_EXITED, 1));
	all_bits(job(JOB_KILLED, 143));
	all_bits(job(JOB_LOST, -1));
}

/* --- a life by chance ----------------------------------------------------- */

/* A host with one job, as jobs really behave: a start under a known key finds
 * the first one, none is started while one runs, and others may start it. */
struct world {
	bool up;
	int boot;
	struct run {
		bool running, exited;
		int code;
		int64_t orphans;
	} runs[64];
	int64_t count;   /* of the runs */
	int64_t foreign; /* of those that others started */
	int64_t by[64]; /* the run of an attempt; 0: the host has no such key */
};

static unsigned
chance(unsigned n)
{
	return (unsigned)rand() % n;
}

static void
end_run(struct world *h, struct run *r)
{
	switch (chance(12)) {
	case 0: /* it ends */
		r->running = false;
		r->exited = true;
		r->code = chance(2) == 0 ? 0 : 3;
		break;
	case 1:
	case 2:
	case 3: /* its runner is killed */
		r->running = false;
		r->orphans = chance(3) == 0;
		break;
	case 4: /* a reboot */
		r->running = false;
		h->boot++;
		break;
	}
}

static void
live(struct world *h)
{
	struct run *last = &h->runs[h->count - 1];

	if (chance(6) == 0)
		h->up = !h->up;
	if (last->running) {
		end_run(h, last);
	} else if (last->orphans > 0) {
		last->orphans = chance(3) != 0;
	} else if (chance(100) == 0 && h->count < 50) {
		h->runs[h->count++].running = true;
		h->foreign++;
	}
}

static int64_t
run_of(const struct watch *w, int64_t dflt)
{
	int64_t n = dflt;

	if (w->job_run[0] != '\0')
		assert_int_equal(str_to_int(strchr(w->job_run, '/') + 1, 0, 63,
		                     &n),
		    0);
	return n;
}

static struct observation
about(enum seen what, int64_t run)
{
	struct observation o = seen(what);

	snprintf(o.job_run, sizeof(o.job_run), "train/%d", (int)run);
	return o;
}

static struct observation
observe(const struct world *h, const struct watch *w, char boot[16])
{
	int64_t n = run_of(w, h->count - 1);
	struct observation o = about(SEEN_JOB, n);
	const struct run *r = &h->runs[n];

	if (!h->up)
		return seen(SEEN_UNREACHABLE);
	if (chance(40) == 0)
		return seen(SEEN_NO_CONFIG);
	snprintf(boot, 16, "b%d", h->boot);
	o.boot_id = boot;
	o.orphans = r->orphans;
	o.superseded = n < h->count - 1;
	o.reason = "runner";
	o.state = r->running ? JOB_RUNNING : r->exited ? JOB_EXITED : JOB_LOST;
	o.exit_code = o.state == JOB_EXITED ? r->code : -1;
	return o;
}

static struct observation
start(struct world *h, const struct watch *w)
{
	int64_t *by = &h->by[w->resume_pending], after = run_of(w, -1);
	const struct run *last = &h->runs[h->count - 1];

	if (!h->up || chance(5) == 0)
		return seen(SEEN_RESUME_UNKNOWN);
	if (*by == 0 && chance(8) == 0)
		return seen(SEEN_RESUME_REFUSED);
	if (*by == 0 && (last->running || after != h->count - 1))
		return about(SEEN_RESUME_TAKEN, h->count - 1);
	if (*by == 0) {
		assert_false(last->exited);
		assert_int_equal(last->orphans, 0);
		*by = h->count;
		h->runs[h->count++].running = true;
	}
	return chance(5) == 0 ? seen(SEEN_RESUME_UNKNOWN)
	                      : about(SEEN_RESUMED, *by);
}

static void
one_life(unsigned seed)
{
	int64_t max = 1 + seed % 4, now = 1000, started = 0;
	struct world h = { .up = true, .runs[0].running = true, .count = 1 };
	struct watch w = resumable_watch(max);
	struct observation o;
	char boot[16];
	size_t i, ends = 0;
	int round;

	srand(seed);
	w.resume_delay_s = chance(200);
	for (round = 0; round < 500; round++) {
		live(&h);
		now += chance(30) == 0 ? -5000 : (int)chance(150);
		o = observe(&h, &w, boot);
		step_free(&out);
		watch_step(&w, &o, now, &out);
		holds(&w, &o, now);
		if (chance(10) == 0)
			continue; /* killed before it was stored */
		for (;;) {
			for (i = 0; i < out.count; i++) {
				const char *t = out.events[i].event_type;

				ends += is_end(t);
				started += strcmp(t, EVENT_RESUME_STARTED) == 0;
			}
			watch_free(&w);
			watch_copy(&w, &out.watch);
			if (!out.resume || chance(10) == 0)
				break; /* or killed before the start */
			if (chance(20) == 0)
				live(&h);
			o = start(&h, &w);
			if (chance(10) == 0)
				break; /* killed before it was told */
			step_free(&out);
			watch_step(&w, &o, now, &out);
			holds(&w, &o, now);
		}
	}
	assert_true(h.count - h.foreign <= 1 + max);
	assert_true(started <= max);
	assert_true(started >= h.count - h.foreign - 1 ||
	    strcmp(w.status, WATCH_ACTIVE) == 0 ||
	    strcmp(w.last_state, STATE_EXHAUSTED) == 0);
	assert_int_equal(ends, strcmp(w.status, WATCH_ACTIVE) != 0);
	watch_free(&w);
}

static void
lives_by_chance_keep_their_promises(void **state)
{
	unsigned seed;

	(void)state;
	for (seed = 1; seed <= 200; seed++)
		one_life(seed);
}

#define TEST(name) cmocka_unit_test_teardown(name, clean)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_job_that_runs_and_completes),
		TEST(looks_are_spread_and_an_interval_apart),
		TEST(a_status_other_than_0_is_a_failure),
		TEST(what_an_ended_job_left_running_is_told),
		TEST(what_slurm_says_is_told),
		TEST(an_end_is_the_end),
		TEST(an_outage_is_told_once_and_its_end_too),
		TEST(an_outage_loses_no_interruption),
		TEST(a_missing_configuration_is_told_once),
		TEST(a_lost_job_is_resumed_after_its_delay),
		TEST(no_delay_resumes_at_once),
		TEST(resumes_end_when_they_are_used_up),
		TEST(a_resume_that_is_refused_counts),
		TEST(an_attempt_of_unknown_outcome_is_repeated_not_counted),
		TEST(a_resumed_run_that_ended_unseen_is_told_whole),
		TEST(a_run_by_hand_is_no_resume),
		TEST(a_watch_follows_its_own_runs),
		TEST(nothing_is_resumed_that_may_still_run),
		TEST(what_was_stopped_is_not_brought_back),
		TEST(without_leave_or_command_nothing_is_resumed),
		TEST(a_loss_that_nobody_resumes_ends_the_watch),
		TEST(what_slurm_may_run_again_is_waited_for),
		TEST(a_job_that_is_not_known_any_more_is_waited_for),
		TEST(a_plan_may_hold_the_command),
		TEST(a_host_that_was_rebooted_is_told),
		TEST(a_shutdown_is_no_failure_of_the_job),
		TEST(another_host_is_no_reboot),
		TEST(a_resume_that_is_never_answered_is_told),
		TEST(a_clock_that_is_set_back_delays_little),
		TEST(a_job_that_is_not_there_yet_is_no_lost_one),
		TEST(
		    a_checkpoint_that_cannot_be_read_does_not_replace_one_that_could),
		TEST(channels_follow_the_settings),
		TEST(every_state_takes_every_observation),
		TEST(lives_by_chance_keep_their_promises),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
