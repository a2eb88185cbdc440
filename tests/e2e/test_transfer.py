"""Syncs in workers of their own: they go on without who started them, can be
seen and cancelled from anywhere, and whatever happens to them, files are whole.
"""

import json
import os
import pathlib
import signal
import socket
import sqlite3
import threading
import time

import pytest

import rsmcp
import sshd as ssh_servers
from rsmcp import SLOW
from sshd import ROOT
from trees import Maker, same, write

needs_root = pytest.mark.skipif(not ROOT, reason="needs root")

# Everything is much, so a worker does it.
MUCH = {"REMOTE_SANDBOX_INLINE_SYNC_MAX_FILES": "0"}
CANCEL_S = 1 * SLOW


class SlowRoad:
    """A port that leads to another, with so many bytes a second."""

    def __init__(self, port, rate):
        self.target, self.rate = port, rate
        self.carried = 0        # bytes
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.sockets = [self.listener]
        self.thread(self.accept)

    def thread(self, function, *args):
        threading.Thread(target=function, args=args, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            self.sockets += [near, far]
            self.thread(self.carry, near, far)
            self.thread(self.carry, far, near)

    def carry(self, source, sink):
        try:
            while data := source.recv(16384):
                sink.sendall(data)
                self.carried += len(data)
                time.sleep(len(data) / self.rate)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self):
        for one in self.sockets:
            one.close()


@pytest.fixture
def slow_entry(sshd):
    """A sandbox behind two megabytes a second."""
    road = SlowRoad(sshd.port, 2 << 20)
    yield sshd.entry(port=road.port)
    road.close()


class Place:
    """Two directories, and calls about them from ever new processes."""

    def __init__(self, home, entry, path):
        self.home, self.entries = home, [entry]
        self.here, self.there = path / "here", path / "there"
        self.here.mkdir()

    def call(self, tool, env=MUCH, **arguments):
        return self.home.call(tool, self.entries, env=env, **arguments)

    def start(self, tool="sync_local_to_remote", **arguments):
        arguments.setdefault("local_path", str(self.here))
        arguments.setdefault("remote_path", str(self.there))
        result = self.call(tool, **arguments)
        assert not result.failed, result
        assert result["mode"] == "background", result
        return result

    def check(self, task_id, **arguments):
        return self.call("check_file_transfer_task", task_id=task_id,
                         **arguments)

    def cancel(self, task_id, **arguments):
        return self.call("cancel_file_transfer_task", task_id=task_id,
                         **arguments)

    def end(self, task_id):
        """How it ended."""
        return rsmcp.until("transfer %d has ended" % task_id, lambda: (
            lambda r: r if r["status"] not in ("queued", "running") else None)
            (self.check(task_id)), 6 * rsmcp.PATIENCE_S)

    def moving(self, task_id):
        """Wait until bytes flow; what is said then."""
        def look():
            result = self.check(task_id)
            assert result["status"] == "running", result
            progress = result.get("progress", {})
            return result if progress.get("bytes_done", 0) > 0 \
                and progress.get("rate_bytes_s") else None
        return rsmcp.until("bytes are moving", look)

    def leftovers(self):
        """Files that are not meant to stay."""
        return [path for path in self.there.rglob(".rsmcp*")]

    def locks(self):
        return list((self.home.state / "transfers").glob("*.lock"))


@pytest.fixture
def place(home, sshd, tmp_path):
    return Place(home, sshd.entry(), tmp_path)


@pytest.fixture
def slow(home, slow_entry, tmp_path):
    """The same behind the slow road, with something big."""
    place = Place(home, slow_entry, tmp_path)
    for i in range(3):
        write(place.here / ("small%d" % i), b"s" * 1000)
    write(place.here / "big", os.urandom(24 << 20))
    return place


