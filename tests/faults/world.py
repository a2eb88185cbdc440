"""A small world: a sandbox, the road to it, a user with a server, a watchdog;
and everything that can be broken about them but the road.
"""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
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
# A clock is set by so much, according to how long a fault lasts.
AHEAD_S = {0.1: -7200, 0.4: 7200, 1: -36000, 2.5: 36000}


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


class World:
    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="w", dir="/tmp"))
        self.small = self.dir / "small"     # a disk that can be filled
        self.far = self.dir / "far"         # what commands write down
        self.small.mkdir()
        self.far.mkdir()
        self.mounted = ssh_servers.ROOT and subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=" + DISK, "none",
             self.small], capture_output=True).returncode == 0
        self.clocks = [wallclock.WallClock(self.dir / name)
                       for name in ("clock", "far-clock")
                       if wallclock.LIBRARY]
        here, there = [each.env() for each in self.clocks] or [{}, {}]
        self.sshd = ssh_servers.Sshd(self.dir / "sshd", env={
            "HOME": self.small / "home", **there})
        (self.small / "home").mkdir()
        self.road = roads.Road(self.sshd.port)
        self.home = ssh_servers.Home()
        self.home.more.update(here, REMOTE_SANDBOX_EXPOSE_ADVANCED_TOOLS="1")
        self.daemon = Watchdog(self.home)
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
        if self.mounted:
            subprocess.run(["umount", "-l", self.small], check=True)
        shutil.rmtree(self.dir, ignore_errors=True)

    def end_jobs(self):
        self.sshd.home = self.small / "home"
        self.sshd.end_jobs()

    # Calls.  A server that was killed leaves some without a reply.

    def begin(self, tool, command=None, **arguments):
        agent = self.agent
        try:
            return agent, agent.begin(command, tool, **arguments)
        except (AssertionError, OSError, ValueError):
            return agent, None

    def end(self, call):
        agent, number = call
        if number is None:
            raise Gone
        wait("call %s has its reply" % number, lambda: agent.over(number)
             or not agent.pump.is_alive())
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

    # What can be broken, each for a while.

    def breakers(self):
        known = ["sshd_cut", "sshd_gone", "sshd_frozen", "server_killed",
                 "master_killed", "tmux_killed", "worker_killed",
                 "daemon_killed", "db_locked", "db_broken"]
        return known + (["disk_full"] if self.mounted else []) \
            + (["clock_set", "far_clock_set"] if self.clocks else [])

    def sshd_cut(self, seconds):
        for pid in self.sshd.servers():
            ssh_servers.kill(pid, signal.SIGKILL)

    def sshd_gone(self, seconds):
        """With its connections, but not with what was started by them."""
        if self.sshd.process is None:
            return
        pids = self.sshd.servers()
        self.sshd.process.kill()
        self.sshd.process.wait()
        self.sshd.process = None
        for pid in pids:
            ssh_servers.kill(pid, signal.SIGKILL)
        time.sleep(seconds)

    def sshd_frozen(self, seconds):
        self.sshd.freeze()
        time.sleep(seconds)
        self.sshd.thaw()

    def server_killed(self, seconds):
        self.agent.server.signal(signal.SIGKILL)
        self.agent.server.process.wait()

    def master_killed(self, seconds):
        for pid in self.home.masters():
            ssh_servers.kill(pid, signal.SIGKILL)

    def tmux_killed(self, seconds):
        for path in self.sshd.open_dir.glob("tmux-*/default"):
            subprocess.run(["tmux", "-S", path, "kill-server"],
                           capture_output=True)

    def workers(self):
        found = []
        for pid in self.home.processes():
            with contextlib.suppress(OSError):
                if b"\0transfer-worker\0" in pathlib.Path(
                        "/proc/%d/cmdline" % pid).read_bytes():
                    found.append(pid)
        return found

    def worker_killed(self, seconds):
        for pid in self.workers():
            ssh_servers.kill(pid, signal.SIGKILL)

    def daemon_killed(self, seconds):
        if self.daemon.process is not None:
            self.daemon.kill()
            time.sleep(seconds / 4)
            self.daemon.start()

    def disk_full(self, seconds):
        with open(self.small / "filler", "wb", buffering=0) as file:
            with contextlib.suppress(OSError):
                while file.write(bytes(1 << 20)):
                    pass
        time.sleep(seconds)
        (self.small / "filler").unlink()

    def database(self):
        return self.home.state / "watchdog.sqlite3"

    def db_locked(self, seconds):
        with contextlib.closing(sqlite3.connect(
                self.database(), timeout=5, isolation_level=None)) as db:
            with contextlib.suppress(sqlite3.Error):
                db.execute("BEGIN EXCLUSIVE")
                time.sleep(seconds)
                db.execute("ROLLBACK")

    def db_broken(self, seconds):
        if self.database().exists():
            self.db_was_broken = True
            size = max(self.database().stat().st_size, 1)
            with open(self.database(), "r+b") as file:
                file.seek(random.Random(seconds).randrange(size))
                file.write(os.urandom(500))

    def clock_set(self, seconds):
        """The user's: of server, masters, workers and watchdog."""
        self.clocks[0].ahead(AHEAD_S[seconds])

    def far_clock_set(self, seconds):
        self.clocks[1].ahead(AHEAD_S[seconds])

    # And all is well again.

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
