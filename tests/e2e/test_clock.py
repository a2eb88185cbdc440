"""Clocks that are set by hours while things are under way.

Nothing that is promised goes by the time of day: not on our side, and not on
the host's.
"""

import contextlib
import sqlite3
import time

import pytest

import rsmcp
import wallclock
from rsmcp import SLOW
from trees import write
from watched import Watched, file_of, lose

pytestmark = pytest.mark.skipif(
    wallclock.LIBRARY is None, reason="there is no clock to set")
HOURS = pytest.mark.parametrize("seconds", [7200, -7200])


@pytest.fixture
def far_clock(tmp_path):
    return wallclock.WallClock(tmp_path / "far-clock")


@pytest.fixture
def sshd(new_sshd, far_clock):
    return new_sshd(env=far_clock.env())


@pytest.fixture
def clock(tmp_path):
    return wallclock.WallClock(tmp_path / "clock")


@pytest.fixture
def home(home, clock):
    home.more.update(clock.env())
    return home


@pytest.fixture
def watched(home, sshd):
    home.more["REMOTE_SANDBOX_ALLOW_EVENT_COMMAND"] = "1"
    made = Watched(home, sshd)
    yield made
    made.daemon.kill()
    print(made.daemon.log())    # shown if the test failed


def timed_out(result):
    """After two seconds, and what a busy machine takes."""
    assert result["timed_out"], result
    assert 1.9 < result.seconds < 2 + 20 * SLOW
    assert 1900 < result["duration_ms"] < 1000 * (2 + 20 * SLOW)


# --- The host's ------------------------------------------------------------

@HOURS
def test_commands_go_on(agent, far_clock, seconds):
    """Also those whose shell is ready since before."""
    before = int(agent.good("date +%s"))
    far_clock.ahead(seconds)
    calls = [agent.begin("date +%s") for _ in range(8)]
    for call in calls:
        result = agent.end(call)
        assert not result.failed and result["exit_code"] == 0, result
        assert abs(int(result["stdout"]) - before - seconds) < 600
        assert result["duration_ms"] >= 0


@HOURS
def test_a_command_lives_on_and_another_times_out(agent, sshd, far_clock,
                                                  tag, seconds):
    """What ends that one, and would end all if it heard nothing from us for a
    minute, reads its first line since."""
    alive = agent.begin("while [ ! -e ~/go ]; do sleep 0.1; done; echo done")
    call = agent.begin("sleep %s" % tag, timeout_s=2)
    tag.runs()
    far_clock.ahead(seconds)
    timed_out(agent.end(call))
    file_of(sshd, "go").touch()
    assert agent.end(alive)["stdout"] == "done\n"


@pytest.mark.parametrize("seconds", [0, 7200, -7200])
def test_a_command_that_comes_too_late(agent, sshd, far_clock, tmp_path,
                                       seconds):
    """It was on its way in a frozen link, and does not run after all."""
    agent.good("true")
    time.sleep(1)       # else there may be no shell yet that it is written to
    sshd.freeze()
    sent = time.monotonic()
    result = agent.run("echo x >>%s" % (tmp_path / "ran"), timeout_s=1)
    assert result.failed or result["exit_code"] is None
    far_clock.ahead(seconds)
    time.sleep(max(0, sent + 5 - time.monotonic()))
    sshd.thaw()
    assert agent.good("echo on") == "on\n"
    time.sleep(1)
    assert not (tmp_path / "ran").exists()


@HOURS
def test_a_job_across_it(agent, sshd, far_clock, seconds):
    def look(**more):
        return agent.run(None, tool="check_background_task",
                         tmux_session="j", **more)

    agent.good("true")
    started = agent.run("while [ ! -e go ]; do sleep 0.1; done; exit 3",
                        tool="exec_bash_background", session_name="j",
                        watch=False)
    assert not started.failed, started
    far_clock.ahead(seconds)
    assert look()["state"] in ("starting", "running")
    again = agent.run("true", tool="exec_bash_background", session_name="k",
                      watch=False)
    assert not again.failed, again
    file_of(sshd, "go").touch()
    end = look(wait_s=50)
    assert (end["state"], end["exit_code"]) == ("exited", 3)
    assert end.get("duration_s", 0) >= 0


@HOURS
def test_a_sync_goes_on(agent, far_clock, tmp_path, seconds):
    write(tmp_path / "here/a", "text")
    agent.good("true")
    far_clock.ahead(seconds)
    for tool, here, there in (
            ("sync_local_to_remote", "here", "there"),
            ("sync_remote_to_local", "back", "there")):
        result = agent.run(None, tool=tool, local_path=str(tmp_path / here),
                           remote_path=str(tmp_path / there))
        assert not result.failed, result
    assert (tmp_path / "back/a").read_text() == "text"