def test_much_is_done_by_a_worker(place):
    Maker(7).grow(place.here, 40)
    started = place.start()
    assert started["auto_switched"] is True
    assert started["task_id"] == 1
    result = place.end(1)
    assert result["status"] == "completed", result
    same(place.here, place.there, dir_times=False)
    assert result["result"]["uploaded_files"] > 0
    assert result["result"]["synced_type"] == "directory"
    assert result["progress"]["phase"] == "complete"
    assert "running" not in result and "stale" not in result
    head = result["log_tail"].split("\n")[:5]
    assert head[0] == "== transfer task: 1"
    assert head[1].startswith("== created_at: 20")
    assert head[2:] == ["== sandbox: box",
                        "== local_path: %s" % place.here,
                        "== remote_path: %s" % place.there]
    rsmcp.until("the locks are gone", lambda: not place.locks())


def test_the_older_tool_always_uses_a_worker(place):
    write(place.here / "a", "one")
    started = place.start("sync_local_to_remote_background", env={})
    assert "auto_switched" not in started
    assert place.end(started["task_id"])["status"] == "completed"
    assert (place.there / "a").read_text() == "one"


def test_downloads_go_to_a_worker_too(place):
    place.there.mkdir()
    Maker(8).grow(place.there, 40)
    started = place.start("sync_remote_to_local")
    result = place.end(started["task_id"])
    assert result["status"] == "completed", result
    same(place.there, place.here, dir_times=False)
    assert result["result"]["downloaded_files"] > 0


def test_options_reach_the_worker(place):
    for name in ("keep.log", "a.txt", "sub/b.txt"):
        write(place.here / name, name)
    write(place.there / "extra", "x")
    write(place.there / "extra.log", "x")
    started = place.start(excludes=["*.log"], delete_extras=True,
                          confirm_delete=True)
    assert place.end(started["task_id"])["status"] == "completed"
    assert sorted(str(p.relative_to(place.there))
                  for p in place.there.rglob("*")) == \
        ["a.txt", "extra.log", "sub", "sub/b.txt"]


def test_a_failure_is_told(place):
    write(place.here / "a", "one")
    write(place.there, "a file in the way")
    started = place.start()
    result = place.end(started["task_id"])
    assert result["status"] == "failed"
    assert "is a file" in result["error"]
    assert place.there.read_text() == "a file in the way"


def test_files_are_private(place):
    write(place.here / "a", "one")
    place.end(place.start()["task_id"])
    state = place.home.state
    assert (state / "transfers").stat().st_mode & 0o777 == 0o700
    for path in [state / "watchdog.sqlite3", *state.glob("transfers/*")]:
        assert path.stat().st_mode & 0o777 == 0o600, path


@needs_root
def test_a_password_reaches_the_worker_unseen(home, sshd, new_account,
                                              tmp_path):
    account = new_account(password="pässword 7xQ'")
    road = SlowRoad(sshd.port, 2 << 20)
    entry = sshd.entry(port=road.port, user=account.name, key_file=None,
                       password=account.password)
    place = Place(home, entry, tmp_path)
    place.there = account.home / "there"
    write(place.here / "big", os.urandom(8 << 20))
    # No master yet, so it is the worker that logs in.
    started = place.start("sync_local_to_remote_background")
    secret = account.password.encode()
    pid = started["pid"]
    place.moving(started["task_id"])
    for name in ("environ", "cmdline"):
        assert secret not in pathlib.Path(
            "/proc/%d/%s" % (pid, name)).read_bytes()
        assert b"REMOTE_SANDBOX_LIST" not in pathlib.Path(
            "/proc/%d/%s" % (pid, name)).read_bytes()
    result = place.end(started["task_id"])
    road.close()
    assert result["status"] == "completed", result
    same(place.here, place.there, dir_times=False)
    for path in home.path.rglob("*"):
        if path.is_file():
            assert secret not in path.read_bytes(), path
    assert account.password not in "".join(home.said)


