"""The watchdog, with real jobs on real sshds."""

import json
import os
import pathlib
import random
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

import rsmcp
from watched import BOX, Watched, file_of, lose


def test_a_job_that_completes(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job(
        "echo hello; echo '{\"epoch\": 7}' >ck.json; sleep 1",
        session_name="fine", checkpoint_path="ck.json",
        checkpoint_format="json", metadata_json={"a": 1})
    watched.until_event(watch_id, "completed")
    watch = watched.watch(watch_id)
    assert watch["status"] == watch["last_state"] == "completed"
    assert watch["last_exit_code"] == 0
    assert "hello" in watch["last_log_tail"]
    assert watch["last_checkpoint_text"] == '{"epoch": 7}\n'
    assert watch["metadata"] == {"a": 1}
    assert watch["log_file"] == str(file_of(sshd, ".codex_logs/fine.log"))
    assert watched.events(watch_id) == ["completed"]
    [event] = watched.good("list_background_watch_events",
                           watch_id=watch_id)["events"]
    assert event["payload"]["exit_code"] == 0
    assert event["payload"]["watch"]["status"] == "completed"
    progress = watched.good("get_background_watch_progress",
                            watch_id=watch_id)
    assert progress["live"]["errors"] == []
    assert progress["live"]["checkpoint"]["parsed"] == {"epoch": 7}
    assert progress["live"]["task"]["exit_code"] == 0
    assert progress["stored"]["checkpoint"]["parsed"] == {"epoch": 7}
    log = watched.good("read_background_watch_log", watch_id=watch_id)["log"]
    assert "hello" in log["log_tail"] and not log["running"]
    checkpoint = watched.good("read_background_watch_checkpoint",
                              watch_id=watch_id)
    assert checkpoint["checkpoint"]["parsed"] == {"epoch": 7}
    assert checkpoint["file_result"]["content"] == '{"epoch": 7}\n'
    checked = watched.good("check_background_task", watch_id=watch_id)
    assert checked["exit_code"] == 0 and checked["watch_id"] == watch_id
    status = watched.good("get_watchdog_status")
    assert status["heartbeat_stale"] is False
    assert status["watch_counts"]["completed"] == 1


def test_a_job_that_fails_or_is_killed(watched):
    watched.daemon.start()
    failed = watched.job("exit 3", session_name="f")
    killed = watched.job("kill -9 $$", session_name="k", auto_resume=True,
                         resume_command="touch resumed",
                         checkpoint_command="echo 1")
    watched.until_event(failed, "failed")
    watched.until_event(killed, "failed")
    assert watched.watch(failed)["last_exit_code"] == 3
    assert watched.watch(failed)["status"] == "failed"
    assert watched.watch(killed)["last_exit_code"] == 137
    assert watched.events(killed) == ["failed"]


def test_a_lost_job_is_resumed(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job(
        "echo first $WORD; echo 5 >ck; sleep 1000", session_name="train",
        cwd="~", env={"WORD": "kept"}, auto_resume=True,
        resume_command="echo again $(cat ck) $WORD $RSMCP_RESUME_ATTEMPT",
        checkpoint_command="cat ck")
    watched.until_state(watch_id, "running")
    rsmcp.until("the checkpoint is known", lambda: watched.watch(watch_id)[
        "last_checkpoint_text"] == "5\n")
    lose(sshd, "train")
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == [
        "interrupted", "resume_started", "completed"]
    log = file_of(sshd, ".codex_logs/train.log").read_text()
    assert "first kept\n" in log and "again 5 kept 1\n" in log
    assert log.count("again") == 2      # its title, and what it printed


def test_a_lost_job_that_nobody_resumes_ends_its_watch(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job("sleep 1000", session_name="t",
                           resume_command="true")
    watched.until_state(watch_id, "running")
    lose(sshd, "t")
    watched.until_event(watch_id, "failed")
    assert watched.events(watch_id) == ["interrupted", "failed"]
    watch = watched.watch(watch_id)
    assert watch["status"] == "failed"
    assert watch["next_check_ts"] == watch["resume_due_ts"] == 0
    [event, _] = watched.good("list_background_watch_events",
                              watch_id=watch_id)["events"]
    assert event["payload"]["lost"] is True
    assert event["payload"]["reason"] == "runner"
    assert "is lost: its runner was killed." in event["summary"]
    shown = watched.home.command("watch", "show", str(watch_id)).stdout
    assert "is lost: its runner was killed." in shown
    assert "resume at" not in shown and "next look" not in shown


def test_resumes_end(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job(
        "sleep 1000", session_name="t", auto_resume=True,
        max_resume_attempts=2, resume_command="echo run; sleep 1000",
        checkpoint_path="missing")
    for count in (1, 2):
        watched.until_state(watch_id, "running")
        lose(sshd, "t")
        watched.until_event(watch_id, "resume_started", count)
    watched.until_state(watch_id, "running")
    lose(sshd, "t")
    watched.until_event(watch_id, "resume_exhausted")
    watch = watched.watch(watch_id)
    assert watch["status"] == "failed" and watch["resume_attempts"] == 2
    assert "no file" in watch["checkpoint_error"]
    assert watched.events(watch_id) == [
        "interrupted", "resume_started"] * 2 + [
        "interrupted", "resume_exhausted"]


def test_a_resume_that_cannot_start(watched, sshd):
    watched.daemon.start()
    file_of(sshd, "work").mkdir()
    watch_id = watched.job(
        "sleep 1000", session_name="t", cwd="work", log_file="~/t.log",
        auto_resume=True, resume_command="true", checkpoint_command="true")
    watched.until_state(watch_id, "running")
    file_of(sshd, "work").rmdir()
    lose(sshd, "t")
    watched.until_event(watch_id, "resume_exhausted")
    assert watched.events(watch_id) == [
        "interrupted", "resume_failed", "resume_exhausted"]


def test_a_host_that_is_away_for_a_while(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job("sleep 5; while [ ! -e stop ]; do sleep 0.2; done",
                           session_name="t", auto_resume=True,
                           resume_command="touch resumed",
                           checkpoint_command="true")
    watched.until_state(watch_id, "running")
    sshd.stop()
    watched.until_event(watch_id, "ssh_unreachable")
    watch = watched.watch(watch_id)
    assert "not tried again" not in watch["last_error"] + watch["last_summary"]
    assert watch["last_error"]
    sshd.restart()
    watched.until_event(watch_id, "running_restored")
    file_of(sshd, "stop").touch()
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == [
        "ssh_unreachable", "running_restored", "completed"]
    assert not file_of(sshd, "resumed").exists()


def test_a_host_that_is_started_again(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job("sleep 1000", session_name="t", auto_resume=True,
                           resume_command="echo again",
                           checkpoint_command="true")
    watched.until_state(watch_id, "running")
    watched.daemon.signal(signal.SIGSTOP)
    run = file_of(sshd, ".local/state/remote-sandbox-mcp/jobs/t/r1")
    boot = pathlib.Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    lose(sshd, "t")
    for path in run.iterdir():
        if path.is_file() and boot in path.read_text(errors="replace"):
            path.write_text(path.read_text().replace(
                boot, "0" * 8 + boot[8:]))
    watched.daemon.signal(signal.SIGCONT)
    watched.until_event(watch_id, "completed")
    events = watched.events(watch_id)
    assert events[-4:] == ["host_rebooted", "interrupted", "resume_started",
                           "completed"]


def test_a_laptop_that_sleeps(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job("sleep 2; echo done", session_name="t")
    watched.until_state(watch_id, "running")
    watched.daemon.signal(signal.SIGSTOP)
    rsmcp.until("the job is over", lambda: "EXIT_CODE=0" in file_of(
        sshd, ".codex_logs/t.log").read_text())
    watched.daemon.signal(signal.SIGCONT)
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == ["completed"]


def test_auto_resume_needs_something_to_resume(watched, sshd):
    for arguments, word in (
            ({}, "resume_command"),
            ({"resume_command": "x"}, "checkpoint_path"),
            ({"resume_command": "x", "checkpoint_path": "y",
              "watch": False}, "watch")):
        result = watched.call("exec_bash_background", command="touch ran",
                              auto_resume=True, **arguments)
        assert result.failed and word in result["error"], result
    assert not file_of(sshd, "ran").exists()
    assert watched.good("list_background_watches")["watches"] == []


def test_a_status_that_there_is_not(watched):
    result = watched.call("list_background_watches", status="foo")
    assert result.failed and "cancelled" in result["error"], result
    assert watched.good("list_background_watches",
                        status="cancelled")["watches"] == []
    done = watched.home.command("watches", "--status", "cancelled")
    assert (done.returncode, done.stdout) == (0, "No watch is cancelled.\n")


def test_a_job_that_does_not_start_leaves_no_watch(watched):
    result = watched.call("exec_bash_background", command="true",
                          cwd="/nowhere")
    assert result.failed
    watched.job("sleep 100", session_name="one")
    result = watched.call("exec_bash_background", command="true",
                          session_name="one")
    assert result.failed
    assert len(watched.good("list_background_watches")["watches"]) == 1


def test_a_repeated_start_has_one_watch(watched):
    first = watched.job("sleep 100", session_name="one",
                        idempotency_key="k")
    again = watched.job("sleep 100", session_name="one",
                        idempotency_key="k")
    assert first == again
    assert len(watched.good("list_background_watches")["watches"]) == 1


def test_the_plan_and_the_arguments_are_merged(watched, sshd):
    watch_id = watched.job(
        "sleep 100", session_name="t", cwd="~", checkpoint_path="out/ck.json",
        auto_resume=True, resume_plan_json=json.dumps({
            "resume_command": "go", "checkpoint_path": "~/other",
            "checkpoint_format": "json", "cwd": "work", "note": 1}))
    watch = watched.watch(watch_id)
    assert watch["resume_command"] == "go"
    assert watch["checkpoint_path"] == "~/out/ck.json"
    assert watch["checkpoint_format"] == "json"
    assert watch["cwd"] == "~"
    plan = watch["resume_plan"]
    assert plan["checkpoint_path"] == "~/out/ck.json"
    assert plan["cwd"] == "~/work" and plan["note"] == 1
    assert plan["launch_command"] == "sleep 100"
    assert plan["tmux_session"] == "t"


def test_a_watch_for_a_job_that_runs(watched, sshd):
    watched.daemon.start()
    watched.good("exec_bash_background", command="sleep 1; exit 4",
                 session_name="t", watch=False)
    result = watched.good("watch_background_task", tmux_session="t",
                          log_file=".codex_logs/t.log", interval_s=1)
    assert result["watch_id"] == result["watch_query_id"]
    assert result["persisted_sandboxes"]["config_path"]
    watched.until_event(result["watch_id"], "failed")


def test_a_watch_is_for_its_own_run(watched, sshd):
    """Not for one that has the same name and came later."""
    watched.job("exit 3", session_name="t")
    rsmcp.until("it is over", lambda: not watched.good(
        "check_background_task", tmux_session="t")["running"])
    lost = watched.job("sleep 1000", session_name="t", auto_resume=True,
                       resume_command="touch resumed",
                       checkpoint_command="true")
    lose(sshd, "t")
    last = watched.job("echo third; sleep 1000", session_name="t")
    assert watched.good("check_background_task",
                        watch_id=1)["exit_code"] == 3
    watched.daemon.start()
    watched.until_event(1, "failed")
    watched.until_event(lost, "failed")
    watched.until_state(last, "running")
    assert watched.watch(1)["last_exit_code"] == 3
    assert "third" not in watched.watch(1)["last_log_tail"]
    [event] = watched.good("list_background_watch_events",
                           watch_id=lost)["events"]
    assert event["payload"]["superseded"] is True
    assert "another run of it" in event["summary"]
    assert watched.events(last) == []
    assert not file_of(sshd, "resumed").exists()


def test_a_cancelled_watch_leaves_the_job_alone(watched):
    watched.daemon.start()
    watch_id = watched.job("sleep 2", session_name="t")
    result = watched.good("cancel_background_watch", watch_id=watch_id)
    assert result["watch"]["status"] == "cancelled"
    rsmcp.until("the job is over", lambda: not watched.good(
        "check_background_task", tmux_session="t")["running"])
    time.sleep(2)
    assert watched.events(watch_id) == []


def test_events_are_waited_for(watched):
    watched.daemon.start()
    nothing = watched.good("wait_for_events", timeout_s=0)
    assert nothing["events"] == [] and nothing["timed_out"]
    cursor = nothing["next_cursor"]
    watch_id = watched.job("sleep 1", session_name="t")
    result = watched.good("wait_for_events", cursor=cursor, timeout_s=50)
    [event] = result["events"]
    assert event["event_type"] == "completed"
    assert event["watch_id"] == watch_id
    assert result["next_cursor"] == event["id"]
    again = watched.good("wait_for_events", cursor=cursor, timeout_s=0)
    assert again["events"] == [event]


def test_watches_and_events_for_people(watched):
    watched.daemon.start()
    assert "Nothing is watched" in watched.home.command("watches").stdout
    watch_id = watched.job("printf 'a\\033[31mb\\n'; exit 2",
                           session_name="t")
    watched.until_event(watch_id, "failed")
    table = watched.home.command("watches").stdout.splitlines()
    assert table[0].split()[:3] == ["ID", "STATUS", "STATE"]
    assert table[1].split()[:5] == ["1", "failed", "failed", "box", "t"]
    assert "exit code 2" in table[1]
    shown = watched.home.command("watch", "show", "1").stdout
    assert "\nab\n" in shown and "exit code    2\n" in shown
    one = json.loads(watched.home.command("watch", "show", "1",
                                          "--json").stdout)
    assert one["last_exit_code"] == 2
    [same] = json.loads(watched.home.command("watches", "--json").stdout)
    assert same == one
    events = watched.home.command("events").stdout
    assert "failed" in events and events.count("\n") == 1
    [event] = watched.home.command("events", "--json").stdout.splitlines()
    assert json.loads(event)["event_type"] == "failed"
    for none in (["--watch", "9"], ["--limit", "0"]):
        assert watched.home.command("events", *none).stdout == ""
    for wrong in (["watch"], ["watch", "show", "x"], ["watches", "x"],
                  ["events", "--limit", "-1"]):
        assert watched.home.command(*wrong).returncode == 2
    missing = watched.home.command("watch", "show", "77")
    assert missing.returncode == 1 and "no watch 77" in missing.stderr


def test_events_are_followed(watched):
    env = rsmcp.environment(watched.home.home, **watched.home.env())
    process = subprocess.Popen(
        [os.path.abspath(rsmcp.SERVER), "events", "--follow", "--json"],
        env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        watched.daemon.start()
        watched.job("true", session_name="t")
        assert json.loads(process.stdout.readline())[
            "event_type"] == "completed"
        process.send_signal(signal.SIGINT)
        assert process.wait(rsmcp.PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait()


def test_a_second_watchdog_says_so(watched):
    watched.daemon.start()
    rsmcp.until("it runs", lambda: "works on" in watched.daemon.log())
    done = watched.home.command("daemon")
    assert done.returncode == 1
    assert "another watchdog" in done.stderr


def test_a_dead_host_delays_nobody(home, new_sshd):
    alive, dead = new_sshd(), new_sshd()
    watched = Watched(home, alive, dead)
    try:
        for i in range(8):
            watched.job("sleep 1000", session_name="d%d" % i,
                        sandbox_name="box1")
        watch_id = watched.job("sleep 1000", session_name="a")
        dead.freeze(whole=True)
        watched.daemon.start()
        watched.until_state(watch_id, "running")
        first = watched.watch(watch_id)["last_checked_ts"]
        time.sleep(5)
        last = watched.watch(watch_id)["last_checked_ts"]
        assert last - first >= 2
    finally:
        watched.daemon.kill()


class Silent:
    """A host that takes connections and says nothing."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))

    def entry(self, name):
        return {"name": name, "host": "127.0.0.1", "user": "nobody",
                "port": self.socket.getsockname()[1],
                "connect_timeout_s": 300}


def test_many_dead_hosts_delay_nobody(home, sshd):
    silent = [Silent() for _ in range(12)]
    watched = Watched(home, sshd, *silent)
    try:
        for entry in 2 * watched.entries[1:]:
            watched.good("watch_background_task", tmux_session="t",
                         log_file="t.log", sandbox_name=entry["name"])
        watch_id = watched.job("true", session_name="t")
        watched.daemon.start()
        watched.until_event(watch_id, "completed")
    finally:
        watched.daemon.kill()
        for host in silent:
            host.socket.close()


def test_its_connection_is_killed(watched, sshd, home):
    """That is no outage that a job would be taken for lost by."""
    watched.daemon.start()
    watch_id = watched.job(
        "while [ ! -e stop ]; do sleep 0.2; done; exit 3", session_name="t",
        auto_resume=True, resume_command="touch resumed",
        checkpoint_command="true")
    watched.until_state(watch_id, "running")
    for kill in (sshd.cut, lambda: [os.kill(pid, signal.SIGKILL)
                                    for pid in home.masters()], sshd.cut):
        rsmcp.until("it is connected",
                    lambda: sshd.servers() and home.masters())
        logins = sshd.logins_ever()
        kill()
        rsmcp.until("it is there again", lambda: sshd.logins_ever() > logins,
                    timeout=3 * rsmcp.PATIENCE_S)
        watched.until_state(watch_id, "running")
    file_of(sshd, "stop").touch()
    watched.until_event(watch_id, "failed")
    told = watched.events(watch_id)
    assert told[-1] == "failed" and set(told[:-1]) <= {
        "ssh_unreachable", "running_restored"}
    assert watched.watch(watch_id)["last_exit_code"] == 3
    assert not file_of(sshd, "resumed").exists()


def test_two_servers_with_different_lists(home, new_sshd):
    """Each has one sandbox, by the same name; the watchdog reaches both."""
    sshds = [new_sshd(), new_sshd()]
    ways = [Watched(home, sshd) for sshd in sshds]
    watches = [way.job("while [ ! -e stop ]; do sleep 0.2; done; exit %d"
                       % code, session_name="t")
               for code, way in enumerate(ways, 3)]
    daemon = ways[0].daemon.start()
    try:
        for way, watch_id in zip(ways, watches):
            way.until_state(watch_id, "running")
        # Both are looked at again, after either server has come last.
        for way in ways:
            way.good("list_sandboxes")
        for code, sshd, watch_id in zip((3, 4), sshds, watches):
            file_of(sshd, "stop").touch()
            ways[0].until_event(watch_id, "failed")
            assert ways[0].events(watch_id) == ["failed"]
            assert ways[0].watch(watch_id)["last_exit_code"] == code
    finally:
        daemon.kill()


@pytest.mark.long
def test_a_link_that_freezes_is_an_outage(watched, sshd):
    watched.daemon.start()
    watch_id = watched.job("while [ ! -e stop ]; do sleep 0.2; done",
                           session_name="t", auto_resume=True,
                           resume_command="touch resumed",
                           checkpoint_command="true")
    watched.until_state(watch_id, "running")
    sshd.freeze(whole=True)
    rsmcp.until("the outage is told",
                lambda: "ssh_unreachable" in watched.events(watch_id),
                timeout=200 * rsmcp.SLOW)
    sshd.thaw()
    watched.until_event(watch_id, "running_restored")
    file_of(sshd, "stop").touch()
    watched.until_event(watch_id, "completed")
    assert not file_of(sshd, "resumed").exists()


def resident_kb(pid):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])


@pytest.mark.long
def test_many_watches_stay_on_schedule(home, new_sshd):
    """200 of them on five hosts, of which one is dead."""
    hosts = [new_sshd("MaxStartups 100") for _ in range(5)]
    watched = Watched(home, *hosts)
    names = [entry["name"] for entry in watched.entries]
    try:
        for name in names:
            watched.good("exec_bash_background", command="sleep 1000",
                         session_name="job", sandbox_name=name, watch=False)
        for i in range(200):
            watched.good("watch_background_task", tmux_session="job",
                         log_file=".codex_logs/job.log", interval_s=20,
                         sandbox_name=names[i % 5], notify_local=False)
        hosts[4].freeze(whole=True)
        watched.daemon.start()
        time.sleep(30)
        late, dead = [], False
        for _ in range(60):
            now = time.time()
            watches = json.loads(home.command(
                "watches", "--json", "--status", "active").stdout)
            late += [now - w["last_checked_ts"] for w in watches
                     if w["sandbox_name"] != names[4]]
            dead = dead or any(w["last_state"] == "ssh_unreachable"
                               for w in watches)
            time.sleep(1)
        assert dead
        assert max(late) < 20 + 10 * rsmcp.SLOW, sorted(late)[-10:]
        # A sanitizer keeps what was freed.
        assert rsmcp.BUILD > 1 or resident_kb(
            watched.daemon.process.pid) < 15 * 1024
    finally:
        watched.daemon.kill()


class Losses:
    """Each run of the job "t" is lost, but only after it began to work."""

    def __init__(self, sshd):
        self.sshd, self.lost = sshd, 0

    def runs(self):
        path = file_of(self.sshd, "runs")
        return path.read_text().count("run\n") if path.exists() else 0

    def lose(self):
        if self.runs() > self.lost:
            self.lost = self.runs()
            lose(self.sshd, "t")


def kill_at_random(watched, sshd, rounds, runs):
    """A resume scenario during which the watchdog dies all the time."""
    chance = random.Random(rounds)
    losses = Losses(sshd)
    watch_id = watched.job(
        "echo run >>runs; sleep 1000", session_name="t", auto_resume=True,
        max_resume_attempts=runs, checkpoint_command="cat runs",
        resume_command="echo run >>runs; sleep 1000", alert_after_failures=99)
    for _ in range(rounds):
        watched.daemon.start()
        time.sleep(chance.uniform(0.02, 0.8) * rsmcp.BUILD ** 0.5)
        watched.daemon.kill()
        if chance.random() < 2 * runs / rounds:
            losses.lose()
    watched.daemon.start()

    def over():
        losses.lose()
        return "resume_exhausted" in watched.events(watch_id)

    rsmcp.until("all resumes are used up", over,
                timeout=(10 + 5 * runs) * rsmcp.SLOW)
    assert losses.runs() == 1 + runs
    # Nothing is told twice, nothing left out.
    assert watched.events(watch_id) == [
        "interrupted", "resume_started"] * runs + [
        "interrupted", "resume_exhausted"]


def test_a_watchdog_that_is_killed_again_and_again(watched, sshd):
    kill_at_random(watched, sshd, 15, 3)


@pytest.mark.long
def test_a_watchdog_that_is_killed_two_hundred_times(watched, sshd):
    kill_at_random(watched, sshd, 200, 20)


def test_a_database_of_the_earlier_server_goes_on(home, sshd):
    """With the columns and the config.json that it wrote."""
    db = sqlite3.connect(home.state / "watchdog.sqlite3")
    db.executescript("""
        CREATE TABLE watches (id INTEGER PRIMARY KEY AUTOINCREMENT,
        run_id TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
        sandbox_name TEXT NOT NULL, tmux_session TEXT NOT NULL,
        log_file TEXT NOT NULL, cwd TEXT NOT NULL DEFAULT '',
        interval_s INTEGER NOT NULL DEFAULT 60,
        status TEXT NOT NULL DEFAULT 'active',
        created_ts INTEGER NOT NULL, updated_ts INTEGER NOT NULL,
        next_check_ts INTEGER NOT NULL DEFAULT 0);
        INSERT INTO watches(sandbox_name, tmux_session, log_file, interval_s,
        created_ts, updated_ts) VALUES('box', 'old', '%s', 1, 1, 1);
        """ % file_of(sshd, "old.log"))
    db.close()
    file_of(sshd, "old.log").write_text("== session: old\nhi\nEXIT_CODE=0\n")
    (home.state / "config.json").write_text(json.dumps(
        {"schema_version": 1, "sandboxes": [sshd.entry(BOX)]}))
    (home.state / "config.json").chmod(0o600)
    watched = Watched(home, sshd)
    try:
        watched.daemon.start()
        watched.until_event(1, "completed")
    finally:
        watched.daemon.kill()
