"""A small world: a sandbox, the road to it, a user with a server, a watchdog;
and everything that can be broken about them but the road.
"""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "e2e"))
import agent as agents  # noqa: E402
import road as roads  # noqa: E402
import rsmcp  # noqa: E402
import sshd as ssh_servers  # noqa: E402
import wallclock  # noqa: E402
from watched import Watchdog  # noqa: E402

PATIENCE_S = 120 * rsmcp.SLOW   # for what must come once all is well again
DISK = "96m"      # more than all works of a scenario need
STATE = "24m"     # the same for the state directory
# Seconds by which a clock is set.
AHEAD_S = [-36000, -7200, 7200, 36000]
# What an event_command is told is kept by this one, a file for each time.
RECEIVER = """t=$(mktemp {0}/t.XXXXXX) && \
printf %s "$RSMCP_EVENT_JSON" >"$t.part" && \
cat "$RSMCP_EVENT_FILE" >"$t.file" && mv "$t.part" "$t.json"
"""


class Gone(Exception):
    """There is no reply, because the server was killed."""


def wait(what, condition, timeout=PATIENCE_S):
    """The first answer that is true; asked without haste."""
    end = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > end:
            raise AssertionError("waited in vain until " + what)
        time.sleep(0.05)
    return value


def nothing():
    """What is to be done when a fault is over that mends itself, or that
    heal() mends."""