def test_it_goes_on_without_who_started_it(slow):
    server = slow.home.server(slow.entries, env=MUCH)
    started = slow.home.ask(server, "sync_local_to_remote",
                            local_path=str(slow.here),
                            remote_path=str(slow.there))
    assert not started.failed, started
    slow.moving(started["task_id"])
    server.kill()
    assert os.getsid(started["pid"]) == started["pid"]
    result = slow.end(started["task_id"])
    assert result["status"] == "completed", result
    same(slow.here, slow.there, dir_times=False)


def test_it_tells_how_far_it_is(slow):
    started = slow.start()
    result = slow.moving(started["task_id"])
    progress = result["progress"]
    assert result["running"] is True
    assert progress["phase"] == "uploading"
    assert progress["files_total"] == 4
    assert progress["bytes_total"] == (24 << 20) + 3000
    assert 0 < progress["bytes_done"] <= progress["bytes_total"]
    assert progress["eta_s"] >= 0
    assert len(slow.check(started["task_id"], last_n_lines=1)
               ["log_tail"].strip().split("\n")) == 1
    slow.cancel(started["task_id"])


@pytest.mark.parametrize("who", ["starter", "other"])
def test_cancel_works_from_any_process(slow, who):
    server = slow.home.server(slow.entries, env=MUCH)
    started = slow.home.ask(server, "sync_local_to_remote",
                            local_path=str(slow.here),
                            remote_path=str(slow.there))
    assert not started.failed, started
    slow.moving(started["task_id"])
    canceller = server if who == "starter" \
        else slow.home.server(slow.entries)
    result = slow.home.ask(canceller, "cancel_file_transfer_task",
                           task_id=started["task_id"])
    assert result["status"] == "cancelled", result
    assert result["terminated"] is True
    assert "force_killed" not in result
    assert rsmcp.gone(started["pid"])
    assert result.seconds < CANCEL_S, result.seconds
    after = slow.check(started["task_id"])
    assert after["status"] == "cancelled"
    assert "running" not in after and "stale" not in after
    assert not (slow.there / "big").exists()
    again = slow.cancel(started["task_id"])
    assert again["already_finished"] is True


def test_a_frozen_host_does_not_hold_up_cancel(slow, sshd):
    started = slow.start()
    slow.moving(started["task_id"])
    sshd.freeze()
    result = slow.cancel(started["task_id"])
    assert result["status"] == "cancelled", result
    assert result["terminated"] is True
    assert result.seconds < 2 * CANCEL_S, result.seconds
    sshd.thaw()


def test_sigterm_ends_it_in_good_order(slow):
    started = slow.start()
    slow.moving(started["task_id"])
    begun = time.monotonic()
    os.kill(started["pid"], signal.SIGTERM)
    rsmcp.until("the worker is gone", lambda: rsmcp.gone(started["pid"]),
                2 * SLOW)
    print("gone after %.2f s" % (time.monotonic() - begun))
    assert slow.check(started["task_id"])["status"] == "cancelled"
    assert not slow.locks()


def test_one_that_lost_its_connection_says_how_to_go_on(slow, sshd):
    started = slow.start()
    slow.moving(started["task_id"])
    sshd.cut()
    result = slow.end(started["task_id"])
    assert result["status"] == "failed", result
    assert "the same sync again goes on where it stopped" in result["error"]
    again = slow.start()
    assert slow.end(again["task_id"])["status"] == "completed"
    same(slow.here, slow.there, dir_times=False)


def test_a_killed_worker_is_stale_and_the_next_completes(slow):
    started = slow.start()
    slow.moving(started["task_id"])
    os.kill(started["pid"], signal.SIGKILL)
    rsmcp.until("the worker is gone", lambda: rsmcp.gone(started["pid"]))
    result = slow.check(started["task_id"])
    assert result["status"] == "running" and result["stale"] is True, result
    assert "running" not in result
    assert not (slow.there / "big").exists()
    again = slow.start()
    assert again["task_id"] == started["task_id"] + 1
    assert slow.end(again["task_id"])["status"] == "completed"
    same(slow.here, slow.there, dir_times=False)
    assert not slow.leftovers()
    assert slow.cancel(started["task_id"]) == {
        "task_id": started["task_id"], "status": "cancelled",
        "terminated": False}


