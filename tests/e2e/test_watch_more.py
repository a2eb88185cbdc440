"""Rarer things of the watchdog."""

import contextlib
import sqlite3
import time

import rsmcp
from watched import file_of, lose


def test_a_resume_under_another_name_is_followed(watched, sshd):
    """The name that the plan says; other jobs of the first one are not its
    business any more."""
    watched.daemon.start()
    watch_id = watched.job(
        "sleep 1000", session_name="t", auto_resume=True,
        checkpoint_command="true", resume_plan_json={
            "resume_command": "echo back; while [ ! -e stop ]; do sleep 0.1;"
            " done; exit 5", "tmux_session": "t-again"})
    watched.until_state(watch_id, "running")
    lose(sshd, "t")
    watched.until_event(watch_id, "resume_started")
    watched.job("exit 9", session_name="t")
    rsmcp.until("it is seen", lambda: "back\n" in watched.watch(
        watch_id)["last_log_tail"])
    checked = watched.good("check_background_task", watch_id=watch_id)
    assert checked["tmux_session"] == "t-again" and checked["running"] is True
    file_of(sshd, "stop").touch()
    watched.until_event(watch_id, "failed")
    assert watched.watch(watch_id)["last_exit_code"] == 5


def test_old_events_go_with_their_files(watched):
    watched.daemon.start()
    watched.until_event(watched.job("true", session_name="t"), "completed")
    place = watched.home.state / "events"
    rsmcp.until("it is written", (place / "event-1.json").exists)
    watched.daemon.kill()
    with contextlib.closing(sqlite3.connect(
            watched.home.state / "watchdog.sqlite3", timeout=20)) as db, db:
        for number in range(2, 700):
            db.execute("INSERT INTO watch_events(id, watch_id, event_type,"
                       " summary, payload_json, created_ts)"
                       " VALUES(?, 1, 'failed', 's', '{}', 1000)", (number,))
            (place / ("event-%d.json" % number)).touch()
        # It waits for its delivery.
        db.execute("INSERT INTO event_deliveries(event_id, channel, next_ts)"
                   " VALUES(2, 'webhook', ?)", (int(time.time()) + 3600,))
    watched.daemon.start()
    left = ["event-%d.json" % n for n in (1, 2, *range(600, 700))]
    rsmcp.until("old ones are gone", lambda: sorted(
        path.name for path in place.iterdir()) == sorted(left))
    rsmcp.until("those in the store, too",
                lambda: len(watched.events()) == len(left))