class Disk:
    """One that is small enough to be filled, where that is allowed."""

    def __init__(self, path, size):
        self.path = path
        self.mounted = ssh_servers.ROOT and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "mode=0700,size=" + size, "none",
             path], capture_output=True).returncode == 0

    def fill(self):
        with open(self.path / "filler", "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while file.write(bytes(1 << 20)):
                    pass
        return lambda: (self.path / "filler").unlink(missing_ok=True)

    def close(self):
        if self.mounted:
            subprocess.run(["umount", "-l", self.path], check=True)


class World:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="w", dir="/tmp"))
        self.small = self.dir / "small"     # a disk that can be filled
        self.far = self.dir / "far"         # what commands write down
        self.heard = self.dir / "heard"     # what the receiver was told
        for path in (self.small, self.far, self.heard):
            path.mkdir()
        self.home = ssh_servers.Home()
        self.disks = [Disk(self.small, DISK), Disk(self.home.state, STATE)]
        self.clocks = [wallclock.WallClock(self.dir / name)
                       for name in ("clock", "far-clock")
                       if wallclock.LIBRARY]
        here, there = [each.env() for each in self.clocks] or [{}, {}]
        self.sshd = ssh_servers.Sshd(self.dir / "sshd", env={
            "HOME": self.small / "home", **there})
        (self.small / "home").mkdir()
        self.road = roads.Road(self.sshd.port)
        self.home.more.update(here, REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1",
                              REMOTE_SANDBOX_ALLOW_EVENT_COMMAND="1")
        self.daemon = Watchdog(self.home)
        self.tellings = {}
        self.lock = threading.Lock()    # who breaks and mends has it
        self.happened = set()       # what broke, in this scenario
        self.db_was_broken = False
        self.begin_server()
        self.agent.good("true")

    def begin_server(self):
        self.agent = agents.Agent(
            self.home, self.sshd.entry(port=self.road.port), record=False)

    def begin_daemon(self):
        if self.daemon.process is None:
            self.daemon.start()

    def close(self):
        self.daemon.kill()
        self.home.end()
        self.road.close()
        self.end_jobs()
        self.sshd.end()
        for disk in self.disks:
            disk.close()
        for path in (self.dir, self.home.path):
            shutil.rmtree(path, ignore_errors=True)

    def end_jobs(self):
        self.sshd.home = self.small / "home"
        self.sshd.end_jobs()

    # Events, as the one who is told them sees them.

    def receiver(self):
        return RECEIVER.format(self.heard)

    def told(self, watch):
        """What was told about a watch: (event, its file), one for each time
        that the receiver was called."""
        for path in self.heard.glob("*.json"):
            if path not in self.tellings:
                self.tellings[path] = tuple(
                    json.loads(path.with_suffix(suffix).read_text())
                    for suffix in (".json", ".file"))
        return [each for each in list(self.tellings.values())
                if each[0]["watch_id"] == watch]

    def event_file(self, number):
        """What is kept about an event; None if there is no such file."""
        path = self.home.state / "events" / ("event-%d.json" % number)
        return json.loads(path.read_text()) if path.exists() else None

    def time_passes(self, seconds):
        """For the user's programs it is so much later than it was."""
        for clock in self.clocks[:1]:
            clock.ahead(seconds)

    # Calls.  A server that was killed leaves some without a reply.

    def begin(self, tool, command=None, then=None, **arguments):
        agent = self.agent
        try:
            return agent, agent.begin(command, tool, then=then, **arguments)
        except (AssertionError, OSError, ValueError):
            return agent, None

    def over(self, call):
        """Is there a reply, or nobody who could give one?"""
        agent, number = call
        return number is None or agent.over(number) \
            or not agent.pump.is_alive()

    def end(self, call):
        agent, number = call
        if number is None:
            raise Gone
        wait("call %s has its reply" % number, lambda: self.over(call))
        if not agent.over(number):
            raise Gone
        return agent.end(number)

    def call(self, tool, command=None, **arguments):
        return self.end(self.begin(tool, command, **arguments))

    def settled(self, tool, **arguments):
        """The same, until it works: logins may have to wait a while."""
        def once():
            self.last = self.call(tool, **arguments)
            return None if self.last.failed else self.last
        try:
            return wait("%s works" % tool, once)
        except AssertionError as e:
            raise AssertionError("%s: %r" % (e, self.last)) from None

    # What can be broken.  Each returns how it is mended, or None if there was
    # nothing to break.  All chance is in the dice that it is given.

    def breakers(self):
        """Those that can be had here."""
        return ["sshd_cut", "sshd_gone", "sshd_frozen", "server_killed",
                "master_killed", "tmux_killed", "worker_killed",
                "daemon_killed", "db_locked", "db_broken"] \
            + (["disk_full"] if self.disks[0].mounted else []) \
            + (["state_full"] if self.disks[1].mounted else []) \
            + (["clock_set", "far_clock_set"] if self.clocks else [])

    def strike(self, kind, dice):
        with self.lock:
            return getattr(self, kind)(dice)

    def kill(self, pids):
        for pid in pids:
            ssh_servers.kill(pid, signal.SIGKILL)
        return nothing if pids else None

    def sshd_cut(self, dice):
        return self.kill(self.sshd.servers())

    def sshd_gone(self, dice):
        """With its connections, but not with what was started by them."""
        if self.sshd.process is None:
            return None
        pids = self.sshd.servers()
        self.sshd.process.kill()
        self.sshd.process.wait()
        self.sshd.process = None
        self.kill(pids)
        return nothing

    def sshd_frozen(self, dice):
        if self.sshd.process is None:
            return None
        self.sshd.freeze()
        return self.sshd.thaw if self.sshd.frozen else None

    def server_killed(self, dice):
        if self.agent.server.process.poll() is not None:
            return None
        self.agent.server.signal(signal.SIGKILL)
        self.agent.server.process.wait()
        return nothing

    def master_killed(self, dice):
        return self.kill(self.home.masters())

    def tmux_killed(self, dice):
        done = [subprocess.run(["tmux", "-S", path, "kill-server"],
                               capture_output=True).returncode == 0
                for path in self.sshd.open_dir.glob("tmux-*/default")]
        return nothing if any(done) else None

    def workers(self):
        mark = b"RSMCP_TEST=%s\0" % os.fsencode(self.home.path)
        found = []
        for pid in ssh_servers.pids():
            with contextlib.suppress(OSError):
                # They live for moments: who looks longer finds none.
                if b"\0transfer-worker\0" in pathlib.Path(
                        "/proc/%d/cmdline" % pid).read_bytes() \
                        and mark in pathlib.Path(
                        "/proc/%d/environ" % pid).read_bytes() + b"\0":
                    found.append(pid)
        return found

    def worker_killed(self, dice):
        return self.kill(self.workers())

    def daemon_killed(self, dice):
        if self.daemon.process is None:
            return None
        self.daemon.kill()
        return self.begin_daemon

    def disk_full(self, dice):
        return self.disks[0].fill()

    def state_full(self, dice):
        return self.disks[1].fill()

    def database(self):
        return self.home.state / "watchdog.sqlite3"

    def db_locked(self, dice):
        if not self.database().exists():
            return None
        db = sqlite3.connect(self.database(), timeout=5, isolation_level=None,
                             check_same_thread=False)
        try:
            db.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error:
            db.close()
            return None
        return db.close         # which rolls back

    def db_broken(self, dice):
        if not self.database().exists():
            return None
        self.db_was_broken = True
        with open(self.database(), "r+b") as file:
            file.seek(int(self.database().stat().st_size * dice.random()))
            file.write(dice.randbytes(500))
        return nothing

    def clock_set(self, dice):
        """The user's: of server, masters, workers and watchdog."""
        self.clocks[0].ahead(dice.choice(AHEAD_S))
        return nothing

    def far_clock_set(self, dice):
        self.clocks[1].ahead(dice.choice(AHEAD_S))
        return nothing

    # And all is well again.

    def ready(self, with_link):
        """Commands run; a login that failed may have to wait for that.
        Without a link, the next call has to log in."""
        def runs():
            self.last = self.call("exec_bash", "true")
            return not self.last.failed and self.last["exit_code"] == 0
        try:
            wait("commands run", runs)
        except AssertionError as e:
            raise AssertionError("%s: %r" % (e, self.last)) from None
        if not with_link:
            masters = self.home.masters()
            self.kill(masters)
            wait("there is no link",
                 lambda: all(rsmcp.gone(pid) for pid in masters))

    def heal(self):
        self.road.heal()
        for clock in self.clocks:
            clock.ahead(0)
        self.sshd.thaw()
        if self.sshd.process is None:
            self.sshd.mark = len(self.sshd.log())
            self.sshd.start()
        if self.agent.server.process.poll() is not None:
            self.begin_server()
