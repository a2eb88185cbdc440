"""The state of the Python server, made by that server itself: opened, continued,
and still good for it.

It is installed from PyPI below build/, as the benchmarks have it.
"""

import contextlib
import itertools
import json
import pathlib
import shutil
import signal
import subprocess
import sys

import pytest

import rsmcp
from watched import Watched, file_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
from lib import peers  # noqa: E402

pytestmark = pytest.mark.skipif(
    not shutil.which("tmux"), reason="there is no tmux")


@pytest.fixture(scope="module")
def program():
    # Where there is no network this is not to take minutes.
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PIP_RETRIES", "1")
        patch.setenv("PIP_DEFAULT_TIMEOUT", "15")
        try:
            return peers.original()
        except peers.Broken as why:
            pytest.skip("the Python server " + str(why))


class Seed:
    """That server, on the state of a home."""

    def __init__(self, program, home, entry):
        self.program, self.home = str(program), home
        self.ids = itertools.count(1)
        self.env = home.env([entry], REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1")

    def __enter__(self):
        self.server = rsmcp.Server(self.home.home, program=self.program,
                                   env=self.env, record=False)
        self.server.initialize("2025-06-18")
        self.server.send({"jsonrpc": "2.0",
                          "method": "notifications/initialized"})
        return self

    def __exit__(self, *_):
        self.server.kill()

    def call(self, tool, **arguments):
        reply = self.server.ask(next(self.ids), "tools/call", {
            "name": tool, "arguments": arguments})
        result = json.loads(reply["result"]["content"][0]["text"])
        assert not reply["result"].get("isError") and "error" not in result, \
            result
        return result

    def events(self, watch_id):
        return [event["event_type"] for event in reversed(self.call(
            "list_background_watch_events", watch_id=watch_id)["events"])]

    def until(self, what, condition):
        """It takes its time, each of its processes some to start."""
        rsmcp.until(what, condition, timeout=5 * rsmcp.PATIENCE_S)

    @contextlib.contextmanager
    def daemon(self):
        process = subprocess.Popen(
            [self.program, "daemon", "--loop-sleep", "1"],
            cwd=self.home.home, env=rsmcp.environment(
                self.home.home, **self.env),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()


def start(seed, sshd, name):
    """A job that ends when the file of its name with "-stop" is there."""
    return seed.call("exec_bash_background", session_name=name, interval_s=1,
                     command="echo from %s; while [ ! -e ~/%s-stop ]; do "
                     "sleep 0.1; done" % (name, name))["watch_id"]


def test_it_goes_back_and_forth(program, home, sshd):
    tree = home.home / "tree"
    tree.mkdir()
    for number in range(12):
        (tree / ("f%d" % number)).write_text("x")
    seed = Seed(program, home, sshd.entry())
    with seed, seed.daemon():
        one = start(seed, sshd, "one")
        two = start(seed, sshd, "two")
        file_of(sshd, "one-stop").touch()
        seed.until("its daemon tells",
                   lambda: seed.events(one) == ["completed"])
        task = seed.call("sync_local_to_remote", local_path=str(tree),
                         remote_path="tree")["task_id"]
        seed.until("its transfer is over", lambda: seed.call(
            "check_file_transfer_task", task_id=task)[
                "status"] == "completed")

    ours = Watched(home, sshd)
    try:
        watches = ours.good("list_background_watches")["watches"]
        assert [(w["id"], w["status"]) for w in watches] == [
            (two, "active"), (one, "completed")]
        assert ours.events(one) == ["completed"]
        assert ours.good("check_file_transfer_task", task_id=task)[
            "status"] == "completed"
        checked = ours.good("check_background_task", watch_id=two)
        assert checked["running"] is True
        assert "from two\n" in checked["log_tail"]
        ours.daemon.start()
        rsmcp.until("ours has looked", lambda: ours.watch(two)[
            "last_state"] == "running")
        file_of(sshd, "two-stop").touch()
        ours.until_event(two, "completed")
        three = ours.job("exit 3", session_name="three")
        ours.until_event(three, "failed")
        four = ours.job("while [ ! -e four-stop ]; do sleep 0.1; done",
                        session_name="four")
    finally:
        ours.daemon.kill()
        ours.server.kill()

    with seed, seed.daemon():
        watches = seed.call("list_background_watches")["watches"]
        assert [(w["id"], w["status"]) for w in watches] == [
            (four, "active"), (three, "failed"), (two, "completed"),
            (one, "completed")]
        assert seed.events(two) == ["completed"]
        assert seed.events(three) == ["failed"]
        assert seed.call("check_file_transfer_task", task_id=task)[
            "status"] == "completed"
        # It takes up our job, and we its next one.
        file_of(sshd, "four-stop").touch()
        seed.until("its daemon tells",
                   lambda: seed.events(four)[-1:] == ["completed"])
        five = start(seed, sshd, "five")

    ours = Watched(home, sshd)
    try:
        ours.daemon.start()
        assert ours.watch(four)["status"] == "completed"
        file_of(sshd, "five-stop").touch()
        ours.until_event(five, "completed")
    finally:
        ours.daemon.kill()