def test_of_two_on_one_target_the_second_is_told(slow):
    started = slow.start()
    second = slow.call("sync_local_to_remote_background",
                       local_path=str(slow.here),
                       remote_path=str(slow.there) + "/.")
    assert second.failed
    assert "transfer task %d is writing to" % started["task_id"] \
        in json.dumps(second)
    other = slow.start(remote_path=str(slow.there) + "2")
    slow.cancel(other["task_id"])
    slow.cancel(started["task_id"])


def test_a_row_of_another_time_names_a_stranger(place):
    """Its pid belongs to somebody else by now, who is left alone."""
    write(place.here / "a", "one")
    task_id = place.start()["task_id"]
    place.end(task_id)
    with sqlite3.connect(place.home.state / "watchdog.sqlite3") as db:
        db.execute("UPDATE transfer_tasks SET status = 'running', pid = ?, "
                   "finished_ts = 0", (os.getpid(),))
    db.close()
    assert place.check(task_id)["stale"] is True
    result = place.cancel(task_id)     # we are alive to see it
    assert result["status"] == "cancelled"
    assert result["terminated"] is False


def test_a_locked_store_does_not_harm_it(slow):
    started = slow.start()
    slow.moving(started["task_id"])
    db = sqlite3.connect(slow.home.state / "watchdog.sqlite3", timeout=20,
                         isolation_level=None)
    db.execute("BEGIN EXCLUSIVE")
    result = slow.check(started["task_id"])
    assert result.failed
    assert "is locked by another program" in json.dumps(result)
    db.execute("COMMIT")
    db.close()
    assert slow.end(started["task_id"])["status"] == "completed"
    same(slow.here, slow.there, dir_times=False)


def test_a_broken_store_does_not_harm_it(slow):
    started = slow.start()
    slow.moving(started["task_id"])
    path = slow.home.state / "watchdog.sqlite3"
    path.write_bytes(b"this is not a database" * 1000)
    result = rsmcp.until("its row is back", lambda: (
        lambda r: None if r.failed else r)(slow.check(started["task_id"])))
    assert result["status"] in ("running", "completed")
    assert list(slow.home.state.glob("watchdog.sqlite3.broken-*"))
    assert slow.end(started["task_id"])["status"] == "completed"
    same(slow.here, slow.there, dir_times=False)


def test_unknown_tasks_are_said(place):
    for call in (place.check, place.cancel):
        result = call(4711)
        assert result.failed
        assert "no transfer task 4711" in json.dumps(result)


def test_the_command_of_the_worker_says_what_it_is(home):
    done = home.command("transfer-worker")
    assert done.returncode == 2 and "--task-id N" in done.stderr
    done = home.command("transfer-worker", "--task-id", "3", entries=[])
    assert done.returncode == 1
    assert "no transfer task 3" in done.stdout
    assert "transfer-worker" not in home.command("help").stdout


@pytest.mark.parametrize("made", [1, 1 << 33])
def test_a_queued_row_can_be_done_by_hand(place, made):
    """As rows of the earlier server that nobody came to do; perhaps the clock
    was set back since."""
    place.check(1)
    write(place.here / "a", "one")
    with sqlite3.connect(place.home.state / "watchdog.sqlite3") as db:
        db.execute(
            "INSERT INTO transfer_tasks(direction, sandbox_name, local_path,"
            " remote_path, created_ts, updated_ts) "
            "VALUES('local_to_remote', 'box', ?, ?, ?, 1)",
            (str(place.here), str(place.there), made))
    db.close()
    assert place.check(1)["stale"] is True
    done = place.home.command("transfer-worker", "--task-id", "1",
                              entries=place.entries)
    assert done.returncode == 0, done
    assert (place.there / "a").read_text() == "one"
    assert place.check(1)["status"] == "completed"