# --- Ours ------------------------------------------------------------------

@HOURS
def test_our_timeouts_are_as_long_as_ever(agent, clock, tag, seconds):
    agent.good("true")
    call = agent.begin("sleep %s" % tag, timeout_s=2)
    tag.runs()
    clock.ahead(seconds)
    timed_out(agent.end(call))


@HOURS
def test_a_host_that_was_away_is_tried_again(agent, sshd, clock, seconds):
    sshd.stop()
    assert agent.run("true").failed
    clock.ahead(seconds)
    sshd.start()
    rsmcp.until("it works", lambda: not agent.run("true").failed)


@HOURS
def test_a_watch_goes_on_and_tells_once(watched, sshd, clock, seconds):
    watched.daemon.start()
    watch_id = watched.job("while [ ! -e go ]; do sleep 0.1; done",
                           session_name="t", interval_s=5)
    watched.until_state(watch_id, "running")
    clock.ahead(seconds)
    file_of(sshd, "go").touch()
    watched.until_event(watch_id, "completed")
    assert watched.events(watch_id) == ["completed"]
    assert watched.good("get_watchdog_status")["heartbeat_stale"] is False


@HOURS
def test_a_job_is_resumed_once(watched, sshd, clock, seconds):
    watched.daemon.start()
    watch_id = watched.job(
        "sleep 1000", session_name="t", auto_resume=True,
        checkpoint_command="true",
        resume_command="echo x >>again; while [ ! -e go ]; do sleep 0.1; done")
    watched.until_state(watch_id, "running")
    lose(sshd, "t")
    watched.until_event(watch_id, "interrupted")
    clock.ahead(seconds)
    watched.until_event(watch_id, "resume_started")
    clock.ahead(0)
    watched.until_state(watch_id, "running")
    file_of(sshd, "go").touch()
    watched.until_event(watch_id, "completed")
    assert file_of(sshd, "again").read_text() == "x\n"
    assert watched.events(watch_id) == ["interrupted", "resume_started",
                                        "completed"]


@HOURS
def test_an_event_is_delivered_once(watched, clock, tmp_path, seconds):
    """Though it is due again while its command runs."""
    def rows():
        with contextlib.closing(sqlite3.connect(
                watched.home.state / "watchdog.sqlite3", timeout=20)) as db:
            return db.execute("SELECT state, tries FROM event_deliveries "
                              "WHERE channel = 'command'").fetchall()

    told, go = tmp_path / "told", tmp_path / "go"
    watched.daemon.start()
    watched.job("true", session_name="t", event_command=(
        "echo x >>%s; while [ ! -e %s ]; do sleep 0.1; done" % (told, go)))
    rsmcp.until("its command runs", told.exists,
                timeout=3 * rsmcp.PATIENCE_S)
    clock.ahead(seconds)
    rsmcp.until("it is due again", lambda: rows() == [("pending", 2)],
                timeout=3 * rsmcp.PATIENCE_S)
    go.touch()
    rsmcp.until("it is done", lambda: rows() == [("done", 2)])
    assert told.read_text() == "x\n"


# --- Sleep ------------------------------------------------------------------

@pytest.fixture
def sleep_clock(home, tmp_path):
    made = wallclock.WallClock(tmp_path / "slept", "RSMCP_SLEEP_CLOCK")
    home.more.update(made.env())
    return made


def test_an_idle_link_closes(sleep_clock, home, new_agent, sshd):
    """Nobody used it for five minutes; the next one finds a new one."""
    agent = new_agent(sshd.entry(control_persist_s=1))
    agent.good("true")
    sleep_clock.ahead(290)
    assert agent.good("echo on") == "on\n"
    assert sshd.logins_ever() == 1
    sleep_clock.ahead(290 + 310)
    rsmcp.until("the master is gone", lambda: not home.masters())
    assert agent.server.process.poll() is None
    assert agent.good("echo again") == "again\n"


def test_a_command_under_way_keeps_its_link(sleep_clock, home, new_agent,
                                            sshd):
    agent = new_agent(sshd.entry(control_persist_s=1))
    call = agent.begin("echo begun; sleep 4; echo done", timeout_s=3600,
                       token="t")
    rsmcp.until("it runs", lambda: agent.progress.get("t") or agent.over(call))
    sleep_clock.ahead(310)
    result = agent.end(call)
    assert result.get("stdout") == "begun\ndone\n", result
